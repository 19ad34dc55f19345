package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/purge/dirstore"
)

var update = flag.Bool("update", false, "write the golden files")

// invoke runs the command.
func invoke(stdin io.Reader, args ...string) (status int, stdout, stderr string) {
	var out, errOut bytes.Buffer
	status = run(args, stdin, &out, &errOut)
	return status, out.String(), errOut.String()
}

// golden compares a text with a file, or writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestGolden(t *testing.T) {
	for _, c := range []struct {
		name, args string
	}{
		{"dryrun", ""},
		{"force", "-force"},
		{"step", "-force -step 30d -num-limit 9995 -batch 2"},
		{"ids", "-force ƒ6kaPF7QcwZ"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, stdout, stderr := invoke(nil, strings.Fields(c.args)...)
			require.Equal(t, exitOK, status)
			golden(t, c.name+".golden", stdout)
			require.Regexp(t, `(?m)\Apurge: 10000 inactive jobs made up in \S+; the index of 10000 and 0 tombstones takes \d+ kB$`, stderr)
			require.NotContains(t, stderr, "\x1b", "no terminal, no bar")
			_, again, _ := invoke(nil, strings.Fields(c.args)...)
			require.Equal(t, stdout, again)
		})
	}
	_, one, _ := invoke(nil)
	_, two, _ := invoke(nil, "-seed", "2")
	require.NotEqual(t, one, two)
}

// typed returns the commands of a script.
func typed(script string) string {
	var b strings.Builder
	for line := range strings.Lines(script) {
		if rest, ok := strings.CutPrefix(line, "> "); ok {
			b.WriteString(rest)
		}
	}
	return b.String()
}

func TestInteractiveGolden(t *testing.T) {
	const file = "interactive.txt"
	script, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	o, err := parse([]string{"-i", "-jobs=12"}, io.Discard)
	require.NoError(t, err)
	var got, all strings.Builder
	s, err := newSession(o, bufio.NewWriter(&got), io.Discard)
	require.NoError(t, err)
	ended, answered := false, 0
	for line := range strings.Lines(string(script)) {
		rest, isCommand := strings.CutPrefix(line, "> ")
		if !isCommand && !strings.HasPrefix(line, "#") && line != "\n" {
			continue // an answer
		}
		got.WriteString(line)
		if isCommand && !ended {
			require.NoError(t, s.out.Flush())
			from := got.Len()
			ended = !s.obey(rest)
			require.NoError(t, s.out.Flush())
			if !ended {
				require.Greater(t, got.Len(), from, "%s is not answered", rest)
				answered++
			}
			all.WriteString(got.String()[from:])
		}
	}
	require.True(t, ended)
	require.Greater(t, answered, 50)
	golden(t, file, got.String())

	// All at once, through the command, it is the same.
	status, stdout, stderr := invoke(iotest.OneByteReader(strings.NewReader(typed(string(script)))), "-i", "-jobs=12")
	require.Equal(t, exitOK, status, stderr)
	require.Equal(t, all.String(), stdout)
}

func TestInputEndsASession(t *testing.T) {
	status, stdout, _ := invoke(strings.NewReader("\n  \n# a comment\nlist 1"), "-i", "-jobs=0")
	require.Equal(t, exitOK, status)
	require.Equal(t, "0 of 0 inactive jobs\n", stdout, "no prompt, and the last line needs no end")

	status, stdout, stderr := invoke(io.MultiReader(strings.NewReader("list 1\n"), iotest.ErrReader(errors.New("cable cut"))), "-i", "-jobs=0")
	require.Equal(t, exitFault, status)
	require.Equal(t, "0 of 0 inactive jobs\n", stdout)
	require.Contains(t, stderr, "purge: input: cable cut\n")
}

func TestLongLinesArePassedOver(t *testing.T) {
	const long = "! the line is longer than 4096 bytes and was passed over\n"
	for _, n := range []int{maxLine + 1, 2 * maxLine, 3*maxLine + 1, 1_000_000} {
		for _, end := range []string{"\nlist 1\n", "\r\nlist 1", "\n\nlist 1\n"} {
			input := "#" + strings.Repeat("x", n-1) + end
			_, stdout, _ := invoke(strings.NewReader(input), "-i", "-jobs=0")
			require.Equal(t, long+"0 of 0 inactive jobs\n", stdout)
		}
		_, stdout, _ := invoke(strings.NewReader(strings.Repeat("x", n)), "-i", "-jobs=0")
		require.Equal(t, long, stdout)
	}
	_, stdout, _ := invoke(strings.NewReader("#"+strings.Repeat("x", maxLine-2)+"\nlist 1\n"), "-i", "-jobs=0")
	require.Equal(t, "0 of 0 inactive jobs\n", stdout)
}

// What is typed comes back on a terminal, so that it must do no harm there.
func TestAnswersHaveNoControlCharacters(t *testing.T) {
	const bad = "\x1b]0;x\a\x00\xff"
	for _, line := range []string{
		bad, "list " + bad, "purge " + bad, "purge -" + bad, "ask " + bad, "limits " + bad, "limits age=" + bad, "limits " + bad + "=1",
		"advance " + bad, "pin ƒ48759GdCJB " + bad, "pin ƒ48759GdCJB waiter " + bad, "pin ƒ48759GdCJB waiter \u202e", "unpin ƒ48759GdCJB waiter " + bad,
		"pin ƒ48759GdCJB waiter " + strings.Repeat("a b", 200), strings.Repeat("y", 300),
	} {
		_, stdout, stderr := invoke(strings.NewReader(line), "-i", "-jobs=1")
		require.Regexp(t, `\A! [[:print:]ƒ…]{1,300}\n\z`, stdout, "%q", line)
		require.NotContains(t, stderr, bad)
	}
}

func TestUsageErrorsTellWhatToDo(t *testing.T) {
	for _, c := range []struct {
		args, want string
	}{
		{"-jobs=many", "want a number from 0 to 5000000"},
		{"-jobs=5000001", "want a number from 0 to 5000000"},
		{"-jobs=-1", "want a number from 0"},
		{"-seed=-1", "invalid value"},
		{"-age-limit=soon", "want a duration, as 90s, 12h or 7d"},
		{"-age-limit=-1", "want a duration"},
		{"-num-limit=-2", "want a number from -1"},
		{"-min-age=x", "want a duration"},
		{"-batch=0", "want a number from 1 to 1000"},
		{"-batch=1001", "want a number from 1 to 1000"},
		{"-pin=1001", "want a number from 0 to 1000"},
		{"-step=30y", "want a duration of at most 7300d, as 30d or -1h"},
		{"-step=--1h", "want a duration of at most"},
		{"-step=7301d", "want a duration of at most"},
		{"-step=infinity", "want a duration of at most"},
		{"-nosuch", "not defined: -nosuch"},
		{"-i ƒ1", "-i takes no ID"},
		{"-i -force", "give them as commands"},
		{"-i -step=1h", "give them as commands"},
		{"-dir=x -jobs=10001", "-jobs 10001 is too much for a directory: at most 10000"},
		{"ƒ0OIl", "want an id as the list shows it"},
		{"-num-limit=1 ƒ1", "leave out the limits or the IDs"},
		{strings.Repeat("1 ", maxIDs+1), "101 IDs, at most 100 are allowed"},
	} {
		status, stdout, stderr := invoke(nil, strings.Fields(c.args)...)
		require.Equal(t, exitUsage, status, c.args)
		require.Empty(t, stdout, c.args)
		require.Contains(t, stderr, c.want, c.args)
		require.Contains(t, stderr, "\npurge -h tells what there is\n", c.args)
	}
}

func TestHelpNamesEveryFlag(t *testing.T) {
	status, stdout, stderr := invoke(nil, "-h")
	require.Equal(t, exitOK, status)
	require.Empty(t, stderr)
	for _, name := range []string{"jobs", "seed", "age-limit", "num-limit", "min-age", "batch", "force", "pin", "step", "dir", "i"} {
		require.Contains(t, stdout, "\n  -"+name)
	}
}

// limitsOf returns the limits that flags are.
func limitsOf(t *testing.T, args ...string) string {
	o, err := parse(args, io.Discard)
	require.NoError(t, err)
	return describe(o.limits)
}

func TestLimitsAreUnsetUnlessGiven(t *testing.T) {
	require.Equal(t, "age=7d num=none min-age=none batch=100", limitsOf(t))
	require.Equal(t, "age=none num=0 min-age=none batch=100", limitsOf(t, "-num-limit=0"))
	require.Equal(t, "age=0s num=none min-age=none batch=100", limitsOf(t, "-age-limit=0"))
	require.Equal(t, "age=none num=none min-age=none batch=100", limitsOf(t, "-num-limit=-1"))
	require.Equal(t, "age=infinity num=none min-age=1h batch=7", limitsOf(t, "-age-limit=inf", "-min-age=1h", "-batch=7"))
	_, stdout, _ := invoke(nil, "-num-limit=-1", "-force", "-jobs=50")
	require.Contains(t, stdout, "use -force to purge 0 inactive jobs")
	require.Contains(t, stdout, "purged 0 inactive jobs, batches: 0")
}

func TestThereMayBeNoJobs(t *testing.T) {
	for n := range 5 {
		status, stdout, stderr := invoke(nil, fmt.Sprint("-jobs=", n), "-force", "-num-limit=0", "-step=-1h")
		require.Equal(t, exitOK, status, stderr)
		require.Contains(t, stdout, fmt.Sprintf("\nuse -force to purge %s\n", plural(max(0, n-3))))
		require.Contains(t, stdout, "job is active: \"RUN\"")
		require.Contains(t, stdout, "no such job")
	}
}

func TestNamedJobsThatDoNotGoAreAFault(t *testing.T) {
	status, stdout, stderr := invoke(nil, "ƒ6kaPF7QcwZ", "ƒ48Acm4sxLw", "f6kaPF7QcwZ")
	require.Equal(t, exitFault, status)
	require.Contains(t, stdout, "why: id\n! ƒ48Acm4sxLw: job is pinned by housekeeping")
	require.Contains(t, stdout, "use -force to purge 1 inactive job\n")
	require.Contains(t, stderr, "purge: 1 of 2 jobs would not go\n")

	status, stdout, stderr = invoke(nil, "-force", "ƒ6kaPF7QcwZ", "ƒ1")
	require.Equal(t, exitFault, status)
	require.Contains(t, stdout, "! ƒ1: no such job")
	require.Contains(t, stdout, "purged 1 inactive job\n")
	require.Contains(t, stderr, "purge: 1 of 2 jobs did not go\n")
}

// after returns what follows a word.
func after(t *testing.T, text, word string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, word)
	require.True(t, ok, text)
	return rest
}

func TestADirectoryIsFoundAgain(t *testing.T) {
	dir := "-dir=" + filepath.Join(t.TempDir(), "jobs")
	status, written, stderr := invoke(nil, dir, "-jobs=60")
	require.Equal(t, exitOK, status, stderr)
	require.Contains(t, stderr, "60 inactive jobs written and read")
	_, made, _ := invoke(nil, "-jobs=60")
	require.Equal(t, made, written, "in memory and in files are the same jobs")

	_, stdout, stderr := invoke(nil, dir, "-force", "-jobs=7", "-seed=9")
	require.Contains(t, stderr, "60 inactive jobs read", "and no others made up")
	_, made, _ = invoke(nil, "-force", "-jobs=60")
	before, _, _ := strings.Cut(made, "\nBY ID")
	require.Equal(t, before, stdout)

	// What is left is found again, and what is gone has tombstones.
	left := after(t, stdout, "\nAFTER ")
	_, stdout, _ = invoke(nil, dir)
	for _, row := range []string{"\ninactive ", "\noldest ", "\nnewest ", "\ntombstones "} {
		want, _, _ := strings.Cut(after(t, left, row), "\n")
		got, _, _ := strings.Cut(after(t, stdout, row), "\n")
		require.Equal(t, want, got)
	}
	require.Contains(t, stdout, "use -force to purge 0 inactive jobs")
	gone := regexp.MustCompile(`ƒ\w+`).FindString(after(t, left, "TOMBSTONES"))
	status, stdout, _ = invoke(nil, dir, "-force", gone)
	require.Equal(t, exitFault, status)
	require.Contains(t, stdout, "! "+gone+": job was purged: completed\n")
	_, stdout, _ = invoke(strings.NewReader("ask "+gone+"\nask ƒ6rYJzqTwuq"), dir, "-i")
	require.Contains(t, stdout, "afterok: yes")
	require.Contains(t, stdout, "job is active: \"DEPEND\"")
}

func TestADamagedJobHidesNoOther(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "jobs")
	_, _, _ = invoke(nil, "-dir="+dir, "-jobs=5")
	id, err := jobid.Parse("ƒ48759GdCJB")
	require.NoError(t, err)
	for _, log := range []string{"{}\n", `{"timestamp":1,"name":"clean"}` + "\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, id.KVSPath(), "eventlog"), []byte(log), 0o600))
		status, stdout, stderr := invoke(nil, "-dir="+dir)
		require.Equal(t, exitOK, status)
		require.Contains(t, stderr, "purge: passed over: ")
		require.Contains(t, stderr, id.String())
		require.Contains(t, stdout, "\ninactive           4 ")
	}
}

func TestJobsThatEndedLaterThanNowAreNewNotOld(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "jobs")
	_, _, _ = invoke(nil, "-dir="+dir, "-jobs=5")
	store, err := dirstore.Open(dir, dirstore.Options{})
	require.NoError(t, err)
	log, err := logOf(purge.Job{ID: 1 << 50, Inactive: eventlog.FromTime(now.AddDate(1, 0, 0)), Result: purge.Completed, Ran: true})
	require.NoError(t, err)
	require.NoError(t, store.Add(dirstore.Job{ID: 1 << 50, Eventlog: log}))
	require.NoError(t, store.Close())
	_, stdout, stderr := invoke(nil, "-dir="+dir)
	require.Contains(t, stdout, "\ninactive           6 ", stderr)
	require.Regexp(t, `\nnewest .* 2027-01-15 12:00:00 +0s old`, stdout)
}

func TestTheIDOfADamagedJobIsNotForgotten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "jobs")
	store, err := dirstore.Create(dir, dirstore.Options{})
	require.NoError(t, err)
	require.NoError(t, store.Add(dirstore.Job{ID: 1 << 50, Eventlog: []byte(`{"timestamp":1,"name":"clean"}` + "\n")}))
	require.NoError(t, store.Close())
	s, err := newSession(options{dir: dir}, bufio.NewWriter(io.Discard), io.Discard)
	require.NoError(t, err)
	require.Equal(t, jobid.ID(1<<50), s.index.Watermark())
	require.NoError(t, s.close())
}

func TestADirectoryOfOthersIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "thesis.txt"), []byte("x"), 0o600))
	status, stdout, stderr := invoke(nil, "-dir="+dir, "-jobs=5")
	require.Equal(t, exitFault, status)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "not made by the store")
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, names, 1)
}

func TestMadeUpLogsAreGoodAndEndAsTheyShould(t *testing.T) {
	jobs, active, err := draw(500, 1, io.Discard)
	require.NoError(t, err)
	outcomes := map[outcome]int{}
	for _, j := range jobs {
		log, err := logOf(j)
		require.NoError(t, err)
		require.Empty(t, jobstate.Validate(log))
		folded, err := jobstate.Replay(j.ID, log)
		require.NoError(t, err)
		since, _ := folded.Since()
		result, _ := folded.Result()
		require.Equal(t, j, purge.Job{ID: j.ID, Inactive: since, Result: purge.Result(result), Ran: folded.Started()})
		outcomes[outcome{j.Result, j.Ran}]++
	}
	require.Len(t, outcomes, 5)
	for id, state := range active {
		log, err := activeLog(id, state)
		require.NoError(t, err)
		require.Empty(t, jobstate.Validate(log))
		folded, err := jobstate.Replay(id, log)
		require.NoError(t, err)
		require.Equal(t, state, folded.State().String())
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("nobody reads") }

func TestABrokenOutputIsAFault(t *testing.T) {
	for _, args := range [][]string{{"-jobs=10"}, {"-jobs=10", "-i"}} {
		var errOut bytes.Buffer
		require.Equal(t, exitFault, run(args, strings.NewReader("list\n"), brokenWriter{}, &errOut))
		require.Equal(t, 1, strings.Count(errOut.String(), "nobody reads"))
	}
}

func TestTheDryRunIsWhatGoes(t *testing.T) {
	for _, args := range []string{"", "-num-limit=17", "-num-limit=0 -pin=0", "-age-limit=3d -num-limit=400 -min-age=4d -batch=7 -pin=100"} {
		o, err := parse(strings.Fields("-jobs=1000 "+args), io.Discard)
		require.NoError(t, err)
		s, err := newSession(o, bufio.NewWriter(io.Discard), io.Discard)
		require.NoError(t, err)
		l := o.limits
		l.Batch = purge.NoBatch
		plan, err := s.index.Plan(s.now, l)
		require.NoError(t, err)
		require.NotEmpty(t, plan.Jobs)
		require.NoError(t, s.purgeByLimits())
		require.Equal(t, 1000-len(plan.Jobs), s.index.Len())
		for _, id := range plan.IDs() {
			_, err := s.index.Lookup(id)
			require.ErrorIs(t, err, purge.ErrPurged)
		}
		require.Equal(t, &memory{
			watermark: s.index.Watermark(), tombstones: len(plan.Jobs), unlinked: len(plan.Jobs),
		}, s.store)
	}
}

func TestTheStoreRefusesWhatTheWatermarkDoesNotCover(t *testing.T) {
	var m memory
	require.NoError(t, m.PutWatermark(t.Context(), 5))
	require.NoError(t, m.PutWatermark(t.Context(), 4))
	require.NoError(t, m.Unlink(t.Context(), []jobid.ID{5}))
	require.ErrorContains(t, m.Unlink(t.Context(), []jobid.ID{6}), "above the watermark")
}

func TestTheBar(t *testing.T) {
	p := &progress{what: "purging", total: 1000}
	require.Equal(t, "purging [..............................]   0% 0 of 1000 jobs, 0/s", p.text(0, 0))
	require.Equal(t, "purging [###############...............]  50% 500 of 1000 jobs, 250/s", p.text(500, 2*time.Second))
	require.Equal(t, "purging [##############################] 100% 1000 of 1000 jobs, 1000/s", p.text(1001, time.Second))
	p.total = 0
	require.Contains(t, p.text(0, time.Second), "100% 0 of 0 jobs")

	var w bytes.Buffer
	p = newProgress(&w, "purging", 10)
	p.shown = time.Time{}
	p.show(5)
	p.done()
	require.Empty(t, w.String(), "no terminal")
	p.w = &w
	p.show(5)
	p.show(6)
	p.done()
	p.done()
	require.Regexp(t, `\A\r\x1b\[Kpurging \[#{15}\.{15}\]  50% 5 of 10 jobs, \d+/s\r\x1b\[K\z`, w.String())
}

// It takes 3 seconds here; the bound is far above, for slow machines, and far
// below what it takes if a batch looks at more than its jobs.
func TestAMillionJobs(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it makes and purges a million jobs")
	}
	if underRace {
		t.Skip("under race it takes a minute, and there is one goroutine")
	}
	started := time.Now()
	status, stdout, stderr := invoke(nil, "-jobs=1000000", "-num-limit=100000", "-force")
	require.Equal(t, exitOK, status, stderr)
	require.Contains(t, stdout, "\npurged 900000 inactive jobs, batches: 9000\n")
	require.Contains(t, stdout, "only the last 100000 have tombstones")
	require.Less(t, time.Since(started), 30*time.Second)
	t.Log(time.Since(started))
}
