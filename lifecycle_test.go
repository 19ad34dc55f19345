package joblife_test

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
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
	a := s.ask(joblife.SetUrgency{Tag: 7, ID: id, Urgency: jobstate.UrgencyHold})
	require.Equal(t, 0, a.Old)
	require.Equal(t, "submit validate depend priority urgency priority", s.events(id))
	require.Equal(t, jobstate.StateSched, s.state(id))
	s.step(joblife.SetUrgency{ID: id, Urgency: jobstate.UrgencyExpedite})
	r := sent[alloc.Request](s)
	require.Len(t, r, 1)
	require.Equal(t, uint32(jobstate.MaxPriority), r[0].Priority)
	s.step(joblife.SetUrgency{ID: id, Urgency: jobstate.UrgencyHold})
	require.Equal(t, []alloc.Cancel{{ID: id}}, sent[alloc.Cancel](s), "a hold takes the request back")
	s.step(joblife.SchedResponse{ID: id, Type: alloc.ResponseCancel})
	require.Empty(t, sent[alloc.Request](s))
}

// SM-16.
func TestAnUrgencyOrUpdateInSCHEDLeadsToANewPriority(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 1})
	sent[alloc.Request](s)
	s.step(joblife.SetUrgency{ID: id, Urgency: jobstate.UrgencyDefault})
	require.Equal(t, "submit validate depend priority urgency priority", s.events(id), "though it is equal")
	s.step(joblife.UpdateJobspec{ID: id, Updates: []jobstate.Update{{Path: "attributes.system.duration", Value: json.RawMessage("60")}}})
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
	s.ask(joblife.StartQueue{Tag: 7, Queue: "a"})
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
	s.step(exited(l, 1))
	frees := sent[alloc.Free](s)
	require.Len(t, frees, 1)
	require.False(t, frees[0].Final)
	s.feed(joblife.SchedHello{PartialOK: true})
	require.True(t, s.m.Ready(&s.rd))
	require.Len(t, s.rd.Hello.Responses, 1)
	require.Equal(t, "1", s.rd.Hello.Responses[0].Free.String())
	require.Equal(t, "0-1", s.rd.Hello.Responses[0].R.Ranks().String())
	require.NoError(t, s.m.Done(s.rd.Seq))
	s.step(exited(l, 0))
	require.Empty(t, sent[alloc.Free](s), "between hello and ready")
	s.step(joblife.SchedReady{})
	frees = sent[alloc.Free](s)
	require.Len(t, frees, 1)
	require.Equal(t, "0", frees[0].R.Ranks().String())
	require.True(t, frees[0].Final)
	require.Equal(t, jobstate.StateInactive, s.state(id))
}

// What waits for ready is void if another hello comes first, which knows of it.
func TestWhatHappensBetweenHelloAndReadyIsToldOnce(t *testing.T) {
	s := silent(t, joblife.Config{})
	ends, goes := s.submit(jobspec.Job{Nodes: 1}), s.submit(jobspec.Job{Nodes: 1})
	s.step(success(t, ends, 0))
	s.step(success(t, goes, 1))
	s.step(joblife.SchedHello{PartialOK: true})
	s.step(said(ends, exec.ResponseFinish))
	s.step(said(ends, exec.ResponseRelease))
	s.step(joblife.SchedHello{PartialOK: true})
	s.step(joblife.SetExpiration{ID: goes, Expiration: 1_700_000_000})
	require.Empty(t, sent[alloc.Expiration](s))
	s.step(joblife.SchedReady{})
	require.Empty(t, sent[alloc.Free](s))
	require.Equal(t, []alloc.Expiration{{ID: goes, Expiration: 1_700_000_000}}, sent[alloc.Expiration](s))
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
	s := newSite(t, joblife.Config{Limits: purge.Limits{MaxAge: jobstate.Some(time.Hour)}}, 8)
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
	require.ErrorIs(t, s.m.Step(s.now, joblife.SetUrgency{ID: old + 1, Urgency: 3}), joblife.ErrUnknown)
	s.feed(joblife.SetUrgency{ID: old, Urgency: 3})
	s.feed(joblife.Memo{ID: old, Values: json.RawMessage(`{"a":1}`)})
	require.ErrorIs(t, s.m.Done(rd.Seq+1), joblife.ErrInvalid)
	require.NoError(t, s.m.Done(rd.Seq))
	require.ErrorIs(t, s.m.Done(rd.Seq), joblife.ErrInvalid)
	require.Equal(t, jobstate.StateSched, s.state(old+1))
	require.NotContains(t, string(must(s.m.Job(old)).Eventlog()), "memo", "not durable yet")
	require.True(t, s.m.Ready(&rd))
	require.Len(t, rd.Append, 3, "both Steps share it: urgency, priority, memo")
	s.deadline()
	require.NoError(t, s.m.Abandon(rd.Seq))
	s.idle()
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
			spec := needing("n")
			if last != 0 && i%3 == 0 {
				spec = needing("n", "afterany", last.String())
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

func TestWhatWasNotHandedOutIsVoidWithItsSession(t *testing.T) {
	s := silent(t, joblife.Config{})
	s.sched = nil
	s.feed(joblife.Submit{ID: 5, Jobspec: text(t, jobspec.Job{Nodes: 1}), Urgency: 16})
	s.feed(joblife.SchedLost{})
	s.act()
	require.Empty(t, s.sched)
	s.feed(joblife.SchedHello{})
	s.feed(joblife.SchedLost{})
	require.False(t, s.m.Ready(&s.rd))
	s.hello()
	s.feed(success(t, 5, 0))
	s.feed(joblife.ExecLost{})
	s.cancel(5)
	require.Equal(t, jobstate.StateInactive, s.state(5), "no executor has it")
	require.Empty(t, s.exec)
}

// A job that ended while it waited for an executor never starts, also if an epilog goes on (I11).
func TestAnExecutorThatComesLateDoesNotHearOfACanceledJob(t *testing.T) {
	each := []perilog.ActionConfig{{PerRank: true}}
	s := newSite(t, joblife.Config{Actions: perilog.Config{Prologs: each, Epilogs: each}}, 8)
	s.step(joblife.ExecLost{})
	id := s.submit(jobspec.Job{Nodes: 1})
	s.hold["action"] = true
	s.cancel(id)
	require.Equal(t, jobstate.StateCleanup, s.state(id))
	s.step(joblife.ExecHello{})
	require.Empty(t, s.starts())
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

// RFC 27: the scheduler that takes few requests gets those of the greatest priority.
func TestAllQueuesStartInOneOrderOfPriority(t *testing.T) {
	s := silent(t, joblife.Config{Queues: []string{"a", "b"}})
	s.step(joblife.StartQueue{All: true, Reason: "maintenance"})
	for i, urgency := range []int{10, 18, 12, 20} {
		s.step(joblife.Submit{ID: jobid.ID(i + 1), Urgency: urgency, Jobspec: text(t, jobspec.Job{Nodes: 1, Queue: string("aabb"[i])})})
	}
	require.Empty(t, sent[alloc.Request](s))
	s.step(joblife.StartQueue{All: true, Start: true})
	var ids []jobid.ID
	for _, r := range sent[alloc.Request](s) {
		ids = append(ids, r.ID)
	}
	require.Equal(t, []jobid.ID{4, 2, 3, 1}, ids)
	for _, name := range []string{"a", "b"} {
		q, _ := s.m.Queue(name)
		require.True(t, q.Started)
	}
	require.ErrorIs(t, s.try(joblife.StartQueue{All: true, By: joblife.Cred{Guest: true}}), joblife.ErrDenied)
}

// SM-17, I5.
func TestAnUpdateIsInTheJobspecHoweverItCame(t *testing.T) {
	var seen []string
	watch := joblife.Hooks{Event: func(e *joblife.HookEvent) {
		if e.Entry.Name == jobstate.EventJobspecUpdate {
			d, _ := e.Job.Jobspec().Lookup("attributes.system.duration")
			seen = append(seen, string(d))
		}
	}}
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{watch}, Queues: []string{"a", "b"}}, 8)
	s.step(joblife.StartQueue{Queue: "b"})
	id := s.submit(jobspec.Job{Nodes: 9, Queue: "a"})
	require.Len(t, sent[alloc.Request](s), 1)
	update := func(path, value string) joblife.Input {
		return joblife.UpdateJobspec{ID: id, Updates: []jobstate.Update{{Path: path, Value: json.RawMessage(value)}}}
	}
	s.step(update("attributes.system.duration", "60"))
	require.Contains(t, string(sent[alloc.Request](s)[0].Jobspec), `"duration":60`)
	s.step(joblife.Post{ID: id, Name: "jobspec-update", Context: json.RawMessage(`{"attributes.system.duration":70}`)})
	require.Contains(t, string(sent[alloc.Request](s)[0].Jobspec), `"duration":70`)
	require.Equal(t, []string{"60", "70"}, seen, "hooks see the state after the event (SM-7)")
	require.ErrorIs(t, s.try(joblife.Post{ID: id, Name: "jobspec-update", Context: json.RawMessage(`{"attributes.system.queue":"c"}`)}), joblife.ErrRefused)
	s.step(update("attributes.system.queue", `"b"`))
	require.Empty(t, sent[alloc.Request](s), "its queue is stopped")
	s.step(joblife.StartQueue{Queue: "b", Start: true})
	require.Len(t, sent[alloc.Request](s), 1)
	s.restore(s.store)
	require.Equal(t, 70*time.Second, must(s.m.Job(id)).Jobspec().Duration())
}

// RFC 21: an event may set together what is wrong alone, as flux-core's may.
func TestAnUpdateIsJudgedByItsResult(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 1})
	s.step(joblife.UpdateJobspec{ID: id, Updates: []jobstate.Update{
		{Path: "attributes.system", Value: []byte(`{"job":{"name":"x"}}`)}, {Path: "attributes.system.duration", Value: []byte("5")},
	}})
	s.restore(s.store)
	require.Empty(t, s.rec.Quarantined)
	require.Equal(t, "x", must(s.m.Job(id)).Jobspec().Name())
}

// MG-5.
func TestAComputedPriorityReachesTheScheduler(t *testing.T) {
	calls := 0
	hook := joblife.Hooks{Priority: func(e *joblife.HookEvent) (uint32, bool) { calls++; return 5, calls == 1 }}
	s := silent(t, joblife.Config{Hooks: []joblife.Hooks{hook}})
	id := s.submit(jobspec.Job{Nodes: 1})
	require.Equal(t, jobstate.StatePriority, s.state(id), "later")
	s.step(joblife.SetPriority{ID: id, Priority: 77})
	r := sent[alloc.Request](s)
	require.Len(t, r, 1)
	calls = 1
	s.step(joblife.SetPriority{ID: id, Priority: 99})
	require.Equal(t, []alloc.Prioritize{{Jobs: []alloc.Priority{{ID: id, Priority: 99}}}}, sent[alloc.Prioritize](s))
	require.Equal(t, 1, calls, "the hook is not asked for what it has told")
	s.step(joblife.SetPriority{ID: id, Priority: 0})
	require.Equal(t, []alloc.Cancel{{ID: id}}, sent[alloc.Cancel](s), "0 holds the job")
	require.Equal(t, "release of the hold", must(s.m.Job(id)).Job().Waiting())
	s.step(joblife.SetUrgency{ID: id, Urgency: jobstate.UrgencyExpedite})
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
		hook := joblife.Hooks{Event: func(e *joblife.HookEvent) {
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
			a := s.answer(7)
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

// Ids of several generators are ordered to the millisecond only, so a restart may come
// between a job and one with a lower id.
func TestALowerIDMayComeAfterARestart(t *testing.T) {
	submit := func(s *site, id jobid.ID) error {
		return s.try(joblife.Submit{ID: id, Jobspec: text(t, jobspec.Job{Nodes: 1})})
	}
	for name, next := range restarts {
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

// I9: whatever a store has kept of a purge, even one after a restart.
func TestWhatWasPurgedDoesNotComeBack(t *testing.T) {
	for _, kind := range []joblife.RecordKind{joblife.RecordTombstone, joblife.RecordUnlinked, joblife.RecordWatermark} {
		s := newSite(t, joblife.Config{}, 8)
		id := s.submit(jobspec.Job{Nodes: 1})
		s.restart()
		s.ask(joblife.PurgeIDs{Tag: 7, IDs: []jobid.ID{id}, Force: true})
		s.store = slices.DeleteFunc(s.store, func(r joblife.Record) bool { return r.Kind != kind })
		require.Len(t, s.store, 1)
		s.restore(s.store)
		require.ErrorIs(t, s.try(joblife.Submit{ID: id, Jobspec: text(t, jobspec.Job{Nodes: 1})}), joblife.ErrInvalid)
	}
}

// A store could not remove a job, whose tombstone is recorded. It goes later, without one.
func TestATombstoneOfAJobThatStaysDoesNotComeBack(t *testing.T) {
	s := newSite(t, joblife.Config{TombstoneCount: jobstate.Some(1)}, 8)
	s.hold["unlink"] = true
	a, b := s.submit(jobspec.Job{Nodes: 1}), s.submit(jobspec.Job{Nodes: 1})
	s.step(joblife.PurgeIDs{IDs: []jobid.ID{a}, Force: true})
	s.step(joblife.Unlinked{Failed: map[jobid.ID]error{a: errors.New("busy")}})
	s.restart()
	require.Zero(t, s.m.Stats().Purge.Tombstones.Total())
	s.step(joblife.PurgeIDs{IDs: []jobid.ID{a}, Force: true})
	s.restart() // before the store could remove it
	s.step(joblife.PurgeIDs{IDs: []jobid.ID{a, b}, Force: true})
	s.step(joblife.Unlinked{IDs: []jobid.ID{a, b}})
	s.restart()
	require.Equal(t, 1, s.m.Stats().Purge.Tombstones.Total())
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

func TestPrologsEpilogsAndHousekeepingRun(t *testing.T) {
	zero := perilog.HousekeepingConfig{}
	s := newSite(t, joblife.Config{Actions: perilog.Config{
		Prologs: []perilog.ActionConfig{{PerRank: true}}, Epilogs: []perilog.ActionConfig{{PerRank: true}},
		Housekeeping: &zero,
	}}, 8)
	id := s.submit(jobspec.Job{Nodes: 2})
	require.Equal(t, "submit validate depend priority alloc prolog-start prolog-finish start finish epilog-start release perilog-release epilog-finish free clean", s.events(id))
	require.Equal(t, []string{
		"launch prolog job-manager.prolog on 0-1",
		"launch epilog job-manager.epilog on 0-1",
		"launch housekeeping housekeeping on 0",
		"launch housekeeping housekeeping on 1",
		"free 0-1 final=true",
	}, s.log)
	require.Equal(t, 0, s.m.Stats().Housekeeping)
}

// Three of four nodes end at once: one event and one fragment, and each report has its answer.
func TestSeveralReportsAreOneDecision(t *testing.T) {
	s := newSite(t, joblife.Config{Actions: perilog.Config{Epilogs: []perilog.ActionConfig{{PerRank: true}}}}, 8)
	s.hold["action"] = true
	id := s.submit(jobspec.Job{Nodes: 4})
	var in joblife.Reports
	for _, rank := range []uint32{2, 0, 1, 7, 2} {
		r := exited(s.runs[0], rank).(joblife.Report)
		r.Tag = 11 + uint64(len(in.List))
		in.List = append(in.List, r)
	}
	s.step(in)
	want := []perilog.Ack{perilog.AckApplied, perilog.AckApplied, perilog.AckApplied, perilog.AckUnknown, perilog.AckRepeated}
	for i, ack := range want {
		require.Equal(t, joblife.Answer{Tag: 11 + uint64(i), Job: id, Report: ack}, s.answer(11+uint64(i)))
	}
	require.Equal(t, []string{"launch epilog job-manager.epilog on 0-3", "free 0-2 final=false"}, s.log)
	require.Equal(t, 1, strings.Count(s.events(id), "perilog-release"))
	s.step(joblife.Reports{})
	s.step(joblife.Reports{List: []joblife.Report{exited(s.runs[0], 3).(joblife.Report)}})
	require.Equal(t, jobstate.StateInactive, s.state(id))
}

// timed has an epilog that waits for its nodes, with a timeout of 10 s and a kill
// timeout of 5 s.
func timed() joblife.Config {
	return joblife.Config{Actions: perilog.Config{Epilogs: []perilog.ActionConfig{{
		PerRank: true, WaitOffline: true, Timeout: fsd.Duration(10 * time.Second), KillTimeout: fsd.Duration(5 * time.Second),
	}}}}
}

// due requires a Deadline that long after now.
func (s *site) due(d time.Duration) {
	s.t.Helper()
	require.WithinDuration(s.t, s.now.Add(d), s.deadline(), 10*time.Microsecond)
}

func TestALaunchThatANodeWaitedForHasItsOwnTime(t *testing.T) {
	s := newSite(t, timed(), 2)
	s.hold["action"] = true
	s.step(joblife.Offline{Ranks: idset.Of(0, 1)})
	id := s.submit(jobspec.Job{Nodes: 2, Slots: 2})
	require.Contains(t, s.events(id), "epilog-start")
	require.Empty(t, s.runs)
	s.now = s.now.Add(time.Hour)
	s.step(joblife.Offline{})
	require.Len(t, s.runs, 1)
	last, err := eventlog.Parse(s.store[len(s.store)-1].Data)
	require.NoError(t, err)
	require.Equal(t, "perilog-launch", last.Name)
	require.Equal(t, eventlog.FromTime(s.now), last.Timestamp)
	s.due(10 * time.Second)
}

// The store may take its time.
func TestNothingIsGivenUpBeforeItsSignalIsInAReady(t *testing.T) {
	s := newSite(t, timed(), 1)
	s.hold["action"] = true
	s.submit(jobspec.Job{Nodes: 1})
	require.Len(t, s.runs, 1)
	for range 10 {
		s.now = s.now.Add(20 * time.Second)
		s.feed(joblife.Tick{})
	}
	s.now = s.now.Add(20 * time.Second)
	s.feed(joblife.WaitCancel{Tag: 9})
	require.True(t, s.m.Ready(&s.rd))
	require.Len(t, s.rd.Signal, 1)
	require.Empty(t, s.rd.Drain)
	s.due(5 * time.Second)
	require.NoError(t, s.m.Done(s.rd.Seq))
	s.now = s.now.Add(5 * time.Second)
	s.feed(joblife.Tick{})
	require.True(t, s.m.Ready(&s.rd))
	require.Len(t, s.rd.Drain, 1)
}

// What is offline is known before anything is decided.
func TestARestoreDecidesWithTheOfflineSet(t *testing.T) {
	for name, restored := range map[string]bool{"restored": true, "told later": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, timed(), 2)
			s.hold["action"] = true
			s.submit(jobspec.Job{Nodes: 2, Slots: 2})
			s.cutBefore("epilog-start")
			s.runs = nil
			if restored {
				s.cfg.Offline = idset.Of(1)
			}
			s.restore(s.store)
			if !restored {
				s.step(joblife.Offline{Ranks: idset.Of(1)})
			}
			require.Len(t, s.runs, 1)
			require.Equal(t, !restored, s.runs[0].Ranks.Contains(1))
			s.restore(s.store)
			require.Len(t, s.rec.Unresolved, 1)
			require.EqualValues(t, 1, s.rec.Unresolved[0].Attempt)
		})
	}
}

// A caller who sleeps until the Deadline, and then calls Step with a Tick, neither spins
// nor sleeps past what is due, whatever its clock and that of the logs round.
func TestADeadlineIsWhenTheManagerDoesSomething(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		cfg := timed()
		cfg.Limits = purge.Limits{MaxAge: jobstate.Some(30 * time.Second), MaxCount: jobstate.Some(1), Batch: 1}
		cfg.Hooks = []joblife.Hooks{joblife.Dependencies(), {Event: func(e *joblife.HookEvent) {
			if e.Entry.Name == "start" {
				e.PostAt(e.Entry.Timestamp+3.3, joblife.Raise{ID: e.Job.ID(), Type: "timeout"})
			}
		}}}
		s := newSite(t, cfg, 3)
		s.hold["action"], s.hold["finish"] = true, rapid.Bool().Draw(r, "runs on")
		wait := func(*rapid.T) {
			s.now = s.now.Add(time.Duration(rapid.SampledFrom([]int64{1, 13, 119, 142857143, 4e9, 60e9 + 1}).Draw(r, "nanoseconds")))
		}
		var stopped bool
		tick := func() {
			if err := s.m.Step(s.now, joblife.Tick{}); !stopped || !errors.Is(err, perilog.ErrStopped) {
				require.NoError(t, err)
			}
			s.stepped = s.now
		}
		check := func(*rapid.T) {
			for i := 0; ; i++ {
				at, ok := s.m.Deadline()
				if !ok {
					return
				}
				if eventlog.FromTime(at) > eventlog.FromTime(s.now) {
					tick()
					require.False(t, s.m.Ready(&s.rd), "before the deadline")
					if rapid.IntRange(0, 2).Draw(r, "later") > 0 {
						return
					}
					s.now = at
				}
				if at.After(s.now) { // it may be due to the Timestamp, but not to the nanosecond
					require.True(t, s.now.After(s.stepped), "due at %v, after a Step at that Timestamp", at)
					s.now = at
				}
				require.Less(t, i, 60, "it spins at %v", s.now)
				tick()
				s.act()
			}
		}
		r.Repeat(map[string]func(*rapid.T){
			"":     check,
			"wait": wait,
			"submit": func(*rapid.T) {
				_ = s.try(joblife.Submit{Jobspec: text(t, jobspec.Job{Nodes: 1 + int64(rapid.IntRange(0, 1).Draw(r, "nodes"))}), Urgency: 16})
			},
			"report": func(*rapid.T) {
				if len(s.runs) > 0 {
					l := rapid.SampledFrom(s.runs).Draw(r, "of")
					_ = s.try(joblife.Report{Job: l.Job, Report: perilog.Report{
						Action: l.Action, Kind: perilog.ReportExited, Attempt: l.Attempt, Rank: uint32(rapid.IntRange(0, 2).Draw(r, "rank")),
					}})
				}
			},
			"offline": func(*rapid.T) {
				_ = s.try(joblife.Offline{Ranks: idset.Of(uint32(rapid.IntRange(0, 2).Draw(r, "rank")))})
			},
			"shutdown": func(*rapid.T) {
				if !stopped && rapid.IntRange(0, 5).Draw(r, "really") == 0 {
					s.step(joblife.Shutdown{Deadline: eventlog.FromTime(s.now.Add(2 * time.Second))})
					stopped = true
				}
			},
		})
	})
}

// RFC 21: each exception that is raised is in the log, also if two are alike.
func TestTwoExceptionsThatAreAlikeAreLogged(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	id := s.ask(joblife.Submit{Tag: 7, Jobspec: text(t, jobspec.Job{Nodes: 1}), Urgency: 0}).Job
	for range 3 {
		require.NoError(t, s.m.Step(s.now, joblife.Raise{ID: id, Type: "x", Severity: 3, Note: "again"}))
	}
	s.act()
	require.Equal(t, "submit validate depend priority exception exception exception", s.events(id))
	s.step(joblife.Raise{ID: id, Type: "cancel"})
	require.Equal(t, "submit validate depend priority exception exception exception exception clean", s.events(id))
}

// EL-6: nobody outside knows of a job whose submission may be lost in a crash.
func TestNobodyChangesAJobBeforeItIsDurable(t *testing.T) {
	m, err := joblife.New(joblife.Config{Hooks: []joblife.Hooks{{
		Name: "site",
		Event: func(e *joblife.HookEvent) { // hooks may, and what they decide later
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
		joblife.SetUrgency{ID: 5, Urgency: 3},
		joblife.UpdateJobspec{ID: 5, Updates: []jobstate.Update{{Path: "attributes.system.duration", Value: []byte("9")}}},
		joblife.Memo{ID: 5, Values: []byte(`{"a":2}`)},
		joblife.Memo{ID: 5, Values: []byte(`{"a":2}`), Volatile: true},
		joblife.SetFlags{ID: 5, Flags: []string{"debug"}},
		joblife.Raise{ID: 5, Type: "cancel"},
		joblife.Post{ID: 5, Name: "x"},
	}
	for _, in := range requests {
		require.ErrorIs(t, m.Step(s.now, in), joblife.ErrUnknown, "%T", in)
	}
	s.feed(joblife.SetPriority{ID: 5, Priority: 9})
	s.feed(joblife.DependencyRemove{ID: 5, Description: "site"})
	s.act()
	require.Empty(t, s.faults())
	require.Equal(t, "submit memo dependency-add validate dependency-remove depend priority", s.events(5))
	for i := range requests {
		in := requests[(i+6)%len(requests)] // the one that ends the job comes last
		require.NoError(t, m.Step(s.now, in), "%T", in)
	}
}

// PL-15: a caller can tell when a shutdown is complete, and is not woken after it.
func TestAShutdownIsCompleteWhenNoActionRuns(t *testing.T) {
	s := newSite(t, joblife.Config{
		Limits:  purge.Limits{MaxAge: jobstate.Some(time.Hour)},
		Actions: perilog.Config{Prologs: []perilog.ActionConfig{{PerRank: true}}},
	}, 8)
	s.hold["action"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	require.Equal(t, 1, s.m.Stats().Actions)
	require.False(t, s.m.Stopped())
	end := s.now.Add(time.Minute)
	s.step(joblife.Shutdown{Deadline: eventlog.FromTime(end)})
	require.Equal(t, 1, s.m.Stats().Actions)
	require.False(t, s.m.Stopped(), "the prolog runs")
	s.step(exited(s.runs[0], 0))
	require.Zero(t, s.m.Stats().Actions)
	require.True(t, s.m.Stopped())
	s.step(joblife.Tick{}) // looks at the limits
	at := s.deadline()
	require.Equal(t, end.Unix(), at.Unix())
	require.ErrorIs(t, s.m.Step(at, joblife.Tick{}), perilog.ErrStopped)
	s.idle()
	require.Equal(t, jobstate.StateRun, s.state(id), "not started")
}

func TestATimeThatNeverComesIsNoDeadline(t *testing.T) {
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{joblife.Dependencies(), {
		Event: func(e *joblife.HookEvent) {
			if e.Entry.Name == jobstate.EventSubmit {
				e.PostAt(eventlog.Timestamp(math.NaN()), joblife.Memo{ID: e.Job.ID(), Values: []byte(`{"a":1}`)})
			}
		},
	}}}, 8)
	id := s.add(needing("n", "begin-time", "1e300"))
	s.idle()
	s.step(joblife.Tick{})
	require.Equal(t, jobstate.StateDepend, s.state(id))
	require.NotContains(t, s.events(id), "memo")
}

// A job has its jobspec, with its updates, from its submission to its end, durable or not.
func TestAnActiveJobHasItsJobspec(t *testing.T) {
	s := newSite(t, joblife.Config{}, 0)
	duration := func(id jobid.ID) any {
		if spec, ok := s.m.Jobspec(id); ok {
			return spec.Duration()
		}
		return nil
	}
	s.feed(joblife.Submit{ID: 5, Jobspec: text(t, jobspec.Job{Nodes: 1, Duration: time.Minute}), Urgency: jobstate.UrgencyHold})
	require.Equal(t, time.Minute, duration(5))
	s.act()
	s.step(joblife.UpdateJobspec{ID: 5, Updates: []jobstate.Update{{Path: "attributes.system.duration", Value: []byte("7")}}})
	require.Equal(t, 7*time.Second, duration(5))
	s.step(joblife.Raise{ID: 5, Type: "cancel"})
	require.Nil(t, duration(5))
}
