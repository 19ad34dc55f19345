package joblife_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/purge"
)

func TestAWaitIsAnsweredWhenItsTimeComes(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["finish"], s.hold["exec"] = true, true
	id := s.submit(jobspec.Job{Nodes: 1})
	s.last = nil
	s.step(joblife.Wait{Tag: 1, ID: id, States: jobstate.StateCleanup | jobstate.StateInactive})
	s.step(joblife.Wait{Tag: 2, ID: id, Event: "start"})
	s.step(joblife.Wait{Tag: 3, ID: id, Event: "never"})
	s.step(joblife.Wait{Tag: 4, ID: id, States: jobstate.StateDepend})
	s.step(joblife.WaitEmpty{Tag: 5, States: jobstate.StateActive})
	s.step(joblife.Wait{Tag: 6, ID: id, States: jobstate.StateInactive})
	s.step(joblife.WaitEmpty{Tag: 6, States: jobstate.StateActive})
	require.Empty(t, s.last)
	require.Equal(t, 7, s.m.Stats().Waits)
	s.step(joblife.WaitCancel{Tag: 6})
	require.Equal(t, 5, s.m.Stats().Waits)
	a := s.ask(joblife.Wait{Tag: 7, ID: id, Event: "alloc"})
	require.NoError(t, a.Err, "it is in the log")
	require.Equal(t, jobstate.StateRun, a.State)
	a = s.ask(joblife.Wait{Tag: 7, ID: id, States: jobstate.StateRunning})
	require.NoError(t, a.Err, "a virtual state")
	s.hold["exec"] = false
	s.step(joblife.ExecHello{})
	a, ok := s.answer(2)
	require.True(t, ok)
	require.NoError(t, a.Err)
	s.finish(id, 0)
	a, ok = s.answer(1)
	require.True(t, ok)
	require.Equal(t, jobstate.StateCleanup, a.State)
	for _, tag := range []uint64{3, 4} {
		a, ok = s.answer(tag)
		require.True(t, ok)
		require.ErrorIs(t, a.Err, joblife.ErrInactive, "it cannot come any more")
	}
	a, ok = s.answer(5)
	require.True(t, ok)
	require.NoError(t, a.Err)
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
	require.ErrorIs(t, s.ask(joblife.Wait{Tag: 7, ID: 42, Event: "start"}).Err, joblife.ErrUnknown)
	require.NoError(t, s.ask(joblife.WaitEmpty{Tag: 7, States: jobstate.StateActive}).Err)
}

// PU-10, EL-5: a reader who takes the history and then the journals sees each event
// once, and nothing of a job after it was purged.
func TestHistoryAndJournalHaveEachEventOnce(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["finish"] = true
	first := s.submit(jobspec.Job{Nodes: 1})
	second := s.submit(jobspec.Job{Nodes: 1})
	read := make(map[jobid.ID]string)
	for id, log := range s.m.History() {
		read[id] += string(log)
	}
	require.Len(t, read, 2)
	s.jour = nil
	s.finish(first, 0)
	s.finish(second, 0)
	n := len(s.jour)
	s.ask(joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true})
	require.Len(t, s.jour, n)
	for _, id := range []jobid.ID{first, second} {
		log := read[id]
		for _, e := range s.jour {
			if e.Job == id {
				log += line(t, e.Entry)
			}
		}
		want := ""
		for _, r := range s.store {
			if r.Job == id && r.Kind == joblife.RecordEvent {
				want += string(r.Data)
			}
		}
		require.Equal(t, want, log)
	}
}

// Every input that has By, for the owner, for the job's user and for another one.
func TestGuestsTouchTheirOwnJobsOnly(t *testing.T) {
	user := joblife.Cred{UserID: 5, Guest: true}
	other := joblife.Cred{UserID: 6, Guest: true}
	for _, private := range []bool{false, true} {
		s := newSite(t, joblife.Config{Private: private}, 8)
		id := s.ask(joblife.Submit{Tag: 7, By: user, Jobspec: text(t, jobspec.Job{Nodes: 1}), Urgency: 0}).Job
		inputs := func(by joblife.Cred) []joblife.Input {
			return []joblife.Input{
				joblife.Urgency{By: by, ID: id, Urgency: 0},
				joblife.Update{By: by, ID: id, Updates: []jobstate.Update{{Path: "attributes.system.duration", Value: []byte("5")}}},
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
		require.ErrorIs(t, s.try(joblife.Urgency{By: user, ID: id, Urgency: 17}), joblife.ErrDenied)
		s.hold["finish"] = true
		require.NoError(t, s.try(joblife.Urgency{ID: id, Urgency: 20}))
		require.ErrorIs(t, s.try(joblife.Urgency{By: user, ID: id, Urgency: 15}), joblife.ErrInvalid, "it has its resources")
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
