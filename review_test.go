package joblife_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog/exec"
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

// RFC 27, RFC 32: a new scheduler and a new executor learn the expiration of today.
func TestANewExpirationIsInWhatHelloAndReattachSay(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["finish"] = true
	s.hold["exec"] = true
	id := s.submit(jobspec.Job{Nodes: 2, Duration: 60})
	at := eventlog.FromTime(s.now.Add(time.Hour))
	check := func() {
		t.Helper()
		s.exec = nil
		s.feed(joblife.SchedHello{PartialOK: true})
		require.True(t, s.m.Ready(&s.rd))
		require.Equal(t, at, s.rd.Hello.Responses[0].R.Expiration())
		require.NoError(t, s.m.Done(s.rd.Seq))
		s.step(joblife.SchedReady{})
		s.step(joblife.ExecHello{})
		require.Equal(t, at, s.exec[0].(exec.Start).R.Expiration())
		require.Equal(t, at, must(s.m.Job(id)).R().Expiration())
	}
	s.step(joblife.SetExpiration{ID: id, Expiration: at})
	check()
	s.restore(s.store)
	check()
	start := must(s.m.Job(id)).R().Start()
	require.Positive(t, start)
	require.ErrorIs(t, s.m.Step(s.now, joblife.SetExpiration{ID: id, Expiration: start}), joblife.ErrInvalid)
	s.step(joblife.Post{ID: id, Name: jobstate.EventResourceUpdate, Context: []byte(`{"expiration":1}`)})
	require.Positive(t, must(s.m.Job(id)).R().Expiration())
	at = 0 // never
	s.step(joblife.SetExpiration{ID: id})
	check()
}
