package archive_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/jobstate/archive"
	"github.com/joblife/joblife/jobstate/jobid"
)

func TestJobsComeByIDWhateverTheOrderOfTheArchive(t *testing.T) {
	all := join(job(3), job(1<<40), job(2))
	requireGood(t, read(t, pack(t, all...)), 2, 3, 1<<40)
	rapid.Check(t, func(rt *rapid.T) {
		shuffled := rapid.Permutation(all).Draw(rt, "order")
		a := read(t, pack(t, shuffled...))
		requireGood(t, a, 2, 3, 1<<40)
		require.Empty(rt, a.Failures)
	})
}

func TestTheCompressionIsFoundByLooking(t *testing.T) {
	plain := pack(t, job(7)...)
	bz2, err := os.ReadFile("testdata/one.tar.bz2")
	require.NoError(t, err)
	for name, b := range map[string][]byte{"plain": plain, "gzip": zip(t, plain), "bzip2": bz2} {
		t.Run(name, func(t *testing.T) {
			for _, r := range []io.Reader{bytes.NewReader(b), iotest.OneByteReader(bytes.NewReader(b)), iotest.DataErrReader(bytes.NewReader(b))} {
				a, err := archive.Read(r, archive.Limits{})
				require.NoError(t, err)
				requireGood(t, a, 7)
			}
		})
	}
	for name, head := range map[string]string{"xz": "\xfd7zXZ\x00", "zstd": "\x28\xb5\x2f\xfd"} {
		a, err := archive.Read(strings.NewReader(head+strings.Repeat("x", 2000)), archive.Limits{})
		require.ErrorIs(t, err, archive.ErrFormat)
		require.EqualError(t, err, "archive: offset 0: not a dump archive: compressed with "+name+", which is not supported")
		require.NotNil(t, a)
	}
}

func TestANameThatBeginsLikeAMagicNumberIsAName(t *testing.T) {
	a := read(t, pack(t, entry{path: "BZh9 is no compression", value: "v"}))
	require.Equal(t, []string{"BZh9 is no compression"}, keys(a))
}

func TestAnArchiveOfNothingIsEmpty(t *testing.T) {
	a := read(t, pack(t))
	require.Empty(t, a.Jobs)
	require.Empty(t, a.Failures)
	require.Empty(t, keys(a))
	_, ok := a.MaxID()
	require.False(t, ok)
	_, ok = a.Key("resource/R")
	require.False(t, ok)
}

func TestOtherKeysAreHeld(t *testing.T) {
	a := read(t, pack(t, join([]entry{
		{path: "./"}, {path: "resource/"}, {path: "resource/eventlog", value: ""}, {path: "./resource/R", value: "R"},
		{path: "admin/link", to: "eventlog"}, {path: "job/"}, {path: "job/0000/"}, {path: "jobs/0000/0000/0000/0001/eventlog", value: "x"},
	}, job(1))...))
	requireGood(t, a, 1)
	require.Empty(t, a.Failures)
	require.Equal(t, []string{"jobs/0000/0000/0000/0001/eventlog", "resource/R", "resource/eventlog"}, keys(a))
	v, ok := a.Key("resource/R")
	require.True(t, ok)
	require.Equal(t, "R", string(v))
	v, ok = a.Key("resource/eventlog")
	require.True(t, ok)
	require.Empty(t, v)
	for range a.Keys() {
		break
	}
}

func TestEachBadJobIsOneFailure(t *testing.T) {
	d := dir(5)
	without := func(keys ...string) (out []entry) {
		for _, e := range job(5) {
			if !slices.ContainsFunc(keys, func(k string) bool { return strings.HasSuffix(e.path, "/"+k) }) {
				out = append(out, e)
			}
		}
		return out
	}
	log := func(text string) []entry {
		return append(without("eventlog"), entry{path: d + "eventlog", value: text})
	}
	const at = `archive: "job/0000/0000/0000/0005": `
	for _, test := range []struct {
		name    string
		entries []entry
		is      error
		text    string
		line    int
	}{
		{"no eventlog", without("eventlog"), archive.ErrNoEventlog, at + "no eventlog", 0},
		{"no jobspec", without("jobspec"), archive.ErrNoJobspec, at + "no jobspec", 0},
		{"neither", without("jobspec", "eventlog"), archive.ErrNoEventlog, at + "no eventlog", 0},
		{"a directory alone", []entry{{path: d}}, archive.ErrNoEventlog, at + "no eventlog", 0},
		{"a file in the place of the directory", []entry{{path: strings.TrimSuffix(d, "/"), value: "x"}}, archive.ErrNotFile, at + "key is not a plain file", 0},
		{"an empty eventlog", log(""), archive.ErrNoSubmit, at + "eventlog does not begin with submit", 0},
		{"no submit", log(validated), archive.ErrNoSubmit, at + "line 1: eventlog does not begin with submit", 1},
		{"never validated", log(submitted), archive.ErrNotValidated, at + "job was never validated", 0},
		{"never validated, torn", log(strings.TrimSuffix(submitted, "\n")), archive.ErrNotValidated, at + "job was never validated", 0},
		{"a line that is no JSON", log(submitted + "x\n" + validated), archive.ErrEventlog, at + "line 2: eventlog is malformed: offset 0: unexpected byte \"x\"", 2},
		{"an empty line", log("\n" + submitted + validated), archive.ErrEventlog, at + "line 1: eventlog is malformed: offset 0: unexpected end", 1},
		{"an entry without a name", log(submitted + "{}\n"), archive.ErrEventlog, at + "line 2: eventlog is malformed: name: offset 0: key is missing", 2},
		{"an entry with an empty name", log(submitted + `{"timestamp":2,"name":""}` + "\n" + validated), archive.ErrEventlog, at + "line 2: eventlog is malformed: event has no name", 2},
		{"a name in another case", log(strings.Replace(submitted, `"name"`, `"Name"`, 1) + validated), archive.ErrEventlog, at + "line 1: eventlog is malformed: name: offset 0: key is missing", 1},
		{"an eventlog that is a link", append(without("eventlog"), entry{path: d + "eventlog", to: "J"}), archive.ErrNotFile, at + "key is not a plain file", 0},
		{"two eventlogs that differ", append(job(5), entry{path: d + "eventlog", value: submitted}), archive.ErrDuplicate, at + "key appears twice with different values", 0},
		{"two resource sets that differ", append([]entry{{path: d + "R"}}, job(5)...), archive.ErrDuplicate, at + "key appears twice with different values", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := read(t, pack(t, join(job(4), test.entries, job(6))...))
			requireGood(t, a, 4, 6)
			require.Equal(t, []string{test.text}, texts(a))
			f := a.Failures[0]
			require.ErrorIs(t, f, test.is)
			require.EqualValues(t, 5, f.ID)
			require.Equal(t, strings.TrimSuffix(d, "/"), f.Path)
			require.Equal(t, test.line, f.Line)
			id, ok := a.MaxID()
			require.True(t, ok)
			require.EqualValues(t, 6, id)
		})
	}
}

func TestLogsThatAreGoodForALoader(t *testing.T) {
	const old = `{"timestamp":1.0,"name":"submit","context":{"userid":0,"urgency":16,"flags":0}}` + "\n"
	for name, log := range map[string]string{
		"submit before there were versions":    old,
		"a version of null is none":            `{"timestamp":1.0,"name":"submit","context":{"version":null}}` + "\n",
		"no context, which a reducer refuses":  `{"timestamp":1.0,"name":"submit"}` + "\n",
		"validate later":                       submitted + `{"timestamp":1,"name":"dependency-add","context":{"description":"x"}}` + "\n" + validated,
		"what is behind validate is not read":  submitted + validated + "torn",
		"what is behind an old submit neither": old + "torn",
		"validate torn":                        submitted + strings.TrimSuffix(validated, "\n"),
	} {
		a := read(t, pack(t, entry{path: dir(5) + "eventlog", value: log}, entry{path: dir(5) + "jobspec"}))
		require.Empty(t, a.Failures, name)
		require.Equal(t, []archive.Job{{ID: 5, Eventlog: []byte(log), Jobspec: []byte{}}}, a.Jobs, name)
	}
}

func TestPathsWithoutAJobIDAreOneFailureADirectory(t *testing.T) {
	for _, bad := range []string{
		"job/0000/0001/e100/ZZZZ", "job/0000/0001/E100/0000", "job/0000/0001/e100/000", "job/0000/0001/e100/00000", "job/0000/001/e1000/0000",
		"job/0000//e100/0000", "job/..../0000/0000/0000", "job/+000/0000/0000/0000", "job/active/0000/0001/e100", "job/0000/0001/e10g/0000",
	} {
		a := read(t, pack(t, join([]entry{{path: bad + "/"}, {path: bad + "/eventlog", value: submitted}, {path: bad + "/guest/"}, {path: bad + "/jobspec"}}, job(1))...))
		requireGood(t, a, 1)
		require.Len(t, a.Failures, 1, bad)
		require.ErrorIs(t, a.Failures[0], archive.ErrBadID)
		require.Equal(t, bad, a.Failures[0].Path)
		require.Zero(t, a.Failures[0].ID)
		id, _ := a.MaxID()
		require.EqualValues(t, 1, id)
	}
	for _, short := range []string{"job/eventlog", "job/0000/0001/e100/eventlog", "job/0000/0001/e1000000", "job/0000.0001.e100.0000", "job/f1"} {
		a := read(t, pack(t, entry{path: short, value: "x"}))
		require.Len(t, a.Failures, 1, short)
		require.ErrorIs(t, a.Failures[0], archive.ErrBadID)
		require.Equal(t, short, a.Failures[0].Path)
	}
	a := read(t, pack(t, entry{path: "job/" + strings.Repeat("x", 90)}, entry{path: "job/" + strings.Repeat("x", 91)}))
	require.Len(t, a.Failures, 2, "paths that differ where they are cut")
	require.Len(t, a.Failures[0].Path, 64)
}

func TestTheGreatestIDMayBeInTheCheckpointOrAJob(t *testing.T) {
	checkpoint := func(text string) entry { return entry{path: "checkpoint/job-manager", value: text} }
	for text, want := range map[string]jobid.ID{
		`{"max_jobid": 8069840896}`:                       8069840896,
		`{"max_jobid":3,"version":1}`:                     7,
		`{"max_jobid":18446744073709551615,"queue":[{}]}`: 1<<64 - 1,
	} {
		a := read(t, pack(t, append(job(7), checkpoint(text))...))
		id, ok := a.MaxID()
		require.True(t, ok)
		require.Equal(t, want, id)
		require.Empty(t, a.Failures)
		_, ok = a.Key("checkpoint/job-manager")
		require.True(t, ok)
	}
	a := read(t, pack(t, checkpoint(`{"max_jobid":0}`)))
	id, ok := a.MaxID()
	require.True(t, ok)
	require.Zero(t, id)

	a = read(t, pack(t, entry{path: dir(9)}, entry{path: dir(8)}))
	id, _ = a.MaxID()
	require.EqualValues(t, 9, id, "failed jobs count")

	for _, text := range []string{"", "{", "[]", "{}", `{"max_jobid":-1}`, `{"max_jobid":"1"}`, `{"max_jobid":1.0}`, `{"max_jobid":18446744073709551616}`, `{"max_jobid":null}`} {
		a := read(t, pack(t, append(job(7), checkpoint(text))...))
		requireGood(t, a, 7)
		require.Len(t, a.Failures, 1, text)
		require.ErrorIs(t, a.Failures[0], archive.ErrCheckpoint)
		require.Equal(t, "checkpoint/job-manager", a.Failures[0].Path)
		require.Less(t, len(a.Failures[0].Error()), 200)
		id, _ := a.MaxID()
		require.EqualValues(t, 7, id)
	}
}

func TestEqualValuesMayOccurTwice(t *testing.T) {
	twice := join(job(1), job(1), []entry{{path: "resource/R", value: "R"}, {path: "./resource/R", value: "R"}})
	a := read(t, pack(t, twice...))
	requireGood(t, a, 1)
	require.Empty(t, a.Failures)
	require.Equal(t, []string{"resource/R"}, keys(a))

	a = read(t, pack(t, append(twice, entry{path: "resource/R", value: "r"}, entry{path: "resource/R", value: "s"})...))
	require.Equal(t, []string{`archive: "resource/R": key appears twice with different values`}, texts(a))
	_, ok := a.Key("resource/R")
	require.False(t, ok, "neither value is better")
}

func TestLargeValuesAreWhole(t *testing.T) {
	for _, n := range []int{64<<10 - 1, 64 << 10, 64<<10 + 1, 300_000} {
		long := submitted + validated + strings.Repeat("x", n-len(submitted+validated))
		a := read(t, zip(t, pack(t, entry{path: dir(1) + "eventlog", value: long}, entry{path: dir(1) + "jobspec", value: long[1:]}, entry{path: "k", value: "v"})))
		require.Len(t, a.Jobs, 1)
		require.Equal(t, long, string(a.Jobs[0].Eventlog))
		require.Equal(t, long[1:], string(a.Jobs[0].Jobspec))
		require.Equal(t, []string{"k"}, keys(a))
	}
}

func TestLinksAndTheLikeAreSkippedWhereNoKeyIsMeant(t *testing.T) {
	a := read(t, pack(t, append(job(1), entry{path: dir(1) + "guest", to: "ns::."}, entry{path: "resource", to: "x"})...))
	requireGood(t, a, 1)
	require.Empty(t, a.Failures)
	require.Empty(t, keys(a))
}

func TestFormatsOfTarThatFluxAndOthersWrite(t *testing.T) {
	for _, format := range []tar.Format{tar.FormatUSTAR, tar.FormatPAX, tar.FormatGNU} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if format == tar.FormatPAX {
			require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{"comment": "x"}}))
		}
		for _, e := range job(1) {
			require.NoError(t, w.WriteHeader(&tar.Header{Name: e.path, Size: int64(len(e.value)), Mode: 0o600, Format: format, Uname: "flux"}))
			_, err := io.WriteString(w, e.value)
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())
		a := read(t, b.Bytes())
		requireGood(t, a, 1)
		require.Empty(t, keys(a))
	}
}

func TestABrokenReaderIsToldFromABrokenArchive(t *testing.T) {
	b := pack(t, join(job(1), job(2))...)
	broken := errors.New("the network is down")
	for _, packed := range [][]byte{b, zip(t, b)} {
		for _, n := range []int{0, 5, len(packed) / 2, len(packed) - 1, len(packed)} {
			a, err := archive.Read(io.MultiReader(bytes.NewReader(packed[:n]), iotest.ErrReader(broken)), archive.Limits{})
			require.NotNil(t, a)
			require.NotErrorIs(t, err, archive.ErrTruncated, n)
			require.NotErrorIs(t, err, archive.ErrFormat, n)
			require.ErrorIs(t, err, broken)
		}
	}
}

func TestFailuresAndErrorsAreOneLineAndShort(t *testing.T) {
	evil := "job/\x1b[31m\n" + strings.Repeat("x", 90) + "/"
	a := read(t, pack(t, entry{path: evil}, entry{path: evil + "a/b/c/d"}))
	for _, f := range a.Failures {
		require.Less(t, len(f.Error()), 250)
		require.NotContains(t, f.Error(), "\n")
		require.NotContains(t, f.Error(), "\x1b")
		require.True(t, strings.HasPrefix(f.Error(), `archive: "job/\x1b[31m\n`), f.Error())
	}
	require.Len(t, a.Failures, 1)
	_, err := archive.Read(bytes.NewReader(pack(t, entry{path: evil + "a/b/c/d", value: "x"})[:513]), archive.Limits{})
	require.ErrorIs(t, err, archive.ErrTruncated)
	require.Less(t, len(err.Error()), 250)
	require.NotContains(t, err.Error(), "\n")
}
