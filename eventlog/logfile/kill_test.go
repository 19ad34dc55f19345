package logfile_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog/logfile"
)

// childName is the variable that makes this program the writer that is killed.
const childName = "LOGFILE_TEST_CHILD"

func TestMain(m *testing.M) {
	if name := os.Getenv(childName); name != "" {
		if err := write(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// write appends lines to a log until it is killed, but not for ever, and tells on
// standard output how many are durable.
func write(path string) error {
	if _, err := logfile.Repair(path, logfile.RepairOptions{}); err != nil {
		return err
	}
	l, err := logfile.Open(path, logfile.Options{})
	if err != nil {
		return err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	next := strings.Count(string(content), "\n")
	for i := range 100_000 {
		n := 1 + i%7
		if i%5 == 4 {
			n = 200 // a write that takes a while
		}
		if err := l.Append([]byte(lines(next, next+n))); err != nil {
			return err
		}
		next += n
		if _, err := fmt.Println(next); err != nil {
			return err
		}
	}
	return nil
}

// kill starts a writer, and ends it without warning after it told so many times and a
// moment more. It calls told with how many lines the writer said are durable.
func kill(t *testing.T, path string, tells int, moment time.Duration, told func(acked int)) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childName+"="+path)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill() }() // where a check fails
	stdout := bufio.NewScanner(out)
	n := 0
	for ; stdout.Scan(); n++ {
		acked, err := strconv.Atoi(stdout.Text())
		require.NoError(t, err)
		told(acked)
		if n+1 == tells { // it goes on meanwhile, as far as the pipe takes what it tells
			<-time.After(moment)
			require.NoError(t, cmd.Process.Kill())
		}
	}
	require.GreaterOrEqual(t, n, tells, "it ended by itself: %s", stderr.String())
	require.Error(t, cmd.Wait())
	require.Empty(t, stderr.String())
}

// What a process that is killed amid anything had acknowledged is there, and
// nothing that it did not write. EL-4.
func TestWhatAKilledWriterAcknowledgedIsThere(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	const seed = 4286
	random := rand.New(rand.NewPCG(seed, 0))
	path := filepath.Join(t.TempDir(), "eventlog")
	l, err := logfile.Create(path, logfile.Options{})
	require.NoError(t, err)
	require.NoError(t, l.Close())
	watcher, err := logfile.OpenReader(path, logfile.ReaderOptions{})
	require.NoError(t, err)
	defer watcher.Close()
	watched, acked := 0, 0
	watch := func() { // one who follows sees each line once, over all of it
		text, err := rest(t, watcher)
		if err == logfile.ErrEndOfHistory {
			text, err = rest(t, watcher)
		}
		require.Equal(t, io.EOF, err)
		n := strings.Count(text, "\n")
		require.True(t, text == lines(watched, watched+n), "%d lines after %d are not what was written", n, watched)
		watched += n
	}
	watch()
	for range 6 {
		before, first := acked, true
		kill(t, path, 1+random.IntN(12), time.Duration(random.IntN(3000))*time.Microsecond, func(n int) {
			if first { // it is not yet killed
				first = false
				_, err := logfile.Open(path, logfile.Options{})
				require.ErrorIs(t, err, logfile.ErrLocked)
				_, err = logfile.Repair(path, logfile.RepairOptions{})
				require.ErrorIs(t, err, logfile.ErrLocked)
			}
			acked = n
			watch() // while the other process writes
			require.GreaterOrEqual(t, watched, acked)
		})
		require.Greater(t, acked, before)
		_, err := logfile.Repair(path, logfile.RepairOptions{})
		require.NoError(t, err)
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		watch()
		require.True(t, lines(0, watched) == string(content))
	}
	sides, err := filepath.Glob(path + ".torn-*")
	require.NoError(t, err)
	t.Logf("%d lines, torn %d times, seed %d", watched, len(sides), seed)
}
