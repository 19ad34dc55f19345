package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate"
)

// command runs the command.
func command(t *testing.T, args ...string) (status int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status = run(context.Background(), args, &stdout, &stderr)
	return status, stdout.String(), stderr.String()
}

func TestTheSameFlagsGiveTheSameOutput(t *testing.T) {
	dir := t.TempDir()
	args := func(name string) []string {
		return []string{"-jobs", "60", "-nodes", "16", "-seeds", "2", "-mtbf", "10d", "-restarts", "2", "-straggle", "0.05", "-html", filepath.Join(dir, name)}
	}
	status, first, errs := command(t, args("a.html")...)
	require.Zero(t, status, errs)
	status, second, errs := command(t, args("b.html")...)
	require.Zero(t, status, errs)
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
	for _, policy := range policies {
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

func TestBadFlags(t *testing.T) {
	for want, args := range map[string][]string{
		"want a number from 1 to":     {"-nodes", "0"},
		"want a number from 0 to 1":   {"-straggle", "2"},
		"want fifo, easy":             {"-policy", "best"},
		"unexpected argument":         {"file.swf"},
		"max-size 300 is more than":   {"-max-size", "300"},
		"-max-runtime is below":       {"-max-runtime", "1m"},
		"fsd: ":                       {"-epilog", "soon"},
		"want from 1s to 100 years":   {"-runtime", "0"},
		"flag provided but not":       {"-bogus"},
		"want a number from 1 to 100": {"-estimate", "NaN"},
	} {
		status, out, errs := command(t, args...)
		require.Equal(t, exitUsage, status, args)
		require.Contains(t, errs, want)
		require.Empty(t, out)
	}
	status, out, _ := command(t, "-h")
	require.Zero(t, status)
	require.Contains(t, out, "-swf")
}

func TestAFileThatCannotBeReadOrWritten(t *testing.T) {
	dir := t.TempDir()
	status, _, errs := command(t, "-swf", filepath.Join(dir, "none"))
	require.Equal(t, exitFault, status)
	require.Contains(t, errs, "no such file")
	status, _, errs = command(t, "-jobs", "2", "-seeds", "1", "-html", filepath.Join(dir, "none", "x.html"))
	require.Equal(t, exitFault, status)
	require.Contains(t, errs, "no such file")
}

func TestAnInterruptLeavesWhatWasDone(t *testing.T) {
	o, err := parse([]string{"-jobs", "3000", "-seeds", "1", "-html", ""}, io.Discard)
	require.NoError(t, err)
	s := newStudy(o, io.Discard)
	ctx, cancel := context.WithCancel(context.Background())
	var over atomic.Int64
	s.bar = func(int) (func(int), func()) {
		return func(n int) {
			if over.Add(int64(n)); n > 0 {
				cancel()
			}
		}, func() {}
	}
	require.ErrorIs(t, s.play(ctx), context.Canceled)
	require.NotZero(t, over.Load())
	require.Less(t, over.Load(), int64(6000))
	if len(s.runs) > 0 {
		var out bytes.Buffer
		require.NoError(t, s.print(&out))
		require.Contains(t, out.String(), "Seed 1 was interrupted")
	}

	var stderr bytes.Buffer
	require.Equal(t, exitInterrupted, run(ctx, nil, io.Discard, &stderr))
	require.Contains(t, stderr.String(), "interrupted")
}

func TestPartialReleaseIsNotPraisedWhereItDoesNotHelp(t *testing.T) {
	status, out, _ := command(t, "-jobs", "50", "-max-size", "1", "-html", "", "-seeds", "2")
	require.Zero(t, status)
	require.Contains(t, out, "Partial release makes no difference to the mean wait here.")
}
