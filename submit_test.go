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
