package joblife_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/rset/alloc"
)

// A job that waited on its way here was submitted before: its log, its listing and the
// scheduler are told so.
func TestASubmitMayTellItsTime(t *testing.T) {
	s := silent(t, joblife.Config{})
	now := eventlog.FromTime(s.now)
	for _, c := range []struct {
		name     string
		at, want eventlog.Timestamp
	}{
		{"before the last Step", now - 60, now - 60},
		{"none", 0, 0},
		{"by a clock that is ahead", now + 3600, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.last, s.sched, s.jour = nil, nil, nil
			s.step(joblife.Submit{Tag: 7, Jobspec: text(t, jobspec.Job{Nodes: 1}), Urgency: 16, Time: c.at})
			want := c.want
			if want == 0 {
				want = eventlog.FromTime(s.now)
			}
			a, _ := s.answer(7)
			require.Equal(t, want, sent[alloc.Request](s)[0].Submit)
			e, _ := s.told("submit")
			require.Equal(t, want, e.Timestamp)
			e, _ = s.told("validate")
			require.Equal(t, eventlog.FromTime(s.now), e.Timestamp, "the first entry alone")
			s.restart()
			got, _ := must(s.m.Job(a.Job)).Job().Entered(jobstate.StateNew)
			require.Equal(t, want, got)
		})
	}
	for _, bad := range []eventlog.Timestamp{-1, eventlog.Timestamp(math.NaN()), eventlog.Timestamp(math.Inf(1))} {
		err := s.try(joblife.Submit{Jobspec: text(t, jobspec.Job{Nodes: 1}), Time: bad})
		require.ErrorIs(t, err, joblife.ErrInvalid)
	}
}

func TestStatsHaveTheGreatestID(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	require.Zero(t, s.m.Stats().MaxID)
	for _, id := range []jobid.ID{50, 40} {
		s.step(joblife.Submit{ID: id, Jobspec: text(t, jobspec.Job{Nodes: 1})})
		require.EqualValues(t, 50, s.m.Stats().MaxID)
	}
	s.cancel(50)
	s.ask(joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true})
	require.EqualValues(t, 50, s.m.Stats().MaxID, "though the job is gone")
	s.restart()
	require.EqualValues(t, 50, s.m.Stats().MaxID)
	s.restore(slices.Collect(s.m.Snapshot()))
	require.EqualValues(t, 50, s.m.Stats().MaxID)
}

// Ids of several generators are ordered to the millisecond only, so a restart may come
// between a job and one with a lower id.
func TestALowerIDMayComeAfterARestart(t *testing.T) {
	submit := func(s *site, id jobid.ID) error {
		return s.try(joblife.Submit{ID: id, Jobspec: text(t, jobspec.Job{Nodes: 1})})
	}
	live := func(s *site) {}
	again := func(s *site) { s.restart() }
	snap := func(s *site) { s.restore(slices.Collect(s.m.Snapshot())) }
	for name, next := range map[string]func(*site){"live": live, "restart": again, "snapshot": snap} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, joblife.Config{TombstoneCount: jobstate.Some(0)}, 8)
			require.NoError(t, submit(s, 50))
			next(s)
			require.NoError(t, submit(s, 40))
			require.ErrorIs(t, submit(s, 40), joblife.ErrInvalid)
			require.ErrorIs(t, submit(s, 50), joblife.ErrInvalid)
			s.cancel(40)
			next(s)
			require.ErrorIs(t, submit(s, 40), joblife.ErrInvalid, "inactive")
			require.EqualValues(t, 1, s.ask(joblife.PurgeIDs{Tag: 7, IDs: []jobid.ID{40}, Force: true}).Count)
			next(s)
			require.ErrorIs(t, submit(s, 40), joblife.ErrInvalid, "purged (I9)")
			require.ErrorIs(t, submit(s, 39), joblife.ErrInvalid, "perhaps purged")
			require.NoError(t, submit(s, 41))
			require.NoError(t, s.ask(joblife.Submit{Tag: 7, Jobspec: text(t, jobspec.Job{Nodes: 1})}).Err)
			require.Greater(t, s.m.Stats().MaxID, jobid.ID(50), "a made one is always greater")
		})
	}
}

// SM-5, I9.
func TestTheIDOfAQuarantinedJobDoesNotComeBack(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	bad := joblife.Record{Job: 40, Kind: joblife.RecordTombstone, Data: []byte("?")}
	huge := joblife.Record{Job: 45, Kind: joblife.RecordInactive, Data: make([]byte, 65<<20)}
	event := joblife.Record{Job: 50, Kind: joblife.RecordEvent, Data: []byte("?\n")}
	s.restore([]joblife.Record{event, huge, bad})
	require.Len(t, s.rec.Quarantined, 3)
	for range 2 {
		for _, id := range []jobid.ID{40, 45, 50} {
			require.ErrorIs(t, s.try(joblife.Submit{ID: id, Jobspec: text(t, jobspec.Job{Nodes: 1})}), joblife.ErrInvalid)
		}
		s.restore(slices.Collect(s.m.Snapshot()))
	}
	require.Len(t, s.rec.Quarantined, 2, "the huge one is in no snapshot")
	require.NoError(t, s.try(joblife.Submit{ID: 48, Jobspec: text(t, jobspec.Job{Nodes: 1})}))
}

// A store may have tombstones, and no watermark.
func TestWhatWasPurgedDoesNotComeBack(t *testing.T) {
	for _, kind := range []joblife.RecordKind{joblife.RecordTombstone, joblife.RecordUnlinked} {
		s := newSite(t, joblife.Config{}, 8)
		id := s.submit(jobspec.Job{Nodes: 1})
		s.ask(joblife.PurgeIDs{Tag: 7, IDs: []jobid.ID{id}, Force: true})
		s.store = slices.DeleteFunc(s.store, func(r joblife.Record) bool { return r.Kind != kind })
		require.Len(t, s.store, 1)
		s.restore(s.store)
		require.ErrorIs(t, s.try(joblife.Submit{ID: id, Jobspec: text(t, jobspec.Job{Nodes: 1})}), joblife.ErrInvalid)
	}
}

// Nobody was told of a job whose submission a crash cut short: it is submitted again.
func TestASubmissionThatWasCutShortMayBeRepeated(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["sched"] = true
	s.step(joblife.Submit{ID: 50, Jobspec: text(t, jobspec.Job{Nodes: 1}), Urgency: 16})
	s.store = s.store[:1]
	require.Equal(t, joblife.RecordJobspec, s.store[0].Kind)
	s.restart()
	require.Zero(t, s.m.Stats().MaxID)
	s.step(joblife.Submit{ID: 50, Jobspec: text(t, jobspec.Job{Nodes: 2}), Urgency: 16})
	s.restart()
	spec, _ := must(s.m.Job(50)).Jobspec().MarshalJSON()
	require.Contains(t, string(spec), `"count":2`)
}
