package joblife_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/rset/alloc"
)

// MG-1, MG-2, SM-7.
func TestHooksRunInOrderAndSeeTheStateAfterTheEvent(t *testing.T) {
	var seen []string
	hook := func(name string) joblife.Hooks {
		return joblife.Hooks{Name: name, Event: func(e *joblife.HookEvent) {
			if other, ok := e.Lookup(e.Job.ID()); ok {
				require.Equal(t, e.Job.State(), other.State())
			}
			seen = append(seen, fmt.Sprintf("%s %s %v-%v", name, e.Entry.Name, e.Prev, e.Job.State()))
			if name == "a" && e.Entry.Name == "validate" {
				e.Post(joblife.Memo{ID: e.Job.ID(), Values: json.RawMessage(`{"x":1}`)})
			}
		}}
	}
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{hook("a"), hook("b")}}, 8)
	id := s.submit(jobspec.Job{Nodes: 1})
	require.Equal(t, []string{
		"a submit State(0)-NEW", "b submit State(0)-NEW", "a validate NEW-DEPEND", "b validate NEW-DEPEND",
		"a memo DEPEND-DEPEND", "b memo DEPEND-DEPEND", // before the decision that follows
		"a depend DEPEND-PRIORITY", "b depend DEPEND-PRIORITY", "a priority PRIORITY-SCHED", "b priority PRIORITY-SCHED",
	}, seen[:10])
	require.Equal(t, []string{
		"b finish RUN-CLEANUP", "a release CLEANUP-CLEANUP", "b release CLEANUP-CLEANUP", "a free CLEANUP-CLEANUP", "b free CLEANUP-CLEANUP",
		"a clean CLEANUP-INACTIVE", "b clean CLEANUP-INACTIVE",
	}, seen[len(seen)-7:], "event by event, of what one Step logs")
	require.Equal(t, "submit validate memo depend priority alloc start finish release free clean", s.events(id))
}

// MG-1.
func TestAHookThatPanicsIsNamedAndStopsNothing(t *testing.T) {
	boom := joblife.Hooks{Name: "boom", Event: func(e *joblife.HookEvent) { panic(e.Entry.Name) }}
	other := 0
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{boom, {Event: func(*joblife.HookEvent) { other++ }}}}, 8)
	id := s.submit(jobspec.Job{Nodes: 1})
	require.Equal(t, "submit validate depend priority alloc start finish release free clean", s.events(id))
	require.Equal(t, 10, other)
	require.Len(t, s.faults(), 10)
	require.Equal(t, `joblife: hook "boom": job `+id.String()+`: the hook panicked: submit`, s.faults()[0])
	require.EqualValues(t, 10, s.m.Stats().Faults)
}

func TestAHookThatCallsStepPanics(t *testing.T) {
	var m *joblife.Manager
	hook := joblife.Hooks{Name: "h", Event: func(e *joblife.HookEvent) { _ = m.Step(e.Now().Time(), joblife.Tick{}) }}
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{hook}}, 8)
	m = s.m
	s.submit(jobspec.Job{Nodes: 1})
	require.Contains(t, s.faults()[0], "a hook calls Step")
}

// I12.
func TestAHookThatPostsForEverIsStopped(t *testing.T) {
	n := 0
	hook := joblife.Hooks{Name: "loop", Event: func(e *joblife.HookEvent) {
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
	hook := joblife.Hooks{Name: "h", Event: func(e *joblife.HookEvent) {
		if e.Entry.Name == "submit" {
			e.Post(joblife.SetUrgency{ID: e.Job.ID(), Urgency: 99})
			e.Post(joblife.SetUrgency{ID: e.Job.ID(), Urgency: 9})
		}
	}}
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{hook}}, 8)
	id := s.submit(jobspec.Job{Nodes: 1})
	require.Len(t, s.faults(), 1)
	require.Contains(t, s.events(id), "submit urgency validate")
}

// PL-3, MG-5.
func TestAHookHoldsAJobWithActionsOfItsOwn(t *testing.T) {
	hook := joblife.Hooks{Name: "h", Event: func(e *joblife.HookEvent) {
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
		Validate: func(*joblife.HookEvent) error {
			if refuse {
				return errors.New("no")
			}
			return joblife.ErrLater
		},
		Dependency: func(e *joblife.HookEvent, d jobspec.Dependency) (bool, error) { return true, depend },
	}
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{hook}}, 8)
	id := s.submit(jobspec.Job{Nodes: 1})
	needs := s.add(needing("a", "x", ""))
	refuse = true
	s.restart()
	require.Equal(t, "submit invalidate", s.events(id))
	require.Equal(t, "submit invalidate", s.events(needs))
	refuse = false
	needs = s.add(needing("a", "x", ""))
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
		Inactive: func(e *joblife.HookEvent) { added[e.Job.ID()]++ },
		Removed:  func(e *joblife.HookEvent) { removed[e.Job.ID()]++ },
		Restored: func(e *joblife.HookEvent) { restored = append(restored, e.Job.ID()) },
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
	for _, restart := range []bool{false, true} {
		s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{later()}}, 8)
		id, gone := s.submit(jobspec.Job{Nodes: 1}), s.submit(jobspec.Job{Nodes: 1})
		require.Equal(t, "submit", s.events(id))
		require.ErrorIs(t, s.try(joblife.Raise{ID: id, Type: "cancel"}), jobstate.ErrTransition, "SM-13")
		if restart {
			s.restart()
			require.Equal(t, "submit", s.events(id), "the hook is asked again")
		}
		s.step(joblife.Validated{ID: id})
		require.Equal(t, jobstate.StateInactive, s.state(id))
		require.ErrorIs(t, s.try(joblife.Validated{ID: id}), joblife.ErrInactive)
		s.step(joblife.Wait{Tag: 9, ID: gone, States: jobstate.StateRun})
		s.step(joblife.Validated{ID: gone, Err: errors.New("no")})
		require.Error(t, s.answer(9).Err)
		require.Equal(t, "submit invalidate", s.events(gone))
	}
}

// later is a hook that validates each job later.
func later() joblife.Hooks {
	return joblife.Hooks{Name: "later", Validate: func(*joblife.HookEvent) error { return joblife.ErrLater }}
}

// I9: until the store has removed it, an invalid job is named again after each restart, and
// its id never comes back, wherever a crash comes.
func TestTheIDOfAnInvalidJobDoesNotComeBack(t *testing.T) {
	for name, restart := range restarts {
		if name == "live" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{later()}}, 8)
			s.hold["unlink"] = true
			id := s.submit(jobspec.Job{Nodes: 1})
			again := joblife.Submit{ID: id, Jobspec: text(t, jobspec.Job{Nodes: 1})}
			s.feed(joblife.Validated{ID: id, Err: errors.New("no")})
			require.ErrorIs(t, s.m.Step(s.now, again), joblife.ErrInvalid)
			again.ID-- // which no job had
			require.ErrorContains(t, s.m.Step(s.now, again), "may have been given before: ids up to "+id.String()+" are not")
			again.ID++
			s.act()
			left := slices.DeleteFunc(slices.Clone(s.store), func(r joblife.Record) bool { return r.Job == id })
			for range 2 {
				require.Equal(t, []string{"unlink " + id.String()}, s.log)
				_, ok := s.m.Job(id)
				require.False(t, ok)
				require.NotEmpty(t, ofJob(id, s.m.Snapshot())[joblife.RecordEvent])
				require.ErrorIs(t, s.try(again), joblife.ErrInvalid)
				s.log = nil
				restart(s)
			}
			s.step(joblife.Unlinked{IDs: []jobid.ID{id}})
			require.Empty(t, ofJob(id, s.m.Snapshot()))
			for range 2 {
				require.ErrorIs(t, s.try(again), joblife.ErrInvalid)
				restart(s)
			}
			s.restore(left)
			require.ErrorIs(t, s.try(again), joblife.ErrInvalid, "the store has removed it, and nobody was told")
		})
	}
}

func TestAFaultNamesWhatIsKnown(t *testing.T) {
	err := errors.New("no")
	require.Equal(t, `joblife: hook "h": job ƒ3: no`, joblife.Fault{Hook: "h", Job: 2, Err: err}.Error())
	require.Equal(t, "joblife: no", joblife.Fault{Err: err}.Error())
}

// A hook that cannot judge a job does not accept it.
func TestAHookThatPanicsRefusesTheJob(t *testing.T) {
	boom := func() { panic("oh") }
	for what, hook := range map[string]joblife.Hooks{
		"validate":   {Name: "strict", Validate: func(*joblife.HookEvent) error { boom(); return nil }},
		"dependency": {Name: "strict", Dependency: func(*joblife.HookEvent, jobspec.Dependency) (bool, error) { boom(); return true, nil }},
	} {
		s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{hook}}, 8)
		before := joblife.DescribeAll(s.m)
		err := s.m.Step(s.now, joblife.Submit{Jobspec: needing("a", "x", "")})
		require.ErrorIs(t, err, joblife.ErrRefused, what)
		require.ErrorContains(t, err, `hook "strict" panicked: oh`, what)
		require.Equal(t, before, joblife.DescribeAll(s.m), "I6")
		s.act()
		require.Empty(t, s.faults(), "the error tells it")
	}
}

func TestAHookEndsAJobBeforeItIsDurable(t *testing.T) {
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{{
		Event: func(e *joblife.HookEvent) {
			if e.Entry.Name == jobstate.EventSubmit {
				e.Post(joblife.Raise{ID: e.Job.ID(), Type: "site"})
			}
		},
	}}}, 8)
	id := s.submit(jobspec.Job{Nodes: 1})
	require.Empty(t, s.faults())
	require.Equal(t, "submit validate exception clean", s.events(id))
}

func annotate(id jobid.ID, notes string) joblife.Input {
	return joblife.SchedResponse{ID: id, Type: alloc.ResponseAnnotate, Annotations: json.RawMessage(notes)}
}

// notes returns the annotations of a job, and checks that the last event "annotations" of
// the journal has them, if there was one since the last call.
func (s *site) notes(id jobid.ID) string {
	v, ok := s.m.Job(id)
	require.True(s.t, ok)
	got := string(v.Annotations())
	if _, told := s.told("annotations"); told != "" {
		want := got
		if want == "" {
			want = "null"
		}
		require.Equal(s.t, `{"annotations":`+want+`}`, told)
	}
	s.jour = nil
	return got
}

// told returns the last event of a name in the journal, and its context.
func (s *site) told(name string) (e eventlog.Entry, context string) {
	for _, j := range s.jour {
		if j.Entry.Name == name {
			e, context = j.Entry, string(j.Entry.Context)
		}
	}
	return e, context
}

// RFC 27: each annotation updates those that are there.
func TestAnnotationsOfTheSchedulerAreMerged(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 1})
	require.Empty(t, s.notes(id))
	s.step(annotate(id, `{"sched":{"t_estimate":5,"reason_pending":"a"}}`))
	require.Equal(t, `{"sched":{"t_estimate":5,"reason_pending":"a"}}`, s.notes(id))
	s.step(annotate(id, `{"sched":{"reason_pending":"b"}}`))
	require.Equal(t, `{"sched":{"t_estimate":5,"reason_pending":"b"}}`, s.notes(id))
	s.step(joblife.Memo{ID: id, Values: json.RawMessage(`{"k":1}`)})
	s.step(annotate(id, `{"sched":{"t_estimate":null}}`))
	require.Equal(t, `{"sched":{"reason_pending":"b"},"user":{"k":1}}`, s.notes(id), "memos are among them")
	s.step(annotate(id, `{"sched":null}`))
	require.Equal(t, `{"user":{"k":1}}`, s.notes(id))
	s.step(joblife.Memo{ID: id, Values: json.RawMessage(`{"k":null}`)})
	require.Empty(t, s.notes(id))
}

func TestMemosOutliveWhatTheSchedulerSaid(t *testing.T) {
	for name, forget := range map[string]joblife.Input{
		"lost": joblife.SchedLost{}, "hello": joblife.SchedHello{},
	} {
		t.Run(name, func(t *testing.T) {
			s := silent(t, joblife.Config{})
			id := s.submit(jobspec.Job{Nodes: 1})
			s.step(joblife.Memo{ID: id, Values: json.RawMessage(`{"k":1}`)})
			s.step(annotate(id, `{"sched":{"t_estimate":5},"other":1}`))
			s.step(joblife.Memo{ID: id, Values: json.RawMessage(`{"v":2}`), Volatile: true})
			s.jour = nil
			s.step(forget)
			_, told := s.told("annotations")
			require.Equal(t, `{"annotations":{"user":{"k":1,"v":2}}}`, told)
			require.Equal(t, `{"user":{"k":1,"v":2}}`, s.notes(id))
			s.step(forget)
			_, told = s.told("annotations")
			require.Empty(t, told, "nothing changed")
			s.restart()
			require.Equal(t, `{"user":{"k":1}}`, s.notes(id), "of what is in no log")
		})
	}
}

func TestTheEndOfAWaitDropsWhatTheSchedulerSaid(t *testing.T) {
	for name, end := range map[string]func(jobid.ID) joblife.Input{
		"denied":   func(id jobid.ID) joblife.Input { return joblife.SchedResponse{ID: id, Type: alloc.ResponseDeny} },
		"requeued": func(id jobid.ID) joblife.Input { return joblife.SchedResponse{ID: id, Type: alloc.ResponseCancel} },
		"canceled": func(id jobid.ID) joblife.Input { return joblife.Raise{ID: id, Type: "cancel"} },
		"bypass":   func(id jobid.ID) joblife.Input { return joblife.SetFlags{ID: id, Flags: []string{"alloc-bypass"}} },
	} {
		t.Run(name, func(t *testing.T) {
			s := silent(t, joblife.Config{})
			id := s.submit(jobspec.Job{Nodes: 1})
			s.step(annotate(id, `{"sched":{"reason_pending":"a"}}`))
			s.jour = nil
			s.step(end(id))
			_, told := s.told("annotations")
			require.Equal(t, `{"annotations":null}`, told)
		})
	}
}

// RFC 27: alloc has a snapshot of all annotations, and no nulls.
func TestAllocHasAllAnnotations(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 1})
	s.step(joblife.Memo{ID: id, Values: json.RawMessage(`{"k":1}`)})
	s.step(joblife.Memo{ID: id, Values: json.RawMessage(`{"v":2}`), Volatile: true})
	s.step(annotate(id, `{"sched":{"t_estimate":5,"queue":"x"}}`))
	resp := success(t, id, 0).(joblife.SchedResponse)
	resp.Annotations = json.RawMessage(`{"sched": {"t_estimate":null,"resource_summary":"rank0"}}`)
	s.jour = nil
	s.step(resp)
	const want = `{"user":{"k":1,"v":2},"sched":{"queue":"x","resource_summary":"rank0"}}`
	_, context := s.told("alloc")
	require.Equal(t, `{"annotations":`+want+`}`, context)
	require.JSONEq(t, want, s.notes(id))
	s.restart()
	require.JSONEq(t, want, s.notes(id))
	s.step(joblife.Memo{ID: id, Values: json.RawMessage(`{"v":null}`), Volatile: true})
	s.step(joblife.Memo{ID: id, Values: json.RawMessage(`{"k":2}`)})
	require.JSONEq(t, `{"user":{"k":2},"sched":{"queue":"x","resource_summary":"rank0"}}`, s.notes(id))
}

func TestAllocHasNoContextIfThereAreNoAnnotations(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 1})
	resp := success(t, id, 0).(joblife.SchedResponse)
	resp.Annotations = json.RawMessage(`{"sched":{"t_estimate":null}}`)
	s.step(resp)
	e, context := s.told("alloc")
	require.NotZero(t, e)
	require.Empty(t, context)
}

// needing is a jobspec with dependencies, each a scheme and a value.
func needing(name string, deps ...string) []byte {
	j := jobspec1{Nodes: 1, Name: name}
	for i := 0; i+1 < len(deps); i += 2 {
		j.Dependencies = append(j.Dependencies, map[string]string{"scheme": deps[i], "value": deps[i+1]})
	}
	return j.text()
}

// depending is a site whose jobs run until they are told to finish.
func depending(t testing.TB) *site {
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{joblife.Dependencies()}}, 8)
	s.hold["finish"] = true
	return s
}

func (s *site) restartDepending() {
	s.t.Helper()
	s.cfg.Hooks = []joblife.Hooks{joblife.Dependencies()}
	s.restart()
}

// add submits a jobspec and returns the id.
func (s *site) add(spec []byte) jobid.ID {
	s.t.Helper()
	a := s.ask(joblife.Submit{Tag: 7, Jobspec: spec, Urgency: jobstate.UrgencyDefault})
	require.NoError(s.t, a.Err)
	return a.Job
}

// finish ends a job that runs.
func (s *site) finish(id jobid.ID, status int32) {
	s.t.Helper()
	s.step(joblife.ExecResponse{ID: id, Type: exec.ResponseFinish, Status: status})
	s.step(said(id, exec.ResponseRelease))
}

func (s *site) cancel(id jobid.ID) {
	s.t.Helper()
	s.step(joblife.Raise{ID: id, Type: "cancel"})
}

func TestAfterDependenciesFollowTheOtherJob(t *testing.T) {
	tests := []struct {
		scheme string
		end    func(s *site, id jobid.ID)
		want   jobstate.State // once the other is over
	}{
		{"afterok", func(s *site, id jobid.ID) { s.finish(id, 0) }, jobstate.StateRun},
		{"afterok", func(s *site, id jobid.ID) { s.finish(id, 256) }, jobstate.StateInactive},
		{"afternotok", func(s *site, id jobid.ID) { s.finish(id, 0) }, jobstate.StateInactive},
		{"afternotok", func(s *site, id jobid.ID) { s.finish(id, 256) }, jobstate.StateRun},
		{"afterany", func(s *site, id jobid.ID) { s.finish(id, 256) }, jobstate.StateRun},
		{"afterexcept", func(s *site, id jobid.ID) { s.finish(id, 256) }, jobstate.StateInactive},
		{"afterexcept", func(s *site, id jobid.ID) { s.cancel(id); s.step(said(id, exec.ResponseRelease)) }, jobstate.StateRun},
	}
	for i, test := range tests {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %d restart=%v", test.scheme, i, restart), func(t *testing.T) {
				s := depending(t)
				first := s.add(needing("a"))
				second := s.add(needing("b", test.scheme, first.String()))
				require.Equal(t, jobstate.StateDepend, s.state(second))
				if restart {
					s.restartDepending()
					require.Equal(t, jobstate.StateDepend, s.state(second))
				}
				test.end(s, first)
				require.Equal(t, jobstate.StateInactive, s.state(first))
				require.Equal(t, test.want, s.state(second), s.events(second))
				require.Empty(t, s.faults())
			})
		}
	}
}

func TestAfterstartEndsWhenTheOtherJobStarts(t *testing.T) {
	s := depending(t)
	s.hold["exec"] = true
	first := s.add(needing("a"))
	second := s.add(needing("b", "afterstart", first.String()))
	require.Equal(t, jobstate.StateRun, s.state(first))
	require.Equal(t, jobstate.StateDepend, s.state(second), "alloc is not start (SM-11)")
	s.hold["exec"] = false
	s.step(said(first, exec.ResponseStart))
	require.Equal(t, jobstate.StateRun, s.state(second))
}

func TestADependencyOnAnInactiveOrPurgedJobIsAnsweredAtOnce(t *testing.T) {
	s := depending(t)
	first := s.add(needing("a"))
	s.finish(first, 0)
	for _, purged := range []bool{false, true} {
		if purged {
			a := s.ask(joblife.PurgeIDs{Tag: 7, IDs: []jobid.ID{first}, Force: true})
			require.NoError(t, a.Err)
			_, ok := s.m.Job(first)
			require.False(t, ok)
		}
		for _, restart := range []bool{false, true} {
			if restart {
				s.restartDepending()
			}
			second := s.add(needing("b", "afterok", first.String()))
			require.Equal(t, jobstate.StateRun, s.state(second), s.events(second))
			s.finish(second, 0)
			err := s.try(joblife.Submit{Jobspec: needing("b", "afternotok", first.String())})
			require.ErrorIs(t, err, joblife.ErrRefused)
		}
	}
	require.Empty(t, s.faults())
}

// flux-core#6555: schemes but afterany need a job that had resources, and afterstart that it
// started; afterexcept asks what ended it. So it is before its end, later, and after its purge.
func TestAJobThatAnExceptionEndedIsJudgedByHowFarItCame(t *testing.T) {
	for _, test := range []struct {
		hold, events, satisfied string // events: finish, or exceptions; the schemes that are satisfied
	}{
		{"sched", "x", "afterany"},
		{"exec", "x", "afterany afternotok afterexcept"},
		{"finish", "cancel", "afterany afternotok afterexcept afterstart"},
		{"finish", "timeout finish", "afterany afternotok afterexcept afterstart"},
		{"finish", "x finish", "afterany afternotok afterexcept afterstart"},
		{"finish", "finish cancel", "afterany afternotok afterstart"}, // it had ended
	} {
		s := depending(t)
		s.hold[test.hold] = true
		first := s.add(needing("a"))
		schemes, waiting := strings.Fields("afterany afternotok afterexcept afterok afterstart"), make(map[string]jobid.ID)
		for _, scheme := range schemes {
			waiting[scheme] = s.add(needing("b", scheme, first.String()))
		}
		for _, event := range strings.Fields(test.events) {
			in := joblife.Input(joblife.Raise{ID: first, Type: event})
			if event == "finish" {
				in = joblife.ExecResponse{ID: first, Type: exec.ResponseFinish, Status: 256}
			}
			s.step(in)
		}
		if test.hold != "sched" {
			s.step(said(first, exec.ResponseRelease))
		}
		for _, scheme := range schemes {
			require.Equal(t, strings.Contains(test.satisfied, scheme), s.state(waiting[scheme]) != jobstate.StateInactive, "%v %s, waiting", test, scheme)
		}
		for _, when := range []string{"inactive", "restored", "purged", "purged and restored"} {
			if when == "purged" {
				require.NoError(t, s.ask(joblife.PurgeIDs{Tag: 7, IDs: []jobid.ID{first}, Force: true}).Err)
			} else if when != "inactive" {
				s.restartDepending()
			}
			for _, scheme := range schemes {
				err := s.try(joblife.Submit{Jobspec: needing("c", scheme, first.String()), Urgency: jobstate.UrgencyDefault})
				require.Equal(t, strings.Contains(test.satisfied, scheme), err == nil, "%v %s, %s: %v", test, scheme, when, err)
			}
		}
		require.Empty(t, s.faults())
	}
}

func TestARefusedJobLeavesNoDependencyBehind(t *testing.T) {
	s := depending(t)
	first := s.add(needing("a"))
	err := s.try(joblife.Submit{Jobspec: needing("b", "afterany", first.String(), "nonsense", "1")})
	require.ErrorIs(t, err, joblife.ErrRefused)
	err = s.try(joblife.Submit{Jobspec: needing("a", "singleton", "", "nonsense", "1")})
	require.ErrorIs(t, err, joblife.ErrRefused)
	single := s.add(needing("a", "singleton", ""))
	s.finish(first, 0)
	require.Empty(t, s.faults())
	require.Equal(t, jobstate.StateRun, s.state(single))
}

func TestABeginTimeHoldsAJobUntilThen(t *testing.T) {
	for _, restart := range []bool{false, true} {
		s := depending(t)
		at := s.now.Add(time.Hour)
		id := s.add(needing("a", "begin-time", fmt.Sprint(at.Unix())))
		require.Equal(t, jobstate.StateDepend, s.state(id))
		if restart {
			s.restartDepending()
			require.Equal(t, jobstate.StateDepend, s.state(id))
		}
		due := s.deadline()
		require.Equal(t, at.Unix(), due.Unix())
		s.now = due
		s.step(joblife.Tick{})
		require.Equal(t, jobstate.StateRun, s.state(id))
		for _, bad := range []string{"", "x", "-1", "NaN", "inf"} {
			require.ErrorIs(t, s.try(joblife.Submit{Jobspec: needing("a", "begin-time", bad)}), joblife.ErrRefused, bad)
		}
	}
}

func TestASingletonWaitsForAllOfItsName(t *testing.T) {
	s := depending(t)
	first := s.add(needing("a"))
	other := s.add(needing("b"))
	second := s.add(needing("a", "singleton", ""))
	third := s.add(needing("a", "singleton", ""))
	require.Equal(t, jobstate.StateDepend, s.state(second))
	s.restartDepending()
	s.finish(other, 0)
	require.Equal(t, jobstate.StateDepend, s.state(second))
	s.finish(first, 0)
	require.Equal(t, jobstate.StateRun, s.state(second))
	require.Equal(t, jobstate.StateDepend, s.state(third))
	s.restartDepending()
	require.Equal(t, jobstate.StateDepend, s.state(third))
	s.finish(second, 0)
	require.Equal(t, jobstate.StateRun, s.state(third))
	require.Empty(t, s.faults())
}

func TestAJobThatAsksTwiceToBeASingletonWaitsAsOne(t *testing.T) {
	s := depending(t)
	first, other := s.add(needing("a")), s.add(needing("a"))
	twice := s.add(needing("a", "singleton", "", "singleton", ""))
	s.finish(first, 0)
	require.Equal(t, jobstate.StateDepend, s.state(twice), "another of its name still runs")
	s.finish(other, 0)
	require.Equal(t, jobstate.StateRun, s.state(twice))
	require.Empty(t, s.faults())
}

func TestASingletonGoesOnIfTheOtherEndedJustBeforeACrash(t *testing.T) {
	s := depending(t)
	first := s.add(needing("a"))
	second := s.add(needing("a", "singleton", ""))
	third := s.add(needing("a", "singleton", ""))
	n := len(s.store)
	s.finish(first, 0)
	for i := n; i < len(s.store); i++ { // what follows the end of the first is lost
		if e := s.store[i]; e.Job == second {
			s.store = s.store[:i]
		}
	}
	s.restartDepending()
	require.Equal(t, jobstate.StateInactive, s.state(first))
	require.Equal(t, jobstate.StateRun, s.state(second), s.events(second))
	require.Equal(t, jobstate.StateDepend, s.state(third))
}

func TestAnInvalidatedJobEndsTheDependenciesOnIt(t *testing.T) {
	later := joblife.Hooks{Name: "later", Validate: func(e *joblife.HookEvent) error {
		if e.Job.Job().Urgency() == 1 {
			return joblife.ErrLater
		}
		return nil
	}}
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{later, joblife.Dependencies()}}, 8)
	first := s.ask(joblife.Submit{Tag: 7, Jobspec: needing("a"), Urgency: 1}).Job
	require.Equal(t, jobstate.StateNew, s.state(first))
	second := s.add(needing("b", "afterany", first.String()))
	single := s.add(needing("a", "singleton", ""))
	s.step(joblife.Validated{ID: first, Err: fmt.Errorf("no")})
	require.Equal(t, "submit dependency-add validate exception clean", s.events(second))
	require.Equal(t, jobstate.StateInactive, s.state(single))
	result, _ := must(s.m.Job(single)).Result()
	require.Equal(t, jobstate.ResultCompleted, result)
	require.Empty(t, s.faults())
}

// must returns a View of a job that is there.
func must(v joblife.View, ok bool) joblife.View {
	if !ok {
		panic("no such job")
	}
	return v
}

func TestADependencyOnAJobOfAnotherUserIsRefused(t *testing.T) {
	s := depending(t)
	first := s.ask(joblife.Submit{Tag: 7, By: joblife.Cred{UserID: 1}, Jobspec: needing("a"), Urgency: 16}).Job
	spec := needing("b", "afterok", first.String())
	require.ErrorIs(t, s.try(joblife.Submit{By: joblife.Cred{UserID: 2}, Jobspec: spec}), joblife.ErrRefused)
	s.finish(first, 0)
	require.ErrorIs(t, s.try(joblife.Submit{By: joblife.Cred{UserID: 2}, Jobspec: spec}), joblife.ErrRefused)
	a := s.ask(joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true})
	require.Equal(t, 1, a.Count)
	require.ErrorIs(t, s.try(joblife.Submit{By: joblife.Cred{UserID: 2}, Jobspec: spec}), joblife.ErrRefused)
	require.NoError(t, s.try(joblife.Submit{By: joblife.Cred{UserID: 1}, Jobspec: spec}))
}

func TestManyTimesThatComeAtOnceAllCount(t *testing.T) {
	now := time.Unix(1_600_000_000, 0)
	m, err := joblife.New(joblife.Config{Epoch: now, Volatile: true, Hooks: []joblife.Hooks{joblife.Dependencies()}})
	require.NoError(t, err)
	at := now.Add(time.Hour)
	spec := needing("a", "begin-time", fmt.Sprint(at.Unix()))
	const n = 1<<12 + 10 // more than hooks may ask for by themselves
	var rd joblife.Ready
	for i := range n {
		require.NoError(t, m.Step(now.Add(time.Duration(i/400)*time.Millisecond), joblife.Submit{Jobspec: spec, Urgency: 16}))
		require.True(t, m.Ready(&rd))
		require.NoError(t, m.Done(rd.Seq))
	}
	require.Equal(t, n, m.Stats().States[jobstate.StateDepend])
	require.NoError(t, m.Step(at.Add(time.Second), joblife.Tick{}))
	require.Zero(t, m.Stats().Faults)
	require.Equal(t, n, m.Stats().States[jobstate.StateSched])
}

// SM-15.
func TestADependencyIsAddedAndRemovedOnce(t *testing.T) {
	add := joblife.Hooks{Name: "add", Dependency: func(e *joblife.HookEvent, d jobspec.Dependency) (bool, error) {
		e.Post(joblife.DependencyAdd{ID: e.Job.ID(), Description: d.Scheme})
		return true, nil
	}}
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{add}}, 8)
	id := s.add(needing("a", "x", "", "y", ""))
	require.Equal(t, "submit dependency-add dependency-add validate", s.events(id))
	s.step(joblife.DependencyAdd{ID: id, Description: "x"})
	s.step(joblife.DependencyRemove{ID: id, Description: "unknown"})
	require.Equal(t, "submit dependency-add dependency-add validate", s.events(id), "no event")
	s.step(joblife.DependencyRemove{ID: id, Description: "x"})
	require.ErrorIs(t, s.try(joblife.DependencyAdd{ID: id, Description: "x"}), jobstate.ErrTransition)
	s.step(joblife.DependencyRemove{ID: id, Description: "x"})
	s.restart()
	require.Empty(t, s.faults(), "the hook adds it again")
	require.Equal(t, "submit dependency-add dependency-add validate dependency-remove", s.events(id))
	s.step(joblife.DependencyRemove{ID: id, Description: "y"})
	require.Equal(t, jobstate.StateInactive, s.state(id))
	require.ErrorIs(t, s.try(joblife.DependencyAdd{ID: id, Description: "z"}), joblife.ErrInactive)
}

// What a job that is over waited for is no matter to a hook that asks too late.
func TestADependencyOfAJobThatIsOverIsRemovedInVain(t *testing.T) {
	s := silent(t, joblife.Config{Hooks: []joblife.Hooks{{Inactive: func(e *joblife.HookEvent) {
		e.Post(joblife.DependencyRemove{ID: e.Job.ID(), Description: "x"})
	}}}})
	s.cancel(s.waits(false))
	require.Empty(t, s.faults())
}

func TestADependencyOfAJobThatWaitsNoLongerIsNoEvent(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	id := s.submit(jobspec.Job{Nodes: 9})
	before := s.events(id)
	s.step(joblife.DependencyRemove{ID: id, Description: "site"})
	require.Equal(t, before, s.events(id))
	require.ErrorIs(t, s.m.Step(s.now, joblife.DependencyAdd{ID: id, Description: "site"}), joblife.ErrInvalid)
	v, _ := s.m.Job(id)
	require.Empty(t, jobstate.Validate(v.Eventlog()))
}

// One event ends the job by its first dependency, and satisfies the second.
func TestOfTwoDependenciesOnAJobTheOneThatFailsCounts(t *testing.T) {
	put := joblife.Hooks{Validate: func(e *joblife.HookEvent) error {
		if e.Job.Jobspec().Name() == "later" {
			return joblife.ErrLater
		}
		return nil
	}}
	for _, name := range []string{"now", "later"} {
		s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{put, joblife.Dependencies()}}, 8)
		first := s.submit(jobspec.Job{Nodes: 99})
		id := s.add(needing(name, "afternotok", first.String(), "afterany", first.String()))
		s.cancel(first)
		if name == "later" {
			require.Equal(t, "submit dependency-add dependency-add", s.events(id))
			s.step(joblife.Validated{ID: id})
		}
		require.Equal(t, "submit dependency-add dependency-add validate exception clean", s.events(id))
	}
}

func TestAJobWithANewNameIsNoLongerOfTheOldOne(t *testing.T) {
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{joblife.Dependencies()}}, 8)
	first := s.submit(jobspec.Job{Nodes: 99, Name: "x"})
	second := s.add(needing("x", "singleton", ""))
	require.Equal(t, "submit dependency-add validate", s.events(second))
	s.step(joblife.UpdateJobspec{ID: first, Updates: []jobstate.Update{{Path: "attributes.system.job.name", Value: []byte(`"y"`)}}})
	require.Contains(t, s.events(second), "clean")
	s.step(joblife.Raise{ID: first, Type: "cancel"})
	third := s.add(needing("y", "singleton", ""))
	require.Contains(t, s.events(third), "clean")
}

func TestSingletonsWithANewNameGoInTheOrderOfSubmission(t *testing.T) {
	for _, restart := range []bool{false, true} {
		s := depending(t)
		a, b := s.add(needing("a")), s.add(needing("b"))
		renamed, waits := s.add(needing("b", "singleton", "")), s.add(needing("a", "singleton", ""))
		s.step(joblife.UpdateJobspec{ID: renamed, Updates: []jobstate.Update{{Path: "attributes.system.job.name", Value: []byte(`"a"`)}}})
		if restart {
			s.restartDepending()
		}
		s.finish(b, 0)
		require.Equal(t, jobstate.StateDepend, s.state(renamed))
		s.finish(a, 0)
		require.Equal(t, jobstate.StateRun, s.state(renamed), "restarted: %v", restart)
		require.Equal(t, jobstate.StateDepend, s.state(waits))
	}
}

func TestASingletonDoesNotWaitForALaterJobAfterARestart(t *testing.T) {
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{later(), joblife.Dependencies()}}, 8)
	first := s.add(needing("x", "singleton", ""))
	s.add(needing("x"))
	s.cfg.Hooks = []joblife.Hooks{later(), joblife.Dependencies()}
	s.restore(s.store)
	require.Equal(t, "submit", s.events(first))
}

// One event makes a job invalid, and satisfies another of its dependencies.
func TestADependencyOfAJobThatIsGoneIsNoFault(t *testing.T) {
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{later(), joblife.Dependencies()}}, 8)
	first := s.add(needing("x"))
	id := s.add(needing("x", "afterok", first.String(), "singleton", ""))
	s.step(joblife.Validated{ID: first, Err: errors.New("bad")})
	s.step(joblife.Validated{ID: id})
	require.Contains(t, s.events(id), "validate exception clean")
	require.Equal(t, uint64(0), s.m.Stats().Faults)
}

// Ids of the caller's choice need not be in the order of submission.
func TestSingletonsWithIDsOfTheCallerEndAfterARestart(t *testing.T) {
	cfg := func() joblife.Config {
		return joblife.Config{Hooks: []joblife.Hooks{joblife.Dependencies()}}
	}
	s := newSite(t, cfg(), 8)
	add := func(id jobid.ID, spec []byte) {
		s.step(joblife.Submit{ID: id, Jobspec: spec, Urgency: jobstate.UrgencyDefault})
	}
	at := s.now.Add(10 * time.Second)
	add(100, needing("n", "singleton", "", "begin-time", strconv.FormatInt(at.Unix(), 10)))
	add(70, needing("n", "singleton", ""))
	add(50, needing("n", "singleton", ""))
	add(90, needing("n", "singleton", ""))
	records := s.store
	for n := range records {
		s := newSite(t, cfg(), 8)
		s.now = at.Add(-time.Second)
		s.store = slices.Clone(records[:n+1])
		s.restart()
		left := len(s.rec.Jobs)
		s.now = at.Add(time.Second)
		s.step(joblife.Tick{})
		require.Equal(t, left, s.inactive(), "after %d records", n+1)
		var order []jobid.ID
		for _, r := range s.store {
			if r.Kind == joblife.RecordEvent && strings.Contains(string(r.Data), `"name":"start"`) {
				order = append(order, r.Job)
			}
		}
		want := []jobid.ID{100, 70, 50, 90}[:left]
		require.Equal(t, fmt.Sprint(want), fmt.Sprint(order), "after %d records", n+1)
	}
}

// SM-8: what one job ends may let any number go on, in one Step.
func TestAJobOnWhichMoreJobsDependThanHooksMayPost(t *testing.T) {
	n := 5000
	s := newSite(t, joblife.Config{Volatile: true, Hooks: []joblife.Hooks{joblife.Dependencies()}}, 8)
	s.hold["sched"] = true
	first := s.submit(jobspec.Job{Nodes: 1})
	spec := needing("n", "afterany", first.String())
	failing := needing("n", "afterok", first.String())
	for i := range n {
		require.NoError(t, s.m.Step(s.now, joblife.Submit{ID: jobid.ID(i + 1), Jobspec: spec, Urgency: jobstate.UrgencyDefault}))
	}
	require.NoError(t, s.m.Step(s.now, joblife.Submit{ID: jobid.ID(n + 1), Jobspec: failing, Urgency: jobstate.UrgencyDefault}))
	require.Equal(t, n+1, s.m.Stats().States[jobstate.StateDepend])
	s.feed(joblife.Raise{ID: first, Type: "cancel"})
	require.Zero(t, s.m.Stats().Faults)
	require.Equal(t, n, s.m.Stats().States[jobstate.StateSched])
}
