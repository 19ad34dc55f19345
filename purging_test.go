package joblife_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/purge"
)

// ended is a site with n jobs that are over.
func ended(t testing.TB, cfg joblife.Config, n int) (*site, []jobid.ID) {
	s := newSite(t, cfg, 8)
	var ids []jobid.ID
	for range n {
		ids = append(ids, s.submit(jobspec.Job{Nodes: 1}))
	}
	return s, ids
}

// inactive returns how many jobs are inactive.
func (s *site) inactive() int { return s.m.Stats().States[jobstate.StateInactive] }

// PU-7, PU-8.
func TestPurgeByHand(t *testing.T) {
	s, ids := ended(t, joblife.Config{}, 250)
	s.hold["finish"] = true
	run := s.submit(jobspec.Job{Nodes: 1})
	require.Equal(t, 250, s.ask(joblife.Purge{Tag: 7, Limits: purge.PurgeAll()}).Count, "a dry run")
	require.Equal(t, 250, s.inactive())
	require.Equal(t, 2, s.ask(joblife.PurgeIDs{Tag: 7, IDs: ids[:2]}).Count, "a dry run")
	require.ErrorIs(t, s.try(joblife.PurgeIDs{IDs: []jobid.ID{ids[0], run}, Force: true}), purge.ErrActive)
	require.ErrorIs(t, s.try(joblife.PurgeIDs{IDs: []jobid.ID{ids[0], 42}, Force: true}), purge.ErrUnknown)
	require.Equal(t, 0, s.ask(joblife.PurgeIDs{Tag: 7, Force: true}).Count, "none")
	require.Equal(t, 3, s.ask(joblife.PurgeIDs{Tag: 7, IDs: ids[3:6], Force: true}).Count)
	require.ErrorIs(t, s.try(joblife.PurgeIDs{IDs: ids[3:4], Force: true}), purge.ErrPurged)
	a := s.ask(joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true})
	require.NoError(t, a.Err)
	require.Equal(t, 247, a.Count, "in batches")
	require.Equal(t, 0, s.inactive())
	require.Equal(t, 250, s.m.Stats().Purge.Purged.Total())
	require.ErrorIs(t, s.try(joblife.Submit{ID: ids[3], Jobspec: text(t, jobspec.Job{Nodes: 1})}), joblife.ErrInvalid, "I9")
}

// PU-6, PU-12, I9: wherever a crash cuts a purge off.
func TestACrashInTheMiddleOfAPurge(t *testing.T) {
	s, ids := ended(t, joblife.Config{Hooks: []joblife.Hooks{joblife.Dependencies()}}, 3)
	before := len(s.store)
	s.step(joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true})
	records := slices.Clone(s.store)
	for n := before; n <= len(records); n++ {
		for _, gone := range []bool{false, true} {
			store := slices.Clone(records[:n])
			if gone && slices.ContainsFunc(store, func(r joblife.Record) bool { return r.Job == ids[2] && r.Kind == joblife.RecordTombstone }) {
				store = slices.DeleteFunc(store, func(r joblife.Record) bool { // what the store has removed
					return slices.Contains(ids, r.Job) && r.Kind != joblife.RecordTombstone && r.Kind != joblife.RecordUnlinked
				})
			}
			s.store, s.log = store, nil
			s.cfg.Hooks = []joblife.Hooks{joblife.Dependencies()}
			s.restart()
			require.Empty(t, s.rec.Quarantined)
			for _, id := range ids {
				require.ErrorIs(t, s.try(joblife.Submit{ID: id, Jobspec: text(t, jobspec.Job{Nodes: 1})}), joblife.ErrInvalid, "I9")
			}
			id := s.add(needing(t, "b", "afterok", ids[1].String()))
			require.Greater(t, id, ids[2])
			require.Equal(t, jobstate.StateInactive, s.state(id))
			s.ask(joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true})
			require.Zero(t, s.inactive())
			require.Empty(t, s.faults())
		}
	}
}

// PU-4, HK-5.
func TestHousekeepingKeepsAJobFromBeingPurged(t *testing.T) {
	s := newSite(t, joblife.Config{Actions: perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}}}, 8)
	s.hold["action"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	require.Equal(t, jobstate.StateInactive, s.state(id))
	for range 2 {
		require.Equal(t, 1, s.m.Stats().Housekeeping)
		require.ErrorIs(t, s.try(joblife.PurgeIDs{IDs: []jobid.ID{id}, Force: true}), purge.ErrPinned)
		require.Equal(t, 0, s.ask(joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true}).Count)
		holders := 0
		for h := range s.m.Holders() {
			require.Equal(t, perilog.HolderHousekeeping, h.Kind)
			holders++
		}
		require.Equal(t, 1, holders, "PR-11")
		s.restart()
		require.Len(t, s.rec.Unresolved, 1, "HK-1")
		s.restore(slices.Collect(s.m.Snapshot()))
		s.hello()
		apart := slices.Clone(s.store) // a store that has the logs of housekeeping in a place of its own
		slices.SortStableFunc(apart, func(a, b joblife.Record) int {
			return int(boolOf(a.Kind == joblife.RecordHousekeeping)) - int(boolOf(b.Kind == joblife.RecordHousekeeping))
		})
		m, rec, err := joblife.Restore(s.now, s.cfg, all(apart))
		require.NoError(t, err)
		require.Len(t, rec.Quarantined, 1, "not forgotten in silence")
		require.Equal(t, 1, m.Stats().Quarantined)
	}
	l := s.runs[0]
	s.step(joblife.Report{Job: id, Report: perilog.Report{Action: l.Action, Attempt: l.Attempt, Kind: perilog.ReportExited, Rank: 0}})
	require.Equal(t, 0, s.m.Stats().Housekeeping)
	require.Equal(t, 1, s.ask(joblife.PurgeIDs{Tag: 7, IDs: []jobid.ID{id}, Force: true}).Count)
}

// PU-5.
func TestAJobThatCannotBeRemovedStays(t *testing.T) {
	s, ids := ended(t, joblife.Config{}, 3)
	s.hold["unlink"] = true
	s.step(joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true})
	require.ErrorIs(t, s.try(joblife.PurgeIDs{IDs: ids[:1], Force: true}), purge.ErrLeaving)
	bad := errors.New("disk")
	s.step(joblife.Unlinked{IDs: []jobid.ID{ids[0]}})
	require.Equal(t, 3, s.inactive(), "not all are told yet")
	s.step(joblife.Unlinked{IDs: ids[1:], Failed: map[jobid.ID]error{ids[1]: bad}})
	a, ok := s.answer(7)
	require.True(t, ok)
	require.Equal(t, 2, a.Count)
	require.Equal(t, 1, s.inactive())
	require.Equal(t, 1, s.m.Stats().Purge.Stuck)
	require.Len(t, s.faults(), 1)
	_, ok = s.m.Job(ids[1])
	require.True(t, ok)
	s.step(joblife.Unlinked{IDs: ids}) // a repetition
	require.Equal(t, 1, s.inactive())
	s.hold["unlink"] = false
	require.Equal(t, 1, s.ask(joblife.PurgeIDs{Tag: 7, IDs: ids[1:2], Force: true}).Count)
}

func TestARequestCountsItsOwnJobs(t *testing.T) {
	s, _ := ended(t, joblife.Config{Limits: purge.Limits{MaxCount: jobstate.Some(3)}}, 5)
	s.hold["unlink"] = true
	s.step(joblife.Tick{})
	s.step(joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true})
	s.hold["unlink"] = false
	var first []jobid.ID
	for v := range s.m.Jobs(jobstate.StateInactive) {
		if len(first) < 2 {
			first = append(first, v.ID())
		}
	}
	s.step(joblife.Unlinked{IDs: first})
	a, ok := s.answer(7)
	require.True(t, ok)
	require.Equal(t, 3, a.Count)
}

func TestLimitsPurgeByNumberAndAge(t *testing.T) {
	for _, restart := range []bool{false, true} {
		s, ids := ended(t, joblife.Config{}, 5)
		cfg := s.cfg
		cfg.Limits = purge.Limits{MaxCount: jobstate.Some(3), MaxAge: jobstate.Some(time.Hour)}
		if s.cfg = cfg; restart {
			s.restart()
		} else {
			s.step(joblife.Reload{Config: cfg})
		}
		at, ok := s.m.Deadline()
		require.True(t, ok)
		require.False(t, at.After(s.now.Add(time.Second)))
		s.step(joblife.Tick{})
		require.Equal(t, 3, s.inactive())
		_, ok = s.m.Job(ids[1])
		require.False(t, ok, "oldest first (PU-1)")
		if restart {
			s.restart()
			s.step(joblife.Tick{})
		}
		for n := 0; s.inactive() > 0 && n < 100; n++ {
			at, ok := s.m.Deadline()
			require.True(t, ok)
			require.False(t, at.Before(s.now))
			s.now = at
			s.step(joblife.Tick{})
		}
		require.Zero(t, s.inactive())
		require.WithinDuration(t, time.Unix(1_600_003_600, 0), s.now, 3*time.Second)
		require.Empty(t, s.faults())
		require.Equal(t, 5, s.m.Stats().Purge.Tombstones.Completed)
	}
}

// PU-9.
func TestALongRestIsNotAClockThatJumped(t *testing.T) {
	s, _ := ended(t, joblife.Config{Limits: purge.Limits{MaxAge: jobstate.Some(30 * 24 * time.Hour)}}, 2)
	s.step(joblife.Tick{})
	for n := 0; s.inactive() > 0; n++ {
		require.Less(t, n, 100, "it is woken once a day at most")
		at, ok := s.m.Deadline()
		require.True(t, ok)
		require.True(t, at.After(s.now.Add(-time.Second)))
		s.now = at
		s.step(joblife.Tick{})
	}
	require.Empty(t, s.faults())
	require.WithinDuration(t, time.Unix(1_600_000_000, 0).Add(30*24*time.Hour), s.now, time.Minute)
}

// PU-9.
func TestAClockThatJumpedPurgesNothingUntilItIsAccepted(t *testing.T) {
	s, _ := ended(t, joblife.Config{Limits: purge.Limits{MaxAge: jobstate.Some(time.Hour)}}, 2)
	s.step(joblife.Tick{})
	s.now = s.now.Add(300 * 24 * time.Hour)
	s.step(joblife.Tick{})
	require.Len(t, s.faults(), 1)
	require.Equal(t, 2, s.inactive())
	at, ok := s.m.Deadline()
	require.True(t, ok)
	require.True(t, at.After(s.now), "no busy loop")
	s.step(joblife.AcceptClock{})
	s.step(joblife.Tick{})
	require.Zero(t, s.inactive())
	require.Len(t, s.faults(), 1)
}

func TestAManagerWithoutLimitsDoesNotMindTheClock(t *testing.T) {
	s, _ := ended(t, joblife.Config{}, 2)
	s.step(joblife.Tick{})
	s.now = s.now.Add(300 * 24 * time.Hour)
	s.step(joblife.Tick{})
	require.Empty(t, s.faults())
	_, ok := s.m.Deadline()
	require.False(t, ok)
}

// PU-8.
func TestARequestWithoutABatchIsCarriedOutInBatches(t *testing.T) {
	s, _ := ended(t, joblife.Config{}, 120)
	limits := purge.PurgeAll()
	limits.Batch = purge.NoBatch
	s.hold["unlink"] = true
	s.feed(joblife.Purge{Tag: 7, Limits: limits, Force: true})
	require.True(t, s.m.Ready(&s.rd))
	require.Len(t, s.rd.Unlink, purge.DefaultBatch)
}

// A store is told of each tombstone that expires, or it would grow for ever (PU-12).
func TestExpiredTombstonesAreRecorded(t *testing.T) {
	s, ids := ended(t, joblife.Config{TombstoneCount: jobstate.Some(1)}, 3)
	for _, id := range ids {
		require.Equal(t, 1, s.ask(joblife.PurgeIDs{Tag: 7, IDs: []jobid.ID{id}, Force: true}).Count)
	}
	var expired []jobid.ID
	for _, r := range s.store {
		if r.Kind == joblife.RecordTombstone && len(r.Data) == 0 {
			expired = append(expired, r.Job)
		}
	}
	require.Equal(t, ids[:2], expired)
	s.restart()
	require.Empty(t, s.rec.Quarantined)
	require.Equal(t, 1, s.m.Stats().Purge.Tombstones.Total())
	require.ErrorIs(t, s.try(joblife.Submit{ID: ids[0], Jobspec: text(t, jobspec.Job{Nodes: 1})}), joblife.ErrInvalid, "I9")
}

// Whatever comes between a purge and its outcome: the outcome is never refused, and none of it
// is done before all of it is there (I6).
func TestNothingAmidAPurgeSpoilsItsOutcome(t *testing.T) {
	s, ids := ended(t, joblife.Config{Limits: purge.Limits{MaxAge: jobstate.Some(1000 * time.Hour)}}, 3)
	s.hold["unlink"] = true
	s.step(joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true})
	s.step(joblife.Unlinked{IDs: ids[:1]})
	last := s.submit(jobspec.Job{Nodes: 1})
	cfg := s.cfg
	cfg.TombstoneCount, cfg.Limits = jobstate.Some(1), purge.Limits{MaxCount: jobstate.Some(0)}
	for _, in := range []joblife.Input{
		joblife.AcceptClock{}, joblife.Reload{Config: cfg}, joblife.Tick{}, joblife.Purge{Tag: 8, Limits: purge.PurgeAll()},
		joblife.Unlinked{IDs: []jobid.ID{ids[0], 42}, Failed: map[jobid.ID]error{ids[0]: errors.New("late"), 43: nil}},
	} {
		s.step(in)
		require.Equal(t, 4, s.inactive())
		require.Equal(t, 3, s.m.Stats().Purge.Leaving)
	}
	s.step(joblife.Unlinked{IDs: ids[1:2]})
	s.step(joblife.Unlinked{IDs: ids[2:]})
	require.Equal(t, 1, s.inactive())
	s.step(joblife.Unlinked{IDs: []jobid.ID{last}}) // the request goes on until nothing is left
	a, ok := s.answer(7)
	require.True(t, ok)
	require.NoError(t, a.Err)
	require.Equal(t, 4, a.Count)
}
