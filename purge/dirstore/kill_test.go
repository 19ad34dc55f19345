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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/purge/dirstore"
)

// childDir is the variable that makes this program the process that is killed.
const childDir = "DIRSTORE_TEST_CHILD"

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
	s, _, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		return err
	}
	ids, errs := list(s)
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	next := s.Watermark() + 1
	for range 5000 {
		if err := s.Add(job(next)); err != nil {
			return err
		}
		fmt.Println("added", uint64(next))
		ids = append(ids, next)
		next++
		if len(ids) < 20 {
			continue
		}
		batch := ids[:10]
		var put []purge.Record
		for _, id := range batch {
			put = append(put, tomb(id))
		}
		var drop []jobid.ID // those that are long gone
		for id := max(batch[0], 130) - 130; id+100 < batch[0]; id++ {
			drop = append(drop, id)
		}
		s.CompactNext()
		err := errors.Join(s.PutWatermark(ctx, batch[9]), s.PutTombstones(ctx, put, drop))
		if err == nil {
			err = unlink(s, batch)
		}
		if err != nil {
			return err
		}
		fmt.Println("unlinked", uint64(batch[9]))
		ids = ids[10:]
	}
	return nil
}

// kill starts a process and ends it without warning when it has told so many
// things and a moment more. It calls told with each.
func kill(t *testing.T, dir string, tells int, moment time.Duration, told func(what string, id jobid.ID)) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
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

// inUse fails the test unless another process keeps this one out of a store, but not from
// looking.
func inUse(t *testing.T, dir string) {
	_, _, err := dirstore.Open(dir, dirstore.Options{})
	require.ErrorIs(t, err, logfile.ErrLocked)
	if runtime.GOOS == "linux" {
		require.ErrorContains(t, err, "in use by process ")
		require.NotContains(t, err.Error(), fmt.Sprintf("process %d", os.Getpid()))
	}
	_, err = dirstore.Repair(dir, 0, dirstore.Options{})
	require.ErrorIs(t, err, logfile.ErrLocked)
	s, err := dirstore.OpenReadOnly(dir, dirstore.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

// What a process that is killed amid anything had acknowledged is so, no job is
// there in part, and no id comes twice (I9). Its lock keeps others out until then, and no
// longer.
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
	was := map[jobid.ID]bool{}   // which it said it added; an id may be left out
	for range rounds {
		before, first := added, true
		kill(t, dir, 1+random.IntN(30), time.Duration(random.IntN(3000))*time.Microsecond, func(what string, id jobid.ID) {
			if first { // it is not yet killed
				first = false
				inUse(t, dir)
			}
			if what == "unlinked" {
				require.Greater(t, id, unlinked)
				unlinked = id
				return
			}
			require.Greater(t, id, added, "an id came back")
			added, was[id] = id, true
		})
		require.Greater(t, added, before)
		s, _, err := dirstore.Open(dir, dirstore.Options{})
		require.NoError(t, err)
		ids, errs := list(s)
		require.Empty(t, errs)
		require.GreaterOrEqual(t, s.Watermark(), added)
		// Of the batch that was going, any may be gone.
		there := map[jobid.ID]bool{}
		for _, id := range ids {
			require.Greater(t, id, unlinked, "a job came back")
			j, err := s.Read(id)
			require.NoError(t, err)
			require.Equal(t, job(id), j)
			there[id] = true
		}
		buried := map[jobid.ID]bool{}
		for _, j := range tombs(t, s) {
			require.Equal(t, tomb(j.ID), j)
			buried[j.ID] = true
		}
		for id := unlinked + 1; id <= added; id++ {
			require.True(t, there[id] || buried[id] || !was[id], "job %d was lost", id)
		}
		for id := max(unlinked, 80) - 79; id <= unlinked; id++ {
			require.True(t, buried[id] || !was[id], "tombstone %d was lost", id)
		}
		foreign, err := s.Foreign()
		require.NoError(t, err)
		require.Empty(t, foreign)
		// The next process takes it up as it is.
		require.NoError(t, s.Close())
	}
	t.Logf("%d jobs were added, %d unlinked, seed %d", added, unlinked, seed)
}
