package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate"
)

func command(t *testing.T, args ...string) (status int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status = run(context.Background(), args, &stdout, &stderr)
	return status, stdout.String(), stderr.String()
}

// good runs the command, which has to succeed, and returns what it prints.
func good(t *testing.T, args ...string) string {
	t.Helper()
	status, out, errs := command(t, args...)
	require.Zero(t, status, errs)
	return out
}

func TestTheSameFlagsGiveTheSameOutput(t *testing.T) {
	dir := t.TempDir()
	args := func(name string) []string {
		return []string{"-jobs", "60", "-nodes", "16", "-seeds", "2", "-mtbf", "10d", "-restarts", "2", "-straggle", "0.05", "-sweep", "-html", filepath.Join(dir, name)}
	}
	first := good(t, args("a.html")...)
	second := good(t, args("b.html")...)
	require.Equal(t, first, strings.ReplaceAll(second, "b.html", "a.html"))
	a, err := os.ReadFile(filepath.Join(dir, "a.html"))
	require.NoError(t, err)
	b, err := os.ReadFile(filepath.Join(dir, "b.html"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(a, b))
	for _, line := range strings.Split(strings.ReplaceAll(first, filepath.Join(dir, "a.html"), ""), "\n") {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 80, line)
	}
}

// Each job lives through all events of RFC 21, in an order that the validator accepts.
func TestLogsAreValid(t *testing.T) {
	dir := t.TempDir()
	for policy := range policies {
		status, _, errs := command(t, "-policy", policy, "-jobs", "100", "-nodes", "16", "-seeds", "1", "-mtbf", "5d", "-restarts", "3",
			"-straggle", "0.05", "-html", "", "-log", dir)
		require.Zero(t, status, errs)
		for _, name := range []string{"whole.jsonl", "partial.jsonl"} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			jobs := 0
			for line := range bytes.Lines(text) {
				var j recording
				require.NoError(t, json.Unmarshal(line, &j))
				for _, f := range jobstate.Validate([]byte(j.Eventlog)) {
					require.NotEqual(t, jobstate.LevelError, f.Level, "%v: %v\n%s", j.ID, f, j.Eventlog)
				}
				require.Contains(t, j.Eventlog, `"name":"clean"`)
				require.NotEmpty(t, j.Jobspec)
				jobs++
			}
			require.Equal(t, 100, jobs)
		}
	}
}

// Conservative backfill that considers one job is FIFO. With a reservation for one job hybrid is
// EASY, with one for all it is conservative.
func TestTheDepthOfAPolicy(t *testing.T) {
	results := func(args ...string) string {
		_, table, _ := strings.Cut(good(t, append(args, "-jobs", "150", "-nodes", "32", "-seeds", "1", "-load", "2", "-html", "")...), "\nprolog")
		return table
	}
	fifo := results("-policy", "fifo")
	require.Equal(t, fifo, results("-policy", "conservative", "-depth", "1"))
	require.NotEqual(t, fifo, results("-policy", "easy", "-depth", "10"))
	require.NotEqual(t, results("-policy", "easy"), results("-policy", "easy", "-depth", "10"))
	hybrid := func(reservations string) string {
		return results("-policy", "hybrid", "-depth", "150", "-reservations", reservations)
	}
	require.Equal(t, results("-policy", "easy"), hybrid("1"))
	require.Equal(t, results("-policy", "conservative", "-depth", "150"), hybrid("150"))
	require.NotContains(t, []string{hybrid("1"), hybrid("150")}, hybrid("4"))
	for policy, title := range map[string]string{"easy": "easy,", "conservative": "conservative (depth 30),", "fair": "fair (depth 100),", "hybrid": "hybrid (depth 32, 8 reservations),"} {
		out := strings.Join(strings.Fields(good(t, "-jobs", "1", "-seeds", "1", "-html", "", "-policy", policy)), " ")
		require.Contains(t, out, " "+title)
	}
}

// Whether the page can be written is found out without touching what is there.
func TestAnInterruptBeforeTheFirstJobLeavesTheOldPage(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.html")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.Equal(t, exitInterrupted, run(ctx, []string{"-html", name}, io.Discard, io.Discard))
	require.NoFileExists(t, name)
	require.NoError(t, os.WriteFile(name, []byte("old"), 0o600))
	require.Equal(t, exitInterrupted, run(ctx, []string{"-html", name}, io.Discard, io.Discard))
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "old", string(text))
}

// Else many seeds of long workloads take the memory of the machine, and no interrupt is heard.
func TestTheWorkloadOfASeedIsDrawnWhenItBegins(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.Equal(t, exitInterrupted, run(ctx, []string{"-jobs", "20000", "-seeds", "1000", "-html", ""}, io.Discard, io.Discard))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100e6))
}

// The first interrupt asks, which a trace that is read does not hear; the second ends the program.
func TestTheSecondInterruptEndsTheProgram(t *testing.T) {
	if os.Getenv("SIMULATE_MAIN") != "" {
		os.Args = []string{"simulate", "-html", "", "-swf", "/dev/stdin"}
		main()
	}
	if runtime.GOOS == "windows" {
		t.Skip("it has no interrupts")
	}
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	c.Env = append(os.Environ(), "SIMULATE_MAIN=1")
	in, err := c.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	_, err = io.WriteString(in, strings.Repeat("; wait\n", 1<<17)) // more than a pipe holds: it reads
	require.NoError(t, err)
	over := make(chan error, 1)
	go func() { over <- c.Wait() }()
	for range 200 {
		_ = c.Process.Signal(os.Interrupt) // it may be over
		select {
		case err := <-over:
			require.ErrorContains(t, err, "interrupt")
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
	_ = c.Process.Kill()
	t.Fatal("it goes on")
}

func TestAnInterruptComparesOnlyWhatIsComplete(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one run after the other
	interrupted := func(after int64, args ...string) (s *study, out string, page []byte) {
		dir := t.TempDir()
		o, err := parse(append(args, "-html", filepath.Join(dir, "x.html")), io.Discard)
		require.NoError(t, err)
		s = newStudy(o, io.Discard)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var over atomic.Int64
		s.bar = func(int) (func(int), func()) {
			return func(n int) {
				if over.Add(int64(n)) > after {
					cancel()
				}
			}, func() {}
		}
		var stdout, stderr bytes.Buffer
		require.Equal(t, exitInterrupted, s.run(ctx, &stdout, &stderr), stderr.String())
		require.Contains(t, stderr.String(), "interrupted")
		page, err = os.ReadFile(o.html)
		require.Equal(t, len(s.runs) == 0, errors.Is(err, fs.ErrNotExist), err)
		return s, stdout.String(), page
	}
	s, out, _ := interrupted(3500, "-jobs", "3000", "-seeds", "1")
	require.Empty(t, s.runs, "one way alone says nothing")
	require.Empty(t, out)

	s, out, page := interrupted(3500, "-jobs", "1000", "-seeds", "4")
	require.Len(t, s.runs, 1)
	require.Contains(t, out, "Interrupted: 1 of 4 seeds are complete; the others do not count.")
	require.Contains(t, out, "difference")
	require.Contains(t, string(page), "Interrupted: ")
	for _, c := range s.runs[0] {
		var log bytes.Buffer
		require.NoError(t, s.writeSWF(&log, c))
		read, err := readTrace(&log)
		require.NoError(t, err)
		require.Len(t, read.jobs, 1000)
	}
}

func TestJobsThatAllComeAtOnceAreNoLoad(t *testing.T) {
	out := good(t, "-jobs", "1", "-seeds", "1", "-html", "")
	require.Contains(t, out, "a made-up workload: 1 job on 128 nodes, all submitted at once, easy, 1 seed")
	out = good(t, "-jobs", "40", "-seeds", "1", "-html", "")
	require.Contains(t, out, "40 jobs on 128 nodes, load 0.80, easy")
}

// Of a cluster no more is held idle than all, however few jobs come and however fast.
func TestWhatIsHeldIdleIsAPartOfTheCluster(t *testing.T) {
	args := []string{"-seeds", "1", "-html", ""}
	for _, apart := range []int{0, 1} {
		var b strings.Builder
		b.WriteString("; MaxNodes: 4\n; MaxProcs: 4\n")
		for i := range 100 {
			fmt.Fprintf(&b, "%d %d 0 %d %d\n", i+1, apart*i/5, 600+i, 1+i%4)
		}
		name := filepath.Join(t.TempDir(), "x.swf")
		require.NoError(t, os.WriteFile(name, []byte(b.String()), 0o666))
		out := strings.Join(strings.Fields(good(t, append(args, "-swf", name, "-straggle", "0.5")...)), " ")
		if apart == 0 {
			require.Regexp(t, `utilization [1-9]\d\.\d\d %`, out)
			require.Regexp(t, `In a week, \d+ node-hours \(\d\d\.\d % of the cluster\) were held`, out)
		} else {
			require.Contains(t, out, "the node-hours held idle are those of the jobs that come in a week")
			require.Regexp(t, `The jobs that come in a week held \d+ node-hours while nothing ran there; partial`, out)
		}
	}
	out := good(t, append(args, "-jobs", "1", "-nodes", "1", "-runtime", "1", "-straggle", "1")...)
	require.Regexp(t, `In a week, [\d.]+ node-hours \(\d\d?\.\d % of the cluster\)`, out, "the only epilog ends far behind the only job")
	var held, part float64
	_, out, _ = strings.Cut(good(t, append(args, "-jobs", "300")...), "In a week, ")
	_, err := fmt.Sscanf(out, "%f node-hours (%f %%", &held, &part)
	require.NoError(t, err)
	require.InDelta(t, 100*held/(128*7*24), part, 0.06)
}

func TestPartialReleaseIsNotPraisedWhereItDoesNotHelp(t *testing.T) {
	out := good(t, "-jobs", "50", "-max-size", "1", "-html", "", "-seeds", "2")
	require.Contains(t, out, "jobs start no earlier")
	for load, want := range map[string]string{"5": " cannot be told from chance, and jobs start ", "1": ", and whether jobs start earlier cannot be told from chance."} {
		out = strings.Join(strings.Fields(good(t, "-jobs", "400", "-load", load, "-html", "", "-seeds", "2")), " ")
		require.Regexp(t, `node-hours held idle, a week \d+ [\d.]+ ~`, out)
		require.Contains(t, out, "while nothing ran there; whether partial release gives any of them back"+want)
	}
}

// What warms up and drains counts for nothing but the makespan and the results.
func TestTrimLeavesOutBothEnds(t *testing.T) {
	work := []arrival{{submit: 0}, {submit: 9}, {submit: 10}, {submit: 90}, {submit: 91}, {submit: 100}}
	var c metrics
	c.limit(work, 0.1)
	require.Equal(t, []seconds{10, 90}, []seconds{c.lo, c.hi})
	c.limit(work[:2], 0.1)
	require.True(t, c.counts(work[0].submit) && c.counts(work[1].submit), "else nothing would count")
	c.limit(work[:1], 0.1)
	require.Greater(t, c.hi, seconds(0), "all jobs come at once, and the time in which they count is that until they are over")

	all := good(t, "-jobs", "300", "-seeds", "1", "-html", "", "-trim", "0")
	part := good(t, "-jobs", "300", "-seeds", "1", "-html", "")
	require.Contains(t, all, "All jobs count.")
	require.Regexp(t, `2\d\d of 300 jobs count`, part)
	line := func(out, name string) string { return regexp.MustCompile(`(?m)^ ` + name + `.*`).FindString(out) }
	require.NotEqual(t, line(all, "wait, mean"), line(part, "wait, mean"))
	for _, name := range []string{"makespan", "jobs completed"} {
		require.Equal(t, line(all, name), line(part, name))
	}
}

// All seeds of a trace have its jobs, so their intervals are narrower than chance is.
func TestTheNoteSaysWhatTheIntervalsOfATraceLeaveOut(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.swf")
	require.NoError(t, os.WriteFile(name, []byte(sampleTrace), 0o666))
	for _, args := range [][]string{{"-jobs", "9"}, {"-swf", name}} {
		out := strings.Join(strings.Fields(good(t, append(args, "-seeds", "2", "-html", "")...)), " ")
		require.Equal(t, args[0] == "-swf", strings.Contains(out, "The seeds differ in prologs, epilogs and failures of nodes"), out)
	}
}

// The load is that of the jobs, of all prologs and epilogs, and of what is held idle.
func TestTheLoadHasPrologsAndEpilogs(t *testing.T) {
	args := []string{"-jobs", "300", "-seeds", "1", "-html", "", "-straggle", "0"}
	require.Contains(t, good(t, append(args, "-prolog", "0", "-epilog", "0")...), "epilogs: 0.80 with whole-job release, 0.80 with partial")
	out := good(t, append(args, "-prolog", "0", "-epilog", "10m")...)
	require.Regexp(t, `epilogs: 1.00 with whole-job release, 0.97 with partial\nWarning: 1.00 `, out)
	require.NotContains(t, good(t, args...), "Warning")
}

func TestWhatMayBeChanceIsMarked(t *testing.T) {
	m := worth[0]
	chance, sure := line{m, 120, 60, -60, 61}, line{m, 120, 60, -60, 59}
	require.Equal(t, "~ −1m ± 1m01s", chance.Difference())
	text.EnableColors()
	require.Equal(t, []string{"\x1b[90mx\x1b[0m", "x", "x"}, []string{chance.gray("x", true), chance.gray("x", false), sure.gray("x", true)})
	require.Equal(t, "−2m ± 1m", line{m, 120, 0, -120, 60}.Difference())
	require.Equal(t, "−2m", line{m, 120, 0, -120, math.NaN()}.Difference())
	require.Equal(t, "0s", line{m, 120, 120, 0, 0}.Difference())
	require.False(t, line{m, 120, 0, -120, math.NaN()}.Chance())
}
