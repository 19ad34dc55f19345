package joblife_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobspec"
)

// EL-6: nobody outside knows of a job whose submission may be lost in a crash.
func TestNobodyChangesAJobBeforeItIsDurable(t *testing.T) {
	m, err := joblife.New(joblife.Config{Hooks: []joblife.Hooks{{
		Name: "site",
		Event: func(e *joblife.Event) { // hooks may, and what they decide later
			if e.Entry.Name == jobstate.EventSubmit {
				e.Post(joblife.Memo{ID: e.Job.ID(), Values: []byte(`{"a":1}`)})
				e.Post(joblife.DependencyAdd{ID: e.Job.ID(), Description: "site"})
			}
		},
	}}})
	require.NoError(t, err)
	s := &site{t: t, m: m, now: newSite(t, joblife.Config{}, 1).now}
	s.feed(joblife.Submit{ID: 5, Jobspec: text(t, jobspec.Job{Nodes: 1}), Urgency: jobstate.UrgencyDefault})
	requests := []joblife.Input{
		joblife.Urgency{ID: 5, Urgency: 3},
		joblife.Update{ID: 5, Updates: []jobstate.Update{{Path: "attributes.system.duration", Value: []byte("9")}}},
		joblife.Memo{ID: 5, Values: []byte(`{"a":2}`)},
		joblife.Memo{ID: 5, Values: []byte(`{"a":2}`), Volatile: true},
		joblife.SetFlags{ID: 5, Flags: []string{"debug"}},
		joblife.Raise{ID: 5, Type: "cancel"},
		joblife.Post{ID: 5, Name: "x"},
	}
	for _, in := range requests {
		require.ErrorIs(t, m.Step(s.now, in), joblife.ErrUnknown, "%T", in)
	}
	s.feed(joblife.Priority{ID: 5, Priority: 9})
	s.feed(joblife.DependencyRemove{ID: 5, Description: "site"})
	s.act()
	require.Empty(t, s.faults())
	require.Equal(t, "submit memo dependency-add validate dependency-remove depend priority", s.events(5))
	for i := range requests {
		in := requests[(i+6)%len(requests)] // the one that ends the job comes last
		require.NoError(t, m.Step(s.now, in), "%T", in)
	}
}

func TestAHookEndsAJobBeforeItIsDurable(t *testing.T) {
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{{
		Event: func(e *joblife.Event) {
			if e.Entry.Name == jobstate.EventSubmit {
				e.Post(joblife.Raise{ID: e.Job.ID(), Type: "site"})
			}
		},
	}}}, 8)
	id := s.submit(jobspec.Job{Nodes: 1})
	require.Empty(t, s.faults())
	require.Equal(t, "submit validate exception clean", s.events(id))
}
