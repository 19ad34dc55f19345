package joblife_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/rset/alloc"
)

// sent returns the messages of a type to the scheduler since the last call.
func sent[T any](s *site) []T {
	var out []T
	s.sched = slices.DeleteFunc(s.sched, func(m alloc.Message) bool {
		v, ok := m.(T)
		if ok {
			out = append(out, v)
		}
		return ok
	})
	return out
}

// silent is a site whose scheduler says nothing by itself.
func silent(t testing.TB, cfg joblife.Config) *site {
	s := newSite(t, cfg, 8)
	s.hold["sched"], s.hold["pool"], s.hold["finish"] = true, true, true
	return s
}

// SM-9.
func TestALateAllocationOfACanceledJobIsFreedAtOnce(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 2})
	require.Len(t, sent[alloc.Request](s), 1)
	s.cancel(id)
	require.Equal(t, jobstate.StateInactive, s.state(id), "at once")
	require.Equal(t, []alloc.Cancel{{ID: id}}, sent[alloc.Cancel](s))
	s.step(success(t, id, 0, 1))
	frees := sent[alloc.Free](s)
	require.Len(t, frees, 1)
	require.True(t, frees[0].Final)
	require.Equal(t, "0-1", frees[0].R.Ranks().String())
	require.Equal(t, "submit validate depend priority exception clean", s.events(id))
	require.ErrorContains(t, s.try(success(t, id, 0, 1)), "alloc: protocol violation", "a second one")
}

// SM-9, SM-10.
func TestACanceledJobWithResourcesIsFreedBeforeItIsClean(t *testing.T) {
	s := silent(t, joblife.Config{})
	s.hold["exec"] = true
	id := s.submit(jobspec.Job{Nodes: 2})
	s.step(success(t, id, 0, 1))
	require.True(t, must(s.m.Job(id)).Job().HasResources())
	require.False(t, must(s.m.Job(id)).Job().Started(), "SM-11")
	s.cancel(id)
	require.Equal(t, jobstate.StateCleanup, s.state(id), "the executor was asked to start it")
	s.step(said(id, exec.ResponseRelease))
	require.Equal(t, "submit validate depend priority alloc exception release free clean", s.events(id))
}

// SM-16, flux-core#4940.
func TestHoldingAHeldJobAndReleasingItSendsARequest(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.ask(joblife.Submit{Tag: 7, Jobspec: text(t, jobspec.Job{Nodes: 1}), Urgency: jobstate.UrgencyHold}).Job
	require.Empty(t, sent[alloc.Request](s))
	a := s.ask(joblife.Urgency{Tag: 7, ID: id, Urgency: jobstate.UrgencyHold})
	require.Equal(t, 0, a.Old)
	require.Equal(t, "submit validate depend priority urgency priority", s.events(id))
	require.Equal(t, jobstate.StateSched, s.state(id))
	s.step(joblife.Urgency{ID: id, Urgency: jobstate.UrgencyExpedite})
	r := sent[alloc.Request](s)
	require.Len(t, r, 1)
	require.Equal(t, uint32(jobstate.MaxPriority), r[0].Priority)
	s.step(joblife.Urgency{ID: id, Urgency: jobstate.UrgencyHold})
	require.Equal(t, []alloc.Cancel{{ID: id}}, sent[alloc.Cancel](s), "a hold takes the request back")
	s.step(joblife.SchedResponse{ID: id, Type: alloc.ResponseCancel})
	require.Empty(t, sent[alloc.Request](s))
}

// SM-16.
func TestAnUrgencyOrUpdateInSCHEDLeadsToANewPriority(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 1})
	sent[alloc.Request](s)
	s.step(joblife.Urgency{ID: id, Urgency: jobstate.UrgencyDefault})
	require.Equal(t, "submit validate depend priority urgency priority", s.events(id), "though it is equal")
	s.step(joblife.Update{ID: id, Updates: []jobstate.Update{{Path: "attributes.system.duration", Value: json.RawMessage("60")}}})
	require.Equal(t, "submit validate depend priority urgency priority jobspec-update priority", s.events(id))
	require.Equal(t, []alloc.Cancel{{ID: id}}, sent[alloc.Cancel](s))
	s.step(joblife.SchedResponse{ID: id, Type: alloc.ResponseCancel})
	r := sent[alloc.Request](s)
	require.Len(t, r, 1, "with the new jobspec")
	require.Contains(t, string(r[0].Jobspec), `"duration":60`)
}

func TestQueuesStopAndStartAcrossARestart(t *testing.T) {
	s := silent(t, joblife.Config{Queues: []string{"a", "b"}})
	s.step(joblife.StartQueue{Queue: "a", Reason: "maintenance"})
	s.step(joblife.EnableQueue{Queue: "b", Reason: "full"})
	check := func() {
		t.Helper()
		q, ok := s.m.Queue("a")
		require.True(t, ok)
		require.Equal(t, joblife.QueueStatus{Enabled: true, StopReason: "maintenance"}, q)
		q, _ = s.m.Queue("b")
		require.Equal(t, joblife.QueueStatus{Started: true, DisableReason: "full"}, q)
		require.ErrorIs(t, s.try(joblife.Submit{Jobspec: text(t, jobspec.Job{Nodes: 1, Queue: "b"})}), joblife.ErrRefused)
		require.ErrorIs(t, s.try(joblife.Submit{Jobspec: text(t, jobspec.Job{Nodes: 1})}), joblife.ErrRefused)
	}
	check()
	id := s.submit(jobspec.Job{Nodes: 1, Queue: "a"})
	require.Equal(t, jobstate.StateSched, s.state(id))
	require.Empty(t, sent[alloc.Request](s))
	s.restart()
	check()
	require.Empty(t, sent[alloc.Request](s))
	s.restore(slices.Collect(s.m.Snapshot()))
	s.hello()
	check()
	s.step(joblife.StartQueue{Queue: "a", Start: true, Reason: "ignored"})
	require.Len(t, sent[alloc.Request](s), 1)
	q, _ := s.m.Queue("a")
	require.Equal(t, joblife.QueueStatus{Enabled: true, Started: true}, q)
	s.step(joblife.StartQueue{Queue: "a"})
	require.Len(t, sent[alloc.Cancel](s), 1, "a stop takes the request back")
}

// PR-9.
func TestAHelloTellsWhatIsHeld(t *testing.T) {
	s := silent(t, joblife.Config{Actions: perilog.Config{Epilogs: []perilog.ActionConfig{{PerRank: true}}}})
	s.hold["action"] = true
	id := s.submit(jobspec.Job{Nodes: 2})
	s.step(success(t, id, 0, 1))
	s.step(said(id, exec.ResponseFinish))
	s.step(said(id, exec.ResponseRelease))
	l := s.runs[0]
	s.step(joblife.Report{Job: id, Report: perilog.Report{Action: l.Action, Attempt: l.Attempt, Kind: perilog.ReportExited, Rank: 1}})
	frees := sent[alloc.Free](s)
	require.Len(t, frees, 1)
	require.False(t, frees[0].Final)
	s.feed(joblife.SchedHello{PartialOK: true})
	require.True(t, s.m.Ready(&s.rd))
	require.Len(t, s.rd.Hello.Responses, 1)
	require.Equal(t, "1", s.rd.Hello.Responses[0].Free.String())
	require.Equal(t, "0-1", s.rd.Hello.Responses[0].R.Ranks().String())
	require.NoError(t, s.m.Done(s.rd.Seq))
	s.step(joblife.Report{Job: id, Report: perilog.Report{Action: l.Action, Attempt: l.Attempt, Kind: perilog.ReportExited, Rank: 0}})
	require.Empty(t, sent[alloc.Free](s), "between hello and ready")
	s.step(joblife.SchedReady{})
	frees = sent[alloc.Free](s)
	require.Len(t, frees, 1)
	require.Equal(t, "0", frees[0].R.Ranks().String())
	require.True(t, frees[0].Final)
	require.Equal(t, jobstate.StateInactive, s.state(id))
}

func TestAnExpirationReachesSchedulerAndExecutor(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 1})
	require.ErrorIs(t, s.try(joblife.SetExpiration{ID: id, Expiration: 1}), joblife.ErrInvalid)
	s.step(success(t, id, 0))
	s.step(joblife.SetExpiration{ID: id, Expiration: 1_700_000_000})
	require.Equal(t, []alloc.Expiration{{ID: id, Expiration: 1_700_000_000}}, sent[alloc.Expiration](s))
	require.Contains(t, s.exec, exec.Message(exec.Expiration{ID: id, Expiration: 1_700_000_000}))
	at, ok := must(s.m.Job(id)).Job().Expiration()
	require.True(t, ok)
	require.EqualValues(t, 1_700_000_000, at)
}

func TestAnExecutorThatRefusesAJobEndsIt(t *testing.T) {
	s := silent(t, joblife.Config{})
	s.hold["exec"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	s.step(success(t, id, 0))
	s.step(joblife.ExecRefused{ID: id, Note: "no such user"})
	require.Equal(t, "submit validate depend priority alloc exception free clean", s.events(id))
}

// PL-10.
func TestOfflineNodesFailTheProlog(t *testing.T) {
	s := silent(t, joblife.Config{Actions: perilog.Config{Prologs: []perilog.ActionConfig{{PerRank: true}}}})
	s.step(joblife.Offline{Ranks: idset.Of(1)})
	id := s.submit(jobspec.Job{Nodes: 2})
	s.step(success(t, id, 0, 1))
	require.Equal(t, jobstate.StateInactive, s.state(id), s.events(id))
	require.NotContains(t, s.events(id), " start")
	require.Equal(t, "launch prolog job-manager.prolog on 0", s.log[0])
}

func TestAReloadCountsForPendingJobs(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 1})
	cfg := s.cfg
	cfg.Actions.Prologs = []perilog.ActionConfig{{PerRank: true}}
	cfg.Limits = purge.Limits{MaxCount: jobstate.Some(0)}
	s.step(joblife.Reload{Config: cfg})
	s.step(success(t, id, 0))
	require.Contains(t, s.events(id), "prolog-start")
	cfg.Actions.Prologs = nil
	s.step(joblife.Reload{Config: cfg})
	s.finish(id, 0)
	s.step(joblife.Tick{})
	require.Equal(t, []string{"unlink " + id.String()}, s.log[len(s.log)-1:])
	cfg.Queues = []string{"other"}
	s.step(joblife.Reload{Config: cfg})
	_, ok := s.m.Queue("")
	require.False(t, ok)
}

// PL-15.
func TestAShutdownStartsNothingMore(t *testing.T) {
	s := silent(t, joblife.Config{Actions: perilog.Config{Epilogs: []perilog.ActionConfig{{PerRank: true}}}})
	running := s.submit(jobspec.Job{Nodes: 1})
	s.step(success(t, running, 0))
	waiting := s.submit(jobspec.Job{Nodes: 1})
	late := s.submit(jobspec.Job{Nodes: 1})
	s.step(joblife.Shutdown{Deadline: 1_600_000_100})
	require.Len(t, sent[alloc.Cancel](s), 2)
	s.exec = nil
	s.step(success(t, late, 1))
	require.Empty(t, s.exec, "it had its resources already, but is not started")
	s.finish(running, 0)
	require.Empty(t, s.runs, "no epilog")
	require.ErrorIs(t, s.try(joblife.Submit{Jobspec: text(t, jobspec.Job{Nodes: 1})}), perilog.ErrStopped)
	s.now = s.now.Add(time.Hour)
	require.ErrorIs(t, s.try(joblife.Tick{}), perilog.ErrStopped)
	s.hold["action"] = true
	s.restart()
	require.Equal(t, []jobid.ID{running, waiting, late}, s.rec.Jobs)
	require.Equal(t, jobstate.StateCleanup, s.state(running))
	require.Len(t, s.runs, 1, "the epilog")
}

// MG-7, group commit.
func TestReadyAndDoneAreRefusedOutOfOrder(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	require.ErrorIs(t, s.m.Done(99), joblife.ErrInvalid)
	require.ErrorIs(t, s.m.Abandon(99), joblife.ErrInvalid)
	s.hold["sched"] = true
	old := s.submit(jobspec.Job{Nodes: 1})
	s.feed(joblife.Submit{Tag: 1, ID: old + 1, Jobspec: text(t, jobspec.Job{Nodes: 1}), Urgency: 16})
	var rd, other joblife.Ready
	require.True(t, s.m.Ready(&rd))
	require.Len(t, rd.Answers, 1)
	require.False(t, s.m.Ready(&other), "one is outstanding")
	require.Equal(t, jobstate.State(0), s.state(old+1), "EL-6: not durable yet")
	for v := range s.m.Jobs(jobstate.StateActive) {
		require.Equal(t, old, v.ID(), "EL-6")
	}
	for id := range s.m.History() {
		require.Equal(t, old, id, "EL-6")
	}
	require.ErrorIs(t, s.m.Step(s.now, joblife.Urgency{ID: old + 1, Urgency: 3}), joblife.ErrUnknown)
	s.feed(joblife.Urgency{ID: old, Urgency: 3})
	s.feed(joblife.Memo{ID: old, Values: json.RawMessage(`{"a":1}`)})
	require.ErrorIs(t, s.m.Done(rd.Seq+1), joblife.ErrInvalid)
	require.NoError(t, s.m.Done(rd.Seq))
	require.ErrorIs(t, s.m.Done(rd.Seq), joblife.ErrInvalid)
	require.Equal(t, jobstate.StateSched, s.state(old+1))
	require.NotContains(t, string(must(s.m.Job(old)).Eventlog()), "memo", "not durable yet")
	require.True(t, s.m.Ready(&rd))
	require.Len(t, rd.Append, 3, "both Steps share it: urgency, priority, memo")
	require.NoError(t, s.m.Abandon(rd.Seq))
	require.ErrorIs(t, s.m.Step(s.now, joblife.Tick{}), joblife.ErrAbandoned)
	require.ErrorIs(t, s.m.Done(rd.Seq), joblife.ErrAbandoned)
	require.False(t, s.m.Ready(&rd))
}

// I7.
func TestTheSameScriptGivesTheSameBytes(t *testing.T) {
	run := func(volatile bool) []string {
		s := newSite(t, joblife.Config{
			Volatile: volatile,
			Hooks:    []joblife.Hooks{joblife.Dependencies()}, Limits: purge.Limits{MaxCount: jobstate.Some(3)},
			Actions: perilog.Config{Prologs: []perilog.ActionConfig{{PerRank: true}}, Epilogs: []perilog.ActionConfig{{PerRank: true}}, Housekeeping: &perilog.HousekeepingConfig{}},
		}, 8)
		var last jobid.ID
		for i := range 40 {
			spec := needing(t, "n")
			if last != 0 && i%3 == 0 {
				spec = needing(t, "n", "afterany", last.String())
			}
			last = s.add(spec)
			s.step(joblife.Offline{Ranks: idset.Of(uint32(i % 3))})
			s.step(joblife.Tick{})
		}
		if volatile {
			require.Empty(t, s.store)
			require.Empty(t, slices.Collect(s.m.Snapshot()))
		}
		return s.outs
	}
	require.Equal(t, run(false), run(false))
	require.Equal(t, run(true), run(true))
}

func TestAStartThatWasNotHandedOutIsTakenBackWithTheExecutor(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 1})
	s.feed(success(t, id, 0))
	for _, name := range []string{"start", "finish", "release"} { // an operator is faster
		s.feed(joblife.Post{ID: id, Name: name, Context: json.RawMessage(`{"status":0,"ranks":"all","final":true}`)})
	}
	s.feed(joblife.ExecLost{})
	s.act()
	require.Equal(t, jobstate.StateInactive, s.state(id))
	require.Empty(t, s.exec)
}

// The executor that comes has to end it, as after a restart (I5, I10).
func TestAStartThatAnOperatorPostedIsTheExecutors(t *testing.T) {
	for name, restart := range map[string]bool{"live": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			s := silent(t, joblife.Config{})
			s.feed(joblife.ExecLost{})
			id := s.submit(jobspec.Job{Nodes: 1})
			s.step(success(t, id, 0))
			s.step(joblife.Post{ID: id, Name: "start"})
			s.step(joblife.Raise{ID: id, Type: "cancel"})
			if restart {
				s.restore(s.store)
			}
			s.step(joblife.ExecHello{})
			require.Equal(t, []bool{true}, s.starts(), "it is to be reattached")
			s.step(joblife.ExecResponse(release(id)))
			require.Equal(t, jobstate.StateInactive, s.state(id))
		})
	}
}

// SM-17, I5.
func TestAnUpdateIsInTheJobspecHoweverItCame(t *testing.T) {
	var seen []string
	watch := joblife.Hooks{Event: func(e *joblife.Event) {
		if e.Entry.Name == jobstate.EventJobspecUpdate {
			d, _ := e.Job.Jobspec().Lookup("attributes.system.duration")
			seen = append(seen, string(d))
		}
	}}
	s := silent(t, joblife.Config{Hooks: []joblife.Hooks{watch}})
	id := s.submit(jobspec.Job{Nodes: 1})
	s.step(joblife.Update{ID: id, Updates: []jobstate.Update{{Path: "attributes.system.duration", Value: json.RawMessage("60")}}})
	s.step(joblife.Post{ID: id, Name: "jobspec-update", Context: json.RawMessage(`{"attributes.system.duration":70}`)})
	require.Equal(t, []string{"60", "70"}, seen, "hooks see the state after the event (SM-7)")
	s.restore(s.store)
	d, _ := must(s.m.Job(id)).Jobspec().Lookup("attributes.system.duration")
	require.Equal(t, "70", string(d))
}

// MG-5.
func TestAComputedPriorityReachesTheScheduler(t *testing.T) {
	calls := 0
	hook := joblife.Hooks{Priority: func(e *joblife.Event) (uint32, bool) { calls++; return 5, calls == 1 }}
	s := silent(t, joblife.Config{Hooks: []joblife.Hooks{hook}})
	id := s.submit(jobspec.Job{Nodes: 1})
	require.Equal(t, jobstate.StatePriority, s.state(id), "later")
	s.step(joblife.Priority{ID: id, Priority: 77})
	r := sent[alloc.Request](s)
	require.Len(t, r, 1)
	calls = 1
	s.step(joblife.Priority{ID: id, Priority: 99})
	require.Equal(t, []alloc.Prioritize{{Jobs: []alloc.Priority{{ID: id, Priority: 99}}}}, sent[alloc.Prioritize](s))
	require.Equal(t, 1, calls, "the hook is not asked for what it has told")
	s.step(joblife.Priority{ID: id, Priority: 0})
	require.Equal(t, []alloc.Cancel{{ID: id}}, sent[alloc.Cancel](s), "0 holds the job")
	require.True(t, must(s.m.Job(id)).Job().OnHold())
	s.step(joblife.Urgency{ID: id, Urgency: jobstate.UrgencyExpedite})
	p, _ := must(s.m.Job(id)).Job().Priority()
	require.Equal(t, uint32(jobstate.MaxPriority), p, "the urgency overrides it")
}

// A virtual clock may begin near the epoch, where a Timestamp is finer than a
// nanosecond.
func TestATickAtTheDeadlineIsNeverTooEarly(t *testing.T) {
	for i := range 200 {
		at := 10 + float64(i)/7
		var m *joblife.Manager
		fired := false
		hook := joblife.Hooks{Event: func(e *joblife.Event) {
			switch e.Entry.Name {
			case "submit":
				e.PostAt(eventlog.Timestamp(at), joblife.Memo{ID: e.Job.ID(), Values: json.RawMessage(`{"a":1}`)})
			case "memo":
				fired = true
			}
		}}
		m, err := joblife.New(joblife.Config{Hooks: []joblife.Hooks{hook}})
		require.NoError(t, err)
		require.NoError(t, m.Step(time.Unix(1, 0), joblife.Submit{ID: 1, Jobspec: text(t, jobspec.Job{Nodes: 1}), Urgency: 0}))
		due, ok := m.Deadline()
		require.True(t, ok)
		require.NoError(t, m.Step(due, joblife.Tick{}))
		require.True(t, fired, at)
	}
}
