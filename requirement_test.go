package joblife_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset/alloc"
)

// SM-13, MG-6.
func TestAnExceptionInCLEANUPIsRecordedAndInINACTIVERefused(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["finish"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	s.step(joblife.ExecResponse{ID: id, Type: exec.ResponseFinish, Status: 256})
	require.Equal(t, jobstate.StateCleanup, s.state(id))
	result, _ := must(s.m.Job(id)).Result()
	require.Equal(t, jobstate.ResultFailed, result)
	s.feed(joblife.Raise{ID: id, Type: "cancel", Note: "too late"})
	require.True(t, s.m.Ready(&s.rd))
	require.Len(t, s.rd.Raised, 1, "each is told, wherever it was raised")
	require.Len(t, s.rd.Journal, 1)
	require.NoError(t, s.m.Done(s.rd.Seq))
	s.step(said(id, exec.ResponseRelease))
	result, _ = must(s.m.Job(id)).Result()
	require.Equal(t, jobstate.ResultCanceled, result)
	require.ErrorIs(t, s.try(joblife.Raise{ID: id, Type: "x", Severity: 7}), joblife.ErrInactive)
}

// SM-14: a denied request ends the job.
func TestADeniedRequestIsAFatalException(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 1})
	s.step(joblife.SchedResponse{ID: id, Type: alloc.ResponseAnnotate, Annotations: json.RawMessage(`{"sched":{"t_estimate":5}}`)})
	require.JSONEq(t, `{"sched":{"t_estimate":5}}`, string(must(s.m.Job(id)).Annotations()))
	s.step(joblife.SchedResponse{ID: id, Type: alloc.ResponseDeny, Note: "unsatisfiable"})
	require.Equal(t, "submit validate depend priority exception clean", s.events(id))
	result, _ := must(s.m.Job(id)).Result()
	require.Equal(t, jobstate.ResultFailed, result)
}

// SM-21, SM-3.
func TestAnOperatorPostsAnEvent(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 1})
	a := s.ask(joblife.Post{Tag: 7, ID: id, Name: "site-note", Context: json.RawMessage(`{"by":"root"}`)})
	require.Equal(t, id, a.Job)
	require.Contains(t, s.events(id), "site-note", "unknown names are data")
	s.step(success(t, id, 0))
	require.Error(t, s.try(joblife.Post{ID: id, Name: "free"}), "it holds resources")
	require.Error(t, s.try(joblife.Post{ID: id, Name: "clean"}))
}

// MG-8, SM-18.
func TestStatsCountWhatIsThere(t *testing.T) {
	s := silent(t, joblife.Config{})
	held := s.ask(joblife.Submit{Tag: 7, Jobspec: text(t, jobspec.Job{Nodes: 1}), Urgency: 0}).Job
	waits := s.submit(jobspec.Job{Nodes: 1})
	runs := s.submit(jobspec.Job{Nodes: 1})
	s.step(success(t, runs, 0))
	st := s.m.Stats()
	require.Equal(t, map[jobstate.State]int{jobstate.StateSched: 2, jobstate.StateRun: 1}, st.States)
	require.Equal(t, alloc.Stats{Blocked: 1, Sent: 1}, st.Queue)
	require.EqualValues(t, 4*2+4+2, st.Events, "and alloc and start")
	s.finish(runs, 0)
	s.cancel(held)
	s.cancel(waits)
	st = s.m.Stats()
	require.Equal(t, map[jobstate.State]int{jobstate.StateInactive: 3}, st.States)
	require.Equal(t, alloc.Stats{Canceled: 1}, st.Queue, "of which the scheduler has said nothing yet (flux-core#2051)")
	require.Equal(t, 1, st.Purge.Resident.Completed)
	require.Equal(t, 2, st.Purge.Resident.Canceled)
	s.step(joblife.SchedLost{})
	require.Zero(t, s.m.Stats().Queue)
}

// SM-7: an epilog that a hook posts at the end is in time to hold the resources
// (flux-core#5011).
func TestAnEpilogThatAHookPostsIsInTime(t *testing.T) {
	hook := joblife.Hooks{Event: func(e *joblife.Event) {
		if e.Job.State() == jobstate.StateCleanup && e.Prev != jobstate.StateCleanup {
			e.Post(joblife.Post{ID: e.Job.ID(), Name: "epilog-start", Context: json.RawMessage(`{"description":"dws"}`)})
		}
	}}
	s := silent(t, joblife.Config{Hooks: []joblife.Hooks{hook}})
	waits := s.submit(jobspec.Job{Nodes: 1})
	s.cancel(waits)
	require.Equal(t, jobstate.StateCleanup, s.state(waits), "also without resources (flux-core#5345)")
	s.step(joblife.Post{ID: waits, Name: "epilog-finish", Context: json.RawMessage(`{"description":"dws","status":0}`)})
	require.Equal(t, jobstate.StateInactive, s.state(waits))
	runs := s.submit(jobspec.Job{Nodes: 1})
	s.step(success(t, runs, 0))
	s.finish(runs, 0)
	require.Empty(t, sent[alloc.Free](s))
	s.step(joblife.Post{ID: runs, Name: "epilog-finish", Context: json.RawMessage(`{"description":"other","status":0}`)})
	require.Empty(t, sent[alloc.Free](s), "PL-1")
	s.step(joblife.Post{ID: runs, Name: "epilog-finish", Context: json.RawMessage(`{"description":"dws","status":0}`)})
	require.Len(t, sent[alloc.Free](s), 1)
	require.Equal(t, jobstate.StateInactive, s.state(runs))
}
