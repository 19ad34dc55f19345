package dirstore_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge/dirstore"
)

// childDir is the variable that makes this program the process that is killed, and childNext
// has the first id that it adds.
const (
	childDir  = "DIRSTORE_TEST_CHILD"
	childNext = "DIRSTORE_TEST_NEXT"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := work(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// work adds jobs and purges them until it is killed, but not for ever, and tells
// on standard output what was done.
func work(dir string) error {
	s, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		return err
	}
	ids, errs := list(s)
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	next, err := strconv.ParseUint(os.Getenv(childNext), 10, 64)
	if err != nil {
		return err
	}
	for range 5000 {
		id := jobid.ID(next)
		if err := s.Add(job(id)); err != nil {
			return err
		}
		fmt.Println("added", next)
		ids = append(ids, id)
		next++
		if len(ids) < 20 {
			continue
		}
		batch := ids[:10]
		if err := unlink(s, batch); err != nil {
			return err
		}
		fmt.Println("unlinked", uint64(batch[9]))
		ids = ids[10:]
	}
	return nil
}

// kill starts a process and ends it without warning when it has told so many
// things and a moment more. It calls told with each.
func kill(t *testing.T, dir string, next jobid.ID, tells int, moment time.Duration, told func(what string, id jobid.ID)) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir, fmt.Sprintf("%s=%d", childNext, uint64(next)))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill() }() // where a check fails
	stdout := bufio.NewReader(out)
	killed := false
	for i := 0; ; i++ {
		if i == tells {
			<-time.After(moment) // it goes on meanwhile
			require.NoError(t, cmd.Process.Kill())
			killed = true
		}
		text, err := stdout.ReadString('\n')
		if err != nil {
			require.Equal(t, io.EOF, err)
			break
		}
		var what string
		var id uint64
		_, err = fmt.Sscan(text, &what, &id)
		require.NoError(t, err)
		told(what, jobid.ID(id))
	}
	require.True(t, killed, "it ended by itself: %s", stderr.String())
	require.Error(t, cmd.Wait())
	require.Empty(t, stderr.String())
}

// inUse fails the test unless another process keeps this one out of a store.
func inUse(t *testing.T, dir string) {
	_, err := dirstore.Open(dir, dirstore.Options{})
	require.ErrorIs(t, err, logfile.ErrLocked)
	if runtime.GOOS == "linux" {
		require.ErrorContains(t, err, "in use by process ")
		require.NotContains(t, err.Error(), fmt.Sprintf("process %d", os.Getpid()))
	}
}

// What a process that is killed amid anything had acknowledged is so, no job is
// there in part. Its lock keeps others out until then, and no longer.
func TestWhatAKilledProcessAcknowledgedIsSo(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	rounds := 3
	if deep {
		rounds = 30
	}
	const seed = 1301
	random := rand.New(rand.NewPCG(seed, 0))
	dir := filepath.Join(t.TempDir(), "store")
	s, err := dirstore.Create(dir, dirstore.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	var added, unlinked jobid.ID // the greatest that the process said
	was := map[jobid.ID]bool{}   // which it said it added: the one at which it was killed is left out
	gone := map[jobid.ID]bool{}  // which were on their way out when a process was killed
	for range rounds {
		before, first := added, true
		kill(t, dir, added+2, 1+random.IntN(30), time.Duration(random.IntN(3000))*time.Microsecond, func(what string, id jobid.ID) {
			if first { // it is not yet killed
				first = false
				inUse(t, dir)
			}
			if what == "unlinked" {
				require.Greater(t, id, unlinked)
				unlinked = id
				return
			}
			added, was[id] = id, true
		})
		require.Greater(t, added, before)
		s, err := dirstore.Open(dir, dirstore.Options{})
		require.NoError(t, err)
		ids, errs := list(s)
		require.Empty(t, errs)
		// Of the batch that was going, any may be gone.
		there := map[jobid.ID]bool{}
		for _, id := range ids {
			require.Greater(t, id, unlinked, "a job came back")
			require.False(t, gone[id], "a job came back")
			j, err := s.Read(id)
			require.NoError(t, err)
			require.Equal(t, job(id), j)
			there[id] = true
		}
		lost := 0
		for id := unlinked + 1; id <= added; id++ {
			if was[id] && !there[id] && !gone[id] {
				gone[id] = true
				lost++
			}
		}
		require.LessOrEqual(t, lost, 10, "one batch may be on its way out")
		foreign, err := s.Foreign()
		require.NoError(t, err)
		require.Empty(t, foreign)
		// The next process takes it up as it is.
		require.NoError(t, s.Close())
	}
	t.Logf("%d jobs were added, %d unlinked, seed %d", added, unlinked, seed)
}
