package joblife_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/purge"
)

// MG-1, MG-2, SM-7.
func TestHooksRunInOrderAndSeeTheStateAfterTheEvent(t *testing.T) {
	var seen []string
	hook := func(name string) joblife.Hooks {
		return joblife.Hooks{Name: name, Event: func(e *joblife.Event) {
			seen = append(seen, fmt.Sprintf("%s %s %v-%v", name, e.Entry.Name, e.Prev, e.Job.State()))
			if name == "a" && e.Entry.Name == "validate" {
				e.Post(joblife.Memo{ID: e.Job.ID(), Values: json.RawMessage(`{"x":1}`)})
			}
		}}
	}
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{hook("a"), hook("b")}}, 8)
	id := s.ask(joblife.Submit{Tag: 7, Jobspec: text(t, jobspec.Job{Nodes: 1}), Urgency: 0}).Job
	require.Equal(t, []string{
		"a submit State(0)-NEW", "b submit State(0)-NEW", "a validate NEW-DEPEND", "b validate NEW-DEPEND",
		"a memo DEPEND-DEPEND", "b memo DEPEND-DEPEND", // before the decision that follows
		"a depend DEPEND-PRIORITY", "b depend DEPEND-PRIORITY", "a priority PRIORITY-SCHED", "b priority PRIORITY-SCHED",
	}, seen[:10])
	require.Equal(t, "submit validate memo depend priority", s.events(id))
}

// MG-1.
func TestAHookThatPanicsIsNamedAndStopsNothing(t *testing.T) {
	boom := joblife.Hooks{Name: "boom", Event: func(e *joblife.Event) { panic(e.Entry.Name) }}
	other := 0
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{boom, {Event: func(*joblife.Event) { other++ }}}}, 8)
	id := s.submit(jobspec.Job{Nodes: 1})
	require.Equal(t, "submit validate depend priority alloc start finish release free clean", s.events(id))
	require.Equal(t, 10, other)
	require.Len(t, s.faults(), 10)
	require.Equal(t, `joblife: hook "boom": job `+id.String()+`: the hook panicked: submit`, s.faults()[0])
	require.EqualValues(t, 10, s.m.Stats().Faults)
}

func TestAHookThatCallsStepPanics(t *testing.T) {
	var m *joblife.Manager
	hook := joblife.Hooks{Name: "h", Event: func(e *joblife.Event) { _ = m.Step(e.Now().Time(), joblife.Tick{}) }}
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{hook}}, 8)
	m = s.m
	s.submit(jobspec.Job{Nodes: 1})
	require.Contains(t, s.faults()[0], "a hook calls Step")
}

// I12.
func TestAHookThatPostsForEverIsStopped(t *testing.T) {
	n := 0
	hook := joblife.Hooks{Name: "loop", Event: func(e *joblife.Event) {
		n++
		e.Post(joblife.Memo{ID: e.Job.ID(), Values: json.RawMessage(fmt.Sprintf(`{"x":%d}`, n))})
	}}
	s := newSite(t, joblife.Config{Volatile: true, Hooks: []joblife.Hooks{hook}}, 8)
	s.feed(joblife.Submit{Jobspec: text(t, jobspec.Job{Nodes: 1}), Urgency: 0})
	require.True(t, s.m.Ready(&s.rd))
	require.ErrorIs(t, s.rd.Faults[0].Err, joblife.ErrLimit)
	require.NoError(t, s.m.Done(s.rd.Seq))
	require.Equal(t, 1, s.m.Stats().States[jobstate.StateSched])
}

func TestAHookThatAsksForWhatIsRefusedMeetsAFault(t *testing.T) {
	hook := joblife.Hooks{Name: "h", Event: func(e *joblife.Event) {
		if e.Entry.Name == "submit" {
			e.Post(joblife.Urgency{ID: e.Job.ID(), Urgency: 99})
			e.Post(joblife.Urgency{ID: e.Job.ID(), Urgency: 9})
		}
	}}
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{hook}}, 8)
	id := s.submit(jobspec.Job{Nodes: 1})
	require.Len(t, s.faults(), 1)
	require.Contains(t, s.events(id), "submit urgency validate")
}

// PL-3, MG-5.
func TestAHookHoldsAJobWithActionsOfItsOwn(t *testing.T) {
	hook := joblife.Hooks{Name: "h", Event: func(e *joblife.Event) {
		switch e.Entry.Name {
		case "alloc":
			e.Post(joblife.Post{ID: e.Job.ID(), Name: "prolog-start", Context: json.RawMessage(`{"description":"dws"}`)})
		case "finish":
			e.Post(joblife.Post{ID: e.Job.ID(), Name: "epilog-start", Context: json.RawMessage(`{"description":"dws"}`)})
		}
	}}
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{hook}}, 8)
	id := s.submit(jobspec.Job{Nodes: 1})
	require.Equal(t, "submit validate depend priority alloc prolog-start", s.events(id))
	s.restart()
	require.Len(t, s.rec.Unresolved, 1, "it has no owner (I10)")
	s.step(joblife.Post{ID: id, Name: "prolog-finish", Context: json.RawMessage(`{"description":"dws","status":0}`)})
	require.Equal(t, "submit validate depend priority alloc prolog-start prolog-finish start finish epilog-start release", s.events(id))
	s.step(joblife.Post{ID: id, Name: "epilog-finish", Context: json.RawMessage(`{"description":"dws","status":0}`)})
	require.Equal(t, jobstate.StateInactive, s.state(id))
}

func TestAJobThatIsRefusedAfterARestartDoesNotRun(t *testing.T) {
	refuse := false
	var depend error
	hook := joblife.Hooks{Name: "h",
		Validate: func(*joblife.Event) error {
			if refuse {
				return errors.New("no")
			}
			return joblife.ErrLater
		},
		Dependency: func(e *joblife.Event, d jobspec.Dependency) (bool, error) { return true, depend },
	}
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{hook}}, 8)
	id := s.submit(jobspec.Job{Nodes: 1})
	needs := s.add(needing(t, "a", "x", ""))
	refuse = true
	s.restart()
	require.Equal(t, "submit invalidate", s.events(id))
	require.Equal(t, "submit invalidate", s.events(needs))
	refuse = false
	needs = s.add(needing(t, "a", "x", ""))
	depend = errors.New("gone")
	s.restart()
	require.Equal(t, "submit", s.events(needs), "it was accepted, and is not lost")
	s.step(joblife.Validated{ID: needs})
	require.Equal(t, "submit validate exception clean", s.events(needs))
}

// MG-3, MG-4.
func TestEachInactiveJobIsAddedAndRemovedOnce(t *testing.T) {
	added, removed := make(map[jobid.ID]int), make(map[jobid.ID]int)
	var restored []jobid.ID
	hook := joblife.Hooks{Name: "h",
		Inactive: func(e *joblife.Event) { added[e.Job.ID()]++ },
		Removed:  func(e *joblife.Event) { removed[e.Job.ID()]++ },
		Restored: func(e *joblife.Event) { restored = append(restored, e.Job.ID()) },
	}
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{hook}}, 8)
	var ids, active []jobid.ID
	for range 4 {
		ids = append(ids, s.submit(jobspec.Job{Nodes: 1}))
	}
	s.hold["finish"] = true
	for range 3 {
		active = append(active, s.submit(jobspec.Job{Nodes: 1}))
	}
	s.restart()
	require.Equal(t, active, restored, "by id")
	s.restart()
	a := s.ask(joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true})
	require.Equal(t, 4, a.Count)
	s.restart()
	for _, id := range ids {
		require.Equal(t, 1, added[id])
		require.Equal(t, 1, removed[id])
	}
	require.Len(t, removed, 4)
}

func TestAJobIsValidatedLater(t *testing.T) {
	later := joblife.Hooks{Name: "later", Validate: func(*joblife.Event) error { return joblife.ErrLater }}
	for _, restart := range []bool{false, true} {
		s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{later}}, 8)
		id := s.submit(jobspec.Job{Nodes: 1})
		gone := s.submit(jobspec.Job{Nodes: 1})
		require.Equal(t, "submit", s.events(id))
		require.ErrorIs(t, s.try(joblife.Raise{ID: id, Type: "cancel"}), jobstate.ErrTransition, "SM-13")
		if restart {
			s.restart()
			require.Equal(t, "submit", s.events(id), "the hook is asked again")
		}
		s.step(joblife.Validated{ID: id})
		require.Equal(t, jobstate.StateInactive, s.state(id))
		require.ErrorIs(t, s.try(joblife.Validated{ID: id}), joblife.ErrInactive)
		s.hold["unlink"] = true
		s.step(joblife.Wait{Tag: 9, ID: gone, Event: "alloc"})
		s.step(joblife.Validated{ID: gone, Err: errors.New("no")})
		a, ok := s.answer(9)
		require.True(t, ok)
		require.Error(t, a.Err)
		require.Equal(t, "submit invalidate", s.events(gone))
		_, ok = s.m.Job(gone)
		require.False(t, ok)
		require.Equal(t, "unlink "+gone.String(), s.log[len(s.log)-1])
		require.ErrorIs(t, s.try(joblife.Submit{ID: gone, Jobspec: text(t, jobspec.Job{Nodes: 1})}), joblife.ErrInvalid, "I9")
		n := len(s.log)
		s.restore(append([]joblife.Record(nil), s.store...))
		require.Contains(t, s.log[n:], "unlink "+gone.String(), "again")
		n = len(s.log)
		var snap []joblife.Record
		for r := range s.m.Snapshot() {
			snap = append(snap, r)
		}
		s.restore(snap)
		require.Contains(t, s.log[n:], "unlink "+gone.String(), "also of a snapshot")
		s.step(joblife.Unlinked{IDs: []jobid.ID{gone}})
		require.ErrorIs(t, s.try(joblife.Submit{ID: gone, Jobspec: text(t, jobspec.Job{Nodes: 1})}), joblife.ErrInvalid, "I9")
		s.restore(s.store)
		require.ErrorIs(t, s.try(joblife.Submit{ID: gone, Jobspec: text(t, jobspec.Job{Nodes: 1})}), joblife.ErrInvalid, "I9")
	}
}

// I9.
func TestTheWatermarkIsDurableBeforeAnInvalidJobIsUnlinked(t *testing.T) {
	later := joblife.Hooks{Name: "later", Validate: func(*joblife.Event) error { return joblife.ErrLater }}
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{later}}, 8)
	s.hold["unlink"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	s.step(joblife.Validated{ID: id, Err: errors.New("no")})
	var left []joblife.Record
	for _, r := range s.store { // the store has removed the job, and then the power failed
		if r.Job != id {
			left = append(left, r)
		}
	}
	s.restore(left)
	require.ErrorIs(t, s.try(joblife.Submit{ID: id, Jobspec: text(t, jobspec.Job{Nodes: 1})}), joblife.ErrInvalid)
}

func TestAFaultNamesWhatIsKnown(t *testing.T) {
	err := errors.New("no")
	require.Equal(t, `joblife: hook "h": job ƒ3: no`, joblife.Fault{Hook: "h", Job: 2, Err: err}.Error())
	require.Equal(t, "joblife: no", joblife.Fault{Err: err}.Error())
}
