//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/proctest"
	"github.com/joblife/joblife/idset"
)

func TestMain(m *testing.M) {
	syscall.Umask(0o022) // others may not write a folder
	proctest.Main(m, main)
}

// fails runs a command that exits with a status, and returns its output.
func fails(t *testing.T, status int, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	var exit *exec.ExitError
	require.ErrorAs(t, proctest.Command(&out, args...).Run(), &exit, out.String())
	require.Equal(t, status, exit.ExitCode(), out.String())
	return out.String()
}

// start starts a command, and returns the file of its output.
func start(t *testing.T, dir string, args ...string) (cmd *exec.Cmd, out string) {
	t.Helper()
	out = filepath.Join(dir, "out")
	_ = os.Remove(out)
	return proctest.Start(t, out, args...), out
}

// succeeds runs a command, and returns its output.
func succeeds(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, proctest.Command(&out, args...).Run(), out.String())
	return out.String()
}

func TestJobsRunWithPrologAndEpilog(t *testing.T) {
	t.Parallel() // it waits
	dir := t.TempDir()
	out := succeeds(t, "-dir", dir, "-n", "2", "-prolog", "echo p >>"+dir+"/trace", "-epilog", "echo e >>"+dir+"/trace",
		"echo j >>"+dir+"/trace", "exit 3")
	trace, err := os.ReadFile(filepath.Join(dir, "trace"))
	require.NoError(t, err)
	require.Equal(t, 4, strings.Count(string(trace), "p"))
	require.Equal(t, 2, strings.Count(string(trace), "j"), "once on each node")
	require.Equal(t, 4, strings.Count(string(trace), "e"))
	require.Equal(t, 2, strings.Count(out, " clean"))
}

// One job is in its epilog and one runs when the manager is killed. Both go on.
func TestJobsSurviveKill9(t *testing.T) {
	t.Parallel() // it waits
	dir := t.TempDir()
	done, trace := filepath.Join(dir, "done"), filepath.Join(dir, "trace")
	until := "; until test -e " + done + "; do sleep .01; done"
	args := []string{"-dir", dir, "-prolog", "echo p >>" + trace, "-epilog", "echo e >>" + trace + until}
	first, out := start(t, dir, append(args, "echo j >>"+trace, "echo k >>"+trace+until+"; echo l >>"+trace+"; exit 3")...)
	proctest.Await(t, trace, "k\n", 1)
	proctest.Await(t, trace, "e\n", 1)
	proctest.Await(t, out, " start\n", 2)
	require.NoError(t, first.Process.Kill())
	_ = first.Wait() // it was killed
	require.NoError(t, os.WriteFile(done, nil, 0o600))
	proctest.Await(t, trace, "l\n", 1)
	next := succeeds(t, args...)
	require.Contains(t, next, ` finish {"status":768}`, "the status of the second job is not lost")
	require.Equal(t, 2, strings.Count(next, " clean"), next)
	require.NotContains(t, next, "exception")
	ran, err := os.ReadFile(trace)
	require.NoError(t, err)
	count := func(what string) int { return strings.Count(string(ran), what) }
	require.Equal(t, []int{2, 1, 1, 1, 2}, []int{count("p"), count("j"), count("k"), count("l"), count("e")})
	require.Empty(t, succeeds(t, args...), "nothing is left to do")
	left, err := filepath.Glob(filepath.Join(dir, "node-*", "*"))
	require.NoError(t, err)
	require.Empty(t, left, "the nodes have forgotten all of it")
}

// Whenever the manager is killed, each job, prolog and epilog runs once on each node.
func TestEverythingRunsOnceWheneverTheManagerIsKilled(t *testing.T) {
	t.Parallel() // it waits
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace")
	args := []string{"-dir", dir, "-n", "2", "-prolog", "echo p >>" + trace, "-epilog", "echo e >>" + trace}
	jobs := slices.Repeat([]string{"echo j >>" + trace}, 6)
	for i := range 9 {
		cmd, out := start(t, dir, append(args, jobs...)...)
		if jobs != nil {
			proctest.Await(t, out, " submit ", len(jobs))
			jobs = nil
		}
		time.Sleep(time.Duration(i) * 7 * time.Millisecond)
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
	}
	last := succeeds(t, args...)
	ran, err := os.ReadFile(trace)
	require.NoError(t, err)
	for _, what := range []string{"p", "j", "e"} {
		require.Equal(t, 12, strings.Count(string(ran), what), what)
	}
	require.NotContains(t, last, "exception")
}

func TestANodeWhoseEpilogFailedIsOutOfService(t *testing.T) {
	t.Parallel() // it waits
	out := succeeds(t, "-dir", t.TempDir(), "-n", "8", "-epilog", "exit 1", "true", "true")
	var down idset.Set
	for _, m := range regexp.MustCompile(`out of service: rank (\S+): epilog failed for job`).FindAllStringSubmatch(out, -1) {
		ranks, err := idset.Parse(m[1])
		require.NoError(t, err)
		require.True(t, idset.Intersect(&down, ranks).IsEmpty(), "each once")
		down.UnionWith(ranks)
	}
	require.Equal(t, "0-7", down.String(), out)
	require.Contains(t, out, "unsatisfiable request for 8 whole nodes", "no node is left for the second job")
	require.Equal(t, 2, strings.Count(out, " clean"), out)
}

func TestAnInterruptCancelsTheJobs(t *testing.T) {
	t.Parallel() // it waits
	dir := t.TempDir()
	cmd, out := start(t, dir, "-dir", dir, "-epilog", "echo swept", "sleep 9")
	proctest.Await(t, out, " start\n", 1)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
	proctest.Await(t, out, fmt.Sprintf(`"userid":%d`, os.Getuid()), 2) // of submit and cancel
	proctest.Await(t, out, "swept\n", 1)
	proctest.Await(t, out, " clean\n", 1)
}

func TestBadInputLosesNothing(t *testing.T) {
	t.Parallel() // it waits
	dir := t.TempDir()
	file := filepath.Join(dir, "jobs.db")
	cmd, out := start(t, dir, "-dir", dir, "until test -e "+dir+"/end; do sleep .01; done")
	proctest.Await(t, out, " start\n", 1)
	require.Contains(t, fails(t, 1, "-dir", dir, "true"), "in use", "a second process")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "end"), nil, 0o600))
	require.NoError(t, cmd.Wait())
	require.Contains(t, fails(t, 1, "-dir", file, "true"), "not a directory")

	good, err := os.ReadFile(file)
	require.NoError(t, err)
	bad := good[:len(bytes.TrimRight(good, "\x00"))/2]
	require.NoError(t, os.WriteFile(file, bad, 0o600))
	require.Contains(t, fails(t, 1, "-dir", dir, "true"), "jobs.db: damaged: ")
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, bad, kept)
}
