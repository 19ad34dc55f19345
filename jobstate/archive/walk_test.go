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

func TestTheJobsComeInTheOrderOfTheArchive(t *testing.T) {
	// Each list has the keys of one job; the first three are good ones.
	lists := [][]entry{
		job(3), job(1 << 40), job(2), job(5)[:3], {{path: dir(6) + "R", to: "x"}}, {{path: "job/x/y/eventlog"}}, {{path: "resource/R", value: "R"}},
		{{path: "checkpoint/job-manager", value: `{"max_jobid":3}`}}, {{path: "job/0000/"}}, {{path: dir(9)}, {path: dir(9) + "eventlog", value: submitted}, {path: dir(9) + "jobspec"}},
	}
	rapid.Check(t, func(rt *rapid.T) {
		all := slices.Clone(lists)
		for i, from := range rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}).Draw(rt, "order") {
			all[i] = lists[from]
		}
		b := pack(t, join(all...)...)
		a := read(t, b)
		var order []jobid.ID
		for _, list := range all {
			for _, id := range []jobid.ID{3, 1 << 40, 2} {
				if list[0].path == dir(id)+"J" {
					order = append(order, id)
				}
			}
		}
		requireGood(t, a, order...)
		require.Equal(rt, []string{
			`archive: job ƒ6: "job/0000/0000/0000/0005": no jobspec`,
			`archive: job ƒ7: "job/0000/0000/0000/0006": key is not a plain file`,
			`archive: job ƒA: "job/0000/0000/0000/0009": job was never validated`,
			`archive: "job/x/y/eventlog": not a job id: path is not four groups of four hexadecimal digits and a key`,
		}, texts(a))
		id, _ := a.MaxID()
		require.Equal(rt, jobid.ID(1<<40), id)

		n := rapid.IntRange(0, len(b)).Draw(rt, "cut")
		short, _ := walk(bytes.NewReader(b[:n]), archive.Limits{})
		requireGood(t, short, order[:len(short.Jobs)]...)
	})
}

func TestAJobWhoseKeysAreApartIsAFailure(t *testing.T) {
	one := job(1)
	for _, late := range []entry{one[1], one[2], one[3], one[5], {path: dir(1) + "R", to: "x"}, {path: strings.TrimSuffix(dir(1), "/"), value: "x"}} {
		a := read(t, pack(t, join(one, job(2), []entry{late, late}, job(3), []entry{late})...))
		requireGood(t, a, 1, 2, 3)
		require.Equal(t, []string{`archive: job ƒ2: "job/0000/0000/0000/0001": keys of the job are not together`}, texts(a))
	}
	// What is not kept may be anywhere.
	for _, late := range []entry{one[0], one[4], {path: dir(1)}, {path: dir(1) + "guest/"}} {
		require.Empty(t, read(t, pack(t, join(one, job(2), []entry{late})...)).Failures)
	}
	// A job that failed has failed once.
	a := read(t, pack(t, join(one[:5], job(2), one)...))
	requireGood(t, a, 2)
	require.Equal(t, []string{`archive: job ƒ2: "job/0000/0000/0000/0001": no jobspec`}, texts(a))
}

func TestAnErrorOfTheFunctionEndsAWalk(t *testing.T) {
	enough := errors.New("enough")
	for _, n := range []int{1, 2, 3} {
		calls := 0
		a, err := archive.Walk(bytes.NewReader(pack(t, join(job(1), job(2), job(3))...)), archive.Limits{}, func(archive.Job) error {
			if calls++; calls == n {
				return enough
			}
			return nil
		})
		require.Equal(t, enough, err)
		require.Equal(t, n, calls)
		require.Empty(t, a.Failures)
		id, _ := a.MaxID()
		require.EqualValues(t, n, id)
	}
}

func TestAWalkHoldsOneJob(t *testing.T) {
	const n = 500
	b := jobs(t, n)
	held := kept(n - 1)
	a, err := walk(bytes.NewReader(b), archive.Limits{HeldBytes: held, Entries: n})
	require.NoError(t, err)
	require.Len(t, a.Jobs, n)
	a, err = walk(bytes.NewReader(b), archive.Limits{HeldBytes: held - 1})
	require.ErrorIs(t, err, archive.ErrLimit)
	require.Len(t, a.Jobs, 100, "a longer id is more to keep")
	a, err = walk(bytes.NewReader(b), archive.Limits{Entries: n - 1})
	require.ErrorIs(t, err, archive.ErrLimit)
	require.Len(t, a.Jobs, n-1)
}

func TestTheCompressionIsFoundByLooking(t *testing.T) {
	plain := pack(t, job(7)...)
	bz2, err := os.ReadFile("testdata/one.tar.bz2")
	require.NoError(t, err)
	for _, b := range [][]byte{plain, zip(t, plain), bz2} {
		for _, r := range []io.Reader{bytes.NewReader(b), iotest.OneByteReader(bytes.NewReader(b)), iotest.DataErrReader(bytes.NewReader(b))} {
			a, err := walk(r, archive.Limits{})
			require.NoError(t, err)
			requireGood(t, a, 7)
		}
	}
	for name, head := range map[string]string{"xz": "\xfd7zXZ\x00", "zstd": "\x28\xb5\x2f\xfd"} {
		_, err := walk(strings.NewReader(head+strings.Repeat("x", 2000)), archive.Limits{})
		require.ErrorIs(t, err, archive.ErrFormat)
		require.EqualError(t, err, "archive: offset 0: not a dump archive: compressed with "+name+", which is not supported")
	}
	read(t, pack(t, entry{path: "BZh9 is no compression", value: "v"}))
}

func TestAnArchiveWithoutJobsIsEmpty(t *testing.T) {
	for _, b := range [][]byte{pack(t), pack(t, []entry{
		{path: "./"}, {path: "resource/"}, {path: "resource/eventlog"}, {path: "./resource/R", value: "R"}, {path: "resource/R", value: "S"}, {path: "admin", to: "x"},
		{path: "job/"}, {path: "job/0000/"}, {path: "jobs/0000/0000/0000/0001/eventlog", value: "x"}, {path: "checkpoint/job-manager/"},
	}...)} {
		a := read(t, b)
		require.Empty(t, a.Jobs)
		require.Empty(t, a.Failures)
		_, ok := a.MaxID()
		require.False(t, ok)
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
	for _, test := range []struct {
		name    string
		entries []entry
		is      error
		text    string
		line    int
	}{
		{"no eventlog", without("eventlog"), archive.ErrNoEventlog, "no eventlog", 0},
		{"no jobspec", without("jobspec"), archive.ErrNoJobspec, "no jobspec", 0},
		{"neither", without("jobspec", "eventlog"), archive.ErrNoEventlog, "no eventlog", 0},
		{"a directory alone", []entry{{path: d}}, archive.ErrNoEventlog, "no eventlog", 0},
		{"a file in the place of the directory", []entry{{path: strings.TrimSuffix(d, "/"), value: "x"}}, archive.ErrNotFile, "key is not a plain file", 0},
		{"an empty eventlog", log(""), archive.ErrNoSubmit, "eventlog does not begin with submit", 0},
		{"no submit", log(validated), archive.ErrNoSubmit, "line 1: eventlog does not begin with submit", 1},
		{"never validated", log(submitted), archive.ErrNotValidated, "job was never validated", 0},
		{"never validated, torn", log(strings.TrimSuffix(submitted, "\n")), archive.ErrNotValidated, "job was never validated", 0},
		{"a line that is no JSON", log(submitted + "x\n" + validated), archive.ErrEventlog, "line 2: eventlog is malformed: offset 0: unexpected byte \"x\"", 2},
		{"a log of one byte", log("x"), archive.ErrEventlog, "line 1: eventlog is malformed: offset 0: unexpected byte \"x\"", 1},
		{"an empty line", log("\n" + submitted + validated), archive.ErrEventlog, "line 1: eventlog is malformed: offset 0: unexpected end", 1},
		{"an entry without a name", log(submitted + "{}\n"), archive.ErrEventlog, "line 2: eventlog is malformed: name: offset 0: key is missing", 2},
		{"an entry with an empty name", log(submitted + `{"timestamp":2,"name":""}` + "\n" + validated), archive.ErrEventlog, "line 2: eventlog is malformed: event has no name", 2},
		{"a name in another case", log(strings.Replace(submitted, `"name"`, `"Name"`, 1) + validated), archive.ErrEventlog, "line 1: eventlog is malformed: name: offset 0: key is missing", 1},
		{"an eventlog that is a link", append(without("eventlog"), entry{path: d + "eventlog", to: "J"}), archive.ErrNotFile, "key is not a plain file", 0},
		{"two eventlogs that differ", append(job(5), entry{path: d + "eventlog", value: submitted}), archive.ErrDuplicate, "key appears twice with different values", 0},
		{"two resource sets that differ", append([]entry{{path: d + "R"}}, job(5)...), archive.ErrDuplicate, "key appears twice with different values", 0},
		{"a key that is too long", append(without("R"), entry{path: d + "R", value: strings.Repeat("x", 4096)}), archive.ErrLimit, "limit exceeded: value has too many bytes", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, err := walk(bytes.NewReader(pack(t, join(job(4), test.entries, job(6))...)), archive.Limits{FileBytes: 4095})
			require.NoError(t, err)
			requireGood(t, a, 4, 6)
			require.Equal(t, []string{`archive: job ƒ6: "job/0000/0000/0000/0005": ` + test.text}, texts(a))
			f := a.Failures[0]
			require.ErrorIs(t, f, test.is)
			require.EqualValues(t, 5, f.ID)
			require.Equal(t, strings.TrimSuffix(d, "/"), f.Path)
			require.Equal(t, test.line, f.Line)
			id, _ := a.MaxID()
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
		`{"max_jobid": 8069840896}`:                      8069840896,
		`{"max_jobid":3,"version":1}`:                    7,
		`{"max_jobid":0}`:                                7,
		`{"max_jobid":9223372036854775807,"queue":[{}]}`: 1<<63 - 1,
		`{"max_jobid":1000,"MAX_jobid":5}`:               1000,
	} {
		a := read(t, pack(t, append(job(7), checkpoint(text))...))
		id, _ := a.MaxID()
		require.Equal(t, want, id)
		require.Empty(t, a.Failures)
	}
	id, ok := read(t, pack(t, checkpoint(`{"max_jobid":0}`))).MaxID()
	require.True(t, ok)
	require.Zero(t, id)
	id, _ = read(t, pack(t, entry{path: dir(9)}, entry{path: dir(8)})).MaxID()
	require.EqualValues(t, 9, id, "failed jobs count")
	id, _ = read(t, pack(t, checkpoint(`{"max_jobid":5}`), checkpoint(`{"max_jobid":3}`))).MaxID()
	require.EqualValues(t, 5, id, "of two checkpoints, the greater one")
	id, _ = read(t, pack(t, append(job(7), entry{path: dir(7) + "checkpoint/job-manager", value: `{"max_jobid":9}`})...)).MaxID()
	require.EqualValues(t, 7, id, "a key of the job")
	kept := checkpoint(`{"max_jobid":5,"x":"` + strings.Repeat("x", 200) + `"}`)
	_, err := walk(bytes.NewReader(pack(t, kept)), archive.Limits{HeldBytes: 256})
	require.NoError(t, err)
	_, err = walk(bytes.NewReader(pack(t, kept, kept)), archive.Limits{HeldBytes: 256})
	require.ErrorIs(t, err, archive.ErrLimit, "each costs time")

	long := `{"max_jobid":9,"x":"` + strings.Repeat("x", 4096) + `"}`
	for _, text := range []string{"", "{", "[]", "{}", `{"max_jobid":-1}`, `{"max_jobid":"1"}`, `{"max_jobid":1.0}`, `{"max_jobid":9223372036854775808}`, `{"MAX_JOBID":9}`, `{"max_jobid":9,"max_jobid":5}`, `{"max_jobid":null}`, long} {
		a, err := walk(bytes.NewReader(pack(t, append(job(7), checkpoint(text), checkpoint(text))...)), archive.Limits{FileBytes: 4096, HeldBytes: 4096})
		require.NoError(t, err)
		requireGood(t, a, 7)
		require.Len(t, a.Failures, 1, text)
		require.True(t, errors.Is(a.Failures[0], archive.ErrCheckpoint) || text == long && errors.Is(a.Failures[0], archive.ErrLimit))
		require.Equal(t, "checkpoint/job-manager", a.Failures[0].Path)
		require.Less(t, len(a.Failures[0].Error()), 200)
		id, _ := a.MaxID()
		require.EqualValues(t, 7, id)
	}
}

func TestEqualValuesMayOccurTwice(t *testing.T) {
	a := read(t, pack(t, join(job(1), job(1))...))
	requireGood(t, a, 1)
	require.Empty(t, a.Failures)
}

func TestLargeValuesAreWhole(t *testing.T) {
	for _, n := range []int{64<<10 - 1, 64 << 10, 64<<10 + 1, 300_000} {
		long := submitted + validated + strings.Repeat("x", n-len(submitted+validated))
		a := read(t, zip(t, pack(t, entry{path: dir(1) + "eventlog", value: long}, entry{path: dir(1) + "jobspec", value: long[1:]}, entry{path: "k", value: "v"})))
		require.Len(t, a.Jobs, 1)
		require.Equal(t, long, string(a.Jobs[0].Eventlog))
		require.Equal(t, long[1:], string(a.Jobs[0].Jobspec))
	}
}

func TestALinkWhereNoKeyIsMeantIsSkipped(t *testing.T) {
	a := read(t, pack(t, append(job(1), entry{path: dir(1) + "guest", to: "ns::."}, entry{path: "checkpoint/job-manager", to: "x"})...))
	requireGood(t, a, 1)
	require.Empty(t, a.Failures)
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
		requireGood(t, read(t, b.Bytes()), 1)
	}
}
