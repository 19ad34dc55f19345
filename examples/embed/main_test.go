package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain runs the command itself where a test asks for it.
func TestMain(m *testing.M) {
	if os.Getenv("EMBED_RUN") != "" {
		main()
		os.Exit(0)
	}
	os.Setenv(mark, strconv.Itoa(os.Getpid()))
	status := m.Run()
	if left := left(); len(left) > 0 {
		fmt.Println("FAIL: processes are left:", left)
		status = 1
	}
	os.Exit(status)
}

// mark names the pid of the test in the environment of the processes that it starts.
const mark = "EMBED_TEST"

// left returns the processes that the tests have left, where there is a /proc, and ends them.
// A shim that has told the end of its task needs a moment for its own.
func left() (left []int) {
	own := []byte(fmt.Sprintf("%s=%d\x00", mark, os.Getpid()))
	for range 300 {
		left = nil
		names, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, name := range names {
			if text, _ := os.ReadFile(name); bytes.Contains(text, own) {
				pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
				left = append(left, pid)
			}
		}
		if len(left) == 0 {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, pid := range left {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
	return left
}

func embed(t *testing.T, out io.Writer, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "EMBED_RUN=1")
	cmd.Stdout, cmd.Stderr = out, out
	return cmd
}

// fails runs a command that exits with a status, and returns its output.
func fails(t *testing.T, status int, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	var exit *exec.ExitError
	require.ErrorAs(t, embed(t, &out, args...).Run(), &exit, out.String())
	require.Equal(t, status, exit.ExitCode(), out.String())
	return out.String()
}

// start starts a command. Its output goes to a file, since what outlives it would keep a
// pipe open.
func start(t *testing.T, dir string, args ...string) (cmd *exec.Cmd, out string) {
	t.Helper()
	out = filepath.Join(dir, "out")
	f, err := os.Create(out)
	require.NoError(t, err)
	defer f.Close()
	cmd = embed(t, f, args...)
	require.NoError(t, cmd.Start())
	return cmd, out
}

// goOn runs a command after one that was killed. What that was about to start may have its
// lock for a moment, until it runs another program.
func goOn(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	err := embed(t, &out, args...).Run()
	for range 100 {
		if err == nil || !strings.Contains(out.String(), "in use") {
			break
		}
		time.Sleep(10 * time.Millisecond)
		out.Reset()
		err = embed(t, &out, args...).Run()
	}
	require.NoError(t, err, out.String())
	return out.String()
}

func await(t *testing.T, name, text string, times int) {
	t.Helper()
	var b []byte
	for range 1000 {
		if b, _ = os.ReadFile(name); strings.Count(string(b), text) >= times {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s has no %q:\n%s", name, text, b)
}

func shell(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh: ", err)
	}
}

func TestJobsRunWithPrologAndEpilog(t *testing.T) {
	shell(t)
	dir := t.TempDir()
	var out bytes.Buffer
	err := embed(t, &out, "-dir", dir, "-n", "2", "-prolog", "echo p >>"+dir+"/trace", "-epilog", "echo e >>"+dir+"/trace",
		"echo j >>"+dir+"/trace", "exit 3").Run()
	require.NoError(t, err, out.String())
	trace, err := os.ReadFile(filepath.Join(dir, "trace"))
	require.NoError(t, err)
	require.Equal(t, 4, strings.Count(string(trace), "p"))
	require.Equal(t, 2, strings.Count(string(trace), "j"), "once on each node")
	require.Equal(t, 4, strings.Count(string(trace), "e"))
	require.Equal(t, 2, strings.Count(out.String(), " clean"))
}

// One job is in its epilog and one runs when the manager is killed. Both go on.
func TestJobsSurviveKill9(t *testing.T) {
	shell(t)
	dir := t.TempDir()
	done, trace := filepath.Join(dir, "done"), filepath.Join(dir, "trace")
	until := "; until test -e " + done + "; do sleep .01; done"
	args := []string{"-dir", dir, "-prolog", "echo p >>" + trace, "-epilog", "echo e >>" + trace + until}
	first, out := start(t, dir, append(args, "echo j >>"+trace, "echo k >>"+trace+until+"; echo l >>"+trace+"; exit 3")...)
	await(t, trace, "k\n", 1)
	await(t, trace, "e\n", 1)
	await(t, out, " start\n", 2)
	require.NoError(t, first.Process.Kill())
	_ = first.Wait() // it was killed
	require.NoError(t, os.WriteFile(done, nil, 0o600))
	await(t, trace, "l\n", 1)
	next := goOn(t, args...)
	require.Contains(t, next, ` finish {"status":768}`, "the status of the second job is not lost")
	require.Equal(t, 2, strings.Count(next, " clean"), next)
	require.NotContains(t, next, "exception")
	ran, err := os.ReadFile(trace)
	require.NoError(t, err)
	count := func(what string) int { return strings.Count(string(ran), what) }
	require.Equal(t, []int{2, 1, 1, 1, 2}, []int{count("p"), count("j"), count("k"), count("l"), count("e")})
	require.NoError(t, embed(t, io.Discard, args...).Run(), "nothing is left to do")
	left, err := filepath.Glob(filepath.Join(dir, "node-*", "*"))
	require.NoError(t, err)
	require.Empty(t, left, "the nodes have forgotten all of it")
}

// Whenever the manager is killed, each job, prolog and epilog runs once on each node.
func TestEverythingRunsOnceWheneverTheManagerIsKilled(t *testing.T) {
	shell(t)
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace")
	args := []string{"-dir", dir, "-n", "2", "-prolog", "echo p >>" + trace, "-epilog", "echo e >>" + trace}
	jobs := slices.Repeat([]string{"echo j >>" + trace}, 6)
	for i := range 9 {
		cmd, out := start(t, dir, append(args, jobs...)...)
		if jobs != nil {
			await(t, out, " submit ", len(jobs))
			jobs = nil
		}
		time.Sleep(time.Duration(i) * 7 * time.Millisecond)
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
	}
	last := goOn(t, args...)
	ran, err := os.ReadFile(trace)
	require.NoError(t, err)
	for _, what := range []string{"p", "j", "e"} {
		require.Equal(t, 12, strings.Count(string(ran), what), what)
	}
	require.NotContains(t, last, "exception")
}

func TestANodeWhoseEpilogFailedIsOutOfService(t *testing.T) {
	shell(t)
	var out bytes.Buffer
	require.NoError(t, embed(t, &out, "-dir", t.TempDir(), "-n", "8", "-epilog", "exit 1", "true", "true").Run(), out.String())
	require.Equal(t, 8, strings.Count(out.String(), "epilog failed for job"), out.String())
	require.Contains(t, out.String(), "unsatisfiable request for 8 whole nodes", "no node is left for the second job")
	require.Equal(t, 2, strings.Count(out.String(), " clean"), out.String())
}

func TestAnInterruptCancelsTheJobs(t *testing.T) {
	shell(t)
	dir := t.TempDir()
	cmd, out := start(t, dir, "-dir", dir, "-epilog", "echo swept", "sleep 9")
	await(t, out, " start\n", 1)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Skip("there are no signals: ", err)
	}
	require.NoError(t, cmd.Wait())
	await(t, out, "swept\n", 1)
	await(t, out, " clean\n", 1)
}

func TestBadInputLosesNothing(t *testing.T) {
	shell(t)
	require.Contains(t, fails(t, 2, "-n", "9", "true"), "-n must be 1 to 8")
	require.Contains(t, fails(t, 2, "a\xff"), "UTF-8")
	dir := t.TempDir()
	records := filepath.Join(dir, "records")
	cmd, out := start(t, dir, "-dir", dir, "until test -e "+dir+"/end; do sleep .01; done")
	await(t, out, " start\n", 1)
	require.Contains(t, fails(t, 1, "-dir", dir, "true"), "in use", "a second process")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "end"), nil, 0o600))
	require.NoError(t, cmd.Wait())
	require.Contains(t, fails(t, 1, "-dir", records, "true"), "not a directory")

	good, err := os.ReadFile(records)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		damage func([]byte) []byte
		want   string
	}{
		"a byte is damaged":   {func(b []byte) []byte { b[9] ^= 1; return b }, "records: line 1: offset"},
		"a record is damaged": {func(b []byte) []byte { return bytes.Replace(b, []byte(`"name":"R"`), []byte(`"name":"S"`), 1) }, `records: joblife: line 6: `},
	} {
		t.Run(name, func(t *testing.T) {
			bad := c.damage(bytes.Clone(good))
			require.NoError(t, os.WriteFile(records, bad, 0o600))
			require.Contains(t, fails(t, 1, "-dir", dir, "true"), c.want)
			kept, err := os.ReadFile(records)
			require.NoError(t, err)
			require.Equal(t, string(bad), string(kept))
		})
	}
	require.NoError(t, os.WriteFile(records, good[:len(good)-9], 0o600))
	var last bytes.Buffer
	require.NoError(t, embed(t, &last, "-dir", dir).Run(), last.String())
	require.Contains(t, last.String(), "records.torn-1", "a torn line is kept")
	require.Contains(t, last.String(), " clean", "and what it told happens again")
}

func TestTheREADMEShowsTheLoop(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, text, ok := strings.Cut(string(readme), "\nManage jobs")
	require.True(t, ok)
	_, text, _ = strings.Cut(text, "```go\n")
	text, _, ok = strings.Cut(text, "```\n")
	require.True(t, ok)
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	trim := func(text string) (lines []string) {
		for line := range strings.Lines(text) {
			lines = append(lines, strings.TrimSpace(line))
		}
		return lines
	}
	require.Contains(t, strings.Join(trim(string(source)), "\n"), strings.Join(trim(text), "\n"))
}
