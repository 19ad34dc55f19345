package joblife_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// of returns some cores of ranks.
func of(t testing.TB, ranks, cores *idset.Set) *rset.R {
	t.Helper()
	return grants(t, 0, ranks, cores).(joblife.SchedResponse).R
}

// waits returns a new job that waits for its resources, or for those of an Alloc.
func (s *site) waits(bypass bool) jobid.ID {
	s.t.Helper()
	id := s.submit(jobspec.Job{Nodes: 1})
	if bypass {
		s.step(joblife.SetFlags{ID: id, Flags: []string{"alloc-bypass"}})
	}
	return id
}

// given gives a job resources.
func given(id jobid.ID, r *rset.R, bypass bool) joblife.Input {
	if bypass {
		return joblife.Alloc{ID: id, R: r}
	}
	return joblife.SchedResponse{ID: id, Type: alloc.ResponseSuccess, R: r}
}

// TestNothingIsBookedTwice is PR-10 for all that can hold resources, and for both ways to
// give some: what is held is refused, and nothing changes; what is beside it is not.
func TestNothingIsBookedTwice(t *testing.T) {
	two, one := idset.Range(0, 1), idset.Of(1) // cores
	keeps := joblife.Config{Actions: perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}}}
	for _, c := range []struct {
		name string
		cfg  joblife.Config
		// hold has a job hold the cores 0 and 1 of the ranks 2 and 3.
		hold func(s *site) jobid.ID
	}{
		{"a job", joblife.Config{}, func(s *site) jobid.ID {
			id := s.waits(false)
			s.step(given(id, of(t, idset.Range(2, 3), two), false))
			return id
		}},
		{"a job that bypasses the scheduler", joblife.Config{}, func(s *site) jobid.ID {
			id := s.waits(true)
			s.step(given(id, of(t, idset.Range(2, 3), two), true))
			return id
		}},
		{"a job that gave back the ranks beside", joblife.Config{}, func(s *site) jobid.ID {
			id := s.waits(false)
			s.step(given(id, of(t, idset.Range(1, 4), two), false))
			s.step(joblife.Raise{ID: id, Type: "cancel"})
			s.step(joblife.ExecResponse{ID: id, Type: exec.ResponseRelease, Ranks: idset.Of(1, 4)})
			return id
		}},
		{"a bypassing job that gave back the ranks beside", joblife.Config{}, func(s *site) jobid.ID {
			id := s.waits(true)
			s.step(given(id, of(t, idset.Range(1, 4), two), true))
			s.step(joblife.Raise{ID: id, Type: "cancel"})
			s.step(joblife.ExecResponse{ID: id, Type: exec.ResponseRelease, Ranks: idset.Of(1, 4)})
			return id
		}},
		{"housekeeping of a job that is over", keeps, func(s *site) jobid.ID {
			s.hold["action"] = true
			id := s.waits(false)
			s.step(given(id, of(t, idset.Range(2, 3), two), false))
			s.finish(id, 0)
			require.Equal(t, jobstate.StateInactive, s.state(id))
			return id
		}},
		{"a job of before a restart", joblife.Config{}, func(s *site) jobid.ID {
			id := s.waits(false)
			s.step(given(id, of(t, idset.Range(2, 3), two), false))
			s.restart()
			return id
		}},
		{"a quarantined job", joblife.Config{}, func(s *site) jobid.ID {
			id := s.waits(false)
			s.step(given(id, of(t, idset.Range(2, 3), two), false))
			s.store = append(s.store, joblife.Record{Job: id, Kind: joblife.RecordEvent, Data: []byte("?\n")})
			s.restart()
			require.Len(t, s.rec.Quarantined, 1)
			return id
		}},
		{"a quarantined job that bypasses the scheduler", joblife.Config{}, func(s *site) jobid.ID {
			id := s.waits(true)
			s.step(given(id, of(t, idset.Range(2, 3), two), true))
			s.store = append(s.store, joblife.Record{Job: id, Kind: joblife.RecordEvent, Data: []byte("?\n")})
			s.restart()
			require.Nil(t, s.rec.Quarantined[0].R, "no scheduler is told")
			return id
		}},
	} {
		for _, bypass := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				s := silent(t, c.cfg)
				holder := c.hold(s)
				id := s.waits(bypass)
				for _, r := range []struct {
					r       *rset.R
					overlap string
				}{
					{of(t, idset.Of(2), one), "rank2/core1"},
					{of(t, idset.Range(0, 5), one), "rank[2-3]/core1"},
					{of(t, idset.Range(3, 5), idset.Range(0, 3)), "rank3/core[0-1]"},
				} {
					before := joblife.DescribeAll(s.m)
					err := s.m.Step(s.now, given(id, r.r, bypass))
					require.ErrorIs(t, err, joblife.ErrConflict)
					require.ErrorContains(t, err, id.String()+" and "+holder.String()+" both have "+r.overlap)
					require.Equal(t, before, joblife.DescribeAll(s.m), "I6")
					require.False(t, s.m.Ready(&s.rd))
				}
				s.step(given(id, of(t, idset.Range(0, 5), idset.Range(2, 3)), bypass))
				require.Equal(t, jobstate.StateRun, s.state(id), "other cores are free")
				id = s.waits(bypass)
				s.step(given(id, of(t, idset.Of(0, 1, 4, 5), two), bypass))
				require.Equal(t, jobstate.StateRun, s.state(id), "other ranks are free")
			})
		}
	}
}

// One overlap is told in full, and how many others there are is counted.
func TestAConflictCountsTheOtherHolders(t *testing.T) {
	s, ids := runs(t, [2]*idset.Set{idset.Of(0), idset.Of(0)}, [2]*idset.Set{idset.Of(1), idset.Of(0)}, [2]*idset.Set{idset.Of(2), idset.Of(0)})
	id := s.waits(false)
	text := "both have rank0/core0"
	err := s.try(grants(t, id, idset.Of(0), idset.Of(0)))
	require.True(t, strings.HasSuffix(err.Error(), ids[0].String()+" "+text), err)
	err = s.try(grants(t, id, idset.Range(0, 2), idset.Of(0)))
	require.True(t, strings.HasSuffix(err.Error(), ids[0].String()+" "+text+"; others that hold some of it: 2"), err)
}

// An executor that has released everything is not asked again while epilogs run.
func TestAnExecutorIsNotAskedForAJobThatItReleased(t *testing.T) {
	s := silent(t, joblife.Config{Actions: perilog.Config{Epilogs: []perilog.ActionConfig{{PerRank: true}}}})
	s.hold["action"] = true
	id := s.waits(false)
	s.step(grants(t, id, idset.Of(0), idset.Of(0)))
	s.finish(id, 0)
	require.Equal(t, jobstate.StateCleanup, s.state(id))
	s.exec = nil
	s.step(joblife.ExecHello{})
	require.Empty(t, s.exec)
}

// What is refused tells the scheduler nothing: its next hello does, and then it is served.
func TestAfterADoubleBookingTheNextHelloTellsTheTruth(t *testing.T) {
	s, ids := runs(t, [2]*idset.Set{idset.Range(0, 1), idset.Of(0)})
	id := s.waits(false)
	require.ErrorIs(t, s.try(grants(t, id, idset.Of(1), idset.Of(0))), joblife.ErrConflict)
	s.step(joblife.SchedLost{})
	require.Equal(t, map[jobid.ID]string{ids[0]: "rank[0-1]/core0"}, told(s))
	s.sched = nil
	s.step(joblife.SchedReady{})
	require.Len(t, sent[alloc.Request](s), 1, "the job waits on")
	s.step(grants(t, id, idset.Of(2), idset.Of(0)))
	require.Equal(t, jobstate.StateRun, s.state(id))
}

// A response that takes nothing is refused all the same: its free would tell the scheduler
// that others' resources are free.
func TestALateResponseFreesNothingOfOthers(t *testing.T) {
	s, _ := runs(t, [2]*idset.Set{idset.Of(0), idset.Of(0)})
	id := s.waits(false)
	s.cancel(id)
	require.ErrorIs(t, s.try(grants(t, id, idset.Of(0), idset.Of(0))), joblife.ErrConflict)
	require.Empty(t, sent[alloc.Free](s))

	id = s.waits(false)
	s.step(joblife.Urgency{ID: id, Urgency: 0})
	require.ErrorIs(t, s.try(grants(t, id, idset.Of(0), idset.Of(0))), joblife.ErrConflict)
	require.Empty(t, sent[alloc.Free](s))
}

// A second response for a job is no conflict with itself.
func TestAnAnswerThatComesTwiceIsAViolationOfTheProtocol(t *testing.T) {
	s, ids := runs(t, [2]*idset.Set{idset.Of(0), idset.Of(0)})
	require.ErrorContains(t, s.try(grants(t, ids[0], idset.Of(0), idset.Of(0))), "alloc: protocol violation")
}

// What a job lost to an exception of type scheduler-restart is the scheduler's.
func TestRevokedResourcesAreNotBooked(t *testing.T) {
	s, ids := runs(t, [2]*idset.Set{idset.Of(0), idset.Of(0)})
	s.step(joblife.Raise{ID: ids[0], Type: "scheduler-restart"})
	require.Equal(t, jobstate.StateCleanup, s.state(ids[0]))
	for range 2 {
		require.Empty(t, told(s))
		s.restart()
	}
	id := s.waits(false)
	s.step(grants(t, id, idset.Of(0), idset.Of(0)))
	require.Equal(t, jobstate.StateRun, s.state(id))
	s.finish(ids[0], 0)
	require.Equal(t, map[jobid.ID]string{id: "rank0/core0"}, told(s))
}

// A crash may part the events free and clean, and housekeeping still holds all.
func TestHousekeepingHoldsBeforeTheEventClean(t *testing.T) {
	s := silent(t, joblife.Config{Actions: perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}}})
	s.hold["action"] = true
	id := s.waits(false)
	s.step(grants(t, id, idset.Of(0), idset.Of(0)))
	s.finish(id, 0)
	clean := slices.IndexFunc(s.store, func(r joblife.Record) bool { return bytes.Contains(r.Data, []byte(`"clean"`)) })
	s.store = s.store[:clean]
	require.True(t, strings.HasSuffix(s.events(id), "free"))
	m, err := joblife.Load(s.now, s.cfg, all(s.store))
	require.NoError(t, err)
	require.NoError(t, joblife.Audit(m))
	s.restart()
	require.Equal(t, map[jobid.ID]string{id: "rank0/core0"}, told(s))
	other := s.waits(false)
	require.ErrorIs(t, s.try(grants(t, other, idset.Of(0), idset.Of(0))), joblife.ErrConflict)
}

// Jobs that bypass the scheduler are quarantined as others are.
func TestBypassingJobsThatHoldTheSameAreQuarantined(t *testing.T) {
	s, ids := runs(t, [2]*idset.Set{idset.Of(0), idset.Of(0)})
	id := s.waits(true)
	s.step(joblife.Alloc{ID: id, R: of(t, idset.Of(1), idset.Of(0))})
	s.forge(id, grants(t, id, idset.Of(0), idset.Of(0)))
	s.restart()
	require.Len(t, s.rec.Quarantined, 2)
	require.Equal(t, "rank0/core0", s.rec.Quarantined[0].R.String())
	require.ErrorIs(t, s.rec.Quarantined[1].Err, joblife.ErrConflict)
	require.Nil(t, s.rec.Quarantined[1].R)
	require.Equal(t, map[jobid.ID]string{ids[0]: "rank0/core0"}, told(s))
}

// TestBookingsAreWhatJobsHold compares the index of who holds what with a map, through
// bookings and releases of any form: at any time it equals what the jobs hold.
func TestBookingsAreWhatJobsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type place struct{ rank, core uint32 }
		b := joblife.NewBookings()
		holds := make(map[jobid.ID]map[place]bool)
		some := func(most uint32, label string) *idset.Set {
			first := rapid.Uint32Range(0, most).Draw(t, label+" first")
			set := idset.Range(first, min(most, first+rapid.Uint32Range(0, most/2).Draw(t, label+" more")))
			if rapid.Bool().Draw(t, label+" hole") {
				set.Remove(first + 1)
			}
			return set
		}
		draw := func() *rset.R {
			entries := []rset.Entry{{Ranks: some(12, "ranks"), Children: map[string]*idset.Set{"core": some(3, "cores")}}}
			if rest := idset.Difference(some(12, "others"), entries[0].Ranks); !rest.IsEmpty() {
				entries = append(entries, rset.Entry{Ranks: rest, Children: map[string]*idset.Set{"core": some(3, "their cores")}})
			}
			r, err := rset.New(rset.Config{Entries: entries})
			require.NoError(t, err)
			return r
		}
		each := func(r *rset.R, f func(place)) {
			for e := range r.Entries() {
				for rank := range e.Ranks.All() {
					for core := range e.Children["core"].All() {
						f(place{rank, core})
					}
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"book": func(t *rapid.T) {
				id, r := jobid.ID(rapid.IntRange(1, 6).Draw(t, "job")), draw()
				if holds[id] != nil {
					t.Skip("it has some")
				}
				others := make(map[jobid.ID]bool)
				for other, places := range holds {
					each(r, func(p place) {
						if places[p] {
							others[other] = true
						}
					})
				}
				err := b.Conflict(id, r)
				require.Equal(t, len(others) > 0, err != nil, err)
				if err != nil {
					require.ErrorIs(t, err, joblife.ErrConflict)
					if rapid.Bool().Draw(t, "refused") {
						return
					}
				}
				b.Add(id, r)
				holds[id] = make(map[place]bool)
				each(r, func(p place) { holds[id][p] = true })
			},
			"free": func(t *rapid.T) {
				id, ranks := jobid.ID(rapid.IntRange(1, 6).Draw(t, "job")), some(12, "ranks")
				for first, last := range ranks.Ranges() {
					b.Remove(id, first, last)
				}
				for p := range holds[id] {
					if ranks.Contains(p.rank) {
						delete(holds[id], p)
					}
				}
				if len(holds[id]) == 0 {
					delete(holds, id)
				}
			},
			"": func(t *rapid.T) {
				have := make(map[jobid.ID]map[place]bool)
				b.Each(func(id jobid.ID, rank uint32, kind string, n uint32) {
					if have[id] == nil {
						have[id] = make(map[place]bool)
					}
					require.False(t, have[id][place{rank, n}], "twice")
					have[id][place{rank, n}] = true
				})
				require.Equal(t, holds, have)
			},
		})
	})
}
