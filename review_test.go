package joblife_test

import (
	"errors"
	"fmt"
	"iter"
	"math"
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
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/rset/alloc"
)

// EL-6: nobody outside knows of a job whose submission may be lost in a crash.
func TestNobodyChangesAJobBeforeItIsDurable(t *testing.T) {
	m, err := joblife.New(joblife.Config{Hooks: []joblife.Hooks{{
		Name: "site",
		Event: func(e *joblife.Event) { // hooks may, and what they decide later
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
		joblife.Urgency{ID: 5, Urgency: 3},
		joblife.Update{ID: 5, Updates: []jobstate.Update{{Path: "attributes.system.duration", Value: []byte("9")}}},
		joblife.Memo{ID: 5, Values: []byte(`{"a":2}`)},
		joblife.Memo{ID: 5, Values: []byte(`{"a":2}`), Volatile: true},
		joblife.SetFlags{ID: 5, Flags: []string{"debug"}},
		joblife.Raise{ID: 5, Type: "cancel"},
		joblife.Post{ID: 5, Name: "x"},
	}
	for _, in := range requests {
		require.ErrorIs(t, m.Step(s.now, in), joblife.ErrUnknown, "%T", in)
	}
	s.feed(joblife.Priority{ID: 5, Priority: 9})
	s.feed(joblife.DependencyRemove{ID: 5, Description: "site"})
	s.act()
	require.Empty(t, s.faults())
	require.Equal(t, "submit memo dependency-add validate dependency-remove depend priority", s.events(5))
	for i := range requests {
		in := requests[(i+6)%len(requests)] // the one that ends the job comes last
		require.NoError(t, m.Step(s.now, in), "%T", in)
	}
}

func TestAHookEndsAJobBeforeItIsDurable(t *testing.T) {
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{{
		Event: func(e *joblife.Event) {
			if e.Entry.Name == jobstate.EventSubmit {
				e.Post(joblife.Raise{ID: e.Job.ID(), Type: "site"})
			}
		},
	}}}, 8)
	id := s.submit(jobspec.Job{Nodes: 1})
	require.Empty(t, s.faults())
	require.Equal(t, "submit validate exception clean", s.events(id))
}

// RFC 27, RFC 32: a new scheduler and a new executor learn the expiration of today.
func TestANewExpirationIsInWhatHelloAndReattachSay(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["finish"] = true
	s.hold["exec"] = true
	id := s.submit(jobspec.Job{Nodes: 2, Duration: 60})
	at := eventlog.FromTime(s.now.Add(time.Hour))
	check := func() {
		t.Helper()
		s.exec = nil
		s.feed(joblife.SchedHello{PartialOK: true})
		require.True(t, s.m.Ready(&s.rd))
		require.Equal(t, at, s.rd.Hello.Responses[0].R.Expiration())
		require.NoError(t, s.m.Done(s.rd.Seq))
		s.step(joblife.SchedReady{})
		s.step(joblife.ExecHello{})
		require.Equal(t, at, s.exec[0].(exec.Start).R.Expiration())
		require.Equal(t, at, must(s.m.Job(id)).R().Expiration())
	}
	s.step(joblife.SetExpiration{ID: id, Expiration: at})
	check()
	s.restore(s.store)
	check()
	start := must(s.m.Job(id)).R().Start()
	require.Positive(t, start)
	require.ErrorIs(t, s.m.Step(s.now, joblife.SetExpiration{ID: id, Expiration: start}), joblife.ErrInvalid)
	s.step(joblife.Post{ID: id, Name: jobstate.EventResourceUpdate, Context: []byte(`{"expiration":1}`)})
	require.Positive(t, must(s.m.Job(id)).R().Expiration())
	at = 0 // never
	s.step(joblife.SetExpiration{ID: id})
	check()
}

// ofJob returns the records of a job, by kind, as text.
func ofJob(id jobid.ID, records iter.Seq[joblife.Record]) map[joblife.RecordKind]string {
	text := make(map[joblife.RecordKind]string)
	for r := range records {
		if r.Job == id {
			text[r.Kind] += string(r.Data) + "|"
		}
	}
	return text
}

// SM-5: what cannot be read is not thrown away by the next snapshot either.
func TestASnapshotKeepsTheRecordsOfQuarantinedJobs(t *testing.T) {
	s := newSite(t, joblife.Config{Actions: perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}}}, 8)
	bad := s.submit(jobspec.Job{Nodes: 1})
	tomb := bad + 1
	over := bad + 2
	events := 0
	for i, r := range s.store {
		if r.Kind == joblife.RecordEvent {
			if events++; events == 3 {
				s.store[i].Data = []byte("{\"timestamp\":1.0,\"name\":\"clean\"}\n")
			}
		}
	}
	s.store = append(s.store,
		joblife.Record{Job: tomb, Kind: joblife.RecordTombstone, Data: []byte("?")},
		joblife.Record{Job: over, Kind: joblife.RecordInactive, Data: []byte("!")},
		joblife.Record{Kind: joblife.RecordJobspec, Data: []byte("{}")},
	)
	want := ofJob(bad, slices.Values(s.store))
	require.Len(t, want, 4, "jobspec, R, both logs")
	for range 2 {
		s.restore(s.store)
		require.Len(t, s.rec.Quarantined, 4)
		s.store = slices.Collect(s.m.Snapshot())
		require.Equal(t, want, ofJob(bad, slices.Values(s.store)))
		require.Equal(t, "?|", ofJob(tomb, slices.Values(s.store))[joblife.RecordTombstone])
		require.Equal(t, "!|", ofJob(over, slices.Values(s.store))[joblife.RecordInactive])
		require.Contains(t, s.rec.Quarantined[0].Err.Error(), "names no job")
	}
	// I12: there is an end to what is kept.
	huge := joblife.Record{Job: tomb, Kind: joblife.RecordTombstone, Data: make([]byte, 65<<20)}
	s.restore([]joblife.Record{huge, {Job: bad, Kind: joblife.RecordTombstone, Data: []byte("?")}})
	require.ErrorIs(t, s.rec.Quarantined[1].Err, joblife.ErrLimit)
	require.NotErrorIs(t, s.rec.Quarantined[0].Err, joblife.ErrLimit)
	require.Empty(t, ofJob(tomb, s.m.Snapshot()))
	require.NotEmpty(t, ofJob(bad, s.m.Snapshot()))
}

// I9: until the store has removed it, a job that was invalidated is in each snapshot.
func TestAnInvalidJobSurvivesASnapshotUntilItIsUnlinked(t *testing.T) {
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{{Validate: func(*joblife.Event) error { return joblife.ErrLater }}}}, 8)
	s.hold["unlink"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	s.step(joblife.Validated{ID: id, Err: errors.New("no")})
	s.restore(slices.Collect(s.m.Snapshot()))
	require.Equal(t, []string{"unlink " + id.String()}, s.log[len(s.log)-1:])
	require.NotEmpty(t, ofJob(id, s.m.Snapshot())[joblife.RecordEvent])
	s.step(joblife.Unlinked{IDs: []jobid.ID{id}})
	require.Empty(t, ofJob(id, s.m.Snapshot()))
	require.ErrorIs(t, s.try(joblife.Submit{ID: id, Jobspec: text(t, jobspec.Job{Nodes: 1})}), joblife.ErrInvalid)
	s.restore(slices.Collect(s.m.Snapshot()))
	require.ErrorIs(t, s.try(joblife.Submit{ID: id, Jobspec: text(t, jobspec.Job{Nodes: 1})}), joblife.ErrInvalid)
}

func TestRecoveredNamesNoJobThatRestoreHasEnded(t *testing.T) {
	cfg := joblife.Config{Hooks: []joblife.Hooks{{Validate: func(e *joblife.Event) error { return joblife.ErrLater }}}}
	s := newSite(t, cfg, 8)
	s.submit(jobspec.Job{Nodes: 1})
	s.cfg.Hooks = []joblife.Hooks{{Validate: func(e *joblife.Event) error {
		e.Post(joblife.Validated{ID: e.Job.ID(), Err: errors.New("no")})
		return joblife.ErrLater
	}}}
	s.restore(s.store)
	require.Empty(t, s.faults())
	require.Empty(t, s.rec.Jobs)
	require.Empty(t, s.m.Stats().States)
}

func TestAnInvalidJobIsUnlinkedAgainAfterAFailure(t *testing.T) {
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{{Validate: func(*joblife.Event) error { return joblife.ErrLater }}}}, 8)
	s.hold["unlink"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	s.step(joblife.Validated{ID: id, Err: errors.New("no")})
	_, ok := s.m.Deadline()
	require.False(t, ok, "the store is at it")
	for range 2 {
		s.log = nil
		s.step(joblife.Unlinked{Failed: map[jobid.ID]error{id: errors.New("disk")}})
		require.Len(t, s.faults(), 1)
		at, ok := s.m.Deadline()
		require.True(t, ok)
		s.step(joblife.Tick{})
		require.Len(t, s.log, 1, "not yet")
		s.now = at
		s.step(joblife.Tick{})
		require.Equal(t, []string{"unlink " + id.String()}, s.log[1:])
		_, ok = s.m.Deadline()
		require.False(t, ok)
	}
	s.step(joblife.Unlinked{IDs: []jobid.ID{id}})
	require.Empty(t, ofJob(id, s.m.Snapshot()))
}

// A smaller limit ends no job that was accepted under a greater one.
func TestARestartWithASmallerLimitKeepsAllJobs(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["sched"] = true
	var ids []jobid.ID
	for range 3 {
		ids = append(ids, s.submit(jobspec.Job{Nodes: 1}))
	}
	s.cfg.MaxActive = 1
	s.restart()
	require.Equal(t, 3, s.m.Stats().Queue.Sent)
	require.ErrorIs(t, s.try(joblife.Submit{Jobspec: text(t, jobspec.Job{Nodes: 1})}), joblife.ErrLimit)
	for _, id := range ids {
		require.NotContains(t, s.events(id), "exception")
	}
}

// An executor that lost what it ran refuses the job after a restart. What prologs have
// prepared, epilogs clean up, whether the job ran or not, and before its nodes are free.
func TestAJobThatTheExecutorRefusesAfterAPrologGetsItsEpilog(t *testing.T) {
	for _, c := range []struct {
		name            string
		prolog, restart bool
		cancel          bool
		want            string
	}{
		{"refused", true, false, false, "prolog-start prolog-finish exception epilog-start epilog-release epilog-finish free clean"},
		{"refused, canceled", true, false, true, "prolog-start prolog-finish exception epilog-start epilog-release epilog-finish free clean"},
		{"restarted, refused, canceled", true, true, true, "prolog-start prolog-finish exception epilog-start epilog-release epilog-finish free clean"},
		{"no prolog", false, true, true, "exception free clean"},
		{"restarted, refused", true, true, false, "prolog-start prolog-finish exception epilog-start epilog-release epilog-finish free clean"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := joblife.Config{Actions: perilog.Config{Epilogs: []perilog.ActionConfig{{PerRank: true}}}}
			if c.prolog {
				cfg.Actions.Prologs = []perilog.ActionConfig{{PerRank: true}}
			}
			s := newSite(t, cfg, 8)
			s.hold["exec"] = true // it runs the job, and what it says is lost
			id := s.submit(jobspec.Job{Nodes: 2})
			if c.cancel {
				s.step(joblife.Raise{ID: id, Type: "cancel"})
			}
			require.NotContains(t, s.events(id), "free", "the executor may be starting it")
			require.NotContains(t, s.events(id), "epilog")
			if c.restart {
				s.restart()
				require.Equal(t, id, s.rec.Jobs[0])
			}
			s.step(joblife.ExecRefused{ID: id, Note: "gone"})
			require.True(t, strings.HasSuffix(s.events(id), " "+c.want), s.events(id))
			require.Empty(t, s.faults())
			require.Equal(t, 1, s.inactive())
		})
	}
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
	add(100, needing(t, "n", "singleton", "", "begin-time", strconv.FormatInt(at.Unix(), 10)))
	add(70, needing(t, "n", "singleton", ""))
	add(50, needing(t, "n", "singleton", ""))
	add(90, needing(t, "n", "singleton", ""))
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
	spec := needing(t, "n", "afterany", first.String())
	failing := needing(t, "n", "afterok", first.String())
	for i := range n {
		require.NoError(t, s.m.Step(s.now, joblife.Submit{ID: jobid.ID(i + 1), Jobspec: spec, Urgency: jobstate.UrgencyDefault}))
	}
	require.NoError(t, s.m.Step(s.now, joblife.Submit{ID: jobid.ID(n + 1), Jobspec: failing, Urgency: jobstate.UrgencyDefault}))
	require.Equal(t, n+1, s.m.Stats().States[jobstate.StateDepend])
	s.feed(joblife.Raise{ID: first, Type: "cancel"})
	require.Zero(t, s.m.Stats().Faults)
	require.Equal(t, n, s.m.Stats().States[jobstate.StateSched])
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
	end := s.now.Add(time.Minute)
	s.step(joblife.Shutdown{Deadline: eventlog.FromTime(end)})
	require.Equal(t, 1, s.m.Stats().Actions)
	s.step(joblife.Report{Job: id, Report: perilog.Report{Action: s.runs[0].Action, Attempt: 1, Kind: perilog.ReportExited}})
	require.Zero(t, s.m.Stats().Actions)
	s.step(joblife.Tick{}) // looks at the limits
	at, ok := s.m.Deadline()
	require.True(t, ok)
	require.Equal(t, end.Unix(), at.Unix())
	require.ErrorIs(t, s.m.Step(at, joblife.Tick{}), perilog.ErrStopped)
	_, ok = s.m.Deadline()
	require.False(t, ok, "there is nothing to be woken for")
	require.Equal(t, jobstate.StateRun, s.state(id), "not started")
}

func TestAnAbandonedManagerHasNoDeadline(t *testing.T) {
	s := newSite(t, joblife.Config{Limits: purge.Limits{MaxAge: jobstate.Some(time.Hour)}}, 8)
	s.feed(joblife.Submit{Jobspec: text(t, jobspec.Job{Nodes: 1})})
	_, ok := s.m.Deadline()
	require.True(t, ok)
	require.True(t, s.m.Ready(&s.rd))
	require.NoError(t, s.m.Abandon(s.rd.Seq))
	_, ok = s.m.Deadline()
	require.False(t, ok)
}

// I12.
func TestRequestsToPurgeDoNotPileUp(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["unlink"] = true // the store does not answer
	id := s.submit(jobspec.Job{Nodes: 1})
	all := joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true}
	for range 1024 {
		s.feed(all)
	}
	require.ErrorIs(t, s.try(all), joblife.ErrLimit)
	s.step(joblife.Unlinked{IDs: []jobid.ID{id}})
	require.Len(t, s.last, 1024+1, "the submit, and each of them")
}

// I12: what is over leaves nothing behind, least of all for years.
func TestAJobThatIsOverLeavesNoTimer(t *testing.T) {
	later := false
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{joblife.Dependencies(), {
		Validate: func(*joblife.Event) error {
			if later {
				return joblife.ErrLater
			}
			return nil
		},
		Event: func(e *joblife.Event) { // whatever happens, to no end
			e.PostAt(e.Now()+1000, joblife.Memo{ID: e.Job.ID(), Values: []byte(`{"a":1}`)})
		},
	}}}, 8)
	id := s.add(needing(t, "n", "begin-time", "4000000000"))
	_, ok := s.m.Deadline()
	require.True(t, ok)
	s.step(joblife.Raise{ID: id, Type: "cancel"})
	later = true
	id = s.add(needing(t, "n", "begin-time", "4000000000"))
	s.step(joblife.Validated{ID: id, Err: errors.New("no")})
	require.Empty(t, s.faults())
	at, ok := s.m.Deadline()
	require.False(t, ok, "%v", at)
}

// HK-6: what did not come from the scheduler is in no hello and no free.
func TestAJobThatBypassesTheScheduler(t *testing.T) {
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{{Event: func(e *joblife.Event) {
		if e.Entry.Name == jobstate.EventSubmit && e.Job.UserID() == 5 {
			e.Post(joblife.SetFlags{ID: e.Job.ID(), Flags: []string{"alloc-bypass"}})
		}
	}}}}, 8)
	s.hold["finish"] = true
	other := s.submit(jobspec.Job{Nodes: 1})
	require.ErrorIs(t, s.try(joblife.SetFlags{ID: other, Flags: []string{"debug", "alloc-bypass"}}), joblife.ErrInvalid, "the scheduler would never get them back")
	r := success(t, other, 7).(joblife.SchedResponse).R
	require.ErrorIs(t, s.try(joblife.Alloc{ID: other, R: r}), joblife.ErrInvalid)
	s.sched = nil
	id := s.ask(joblife.Submit{Tag: 7, By: joblife.Cred{UserID: 5}, Jobspec: text(t, jobspec.Job{Nodes: 1}), Urgency: 16}).Job
	require.Equal(t, jobstate.StateSched, s.state(id))
	s.restart()
	require.ErrorIs(t, s.try(joblife.Alloc{ID: id, By: joblife.Cred{UserID: 5, Guest: true}, R: r}), joblife.ErrDenied)
	require.ErrorIs(t, s.try(joblife.Alloc{ID: id}), perilog.ErrR)
	require.NoError(t, s.ask(joblife.Alloc{Tag: 7, ID: id, R: r}).Err)
	require.Equal(t, jobstate.StateRun, s.state(id))
	s.restart()
	s.finish(id, 0)
	require.Equal(t, jobstate.StateInactive, s.state(id))
	require.Empty(t, sent[alloc.Request](s), "the scheduler never hears of it")
	require.Empty(t, sent[alloc.Free](s))
	require.Empty(t, s.faults())

	// A job that waits for the scheduler waits no longer.
	s.hold["pool"] = true
	s.hold["sched"] = true
	id = s.submit(jobspec.Job{Nodes: 1})
	s.step(joblife.SetFlags{ID: id, Flags: []string{"alloc-bypass"}})
	require.Len(t, sent[alloc.Cancel](s), 1)
	s.step(success(t, id, 3))
	require.Len(t, sent[alloc.Free](s), 1, "a late response")
	require.Equal(t, jobstate.StateSched, s.state(id))
	s.step(joblife.Raise{ID: id, Type: "cancel"})
	require.Equal(t, jobstate.StateInactive, s.state(id))
}

func TestATimeThatNeverComesIsNoDeadline(t *testing.T) {
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{joblife.Dependencies(), {
		Event: func(e *joblife.Event) {
			if e.Entry.Name == jobstate.EventSubmit {
				e.PostAt(eventlog.Timestamp(math.NaN()), joblife.Memo{ID: e.Job.ID(), Values: []byte(`{"a":1}`)})
			}
		},
	}}}, 8)
	id := s.add(needing(t, "n", "begin-time", "1e300"))
	at, ok := s.m.Deadline()
	require.False(t, ok, "%v", at)
	s.step(joblife.Tick{})
	require.Equal(t, jobstate.StateDepend, s.state(id))
	require.NotContains(t, s.events(id), "memo")
}
