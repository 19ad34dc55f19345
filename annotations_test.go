package joblife_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset/alloc"
)

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

// I12: memos may be as long as a log. They do not harm the scheduler, and the job starts.
func TestLongMemosLeaveNoRoomForAnnotations(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 1})
	s.step(annotate(id, `{"sched":{"t_estimate":4}}`))
	long := `"` + strings.Repeat("x", 300<<10) + `"`
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		s.step(joblife.Memo{ID: id, Values: json.RawMessage(`{"` + key + `":` + long + `}`)})
	}
	require.ErrorIs(t, s.try(joblife.Memo{ID: id, Values: json.RawMessage(`{"v":1}`), Volatile: true}), joblife.ErrLimit)
	s.jour = nil
	s.step(annotate(id, `{"sched":{"t_estimate":5}}`))
	require.NotContains(t, s.notes(id), "sched")
	require.Contains(t, s.notes(id), `"e":"xxx`)
	resp := success(t, id, 0).(joblife.SchedResponse)
	resp.Annotations = json.RawMessage(`{"sched":{"resource_summary":"rank0"}}`)
	s.step(resp)
	_, context := s.told("alloc")
	require.Equal(t, `{"annotations":{"sched":{"resource_summary":"rank0"}}}`, context)
	require.Equal(t, jobstate.StateRun, s.state(id))
}
