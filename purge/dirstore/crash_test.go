package dirstore_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/disk"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge/dirstore"
)

// deep is whether tests have their full depth.
var deep = os.Getenv("JOBLIFE_DEEP") != ""

// coins returns what a crash may leave of what was not synced: nothing, all, and
// some, by a few seeds.
func coins(seeds int) (out []func() bool) {
	if !deep {
		seeds = min(seeds, 1)
	}
	out = append(out, func() bool { return false }, func() bool { return true })
	for seed := range seeds {
		random := rand.New(rand.NewPCG(uint64(seed), 4711))
		out = append(out, func() bool { return random.IntN(2) == 0 })
	}
	return out
}

// A world is a store on a disk, with what must be true of it.
type world struct {
	*testing.T
	disk *disk.Disk
	s    *dirstore.Store
	call string // the one that failed
	k    int    // its number
	what string
	gone bool // the batch is done
}

// atEachCall calls do for a store with the jobs 1 to 6, all durable: once for each call that
// it makes, which fails or at which the machine stops, and once more; each time for several
// coins. Then it calls after.
func atEachCall(t *testing.T, fails func(*disk.Disk, int), seeds int, do func(*world) error, after func(w *world, err error)) {
	d := newDisk()
	add(t, createOn(t, d), 1, 6)
	d.Crash()
	for c, coin := range coins(seeds) {
		for k, failed := 1, true; failed; k++ {
			w := &world{T: t, disk: d.Clone(), k: k}
			w.disk.Coin = coin
			w.reopen()
			fails(w.disk, k)
			err := do(w)
			if failed = w.disk.Stopped(); failed {
				w.call = w.disk.Calls[k-1]
			} else {
				w.disk.Heal()
				require.NoError(t, err)
			}
			w.what = fmt.Sprintf("coin %d, call %d: %s", c, k, w.call)
			after(w, err)
		}
	}
}

func (w *world) reopen() { w.s = openOn(w, w.disk) }

// batch removes 5 and 6.
func (w *world) batch() error {
	err := unlink(w.s, ids(5, 6))
	w.gone = w.gone || err == nil
	return err
}

// check fails the test unless the store is as it must be.
func (w *world) check() {
	got, errs := list(w.s)
	require.Empty(w, errs, w.what)
	want := ids(1, 2, 3, 4)
	for _, id := range ids(5, 6) {
		if len(got) > len(want) && got[len(want)] == id && !w.gone {
			want = append(want, id)
		}
	}
	require.Equal(w, want, got, w.what)
	for _, id := range got {
		require.Equal(w, job(id), read(w, w.s, id), w.what)
	}
}

// finish does the batch again, and checks that it is done for good.
func (w *world) finish() {
	w.check()
	require.NoError(w, w.batch(), w.what)
	for range 3 {
		w.check()
		require.Empty(w, w.s.Foreign(), w.what)
		w.disk.Crash()
		w.reopen()
	}
}

// The machine stops at every call of a batch in turn, and again at some call of the Open
// that follows.
func TestNoCrashInABatchLosesOrResurrectsAnything(t *testing.T) {
	stops := 0
	atEachCall(t, (*disk.Disk).StopAt, 4, (*world).batch, func(w *world, _ error) {
		stops = max(stops, w.k)
		w.disk.Crash()
		w.disk.StopAt(1 + w.k*7%20)
		if s, err := tryOpenOn(w.disk); err == nil {
			w.disk.Heal()
			w.s = s
			w.check()
		}
		w.disk.Crash()
		w.reopen()
		w.finish()
	})
	require.Greater(t, stops, 15)
}

// The process is killed at every call of a batch in turn. The next one opens the store, and
// then the machine stops: what was removed had to be gone for good before.
func TestAKilledProcessAndACrashLeaveNoJobInPart(t *testing.T) {
	atEachCall(t, (*disk.Disk).StopAt, 4, (*world).batch, func(w *world, _ error) {
		w.disk.Heal()
		w.reopen()
		w.disk.Crash()
		w.reopen()
		w.finish()
	})
}

// A process is killed within an Append, and the power fails when the next one has read the job.
func TestWhatAProcessHasReadOutlivesACrash(t *testing.T) {
	atEachCall(t, (*disk.Disk).StopAt, 0, func(w *world) error { return w.s.Append(1, line("more")) }, func(w *world, _ error) {
		w.disk.Heal()
		w.reopen()
		was := read(w, w.s, 1)
		w.disk.Crash()
		w.reopen()
		require.Equal(w, was, read(w, w.s, 1), w.what)
	})
}

// Each call of a batch fails once; the process goes on and asks again.
func TestABatchThatFailedIsDoneByTheNext(t *testing.T) {
	atEachCall(t, (*disk.Disk).FailAt, 2, (*world).batch, func(w *world, _ error) { w.finish() })
}

// Each call of an Unlink fails once: no more than one job stays behind, and the
// error tells which. What stays in the trash is no error.
func TestAJobThatCannotBeMovedKeepsNoOther(t *testing.T) {
	purge := func(w *world) error { return unlink(w.s, ids(4, 5, 6)) }
	atEachCall(t, (*disk.Disk).FailAt, 0, purge, func(w *world, err error) {
		left, errs := list(w.s)
		require.Empty(t, errs, w.what)
		require.LessOrEqual(t, len(left), 3+1, w.what)
		if len(left) > 3 {
			require.ErrorContains(t, err, left[3].KVSPath(), w.what)
		}
		require.NoError(t, purge(w), w.what)
		left, _ = list(w.s)
		require.Equal(t, ids(1, 2, 3), left, w.what)
		require.Empty(t, w.s.Foreign(), w.what)
	})
}

// The machine stops at every call that changes jobs.
func TestNoCrashLeavesAJobInPart(t *testing.T) {
	for _, tt := range []struct {
		name string
		id   jobid.ID
		do   func(s *dirstore.Store) error
		want func(j *dirstore.Stored)
	}{
		{"add", 9, func(s *dirstore.Store) error { return s.Add(job(9)) }, func(*dirstore.Stored) {}},
		{"put R", 2, func(s *dirstore.Store) error { return s.PutR(2, []byte("new")) },
			func(j *dirstore.Stored) { j.R = []byte("new") }},
		{"append", 2, func(s *dirstore.Store) error { return s.Append(2, line("memo")) },
			func(j *dirstore.Stored) { j.Eventlog = append(j.Eventlog, line("memo")...) }},
	} {
		changed := job(tt.id)
		tt.want(&changed)
		atEachCall(t, (*disk.Disk).StopAt, 4, func(w *world) error { return tt.do(w.s) }, func(w *world, err error) {
			for range 2 { // what Open cleaned up comes back, or does not
				w.disk.Crash()
				w.reopen()
			}
			got, errs := list(w.s)
			require.Empty(t, errs, w.what)
			there := false
			for _, id := range got {
				j := read(t, w.s, id)
				j.Torn = 0
				if id != tt.id {
					require.Equal(t, job(id), j, w.what)
					continue
				}
				there = true
				require.Contains(t, []dirstore.Stored{job(id), changed}, j, w.what)
			}
			require.GreaterOrEqual(t, len(got), 6, w.what)
			if err == nil {
				require.Equal(t, changed, read(t, w.s, tt.id), w.what)
			}
			if !there {
				require.NoError(t, w.s.Add(job(tt.id)), w.what)
			}
			require.NoError(t, w.s.PutR(tt.id, []byte("R")), w.what)
		})
	}
}

// Where a call of Add fails and the process goes on, the next Add succeeds, and keeps nothing
// of the first, unless that was stored but for the last step.
func TestAnAddThatFailedIsDoneByTheNext(t *testing.T) {
	bare := job(9)
	bare.R = nil
	atEachCall(t, (*disk.Disk).FailAt, 0, func(w *world) error { return w.s.Add(job(9)) }, func(w *world, err error) {
		want := job(9)
		if err != nil && w.call != "syncdir ." {
			want = bare
			require.NoError(t, w.s.Add(bare), w.what)
		}
		w.reopen()
		require.Equal(t, want, read(t, w.s, 9), w.what)
	})
}

func TestTheNextUnlinkRemovesWhatAFailedAddLeft(t *testing.T) {
	d := newDisk()
	s := createOn(t, d)
	add(t, s, 1, 1)
	d.Fail("rename", disk.Fault{Err: syscall.EIO})
	d.Fail("remove", disk.Fault{Err: syscall.EIO})
	require.ErrorIs(t, s.Add(job(2)), syscall.EIO)
	require.Len(t, s.Foreign(), 1)

	require.NoError(t, unlink(s, ids(1)))
	require.Empty(t, s.Foreign())
}

func TestAJobThatCannotBeLookedForIsNotThereAlready(t *testing.T) {
	d := newDisk()
	s := createOn(t, d)
	d.Fail("lstat", disk.Fault{Err: syscall.EIO})
	err := s.Add(job(1))
	require.ErrorIs(t, err, syscall.EIO)
	require.NotErrorIs(t, err, fs.ErrExist)
	add(t, s, 1, 1)
}

// A Create that was stopped can be done again, and leaves nothing that opens as a
// store without being one.
func TestACreateThatWasStoppedIsDoneByTheNext(t *testing.T) {
	for c, coin := range coins(1) {
		for k, stopped := 1, true; stopped; k++ {
			d := newDisk()
			d.Coin = coin
			d.StopAt(k)
			_, err := dirstore.CreateOn(folder{d, "."})
			stopped = d.Stopped()
			require.Equal(t, stopped, err != nil)
			d.Crash()
			s, err := tryOpenOn(d)
			if err != nil {
				require.True(t, stopped)
				require.ErrorIs(t, err, dirstore.ErrNotStore)
				s, err = dirstore.CreateOn(folder{d, "."})
				require.NoError(t, err, "coin %d, call %d", c, k)
			}
			require.NoError(t, s.Add(job(1)))
			d.Crash()
			got, errs := list(openOn(t, d))
			require.Empty(t, errs)
			require.Equal(t, ids(1), got)
		}
	}
}

// On a disk that is full the trash is emptied amid a batch. A job that a crash brings
// back out of the trash is whole.
func TestACrashOnAFullDiskLeavesNoJobInPart(t *testing.T) {
	full := newDisk()
	add(t, createOn(t, full), 1, 80)
	full.Crash() // all is durable
	step := 12
	if deep {
		step = 1
	}
	for k := 1; ; k += step {
		d := full.Clone()
		s := openOn(t, d)
		random := rand.New(rand.NewPCG(uint64(k), 7))
		d.Coin = func() bool { return random.IntN(2) == 0 }
		d.Before = func(op, name string) error { // the trash needs a block for this name
			if op == "rename" && name == jobid.ID(60).KVSPath() && d.Count("remove") == 0 {
				return syscall.ENOSPC
			}
			return nil
		}
		d.StopAt(k)
		_, _ = s.Unlink(ctx, jobids(1, 80))
		if !d.Stopped() {
			require.Greater(t, k, 400)
			break
		}
		d.Before = nil
		d.Crash()
		_, errs := list(openOn(t, d))
		require.Empty(t, errs, "call %d", k)
	}
}
