package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/internal/refdata"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func replay(t *testing.T, stdin io.Reader, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	status = run(args, stdin, &out, &errOut)
	return status, out.String(), errOut.String()
}

// good runs the command, which has to succeed and to say nothing beside what it prints.
func good(t *testing.T, stdin io.Reader, args ...string) string {
	t.Helper()
	status, stdout, stderr := replay(t, stdin, args...)
	require.Equal(t, lines.ExitOK, status, stderr)
	require.Empty(t, stderr)
	return stdout
}

func fails(t *testing.T, stdin io.Reader, args ...string) (stdout, stderr string) {
	t.Helper()
	status, stdout, stderr := replay(t, stdin, args...)
	require.Equal(t, lines.ExitFault, status)
	return stdout, stderr
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "read the difference, then run with -update")
}

const samplePath = "testdata/sample.jsonl.gz"

func TestTheSampleInEveryForm(t *testing.T) {
	for name, args := range map[string][]string{
		"table.golden": nil, "json.golden": {"-json"}, "events.golden": {"-events"}, "waits.golden": {"-waits"},
	} {
		golden(t, name, good(t, nil, append(args, samplePath)...))
	}
	stdout, _ := fails(t, nil, "-validate", samplePath) // the reference lost epilogs of jobs in it
	golden(t, "validate.golden", stdout)
}

func TestNothingToReadShowsTheSample(t *testing.T) {
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer func() { require.NoError(t, null.Close()) }()
	status, stdout, stderr := replay(t, null)
	require.Equal(t, lines.ExitOK, status)
	require.Contains(t, stderr, "recorded sample")
	want, err := os.ReadFile("testdata/table.golden")
	require.NoError(t, err)
	require.Equal(t, string(want), stdout)
}

func gunzip(t testing.TB) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(sample))
	require.NoError(t, err)
	b, err := io.ReadAll(z)
	require.NoError(t, err)
	return b
}

func TestFormsOfInputTellTheSame(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "jobs.jsonl")
	require.NoError(t, os.WriteFile(plain, gunzip(t), 0o644))
	_, want, _ := replay(t, nil, samplePath)
	for _, c := range []struct {
		stdin io.Reader
		args  []string
	}{
		{nil, []string{plain}},
		{bytes.NewReader(sample), nil},
		{bytes.NewReader(sample), []string{"-"}},
		{bytes.NewReader(gunzip(t)), []string{"-"}},
		{bytes.NewReader(bytes.TrimSuffix(gunzip(t), []byte("\n"))), []string{"-"}},
	} {
		require.Equal(t, want, good(t, c.stdin, c.args...))
	}
}

func TestALogIsNamedByItsFileOrItsFolder(t *testing.T) {
	log, err := os.ReadFile("testdata/one.eventlog")
	require.NoError(t, err)
	dir := t.TempDir()
	for path, want := range map[string]string{
		"one.eventlog":                       "one.eventlog",
		"foo":                                "foo",
		"run 7/eventlog":                     "run 7/eventlog",
		"ƒuZZybuNNy.eventlog":                "ƒuZZybuNNy",
		"fuZZybuNNy/log":                     "ƒuZZybuNNy",
		"6731191091817518.log":               "ƒuZZybuNNy",
		"x/job/0017/e9fb/8df1/6c2e/eventlog": "ƒuZZybuNNy",
	} {
		path = filepath.Join(dir, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, log, 0o644))
		stdout := good(t, nil, path)
		require.Contains(t, stdout, "COMPLETED")
		require.Regexp(t, `(?m)^`+want+`  `, stdout)
	}
	require.Regexp(t, `(?m)^standard input  `, good(t, bytes.NewReader(log), "-"))

	// All of them, R and jobspec beside a log, and not the log of the job's shell.
	job := filepath.Join(dir, "x/job/0017/e9fb/8df1/6c2e")
	var rec struct{ R, Jobspec json.RawMessage }
	require.NoError(t, json.Unmarshal(bytes.SplitAfter(gunzip(t), []byte("\n"))[0], &rec))
	require.NoError(t, os.WriteFile(filepath.Join(job, "R"), rec.R, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(job, "jobspec"), rec.Jobspec, 0o644))
	require.NoError(t, os.MkdirAll(filepath.Join(job, "guest/exec"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(job, "guest/exec/eventlog"), log, 0o644))
	stdout := good(t, nil, "-json", dir)
	require.Equal(t, 5, strings.Count(stdout, "\n"), "foo and log are no names of what is read")
	require.Equal(t, 1, strings.Count(stdout, `"nnodes":`))
	stdout, stderr := fails(t, nil, t.TempDir())
	require.Empty(t, stdout)
	require.Contains(t, stderr, "no eventlog, JSON lines or dump archive in it")
}

func TestAFileOfNoKnownFormIsNamed(t *testing.T) {
	for _, in := range []string{"nonsense\n", "{}\n", "[1]", "# a comment\nkey = 1\n", strings.Repeat("\x00", 4096)} {
		stdout, stderr := fails(t, strings.NewReader(in), "-")
		require.Empty(t, stdout)
		require.Equal(t, "replay: standard input: not an eventlog, JSON lines or a dump archive\n", stderr)
	}
}

func TestATableFitsItsWidth(t *testing.T) {
	for _, width := range []int{40, 60, 80, 100, 140, 400} {
		var out bytes.Buffer
		s := newSession(&table{w: &out, width: width, form: jobTable()}, io.Discard)
		s.readAll([]string{samplePath}, nil)
		require.NoError(t, s.printer.close())
		times := 0
		for line := range strings.Lines(out.String()) {
			require.LessOrEqual(t, utf8.RuneCountInString(line), width+1, line)
			times += strings.Count(line, "2026-11-21")
		}
		require.Equal(t, width >= 80, times == 25)
	}
}

// A clock that jumped by more than a time.Duration holds is no negative time.
func TestATimeOfCenturiesIsForEver(t *testing.T) {
	for _, end := range []string{"1e10", "1e300"} {
		log := fmt.Sprintf(`{"timestamp":1,"name":"submit","context":{"userid":1,"urgency":16,"flags":0,"version":1}}
{"timestamp":2,"name":"validate"}
{"timestamp":%s,"name":"exception","context":{"type":"exec","severity":0,"note":""}}
`, end)
		for _, args := range [][]string{{"-"}, {"-waits", "-"}} {
			require.Contains(t, good(t, strings.NewReader(log), args...), " infinity ")
		}
	}
}

// A pipe or a file gets everything: why a job failed is the point.
func TestWhatIsNoTerminalIsNotCut(t *testing.T) {
	note := strings.Repeat("the node went away, ", 500) + "and never came back"
	log := fmt.Sprintf(`{"timestamp":1.5,"name":"submit","context":{"userid":1,"urgency":16,"flags":0,"version":1}}
{"timestamp":2.5,"name":"validate"}
{"timestamp":4.5,"name":"exception","context":{"type":"exec","severity":0,"note":%q}}
`, "line 1\n"+note)
	path := filepath.Join(t.TempDir(), "a long name of a job without an id.eventlog")
	require.NoError(t, os.WriteFile(path, []byte(log), 0o644))
	stdout := good(t, nil, path)
	require.Contains(t, stdout, "exec: line 1 "+note+"; waits for ")
	require.Contains(t, stdout, "\na long name of a job without an id.eventlog  ")
	require.Contains(t, stdout, "SUBMIT (UTC)", "no column goes")
}

func TestTheHelp(t *testing.T) {
	for _, help := range []string{"-h", "-help", "--help"} {
		stdout := good(t, nil, help)
		require.Contains(t, stdout, "usage: replay")
		require.Contains(t, stdout, "-validate")
	}
}

func TestWhatCannotBeReadIsNamedAndTheRestIsTold(t *testing.T) {
	lines := bytes.SplitAfter(gunzip(t), []byte("\n"))
	torn := bytes.Replace(lines[0], []byte(`\"clean\"}\n"`), []byte(`\"clean\"}"`), 1)
	require.NotEqual(t, lines[0], torn)
	for name, c := range map[string]struct {
		bad, want string
		jobs      int
	}{
		"not JSON":       {"{\n", "line 2: offset 2: unexpected end of JSON input", 2},
		"a key twice":    {"{\"id\":1,\"id\":2,\"eventlog\":\"\"}\n", `line 2: "id": key comes twice`, 2},
		"no eventlog":    {"{\"id\":1}\n", "job ƒ2: the log has no submit event", 2},
		"no job":         {"{\"R\":{}}\n", "line 2: has neither an id nor an eventlog", 2},
		"a bad id":       {"{\"id\":-1,\"eventlog\":\"\"}\n", "line 2: id: want the id of a job", 2},
		"a torn log":     {string(torn), "line 10", 3},
		"a bad R":        {strings.Replace(string(lines[0]), `"version":1,"execution"`, `"version":2,"execution"`, 1), "R: version: ", 3},
		"a bad jobspec":  {strings.Replace(string(lines[0]), `"jobspec":{`, `"jobspec":{"version":9,`, 1), "jobspec", 3},
		"a log of chaos": {"{\"id\":5,\"eventlog\":\"x\\n\"}\n", "line 1", 2},
	} {
		t.Run(name, func(t *testing.T) {
			in := string(lines[1]) + c.bad + string(lines[2])
			stdout, stderr := fails(t, strings.NewReader(in), "-")
			require.Contains(t, stderr, c.want)
			require.Equal(t, 1+c.jobs, strings.Count(stdout, "\n"), "header and jobs: %s", stdout)
		})
	}
	for _, bad := range []struct {
		stdin, name, want string
	}{
		{"", "-", "standard input: is empty"},
		{"\x1f\x8bxxxx", "-", "standard input: "},
		{"", "no-such-file", "no-such-file"},
	} {
		stdout, stderr := fails(t, strings.NewReader(bad.stdin), bad.name)
		require.Empty(t, stdout)
		require.Contains(t, stderr, bad.want)
	}
}

func TestABadFirstLineCostsThatLineOnly(t *testing.T) {
	stdout, stderr := fails(t, io.MultiReader(strings.NewReader("{oops\n"), bytes.NewReader(gunzip(t))), "-")
	require.Contains(t, stderr, "line 1")
	require.Equal(t, 26, strings.Count(stdout, "\n"))
}

func TestNoIDIsInvented(t *testing.T) {
	_, stdout, _ := replay(t, nil, "-json", "testdata/one.eventlog")
	require.NotContains(t, stdout, `"id"`)
	_, stdout, _ = replay(t, nil, "-json", samplePath)
	require.Contains(t, stdout, `"id":209346101248,`)
	_, stderr := fails(t, strings.NewReader(`{"timestamp":1.5,"name":"clean"}`+"\n"), "-")
	require.Equal(t, "replay: standard input: line 1, offset 0, \"clean\" in NEW: event is not legal in this state\n", stderr)
	_, _, stderr = replay(t, strings.NewReader("nonsense\n"), "-")
	require.NotContains(t, stderr, "ƒ")
}

// TestEveryKeyOfEveryListing compares what -json prints with what the
// instance's own job listing said, key by key, numbers as float64.
func TestEveryKeyOfEveryListing(t *testing.T) {
	const lost = "fBdjrET annotations: lost by the reference at a restart"
	differences := refdata.ExpectDifferences(t, map[string]int{lost: 2})
	jobs, keys := 0, 0
	for _, file := range []struct {
		name string
		jobs int
	}{
		{"recorded/brokers.jsonl.gz", 33}, {"recorded/mixed.jsonl.gz", 380},
		{"recorded/restart-pending.jsonl.gz", 8}, {"recorded/restart-done.jsonl.gz", 8},
	} {
		recs := refdata.Lines[struct {
			F58     string
			Listing map[string]any `json:"joblist"`
		}](t, file.name, file.jobs)
		stdout := good(t, nil, "-json", refdata.Path(t, file.name))
		lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
		require.Len(t, lines, len(recs))
		for i, line := range lines {
			var got map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &got))
			want := recs[i].Listing
			keys += len(want)
			if recs[i].F58 == "fBdjrET" {
				require.NotEqual(t, got["annotations"], want["annotations"])
				differences.Note(lost)
				delete(got, "annotations")
				delete(want, "annotations")
			}
			require.Equal(t, want, got, "%s: job %s", file.name, recs[i].F58)
			jobs++
		}
	}
	require.Equal(t, 429, jobs)
	require.Equal(t, 10914, keys)
}

// TestDumpArchives reads what flux-core 0.40 to 0.46 wrote, good and damaged.
func TestDumpArchives(t *testing.T) {
	whole := []string{
		"dump-0-40-0", "dump-0-41-0", "dump-0-45-0-no-checkpoint", "dump-0-45-0-queue-anon", "dump-0-45-0-queues-named",
		"dump-0-46-0-queue-anon-v1", "dump-0-46-0-queues-named-v1",
	}
	bad := map[string]string{
		"dump-baddir": "not a job id", "dump-noeventlog": "no eventlog", "dump-nojobspec": "no jobspec",
		"dump-nosubmit": "does not begin with submit", "dump-shorteventlog": "never validated",
	}
	path := func(name string) string { return refdata.Path(t, "dumps/"+name+".tar.bz2") }
	var all []string
	for _, name := range whole {
		stdout := good(t, nil, path(name))
		require.Equal(t, 2, strings.Count(stdout, "\n"))
		require.Contains(t, stdout, "COMPLETED")
		stdout = good(t, nil, "-validate", path(name))
		require.Contains(t, stdout, "jobs 1, errors 0")
		all = append(all, path(name))
	}
	for name, want := range bad {
		stdout, stderr := fails(t, nil, path(name))
		require.Empty(t, stdout)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		require.Contains(t, stderr, want)
		all = append(all, path(name))
	}
	stdout, stderr := fails(t, nil, all...)
	require.Equal(t, 1+len(whole), strings.Count(stdout, "\n"))
	require.Equal(t, len(bad), strings.Count(stderr, "\n"))
}

func TestNothingInALogReachesTheTerminalRaw(t *testing.T) {
	raw := `{"timestamp":1.5,"name":"submit","context":{"userid":1,"urgency":16,"flags":0,"version":1}}
{"timestamp":2.5,"name":"validate"}
{"timestamp":3.5,"name":"dependency-add","context":{"description":"\u001b[2Jd"}}
{"timestamp":4.5,"name":"exception","context":{"type":"\u0007x","severity":3,"note":"\u001b]0;owned\u0007 and more\nlines"}}
` + `{"timestamp":5.5,"name":"` + "\x7f\u009bx" + `","context":{"a":"` + "\x7f\u009b2J\u202e" + `"}}` + "\n" +
		`{"timestamp":6.5,"name":"` + "\x7f\u009bx" + `","` + "\u009b" + `":1}` + "\n"
	for _, mode := range []string{"-events", "-validate", "-waits", "-json", ""} {
		_, stdout, stderr := replay(t, strings.NewReader(raw), strings.Fields(mode+" -")...)
		require.NotEmpty(t, stdout, mode)
		require.NotRegexp(t, "[\x07\x1b\x7f\u009b\u202e]", stdout+stderr, mode)
		if mode == "-events" {
			require.Contains(t, stdout, `  \x7f\u009bx  `)
			require.Contains(t, stdout, `  {"a":"\x7f\u009b2J\u202e"}`)
		}
	}
}

func TestANameOfAFileReachesNoTerminalRaw(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "\x1b[2J\nreplay: x.log"), []byte("x\n"), 0o644))
	_, stderr := fails(t, nil, dir)
	require.Contains(t, stderr, `\x1b[2J\nreplay: x.log: not an eventlog`)
	require.NotContains(t, stderr, "\x1b")
}

func TestManyJobsKeepTheirColumns(t *testing.T) {
	const jobs = blockRows + 100
	line := bytes.SplitAfter(gunzip(t), []byte("\n"))[0]
	stdout := good(t, bytes.NewReader(bytes.Repeat(line, jobs)), "-")
	lines := strings.SplitAfter(stdout, "\n")
	require.Len(t, lines, jobs+2)
	for _, l := range lines[2 : len(lines)-1] {
		require.Equal(t, lines[1], l)
	}
}

func TestOfManyUpdatesTheLastCounts(t *testing.T) {
	line := string(bytes.SplitAfter(gunzip(t), []byte("\n"))[0])
	var updates strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&updates, `{\"timestamp\":%d.5,\"name\":\"jobspec-update\",\"context\":{\"attributes.system.duration\":%d,\"attributes.user.k%d\":1}}\n`, i+1, i, i)
	}
	head, tail, ok := strings.Cut(line, `{\"timestamp\":1795226024.8454771`) // the alloc
	require.True(t, ok)
	stdout := good(t, strings.NewReader(head+updates.String()+`{\"timestamp\":9.5,\"name\":\"priority\",\"context\":{\"priority\":1}}\n{\"timestamp\":1795226024.8454771`+tail), "-json", "-")
	require.Contains(t, stdout, `"duration":19999.0`)
	require.Contains(t, stdout, `"result":2`)
}

// FuzzInput: whatever is piped in, every form of the answer ends with a status,
// is printable, and with -json is one JSON object a line.
func FuzzInput(f *testing.F) {
	sample, err := os.ReadFile(samplePath)
	require.NoError(f, err)
	f.Add(sample)
	f.Add([]byte(`{"timestamp":1.5,"name":"submit","context":{"userid":1,"urgency":16,"flags":0,"version":1}}` + "\n"))
	f.Add([]byte(`{"id":1,"eventlog":"{\"timestamp\":1,\"name\":\"submit\"}\n","R":null,"jobspec":{}}` + "\n"))
	f.Add([]byte(`{"id":null,"eventlog":7}` + "\n{\n"))
	f.Add([]byte("BZh"))
	f.Fuzz(func(t *testing.T, input []byte) {
		for _, args := range [][]string{nil, {"-json"}, {"-events"}, {"-validate"}} {
			status, stdout, stderr := replay(t, bytes.NewReader(input), append(args, "-")...)
			require.Contains(t, []int{lines.ExitOK, lines.ExitFault}, status)
			for _, text := range []string{stdout, stderr} {
				require.NotContains(t, text, "\x1b")
				require.True(t, text == "" || strings.HasSuffix(text, "\n"), "%q", text)
			}
			if len(args) == 0 || args[0] != "-json" {
				continue
			}
			for line := range strings.Lines(stdout) {
				var object map[string]any
				require.NoError(t, json.Unmarshal([]byte(line), &object), "%q", line)
			}
		}
	})
}
