package joblife_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset/alloc"
)

// The clauses of RFC 30. That a held job gets no resources is beside the tests of requests.

func TestRFC30AnUrgencyIsFrom0To31(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 1})
	for urgency := -2; urgency <= 33; urgency++ {
		for _, in := range []joblife.Input{
			joblife.SetUrgency{ID: id, Urgency: urgency},
			joblife.Submit{ID: id + jobid.ID(urgency+5), Jobspec: text(t, jobspec.Job{Nodes: 1}), Urgency: urgency},
		} {
			if err := s.try(in); urgency >= 0 && urgency <= 31 {
				require.NoError(t, err, "%T %d", in, urgency)
			} else {
				require.ErrorIs(t, err, joblife.ErrInvalid, "%T %d", in, urgency)
			}
		}
	}
}

func TestRFC30AnUpdatedUrgencyReachesThePriorityHook(t *testing.T) {
	var seen []int
	s := silent(t, joblife.Config{Hooks: []joblife.Hooks{{Priority: func(e *joblife.HookEvent) (uint32, bool) {
		seen = append(seen, int(e.Job.Job().Urgency()))
		return 100 + uint32(e.Job.Job().Urgency()), false
	}}}})
	id := s.submit(jobspec.Job{Nodes: 1})
	sent[alloc.Request](s)
	s.step(joblife.SetUrgency{ID: id, Urgency: 9})
	require.Equal(t, []int{jobstate.UrgencyDefault, 9}, seen)
	require.Equal(t, []alloc.Prioritize{{Jobs: []alloc.Priority{{ID: id, Priority: 109}}}}, sent[alloc.Prioritize](s))
}

func TestRFC30EachUrgencyIsLoggedAndSurvivesARestart(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 1})
	for i, urgency := range []int{20, 0, 5} {
		s.step(joblife.SetUrgency{ID: id, Urgency: urgency})
		log := s.events(id)
		require.Equal(t, i+1, strings.Count(log, " urgency"), log)
		s.restart()
		require.EqualValues(t, urgency, must(s.m.Job(id)).Job().Urgency())
	}
}
