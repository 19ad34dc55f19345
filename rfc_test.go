package joblife_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset/alloc"
)

// What RFC 21, 26, 27 and 32 ask of a job manager, where no other test of a Manager has it.

// RFC 21: what the manager logs of jobs that end in all ways is a log without a fault, and each
// state is that of the log.
func TestRFC21WhatIsLoggedIsValid(t *testing.T) {
	s := newSite(t, joblife.Config{Actions: perilog.Config{
		Prologs: []perilog.ActionConfig{{PerRank: true}}, Epilogs: []perilog.ActionConfig{{PerRank: true}},
	}, Hooks: []joblife.Hooks{joblife.Dependencies()}}, 8)
	s.hold["finish"] = true
	good, bad, canceled := s.add(needing("a")), s.add(needing("a")), s.add(needing("a", "begin-time", "1900000000"))
	s.step(joblife.SetUrgency{ID: canceled, Urgency: 0})
	s.step(joblife.Memo{ID: good, Values: json.RawMessage(`{"k":1}`)})
	s.step(joblife.SetExpiration{ID: good, Expiration: 1_700_000_000})
	s.step(joblife.UpdateJobspec{ID: canceled, Updates: []jobstate.Update{{Path: "attributes.system.duration", Value: json.RawMessage("60")}}})
	s.step(joblife.ExecResponse{ID: bad, Type: exec.ResponseException, Exception: exec.Exception{Type: "exec", Note: "no such file"}})
	_, context := s.told("exception")
	require.Contains(t, context, `"note":"no such file"`, "RFC 32: the note of the executor")
	s.cancel(canceled)
	s.finish(good, 0)
	s.finish(bad, 9)
	for _, id := range []jobid.ID{good, bad, canceled} {
		var log []byte
		for _, r := range s.store {
			if r.Job == id && r.Kind == joblife.RecordEvent {
				log = append(log, r.Data...)
			}
		}
		for _, f := range jobstate.Validate(log) {
			require.Equal(t, jobstate.LevelNote, f.Level, f)
		}
		require.Contains(t, string(log), `"version":1}`)
		j, err := jobstate.Replay(id, log)
		require.NoError(t, err)
		require.Equal(t, jobstate.StateInactive, j.State())
		require.Equal(t, j.State(), s.state(id))
		want := ""
		for _, e := range s.jour {
			if e.Job == id && !e.Volatile {
				want += line(t, e.Entry)
			}
		}
		require.Equal(t, want, string(log), "all that happened, and nothing else")
	}
}

// RFC 21: the owner of a job and that of the instance can wait for each state, and for the last,
// after which nothing of the job changes. Others cannot, if jobs are private.
func TestRFC21AUserWatchesAnOwnJob(t *testing.T) {
	s := newSite(t, joblife.Config{Private: true}, 8)
	s.hold["finish"] = true
	user := joblife.Cred{UserID: 5, Guest: true}
	id := s.ask(joblife.Submit{Tag: 7, By: user, Jobspec: text(t, jobspec.Job{Nodes: 9}), Urgency: 16}).Job
	for tag, by := range map[uint64]joblife.Cred{10: user, 20: {}} {
		for i, state := range []jobstate.State{jobstate.StateSched, jobstate.StateCleanup, jobstate.StateInactive} {
			s.step(joblife.Wait{Tag: tag + uint64(i), By: by, ID: id, States: state})
		}
	}
	s.step(joblife.Wait{Tag: 30, By: joblife.Cred{UserID: 6, Guest: true}, ID: id, States: jobstate.StateSched})
	require.ErrorIs(t, s.answer(30).Err, joblife.ErrUnknown)
	require.Equal(t, []jobstate.State{jobstate.StateSched, jobstate.StateSched}, []jobstate.State{s.answer(10).State, s.answer(20).State})
	require.Empty(t, s.last, "the others wait")
	s.cancel(id)
	for _, tag := range []uint64{11, 12, 21, 22} {
		require.NoError(t, s.answer(tag).Err)
	}
	records := len(s.store)
	for _, in := range []joblife.Input{
		joblife.Post{ID: id, Name: "site-note"}, joblife.Memo{ID: id, Values: json.RawMessage(`{"a":1}`)},
		joblife.Raise{ID: id, Type: "x", Severity: 1}, joblife.SetFlags{ID: id, Flags: []string{"debug"}},
		joblife.UpdateJobspec{ID: id, Updates: []jobstate.Update{{Path: "attributes.system.duration", Value: json.RawMessage("5")}}},
	} {
		require.ErrorIs(t, s.try(in), joblife.ErrInactive)
	}
	require.Len(t, s.store, records)
}

// RFC 21, Invalidate Event: the job and its log are removed at once.
func TestRFC21AnInvalidJobIsRemoved(t *testing.T) {
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{later()}}, 8)
	id := s.submit(jobspec.Job{Nodes: 1})
	s.step(joblife.Validated{ID: id, Err: errors.New("no")})
	require.Equal(t, []string{"unlink " + id.String()}, s.log)
	_, known := s.m.Job(id)
	require.False(t, known)
	require.Empty(t, ofJob(id, s.m.Snapshot()))
}

// RFC 21: an update is an event. What the user submitted stays.
func TestRFC21AnUpdateLeavesWhatWasSubmitted(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	submitted := text(t, jobspec.Job{Nodes: 9, Duration: time.Minute})
	id := s.ask(joblife.Submit{Tag: 7, Jobspec: submitted}).Job
	s.step(joblife.UpdateJobspec{ID: id, Updates: []jobstate.Update{{Path: "attributes.system.duration", Value: json.RawMessage("5")}}})
	for range 2 {
		var stored []string
		for _, r := range s.store {
			if r.Job == id && r.Kind == joblife.RecordJobspec {
				stored = append(stored, string(r.Data))
			}
		}
		require.Equal(t, []string{string(submitted)}, stored)
		spec := must(s.m.Job(id)).Jobspec()
		require.Equal(t, 5*time.Second, spec.Duration())
		require.Equal(t, time.Minute, spec.Original().Duration())
		s.store = slices.Collect(s.m.Snapshot())
		s.restart()
	}
}

// RFC 26, Simple Dependencies: what satisfies a scheme, with the id in each form that joblife
// reads, and a time with a fraction.
func TestRFC26WhatSatisfiesASimpleDependency(t *testing.T) {
	for _, form := range []jobid.Format{jobid.FormatF58, jobid.FormatF58Plain, jobid.FormatDec, jobid.FormatHex, jobid.FormatDotHex} {
		for status, satisfied := range map[int32]string{0: "afterany afterok", 256: "afterany afternotok"} {
			s := depending(t)
			s.hold["exec"] = true
			first := s.add(needing("a"))
			wait := make(map[string]jobid.ID)
			for _, scheme := range []string{"after", "afterany", "afterok", "afternotok"} {
				wait[scheme] = s.add(needing("b", scheme, first.Format(form)))
			}
			expect := func(goes ...string) {
				for scheme, id := range wait {
					want := jobstate.StateDepend
					if slices.Contains(goes, scheme) {
						want = jobstate.StateRun
					}
					if s.state(first) == jobstate.StateInactive && want == jobstate.StateDepend {
						want = jobstate.StateInactive // by an exception
					}
					require.Equal(t, want, s.state(id), "%s of %s", scheme, s.events(first))
				}
			}
			expect()
			s.step(said(first, exec.ResponseStart))
			expect("after")
			s.step(joblife.ExecResponse{ID: first, Type: exec.ResponseFinish, Status: status})
			expect("after")
			s.step(said(first, exec.ResponseRelease))
			require.Equal(t, jobstate.StateInactive, s.state(first))
			expect(append(strings.Fields(satisfied), "after")...)
		}
	}
	s := depending(t)
	at := time.Unix(s.now.Unix()+5400, 250e6)
	id := s.add(needing("a", "begin-time", fmt.Sprintf("%d.250", at.Unix())))
	due := s.deadline()
	require.WithinDuration(t, at, due, time.Millisecond)
	s.now = due.Add(-10 * time.Millisecond)
	s.step(joblife.Tick{})
	require.Equal(t, jobstate.StateDepend, s.state(id))
	s.now = due
	s.step(joblife.Tick{})
	require.Equal(t, jobstate.StateRun, s.state(id))
}

// RFC 27, Implementation: a job has one request, and the next only after a response that ends it.
// The last free of a job is the only one that is final.
func TestRFC27OneRequestOfAJobIsInFlight(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 2})
	require.Len(t, sent[alloc.Request](s), 1)
	for i, in := range []joblife.Input{
		joblife.SetUrgency{ID: id, Urgency: 20}, annotate(id, `{"sched":{"a":1}}`), joblife.Tick{},
		joblife.StartQueue{}, joblife.StartQueue{Start: true},
		joblife.UpdateJobspec{ID: id, Updates: []jobstate.Update{{Path: "attributes.system.duration", Value: json.RawMessage("60")}}},
	} {
		s.step(in)
		require.Empty(t, sent[alloc.Request](s), i)
	}
	s.step(joblife.SchedResponse{ID: id, Type: alloc.ResponseCancel})
	r := sent[alloc.Request](s)
	require.Len(t, r, 1)
	require.Equal(t, alloc.JobInfo{ID: id, Priority: 20, Submit: r[0].Submit}, r[0].JobInfo)
	s.step(success(t, id, 0, 1))
	s.step(said(id, exec.ResponseFinish))
	s.step(joblife.ExecResponse{ID: id, Type: exec.ResponseRelease, Ranks: idset.Of(1)})
	s.step(said(id, exec.ResponseRelease))
	var frees []string
	for _, f := range sent[alloc.Free](s) {
		frees = append(frees, fmt.Sprint(f.ID == id, f.R, f.Final))
	}
	require.Equal(t, []string{"true rank1/core[0-3] false", "true rank0/core[0-3] true"}, frees)
}

// RFC 27, Ready and Finalization: how many requests a scheduler gets, and that one which is lost
// gets nothing.
func TestRFC27WhatASchedulerGetsInASession(t *testing.T) {
	s := silent(t, joblife.Config{})
	var ids []jobid.ID
	submit := func() { ids = append(ids, s.submit(jobspec.Job{Nodes: 1})) }
	for range 3 {
		submit()
	}
	require.Len(t, sent[alloc.Request](s), 3, "of any number")
	s.step(success(t, ids[2], 2))
	require.Len(t, s.exec, 1)
	s.sched = nil
	s.step(joblife.SchedLost{})
	submit()
	s.step(joblife.SetUrgency{ID: ids[0], Urgency: 20})
	s.step(joblife.SetUrgency{ID: ids[1], Urgency: 0})
	s.step(joblife.SetExpiration{ID: ids[2], Expiration: 1_700_000_000})
	s.finish(ids[2], 0)
	require.ErrorContains(t, s.try(success(t, ids[0], 0)), "alloc: protocol violation")
	require.ErrorContains(t, s.try(joblife.SchedReady{}), "alloc: protocol violation", "a hello comes first")
	s.step(joblife.SchedHello{})
	require.Empty(t, s.sched)
	s.step(joblife.SchedReady{Limit: 1})
	require.Equal(t, []alloc.ReadyResponse{{Count: 2}}, sent[alloc.ReadyResponse](s))
	require.Len(t, sent[alloc.Request](s), 1)
	submit()
	require.Empty(t, s.sched, "the limit")
	s.step(success(t, ids[0], 0))
	require.Len(t, sent[alloc.Request](s), 1)
}

// RFC 27, Alloc Annotate: annotations are volatile until SUCCESS, and then they are in the log.
func TestRFC27AnnotationsAreInNoLogBeforeSuccess(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 1})
	records := len(s.store)
	s.step(annotate(id, `{"sched":{"reason_pending":"a"}}`))
	require.Len(t, s.store, records)
	require.Equal(t, `{"sched":{"reason_pending":"a"}}`, s.notes(id))
	s.step(success(t, id, 0))
	_, context := s.told(jobstate.EventAlloc)
	require.Equal(t, `{"annotations":{"sched":{"reason_pending":"a"}}}`, context)
	s.restart()
	require.Equal(t, `{"sched":{"reason_pending":"a"}}`, s.notes(id))
}

// RFC 27, Alloc Deny: the exception has the note.
func TestRFC27TheNoteOfADenialIsThatOfTheException(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 1})
	s.step(joblife.SchedResponse{ID: id, Type: alloc.ResponseDeny, Note: "more than there is"})
	_, context := s.told(jobstate.EventException)
	require.Contains(t, context, `"type":"alloc","severity":0,"note":"more than there is"`)
	require.Contains(t, s.events(id), "exception")
}

// RFC 27, Hello: each job that has resources, with what is freed.
func TestRFC27AHelloHasEachJobThatHoldsResources(t *testing.T) {
	s := silent(t, joblife.Config{})
	want := make(map[jobid.ID]alloc.JobInfo)
	for i := range uint32(3) {
		id := s.ask(joblife.Submit{Tag: 7, By: joblife.Cred{UserID: 100 + i}, Jobspec: text(t, jobspec.Job{Nodes: 2}), Urgency: 16}).Job
		if i == 0 {
			continue // it waits
		}
		s.step(success(t, id, 2*i, 2*i+1))
		j := must(s.m.Job(id)).Job()
		at, _ := j.Entered(jobstate.StateNew)
		want[id] = alloc.JobInfo{ID: id, Priority: 16, UserID: 100 + i, Submit: at}
	}
	s.feed(joblife.SchedHello{PartialOK: true})
	require.True(t, s.m.Ready(&s.rd))
	require.Len(t, s.rd.Hello.Responses, 2)
	for _, h := range s.rd.Hello.Responses {
		require.Equal(t, want[h.ID], h.JobInfo)
		require.NotZero(t, h.Submit)
	}
	require.NoError(t, s.m.Done(s.rd.Seq))
}

// RFC 32: who starts what, once, and what another executor gets.
func TestRFC32StartsOfTheSessionsOfExecutors(t *testing.T) {
	s := silent(t, joblife.Config{})
	s.hold["exec"] = true
	run := func(by uint32, rank uint32) jobid.ID {
		id := s.ask(joblife.Submit{Tag: 7, By: joblife.Cred{UserID: by}, Jobspec: text(t, jobspec.Job{Nodes: 1}), Urgency: 16}).Job
		s.step(success(t, id, rank))
		return id
	}
	// starts are the starts since the last call.
	starts := func() (list []string) {
		for _, msg := range s.exec {
			m := msg.(exec.Start)
			list = append(list, fmt.Sprintf("%v %d %v %v %v", m.ID, m.UserID, m.R, m.Reattach, json.Valid(m.Jobspec)))
		}
		s.exec = nil
		return list
	}
	of := func(id jobid.ID, by, rank uint32, reattach bool) string {
		return fmt.Sprintf("%v %d rank%d/core[0-3] %v true", id, by, rank, reattach)
	}
	first, second := run(5, 0), run(6, 1)
	require.Equal(t, []string{of(first, 5, 0, false), of(second, 6, 1, false)}, starts())
	for _, in := range []joblife.Input{
		joblife.Tick{}, said(first, exec.ResponseStart), said(first, exec.ResponseStart),
		joblife.ExecResponse{ID: second, Type: exec.ResponseException, Exception: exec.Exception{Type: "x", Severity: 1}},
	} {
		s.step(in)
		require.Empty(t, starts(), "one start of each job is in flight")
	}
	s.step(said(second, exec.ResponseStart))

	s.step(joblife.ExecHello{})
	both := []string{of(first, 5, 0, true), of(second, 6, 1, true)}
	require.Equal(t, both, starts(), "it replaces the one before")
	s.step(said(first, exec.ResponseReattached))

	s.step(joblife.ExecLost{})
	third := run(7, 2)
	s.step(joblife.SetExpiration{ID: first, Expiration: 1_700_000_000})
	s.cancel(second)
	require.Empty(t, s.exec, "until the next hello")
	require.ErrorContains(t, s.try(said(first, exec.ResponseFinish)), "no executor")
	s.step(joblife.ExecHello{})
	require.Equal(t, append(both, of(third, 7, 2, false)), starts())

	// The final release ends what is said of a job.
	s.step(said(second, exec.ResponseRelease))
	require.Equal(t, jobstate.StateInactive, s.state(second))
	require.ErrorIs(t, s.try(said(second, exec.ResponseFinish)), joblife.ErrUnknown)
	s.step(joblife.ExecHello{})
	require.Equal(t, []string{both[0], of(third, 7, 2, false)}, starts())
}
