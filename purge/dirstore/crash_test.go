package dirstore_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

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
	disk *disk
	s    *dirstore.Store
	gone bool // the batch is done
}

// newWorld returns what makes a store with the jobs 1 to 6, all durable. The machine
// crashes as the coin says.
func newWorld(t *testing.T) func(coin func() bool) *world {
	d := newDisk()
	s := d.create(t)
	for id := range jobid.ID(6) {
		require.NoError(t, s.Add(job(id+1)))
	}
	d.crash()
	return func(coin func() bool) *world {
		w := &world{T: t, disk: &disk{root: d.root.clone(), coin: coin}}
		w.s = w.disk.open(t)
		return w
	}
}

// batch removes 5 and 6.
func (w *world) batch() error {
	err := unlink(w.s, ids(5, 6))
	w.gone = w.gone || err == nil
	return err
}

// check fails the test unless the store is as it must be.
func (w *world) check(what string) {
	got, errs := list(w.s)
	require.Empty(w, errs, what)
	want := ids(1, 2, 3, 4)
	for _, id := range ids(5, 6) {
		if len(got) > len(want) && got[len(want)] == id && !w.gone {
			want = append(want, id)
		}
	}
	require.Equal(w, want, got, what)
	for _, id := range got {
		j, err := w.s.Read(id)
		require.NoError(w, err)
		require.Equal(w, job(id), j, what)
	}
}

// done fails the test unless the whole batch was done.
func (w *world) done(what string) {
	require.True(w, w.gone, what)
	w.check(what)
	foreign, err := w.s.Foreign()
	require.NoError(w, err)
	require.Empty(w, foreign, what)
}

// The machine stops at every call of a batch in turn, and again at every call of
// the Open that follows.
func TestNoCrashInABatchLosesOrResurrectsAnything(t *testing.T) {
	stops := 0
	newOne := newWorld(t)
	for c, coin := range coins(4) {
		for k := 1; ; k++ {
			what := fmt.Sprintf("coin %d, call %d", c, k)
			w := newOne(coin)
			w.disk.calls, w.disk.failAt, w.disk.down = nil, k, true
			if w.batch() == nil && len(w.disk.calls) < k {
				require.Greater(t, k, 15)
				break
			}
			stops++
			w.disk.crash()
			// The first Open is stopped as well, at some call.
			w.disk.failAt = 1 + (k*7+c)%20
			if s, err := dirstore.Open(".", w.disk.options()); err == nil {
				w.s, w.disk.failAt = s, 0
				w.check(what)
			}
			w.disk.crash()
			w.s = w.disk.open(t)
			w.check(what)
			require.NoError(t, w.batch(), what)
			w.done(what)
			for range 2 {
				w.disk.crash()
				w.s = w.disk.open(t)
				w.done(what)
			}
		}
	}
	t.Log(stops, "stops")
}

// The process is killed at every call of a batch in turn. The next one opens the store, and
// then the machine stops: what was removed had to be gone for good before.
func TestAKilledProcessAndACrashLeaveNoJobInPart(t *testing.T) {
	newOne := newWorld(t)
	for c, coin := range coins(4) {
		for k := 1; ; k++ {
			what := fmt.Sprintf("coin %d, call %d", c, k)
			w := newOne(coin)
			w.disk.calls, w.disk.failAt, w.disk.down = nil, k, true
			if w.batch() == nil && len(w.disk.calls) < k {
				break
			}
			w.disk.failAt, w.disk.down = 0, false
			w.s = w.disk.open(t)
			w.disk.crash()
			w.s = w.disk.open(t)
			w.check(what)
			require.NoError(t, w.batch(), what)
			w.done(what)
		}
	}
}

// Each call of a batch fails once; the process goes on and asks again.
func TestABatchThatFailedIsDoneByTheNext(t *testing.T) {
	newOne := newWorld(t)
	for c, coin := range coins(2) {
		for k := 1; ; k++ {
			what := fmt.Sprintf("coin %d, call %d", c, k)
			w := newOne(coin)
			w.disk.calls, w.disk.failAt = nil, k
			err := w.batch()
			if len(w.disk.calls) < k {
				require.NoError(t, err)
				break
			}
			w.check(what)
			require.NoError(t, w.batch(), what)
			w.done(what)
			w.disk.crash()
			w.s = w.disk.open(t)
			w.done(what)
		}
	}
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
		t.Run(tt.name, func(t *testing.T) {
			newOne := newWorld(t)
			for c, coin := range coins(4) {
				for k := 1; ; k++ {
					what := fmt.Sprintf("coin %d, call %d", c, k)
					w := newOne(coin)
					w.disk.calls, w.disk.failAt, w.disk.down = nil, k, true
					err := tt.do(w.s)
					stopped := len(w.disk.calls) >= k
					w.disk.crash()
					w.s = w.disk.open(t)
					w.disk.crash() // what Open cleaned up comes back, or does not
					w.s = w.disk.open(t)
					changed := job(tt.id)
					tt.want(&changed)
					ids, errs := list(w.s)
					require.Empty(t, errs, what)
					there := false
					for _, id := range ids {
						j, err := w.s.Read(id)
						require.NoError(t, err)
						j.Torn = 0
						if id != tt.id {
							require.Equal(t, job(id), j, what)
							continue
						}
						there = true
						require.Contains(t, []dirstore.Stored{job(id), changed}, j, what)
					}
					require.GreaterOrEqual(t, len(ids), 6, what)
					if err == nil {
						j, err := w.s.Read(tt.id)
						require.NoError(t, err, what)
						require.Equal(t, changed, j, what)
					}
					if !there {
						require.NoError(t, w.s.Add(job(tt.id)), what)
					}
					require.NoError(t, w.s.PutR(tt.id, []byte("R")), what)
					if !stopped {
						require.NoError(t, err)
						break
					}
				}
			}
		})
	}
}

// Where a call of Add fails and the process goes on, the next Add succeeds, unless
// it was the last step.
func TestAnAddThatFailedIsDoneByTheNext(t *testing.T) {
	newOne := newWorld(t)
	for k := 1; ; k++ {
		w := newOne(func() bool { return false })
		w.disk.calls, w.disk.failAt = nil, k
		err := w.s.Add(job(9))
		if len(w.disk.calls) < k {
			require.NoError(t, err)
			break
		}
		if w.disk.calls[k-1] != "syncdir ." && w.disk.calls[k-1] != "close "+"new/job.0000.0000.0000.0009" {
			require.Error(t, err, w.disk.calls[k-1])
			require.NoError(t, w.s.Add(job(9)), w.disk.calls[k-1])
		}
		w.s = w.disk.open(t)
		j, err := w.s.Read(9)
		require.NoError(t, err)
		require.Equal(t, job(9), j)
	}
}

// A Create that was stopped can be done again, and leaves nothing that opens as a
// store without being one.
func TestACreateThatWasStoppedIsDoneByTheNext(t *testing.T) {
	for c, coin := range coins(1) {
		for k := 1; ; k++ {
			d := newDisk()
			d.coin, d.failAt, d.down = coin, k, true
			_, err := dirstore.Create(".", d.options())
			stopped := len(d.calls) >= k
			d.crash()
			if err == nil {
				require.False(t, stopped)
				d.open(t)
				break
			}
			s, err := dirstore.Open(".", d.options())
			if err != nil {
				require.ErrorIs(t, err, dirstore.ErrNotStore)
				s, err = dirstore.Create(".", d.options())
				require.NoError(t, err, "coin %d, call %d", c, k)
			}
			require.NoError(t, s.Add(job(1)))
			d.crash()
			ids, errs := list(d.open(t))
			require.Empty(t, errs)
			require.Equal(t, []jobid.ID{1}, ids)
		}
	}
}
