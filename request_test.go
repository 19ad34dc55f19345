package joblife_test

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/rset/alloc"
)

// As flux-core's queue stop --nocheckpoint.
func TestAVolatileStopEndsWithARestart(t *testing.T) {
	s := silent(t, joblife.Config{Queues: []string{"a", "b"}})
	s.step(joblife.StartQueue{Queue: "b", Reason: "broken"})
	queue := func(name string, want joblife.QueueStatus) {
		t.Helper()
		got, _ := s.m.Queue(name)
		require.Equal(t, want, got)
	}
	n := len(s.store)
	s.step(joblife.StartQueue{Queue: "a", Reason: "the end", Volatile: true})
	s.step(joblife.StartQueue{Queue: "b", Start: true, Volatile: true})
	require.Len(t, s.store, n)
	queue("a", joblife.QueueStatus{Enabled: true, StopReason: "the end"})
	queue("b", joblife.QueueStatus{Enabled: true, Started: true})
	s.submit(jobspec.Job{Nodes: 1, Queue: "a"})
	require.Empty(t, sent[alloc.Request](s))
	s.step(joblife.EnableQueue{Queue: "a", Reason: "full"}) // whose record has the start too
	snap := slices.Collect(s.m.Snapshot())
	for _, records := range [][]joblife.Record{s.store, snap} {
		s.restore(records)
		queue("a", joblife.QueueStatus{Started: true, DisableReason: "full"})
		queue("b", joblife.QueueStatus{Enabled: true, StopReason: "broken"})
	}
	s.hello()
	require.Len(t, sent[alloc.Request](s), 1)
	s.step(joblife.StartQueue{Queue: "a", Reason: "for good"})
	s.restart()
	queue("a", joblife.QueueStatus{StopReason: "for good", DisableReason: "full"})
}

func TestNamedQueuesMayBeginStopped(t *testing.T) {
	s := silent(t, joblife.Config{Queues: []string{"a", "b"}, QueuesStopped: true})
	queue := func(name string, started bool) {
		t.Helper()
		got, ok := s.m.Queue(name)
		require.True(t, ok)
		require.Equal(t, joblife.QueueStatus{Enabled: true, Started: started}, got)
	}
	queue("a", false)
	s.submit(jobspec.Job{Nodes: 1, Queue: "a"})
	require.Empty(t, sent[alloc.Request](s))
	s.step(joblife.StartQueue{Queue: "a", Start: true})
	require.Len(t, sent[alloc.Request](s), 1)
	s.restart()
	queue("a", true)
	queue("b", false)
	s.step(joblife.Reload{Config: joblife.Config{}})
	queue("", true)
	s = silent(t, joblife.Config{QueuesStopped: true})
	queue("", true)
}

// A Reload reaches each live job, as a restart with that configuration does, whatever the
// job does at that moment (I5).
func TestAReloadAndARestartHaveTheSameActionsBegin(t *testing.T) {
	act := []perilog.ActionConfig{{PerRank: true}}
	all1 := perilog.Config{Prologs: act, Epilogs: act, Housekeeping: &perilog.HousekeepingConfig{}}
	for _, before := range []perilog.Config{{}, all1, {Prologs: act}, {Epilogs: act}} {
		for _, after := range []perilog.Config{{}, all1, {Epilogs: act}} {
			for n := range 12 { // after that many inputs
				t.Run(fmt.Sprintf("%d %d %t after %d inputs", len(before.Prologs), len(after.Epilogs), after.Housekeeping != nil, n), func(t *testing.T) {
					s, other := newReloading(t, before), newReloading(t, before)
					for range n {
						s.next()
						other.next()
					}
					s.cfg.Actions, other.cfg.Actions = after, after
					s.step(joblife.Reload{Config: s.cfg})
					m, err := joblife.Load(s.now, s.cfg, false, all(s.store))
					require.NoError(t, err)
					require.Equal(t, joblife.Describe(m), joblife.Describe(s.m))
					other.restart()
					for range 20 {
						s.next()
						other.next()
					}
					require.Equal(t, jobstate.StateInactive, s.state(s.id))
					for kind, log := range ofJob(s.id, slices.Values(s.store)) {
						forgets := before.Housekeeping != nil && after.Housekeeping == nil // only the live job knows the command
						if kind == joblife.RecordEvent || kind == joblife.RecordHousekeeping && !forgets {
							require.Equal(t, since(log), since(ofJob(s.id, slices.Values(other.store))[kind]))
						}
					}
				})
			}
		}
	}
}

// since returns the names of events, since alloc if it is among them.
func since(log string) string {
	var names []string
	for _, field := range strings.Split(log, `"name":"`)[1:] {
		name, _, _ := strings.Cut(field, `"`)
		if names = append(names, name); name == jobstate.EventAlloc {
			names = nil
		}
	}
	return strings.Join(names, " ")
}

// reloading is a site with one job, which does one thing after the other.
type reloading struct {
	*site
	id   jobid.ID
	said int // what the executor has said
	runs int // of site.runs, what has ended
}

func newReloading(t *testing.T, actions perilog.Config) *reloading {
	s := newSite(t, joblife.Config{Actions: actions}, 2)
	for _, name := range []string{"sched", "exec", "action", "pool"} {
		s.hold[name] = true
	}
	return &reloading{site: s, id: s.submit(jobspec.Job{Nodes: 1})}
}

// next does the next thing that is to do.
func (r *reloading) next() {
	r.t.Helper()
	if r.state(r.id) == jobstate.StateSched {
		r.step(success(r.t, r.id, 0))
		return
	}
	if r.runs < len(r.site.runs) {
		l := r.site.runs[r.runs]
		r.runs++
		_ = r.try(exited(l, 0))
		return
	}
	for u := range r.m.Unresolved() {
		if u.Reason == perilog.ReasonRemoved {
			r.step(joblife.ForceFinish{Action: joblife.Action{Job: u.Job, Key: u.Action, Ranks: u.Ranks}, Operator: "root"})
			return
		}
	}
	kinds := []exec.ResponseType{exec.ResponseStart, exec.ResponseFinish, exec.ResponseRelease}
	if len(r.starts()) > 0 && r.said < len(kinds) {
		r.said++
		r.step(said(r.id, kinds[r.said-1]))
	}
}

// TestOneLoopReadsJobsInAllStates: what the index knows of an inactive job, a View says by the
// accessors that others have, before and after a restart.
func TestOneLoopReadsJobsInAllStates(t *testing.T) {
	s := silent(t, joblife.Config{Actions: perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}}})
	s.hold["action"] = true
	done, canceled, pending := s.waits(false), s.waits(false), s.waits(false)
	s.step(success(t, done, 0))
	s.finish(done, 0)
	s.cancel(canceled)
	for range 2 {
		seen := make(map[jobid.ID]jobstate.State)
		for v := range s.m.Jobs(jobstate.StateNew | jobstate.StateActive | jobstate.StateInactive) {
			j := v.Job()
			seen[v.ID()] = j.State()
			require.Equal(t, v.State(), j.State())
			require.Equal(t, v.ID(), j.ID())
			require.Equal(t, v.UserID(), j.UserID())
			require.Equal(t, v.ID() == done, j.Started())
			want, ended := v.Result()
			result, ok := j.Result()
			require.Equal(t, ended, ok)
			require.Equal(t, want, result)
			at, over := j.Entered(jobstate.StateInactive)
			require.Equal(t, v.State() == jobstate.StateInactive, over)
			require.LessOrEqual(t, at, eventlog.FromTime(s.now))
			n := v.Holds()
			require.Equal(t, v.ID(), n.Job().ID())
			require.Equal(t, v.State(), n.Job().State())
			require.Equal(t, j.Started(), n.Job().Started())
			require.True(t, n.Held().IsEmpty())
			require.Empty(t, slices.Collect(n.Holders()))
			require.True(t, strings.HasPrefix(n.String(), v.State().String()+"; left"), "%v", n)
			require.Zero(t, v.R().Len())
			require.Equal(t, over, v.Jobspec() == nil, "not kept")
			require.Equal(t, over, v.Eventlog() == nil)
			require.Nil(t, v.Annotations())
		}
		require.Equal(t, map[jobid.ID]jobstate.State{
			done: jobstate.StateInactive, canceled: jobstate.StateInactive, pending: jobstate.StateSched,
		}, seen)
		s.restart()
	}
}

// A job that waits tells how long it has, while the Manager goes on and after a restart.
func TestALiveJobTellsTheTimeInEachState(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 1})
	spent := func() time.Duration {
		return must(s.m.Job(id)).Job().Spent(jobstate.StateSched, eventlog.FromTime(s.now)).Round(100 * time.Millisecond)
	}
	s.now = s.now.Add(5 * time.Second)
	require.Equal(t, 5*time.Second, spent())
	s.step(joblife.SetUrgency{ID: id, Urgency: 8}) // to PRIORITY, and back at once
	s.now = s.now.Add(7 * time.Second)
	require.Equal(t, 12*time.Second, spent())
	s.restart()
	s.now = s.now.Add(time.Second)
	require.Equal(t, 13*time.Second, spent())
}

// Many wait, and nearly all of them leave.
func TestACanceledWaitHasNoAnswer(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["finish"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	s.last = nil
	const n = 300
	wait := func(tag uint64) {
		s.step(joblife.Wait{Tag: tag, ID: id, States: jobstate.StateInactive})
		s.step(joblife.WaitEmpty{Tag: tag, States: jobstate.StateActive})
	}
	for tag := range uint64(n) {
		wait(tag + 1)
	}
	for tag := range uint64(n - 2) {
		s.step(joblife.WaitCancel{Tag: tag + 1})
	}
	require.Equal(t, 4, s.m.Stats().Waits)
	for range 2 { // once more with the same tag, which counts once
		s.step(joblife.WaitCancel{Tag: n - 2})
		wait(n - 2)
	}
	require.NoError(t, joblife.Audit(s.m))
	require.Equal(t, 6, s.m.Stats().Waits)
	s.finish(id, 0)
	got := make(map[uint64]int)
	for _, a := range s.last {
		got[a.Tag]++
	}
	require.Equal(t, map[uint64]int{n - 2: 2, n - 1: 2, n: 2}, got)
	require.Zero(t, s.m.Stats().Waits)
}

func TestAWaitIsAnsweredWhenItsTimeComes(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["finish"], s.hold["exec"] = true, true
	id := s.submit(jobspec.Job{Nodes: 1})
	s.last = nil
	s.step(joblife.Wait{Tag: 1, ID: id, States: jobstate.StateCleanup | jobstate.StateInactive})
	s.step(joblife.Wait{Tag: 4, ID: id, States: jobstate.StateDepend})
	s.step(joblife.WaitEmpty{Tag: 5, States: jobstate.StateActive})
	s.step(joblife.Wait{Tag: 6, ID: id, States: jobstate.StateInactive})
	s.step(joblife.WaitEmpty{Tag: 6, States: jobstate.StateActive})
	s.step(joblife.Wait{Tag: 8, ID: id, States: jobstate.StateInactive})
	require.Empty(t, s.last)
	require.Equal(t, 6, s.m.Stats().Waits)
	s.step(joblife.WaitCancel{Tag: 6})
	require.Equal(t, 4, s.m.Stats().Waits)
	a := s.ask(joblife.Wait{Tag: 7, ID: id, States: jobstate.StateRunning})
	require.NoError(t, a.Err, "a virtual state")
	s.hold["exec"] = false
	s.step(joblife.ExecHello{})
	s.finish(id, 0)
	require.Equal(t, jobstate.StateCleanup, s.answer(1).State)
	require.ErrorIs(t, s.answer(4).Err, joblife.ErrInactive, "it cannot come any more")
	a = s.answer(8)
	require.NoError(t, a.Err, "it came with the event release")
	require.Equal(t, jobstate.StateInactive, a.State)
	require.NoError(t, s.answer(5).Err)
	require.Empty(t, s.last)
	require.Zero(t, s.m.Stats().Waits)
}

// PU-11.
func TestAWaitForAJobThatIsGoneIsAnsweredAtOnce(t *testing.T) {
	s := newSite(t, joblife.Config{Private: true}, 8)
	id := s.submit(jobspec.Job{Nodes: 1})
	require.NoError(t, s.ask(joblife.Wait{Tag: 7, ID: id, States: jobstate.StateInactive}).Err)
	require.ErrorIs(t, s.ask(joblife.Wait{Tag: 7, ID: id, States: jobstate.StateRun}).Err, joblife.ErrInactive)
	guest := joblife.Cred{UserID: 5, Guest: true}
	require.ErrorIs(t, s.ask(joblife.Wait{Tag: 7, By: guest, ID: id, States: jobstate.StateInactive}).Err, joblife.ErrUnknown)
	s.ask(joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true})
	require.ErrorIs(t, s.ask(joblife.Wait{Tag: 7, ID: id, States: jobstate.StateInactive}).Err, joblife.ErrUnknown)
	require.ErrorIs(t, s.ask(joblife.Wait{Tag: 7, ID: 42, States: jobstate.StateRun}).Err, joblife.ErrUnknown)
	require.NoError(t, s.ask(joblife.WaitEmpty{Tag: 7, States: jobstate.StateActive}).Err)
}

// Every input that has By, for the owner, for the job's user and for another one.
func TestASubmitHasItsJobspecOnce(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	spec, err := jobspec.New(jobspec.Job{Nodes: 1, Command: []string{"app"}})
	require.NoError(t, err)
	require.ErrorContains(t, s.try(joblife.Submit{}), "set Jobspec or Spec")
	require.ErrorContains(t, s.try(joblife.Submit{Spec: spec, Jobspec: []byte("{}")}), "set one of them")
	for _, bad := range []joblife.Submit{{}, {Spec: &jobspec.Spec{}}, {Spec: spec, Jobspec: []byte("{}")}} {
		require.ErrorIs(t, s.try(bad), joblife.ErrInvalid)
	}

	spec, err = spec.Update("attributes.user", []byte(`{"a":"<"}`))
	require.NoError(t, err)
	id := s.ask(joblife.Submit{Tag: 7, Spec: spec}).Job
	want, err := spec.MarshalJSON()
	require.NoError(t, err)
	v, _ := s.m.Job(id)
	got, err := v.Jobspec().MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
	require.Same(t, v.Jobspec(), v.Jobspec().Original(), "what was submitted is the original")
	s.restart()
	v, _ = s.m.Job(id)
	got, err = v.Jobspec().MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "the log has it")
}

func TestGuestsTouchTheirOwnJobsOnly(t *testing.T) {
	user := joblife.Cred{UserID: 5, Guest: true}
	other := joblife.Cred{UserID: 6, Guest: true}
	for _, private := range []bool{false, true} {
		s := newSite(t, joblife.Config{Private: private}, 8)
		id := s.ask(joblife.Submit{Tag: 7, By: user, Jobspec: text(t, jobspec.Job{Nodes: 1}), Urgency: 0}).Job
		inputs := func(by joblife.Cred) []joblife.Input {
			return []joblife.Input{
				joblife.SetUrgency{By: by, ID: id, Urgency: 0},
				joblife.UpdateJobspec{By: by, ID: id, Updates: []jobstate.Update{{Path: "attributes.system.duration", Value: []byte("5")}}},
				joblife.Memo{By: by, ID: id, Values: []byte(`{"a":1}`)},
				joblife.Memo{By: by, ID: id, Values: []byte(`{"a":1}`), Volatile: true},
				joblife.Raise{By: by, ID: id, Type: "x", Severity: 1},
			}
		}
		want := joblife.ErrDenied
		if private {
			want = joblife.ErrUnknown
		}
		for i := range inputs(other) {
			require.ErrorIs(t, s.try(inputs(other)[i]), want)
			require.NoError(t, s.try(inputs(user)[i]))
			require.NoError(t, s.try(inputs(joblife.Cred{})[i]))
		}
		for _, by := range []joblife.Cred{user, other} {
			require.ErrorIs(t, s.try(joblife.Post{By: by, ID: id, Name: "x"}), joblife.ErrDenied)
			require.ErrorIs(t, s.try(joblife.Purge{By: by}), joblife.ErrDenied)
			require.ErrorIs(t, s.try(joblife.PurgeIDs{By: by}), joblife.ErrDenied)
		}
		require.ErrorIs(t, s.try(joblife.SetUrgency{By: user, ID: id, Urgency: 17}), joblife.ErrDenied)
		s.hold["finish"] = true
		require.NoError(t, s.try(joblife.SetUrgency{ID: id, Urgency: 20}))
		require.ErrorIs(t, s.try(joblife.SetUrgency{By: user, ID: id, Urgency: 15}), joblife.ErrInvalid, "it has its resources")
		s.cancel(id)
		s.step(joblife.ExecResponse(release(id)))
		require.Equal(t, jobstate.StateInactive, s.state(id))
		want = joblife.ErrInactive
		if private {
			want = joblife.ErrUnknown
		}
		require.ErrorIs(t, s.try(joblife.Raise{By: other, ID: id, Type: "x"}), want)
		require.ErrorIs(t, s.try(joblife.Raise{By: user, ID: id, Type: "x"}), joblife.ErrInactive)
		_, seen := s.m.As(other).Job(id)
		require.Equal(t, !private, seen)
		n := 0
		for range s.m.As(other).Jobs(jobstate.StateInactive) {
			n++
		}
		require.Equal(t, !private, n == 1)
		_, seen = s.m.As(user).Job(id)
		require.True(t, seen)
	}
}

// I12: what is over leaves nothing behind, least of all for years.
// PU-14.
func TestAJobThatIsOverLeavesNoTimer(t *testing.T) {
	later := false
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{joblife.Dependencies(), {
		Validate: func(*joblife.HookEvent) error {
			if later {
				return joblife.ErrLater
			}
			return nil
		},
		Event: func(e *joblife.HookEvent) { // whatever happens, to no end
			e.PostAt(e.Now()+1000, joblife.Memo{ID: e.Job.ID(), Values: []byte(`{"a":1}`)})
		},
	}}}, 8)
	id := s.add(needing("n", "begin-time", "4000000000"))
	s.deadline()
	s.step(joblife.Raise{ID: id, Type: "cancel"})
	later = true
	id = s.add(needing("n", "begin-time", "4000000000"))
	s.step(joblife.Validated{ID: id, Err: errors.New("no")})
	require.Empty(t, s.faults())
	s.idle()
}

// As in flux-core, which forgets a queue that its configuration does not have any more.
func TestAQueueThatAReloadAddsIsStopped(t *testing.T) {
	s := newSite(t, joblife.Config{Queues: []string{"a", "b"}}, 8)
	s.step(joblife.StartQueue{Queue: "b", Reason: "for a while"})
	s.step(joblife.EnableQueue{Queue: "a", Reason: "full"})
	reload := func(queues ...string) {
		s.cfg.Queues = queues
		s.step(joblife.Reload{Config: s.cfg})
	}
	reload("a")
	_, ok := s.m.Queue("b")
	require.False(t, ok)
	reload("a", "b", "c")
	for name, want := range map[string]joblife.QueueStatus{
		"a": {Started: true, DisableReason: "full"}, "b": {Enabled: true}, "c": {Enabled: true},
	} {
		got, ok := s.m.Queue(name)
		require.True(t, ok)
		require.Equal(t, want, got, name)
	}
	s.restart()
	got, _ := s.m.Queue("b")
	require.Equal(t, joblife.QueueStatus{Enabled: true}, got, "after a restart too")

	reload()
	got, _ = s.m.Queue("")
	require.Equal(t, joblife.QueueStatus{Enabled: true, Started: true}, got, "the anonymous one")
}

func TestAQueueThatComesBackIsNewAfterARestartToo(t *testing.T) {
	s := newSite(t, joblife.Config{Queues: []string{"a", "b"}}, 8)
	s.step(joblife.StartQueue{Queue: "b"})
	without, with := s.cfg, s.cfg
	without.Queues = []string{"a"}
	s.step(joblife.Reload{Config: without})
	s.step(joblife.Reload{Config: with})
	m, err := joblife.Load(s.now, s.cfg, false, all(s.store))
	require.NoError(t, err)
	require.Equal(t, joblife.Describe(s.m), joblife.Describe(m), "I5")
}

// A reader may come when a job has ended in a Step whose Ready is to come, also while the
// Ready before it is with the store, and when a job was invalidated.
func TestHistoryHasTheJobsOfWhichTheEndIsToCome(t *testing.T) {
	invalid := joblife.Hooks{Validate: func(e *joblife.HookEvent) error {
		if e.Job.ID() == 3 {
			return joblife.ErrLater
		}
		return nil
	}}
	for _, outstanding := range []bool{false, true} {
		for _, housekeeping := range []*perilog.HousekeepingConfig{nil, {}} {
			m, err := joblife.New(joblife.Config{
				Hooks: []joblife.Hooks{invalid}, Actions: perilog.Config{Housekeeping: housekeeping},
			})
			require.NoError(t, err)
			now := time.Unix(1_700_000_000, 0)
			step := func(inputs ...joblife.Input) {
				for _, in := range inputs {
					require.NoError(t, m.Step(now, in))
				}
			}
			var rd joblife.Ready
			want, read := make(map[jobid.ID]string), make(map[jobid.ID]string)
			ready := func() {
				require.True(t, m.Ready(&rd))
				for _, r := range rd.Append {
					if r.Kind == joblife.RecordEvent {
						want[r.Job] += string(r.Data)
					}
				}
			}
			history := func() []jobid.ID {
				var ids []jobid.ID
				for id, log := range m.History() {
					ids, read[id] = append(ids, id), string(log)
				}
				return ids
			}
			step(joblife.SchedHello{}, joblife.SchedReady{}, joblife.ExecHello{})
			for id := jobid.ID(1); id <= 4; id++ {
				step(joblife.Submit{ID: id, Jobspec: text(t, jobspec.Job{Nodes: 1}), Urgency: 16})
			}
			ready()
			require.NoError(t, m.Done(rd.Seq))
			step(joblife.SchedResponse{ID: 1, R: node(t, 1)}, joblife.ExecResponse{ID: 1, Type: exec.ResponseStart})
			if outstanding {
				ready()
			}
			step(joblife.ExecResponse{ID: 1, Type: exec.ResponseFinish}, joblife.ExecResponse{ID: 1, Type: exec.ResponseRelease, Final: true},
				joblife.Raise{ID: 2, Type: "cancel"}, joblife.Validated{ID: 3, Err: errors.New("no")})
			if outstanding {
				require.NoError(t, m.Done(rd.Seq))
			}
			require.Equal(t, []jobid.ID{1, 2, 3, 4}, history())
			ready()
			require.Equal(t, []jobid.ID{1, 2, 3, 4}, history(), "as far as the last Ready that is done")
			for _, e := range rd.Journal {
				read[e.Job] += line(t, e.Entry)
			}
			require.Equal(t, want, read)
			require.NoError(t, m.Done(rd.Seq))
			require.Equal(t, []jobid.ID{4}, history())
		}
	}
}

// Who has found what it looks for leaves a list early, wherever that is.
func TestAListMayBeLeftEarly(t *testing.T) {
	s := newSite(t, joblife.Config{
		TombstoneCount: jobstate.Some(2), Queues: []string{"a"},
		Actions: perilog.Config{Prologs: []perilog.ActionConfig{{PerRank: true}}},
	}, 8)
	for i := range 7 {
		s.hold["action"] = i > 3
		in := keyed(t, 5, fmt.Sprint(i))
		in.Jobspec = text(t, jobspec.Job{Nodes: 1, Queue: "a"})
		if id := s.ask(in).Job; i == 0 {
			s.step(joblife.PurgeIDs{IDs: []jobid.ID{id}, Force: true})
		}
	}
	s.step(joblife.StartQueue{Queue: "a", Reason: "maintenance"})
	s.restart()
	leave(t, s.m.Jobs(jobstate.StateActive|jobstate.StateInactive))
	leave(t, s.m.Jobs(jobstate.StateInactive))
	leave(t, s.m.Holders())
	leave(t, s.m.Unresolved())
	leave(t, keys(s.m.Allocated()))
	leave(t, keys(s.m.History()))
	for _, list := range []iter.Seq[joblife.Record]{s.m.Snapshot(), standby(t, s.store).Snapshot()} {
		seen := make(map[joblife.RecordKind]bool)
		for r := range list {
			seen[r.Kind] = true
		}
		for _, kind := range []joblife.RecordKind{joblife.RecordTombstone, joblife.RecordQueue, joblife.RecordInactive, joblife.RecordKey} {
			require.True(t, seen[kind], kind)
		}
		leave(t, list)
	}
}

// leave leaves a list after each of its elements. The runtime panics if it goes on.
func leave[T any](t *testing.T, list iter.Seq[T]) {
	t.Helper()
	elements := len(slices.Collect(list))
	require.Greater(t, elements, 2)
	for n := range elements {
		for range list {
			if n--; n < 0 {
				break
			}
		}
	}
}

func keys[K, V any](list iter.Seq2[K, V]) iter.Seq[K] {
	return func(yield func(K) bool) {
		for k := range list {
			if !yield(k) {
				return
			}
		}
	}
}

// A wait that nothing can answer is refused.
func TestAWaitForNothingIsRefused(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["exec"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	for _, in := range []joblife.Wait{
		{Tag: 1, ID: id}, {ID: id, States: jobstate.StateInactive}, {Tag: 1, ID: id, States: 128},
	} {
		require.Error(t, s.try(in), "%+v", in)
	}
	require.Zero(t, s.m.Stats().Waits)
}

// I12: the jobspec with its updates is no longer than one that is submitted, and an update that
// makes it longer costs no more than to find that out.
func TestUpdatesKeepToTheLimitOfAJobspec(t *testing.T) {
	s := silent(t, joblife.Config{MaxJobspec: 4000})
	id := s.submit(jobspec.Job{Nodes: 1})
	update := func(n int, path string) error {
		return s.try(joblife.UpdateJobspec{ID: id, Updates: []jobstate.Update{{Path: "attributes.user." + path, Value: fmt.Appendf(nil, `"%0*d"`, n, 0)}}})
	}
	require.NoError(t, update(1500, "a"))
	require.NoError(t, update(1500, "b"))
	require.ErrorIs(t, update(1500, "c"), joblife.ErrLimit)
	require.ErrorIs(t, update(4500, "a"), joblife.ErrLimit)
	require.NoError(t, update(10, "a"))
	require.NoError(t, update(1500, "c"))
	s.restart()
	v, _ := s.m.Job(id)
	require.InDelta(t, 3500, len(v.Jobspec().Text()), 400)
}

// An update leaves room in the log for what belongs to it.
func TestAnUpdateLeavesRoomForFlags(t *testing.T) {
	s := silent(t, joblife.Config{MaxLog: 3000})
	id := s.submit(jobspec.Job{Nodes: 1})
	var err error
	for n := 0; err == nil; n++ {
		require.Less(t, n, 100)
		err = s.try(joblife.UpdateJobspec{ID: id, Updates: []jobstate.Update{{Path: "attributes.user.a", Value: fmt.Appendf(nil, "%d", n)}}})
	}
	require.ErrorIs(t, err, joblife.ErrLimit)
	s.step(joblife.SetFlags{ID: id, Flags: []string{"debug"}})
}

// I9: an id that a user named may be of a time to come, and others still get theirs, each greater
// than all before it.
func TestAnIDOfATimeToComeBlocksNoOther(t *testing.T) {
	s := silent(t, joblife.Config{})
	spec := text(t, jobspec.Job{})
	last := jobid.ID(0)
	for range 2 {
		const end = 1<<24 - 1 // the last id of a millisecond
		id := jobid.ID(s.now.Add(time.Minute).Sub(s.cfg.Epoch).Milliseconds()<<24) | end
		require.NoError(t, s.m.Step(s.now, joblife.Submit{Tag: 1, By: joblife.Cred{UserID: 6, Guest: true}, ID: id, Jobspec: spec, Urgency: 16}))
		for range 1100 { // a millisecond has 1024
			require.NoError(t, s.m.Step(s.now, joblife.Submit{Tag: 1, Jobspec: spec, Urgency: 16}))
		}
		s.act()
		require.Len(t, s.last, 1101)
		for _, a := range s.last {
			require.Greater(t, a.Job, last)
			last = a.Job
		}
		require.Less(t, last.Time(s.cfg.Epoch).Sub(s.now), time.Minute+5*time.Millisecond)
		s.now = s.now.Add(time.Second)
		s.restart()
	}
	// The jobs are gone, and the clock has gone back.
	s.now = s.now.Add(-time.Minute)
	s.restore([]joblife.Record{{Time: 1, Kind: joblife.RecordWatermark, Data: purge.AppendWatermark(nil, last)}})
	require.Greater(t, s.submit(jobspec.Job{}), last)
}

// RFC 27 carries no id above MaxInt64: none is made either, after seventeen years or past a damaged
// record.
func TestAnIDThatNoMessageCarriesIsNotMade(t *testing.T) {
	now := time.Unix(1_600_000_000, 0)
	for years, records := range map[int][]joblife.Record{18: nil, 1: {{Job: 1<<63 + 5, Kind: joblife.RecordEvent, Data: []byte("?\n"), Time: 1}}} {
		m, _, err := joblife.Restore(now, joblife.Config{Epoch: now.AddDate(-years, 0, 0)}, all(records))
		require.NoError(t, err)
		require.ErrorIs(t, m.Step(now, joblife.Submit{Tag: 1, Jobspec: text(t, jobspec.Job{}), Urgency: 16}), joblife.ErrInvalid)
	}
}
