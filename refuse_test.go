package joblife_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
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

// twins are two sites that are told the same, but for the inputs that are refused:
// the second does not hear of these. What they hand out must be equal (I6).
type twins struct {
	a, b    *site
	refused int
	state   string // of the first
}

// give passes an input at the time of the sites.
func (w *twins) give(in joblife.Input) error {
	w.a.t.Helper()
	if w.state == "" {
		w.state = snapshot(w.a.m)
	}
	due, isDue := w.a.m.Deadline()
	err := w.a.m.Step(w.a.now, in)
	if err != nil {
		w.refused++
		if after := snapshot(w.a.m); after != w.state {
			require.Equal(w.a.t, w.state, after, "%T: %v", in, err)
		}
		due2, isDue2 := w.a.m.Deadline()
		require.Equal(w.a.t, due, due2)
		require.Equal(w.a.t, isDue, isDue2)
		require.False(w.a.t, w.a.m.Ready(&w.a.rd), "%T %+v: %v", in, in, err)
		return err
	}
	w.state = ""
	require.NoError(w.a.t, w.b.m.Step(w.b.now, in))
	w.a.act()
	w.b.act()
	require.Equal(w.a.t, strings.Join(w.a.outs, ""), strings.Join(w.b.outs, ""), "%T", in)
	w.a.outs, w.b.outs = nil, nil
	return nil
}

// tick passes a millisecond.
func (w *twins) tick() {
	w.a.now, w.b.now = w.a.now.Add(time.Millisecond), w.b.now.Add(time.Millisecond)
}

// must passes an input that is not refused.
func (w *twins) must(in joblife.Input) {
	w.a.t.Helper()
	w.tick()
	require.NoError(w.a.t, w.give(in))
}

// badSubmits are submissions that no state allows.
func badSubmits(t *testing.T) []joblife.Input {
	ok := text(t, jobspec.Job{Nodes: 1})
	guest := joblife.Cred{UserID: 5, Guest: true}
	return []joblife.Input{
		joblife.Submit{}, joblife.Submit{Jobspec: []byte("{}")}, joblife.Submit{Jobspec: ok[:len(ok)-1]},
		joblife.Submit{Jobspec: ok, Urgency: -1}, joblife.Submit{Jobspec: ok, Urgency: 32},
		joblife.Submit{Jobspec: ok, Urgency: 17, By: guest},
		joblife.Submit{Jobspec: ok, ID: math.MaxUint64}, joblife.Submit{Jobspec: ok, ID: 1 << 63},
		joblife.Submit{Jobspec: text(t, jobspec.Job{Nodes: 1, Queue: "no"})},
		joblife.Submit{Jobspec: needing(t, "a", "begin-time", "9999999999", "no", "1")},
		joblife.Submit{Jobspec: needing(t, "refused")},
	}
}

// bad are inputs with bad values, for a job and without one.
func bad(t *testing.T, id jobid.ID) []joblife.Input {
	nan := eventlog.Timestamp(math.NaN())
	guest := joblife.Cred{UserID: 5, Guest: true}
	key := joblife.Action{Job: id, Key: perilog.Key{Kind: jobstate.ActionProlog, Description: "no"}}
	response := func(r exec.Response) joblife.Input { return joblife.ExecResponse(r) }
	sched := func(r alloc.Response) joblife.Input { return joblife.SchedResponse(r) }
	list := append(badSubmits(t),
		nil, joblife.Submit{Jobspec: text(t, jobspec.Job{Nodes: 1}), ID: id},
		joblife.Validated{ID: id}, joblife.Validated{ID: id, Err: errors.New("no")},
		joblife.DependencyAdd{ID: id}, joblife.DependencyAdd{ID: id, Description: "\x00"},
		joblife.Urgency{ID: id, Urgency: -1}, joblife.Urgency{ID: id, Urgency: 32},
		joblife.Urgency{ID: id, Urgency: 3, By: guest}, joblife.Priority{ID: id + 99},
		joblife.Update{ID: id}, joblife.Update{ID: id, By: guest},
		joblife.Update{ID: id, Updates: []jobstate.Update{{Path: "attributes.system.duration", Value: json.RawMessage("{")}}},
		joblife.Update{ID: id, Updates: []jobstate.Update{{Path: "no", Value: json.RawMessage("1")}}},
		joblife.Update{ID: id, Updates: []jobstate.Update{{Path: "attributes.system.duration", Value: json.RawMessage("1")}, {Path: "attributes..x", Value: json.RawMessage("1")}}},
		joblife.SetExpiration{ID: id, Expiration: -1}, joblife.SetExpiration{ID: id, Expiration: nan},
		joblife.Memo{ID: id}, joblife.Memo{ID: id, Values: json.RawMessage("[]")}, joblife.Memo{ID: id, Values: json.RawMessage("{"), Volatile: true},
		joblife.Memo{ID: id, Values: json.RawMessage("1"), Volatile: true}, joblife.Memo{ID: id, Volatile: true},
		joblife.SetFlags{ID: id + 99}, joblife.SetFlags{ID: id, Flags: []string{""}},
		joblife.Raise{ID: id, Type: "x", Severity: -1}, joblife.Raise{ID: id, Type: "x", Severity: 8},
		joblife.Raise{ID: id}, joblife.Raise{ID: id, Type: "cancel", By: guest},
		joblife.Post{ID: id}, joblife.Post{ID: id, Name: "submit"}, joblife.Post{ID: id, Name: "alloc"}, joblife.Post{ID: id, Name: "invalidate"},
		joblife.Post{ID: id, Name: "x", Context: json.RawMessage("[")}, joblife.Post{ID: id, Name: "x", By: guest},
		joblife.Post{ID: id, Name: "jobspec-update", Context: json.RawMessage(`{"no":1}`)},
		joblife.Post{ID: id, Name: "jobspec-update", Context: json.RawMessage(`{"attributes.system.duration":-1}`)},
		joblife.Wait{}, joblife.Wait{Tag: 1, ID: id}, joblife.Wait{Tag: 1, ID: id, States: 128}, joblife.WaitEmpty{}, joblife.WaitEmpty{Tag: 1}, joblife.WaitEmpty{Tag: 1, States: 128},
		joblife.EnableQueue{Queue: "no"}, joblife.StartQueue{Queue: "no"},
		joblife.Purge{By: guest}, joblife.Purge{Limits: purge.Limits{Batch: -5}}, joblife.Purge{Force: true, Limits: purge.Limits{MaxCount: jobstate.Some(-1)}},
		joblife.PurgeIDs{By: guest, IDs: []jobid.ID{id}}, joblife.PurgeIDs{Force: true, IDs: []jobid.ID{id, id + 99}},
		joblife.Reload{Config: joblife.Config{Queues: []string{""}}}, joblife.Reload{Config: joblife.Config{Queues: []string{"a", "a"}}},
		joblife.Reload{Config: joblife.Config{Limits: purge.Limits{MaxAge: jobstate.Some(-time.Second)}}},
		joblife.Reload{Config: joblife.Config{Actions: perilog.Config{Prologs: []perilog.ActionConfig{{Description: "\x00"}}}}},
		joblife.SchedReady{}, joblife.SchedReady{Limit: -1},
		sched(alloc.Response{ID: id}), sched(alloc.Response{ID: id, Type: 9}), sched(alloc.Response{ID: id + 99, Type: alloc.ResponseCancel}),
		sched(alloc.Response{ID: id, Type: alloc.ResponseAnnotate, Annotations: json.RawMessage("[]")}),
		response(exec.Response{ID: id}), response(exec.Response{ID: id, Type: 99}), response(exec.Response{ID: id + 99, Type: exec.ResponseStart}),
		response(exec.Response{ID: id, Type: exec.ResponseException, Exception: exec.Exception{Type: "x", Severity: 8}}), response(exec.Response{ID: id, Type: exec.ResponseException}),
		response(exec.Response{ID: id, Type: exec.ResponseRelease, Ranks: idset.Of(77)}),
		joblife.ExecRefused{ID: id + 99}, joblife.ExecRefused{ID: id + 99, Note: "x"},
		joblife.Reattach{Action: key}, joblife.Rerun{Action: key}, joblife.ForceFinish{Action: key, Who: "me"},
		joblife.Reattach{Action: joblife.Action{Job: id + 99}},
		joblife.Shutdown{Deadline: nan}, joblife.Shutdown{Deadline: -1},
	)
	for _, name := range []string{"validate", "depend", "start", "finish", "release", "free", "clean", "prolog-start", "prolog-finish", "epilog-finish", "drained", "exception", "urgency", "dependency-add"} {
		list = append(list, joblife.Post{ID: id, Name: name, Context: json.RawMessage(`{"x":1}`)})
	}
	return list
}

// targets are the jobs that a stage attacks: one that is unknown, the last but one,
// which runs, and another in its turn.
func targets(ids []jobid.ID, turn int) []jobid.ID {
	if len(ids) == 0 {
		return []jobid.ID{42, 43, 44}
	}
	return []jobid.ID{42, ids[max(0, len(ids)-2)], ids[turn%len(ids)]}
}

// I6.
func TestARefusedInputChangesNothing(t *testing.T) {
	hooks := func() []joblife.Hooks {
		return []joblife.Hooks{joblife.Dependencies(), {Name: "validator", Validate: func(e *joblife.Event) error {
			e.Post(joblife.Memo{ID: e.Job.ID(), Values: json.RawMessage(`{"seen":1}`)})
			e.PostAt(e.Now()+1, joblife.Memo{ID: e.Job.ID(), Values: json.RawMessage(`{"seen":2}`)})
			if name, _ := e.Job.Jobspec().Lookup("attributes.system.job.name"); string(name) == `"refused"` {
				return errors.New("no")
			}
			if e.Job.Job().Urgency() == 1 {
				return joblife.ErrLater
			}
			return nil
		}}}
	}
	w := new(twins)
	for _, s := range []**site{&w.a, &w.b} {
		*s = newSite(t, joblife.Config{
			Hooks:   hooks(),
			Actions: perilog.Config{Prologs: []perilog.ActionConfig{{PerRank: true}}, Epilogs: []perilog.ActionConfig{{PerRank: true}}, Housekeeping: &perilog.HousekeepingConfig{}},
		}, 8)
		(*s).hold["action"], (*s).hold["exec"], (*s).hold["finish"], (*s).hold["drain"] = true, true, true, true
	}
	var ids []jobid.ID
	turn := 0
	attack := func(stage string) {
		t.Helper()
		n := w.refused
		turn++
		for _, id := range targets(ids, turn) {
			for _, in := range bad(t, id) {
				_ = w.give(in)
			}
		}
		for _, at := range []time.Time{{}, time.Unix(1, 0), w.a.now.Add(-time.Second)} {
			before := snapshot(w.a.m)
			require.ErrorIs(t, w.a.m.Step(at, joblife.Tick{}), joblife.ErrClock)
			require.Equal(t, before, snapshot(w.a.m))
		}
		require.Greater(t, w.refused, n+120, stage)
	}
	submit := func(spec []byte, urgency int) jobid.ID {
		t.Helper()
		w.must(joblife.Submit{Tag: 7, Jobspec: spec, Urgency: urgency})
		a, _ := w.a.answer(7)
		w.b.answer(7)
		require.NotZero(t, a.Job)
		ids = append(ids, a.Job)
		return a.Job
	}
	attack("empty")
	submit(needing(t, "later"), 1)
	submit(needing(t, "waits", "begin-time", "9999999999"), 16)
	submit(needing(t, "held"), 0)
	run := submit(needing(t, "runs"), 16)
	big := submit(text(t, jobspec.Job{Nodes: 8, Exclusive: true}), 16)
	require.Equal(t, jobstate.StateRun, w.a.state(run))
	require.Equal(t, jobstate.StateSched, w.a.state(big))
	attack("prolog")
	for _, l := range w.a.runs {
		rank, _ := l.Ranks.Min()
		w.must(joblife.Report{Job: l.Job, Report: perilog.Report{Action: l.Action, Attempt: l.Attempt, Kind: perilog.ReportExited, Rank: rank}})
	}
	attack("starting")
	w.must(said(run, exec.ResponseStart))
	attack("running")
	w.must(joblife.Raise{ID: run, Type: "cancel"})
	attack("stopping")
	w.must(said(run, exec.ResponseFinish))
	w.must(said(run, exec.ResponseRelease))
	attack("epilog")
	for _, s := range []*site{w.a, w.b} {
		s.hold["action"] = false
	}
	for _, l := range w.a.runs {
		rank, _ := l.Ranks.Min()
		w.must(joblife.Report{Job: l.Job, Report: perilog.Report{Action: l.Action, Attempt: l.Attempt, Kind: perilog.ReportExited, Rank: rank}})
	}
	require.Equal(t, jobstate.StateInactive, w.a.state(run))
	attack("inactive")
	w.must(joblife.SchedLost{})
	w.must(joblife.ExecLost{})
	attack("lost")
	w.must(joblife.SchedHello{})
	attack("greeting")
	w.must(joblife.PurgeIDs{Tag: 1, IDs: []jobid.ID{run}, Force: true})
	attack("purged")
	w.must(joblife.Shutdown{})
	attack("stopping")
}

func TestAStepWithoutAnInputIsRefused(t *testing.T) {
	s := silent(t, joblife.Config{Hooks: []joblife.Hooks{{Name: "hasty", Validate: func(e *joblife.Event) error {
		e.Post(nil)
		e.Post((*joblife.Raise)(nil))
		return nil
	}}}})
	for _, in := range []joblife.Input{nil, (*joblife.Tick)(nil), &joblife.Tick{}, struct{ joblife.Input }{}, struct{ joblife.Tick }{}} {
		require.ErrorIs(t, s.m.Step(s.now, in), joblife.ErrInvalid, "%T", in)
	}
	s.waits(false)
	require.Len(t, s.faults(), 2)
}
