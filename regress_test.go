package joblife_test

import (
	"errors"
	"fmt"
	"slices"
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
	"github.com/joblife/joblife/rset/alloc"
)

// Faults that the harness found, one test each.

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

// The dependent of one job by two schemes is refused by the first, and is no longer
// waiting when the second is satisfied.
func TestTheSecondDependencyOfAJobThatEnded(t *testing.T) {
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{joblife.Dependencies()}}, 8)
	s.hold["exec"] = true
	first := s.submit(jobspec.Job{Nodes: 99})
	deps := jobspec1{Slots: 1, Name: "x", Dependencies: []map[string]string{
		{"scheme": "afternotok", "value": first.String()}, {"scheme": "afterany", "value": first.String()},
	}}
	s.last = nil
	s.step(joblife.Submit{Tag: 1, Jobspec: deps.text(), Urgency: jobstate.UrgencyDefault})
	id := s.last[0].Job
	s.step(joblife.Raise{ID: first, Type: "cancel"})
	require.Equal(t, "submit dependency-add dependency-add validate exception clean", s.events(id))
}

func TestAnUpdateCountsHoweverItComes(t *testing.T) {
	s := newSite(t, joblife.Config{Queues: []string{"a", "b"}}, 8)
	s.step(joblife.StartQueue{Queue: "b"})
	id := s.submit(jobspec.Job{Nodes: 9, Queue: "a"})
	requests := func() (list []string) {
		for _, msg := range s.sched {
			if r, ok := msg.(alloc.Request); ok {
				list = append(list, string(r.Jobspec))
			}
		}
		return list
	}
	require.Len(t, requests(), 1)
	s.step(joblife.Post{ID: id, Name: jobstate.EventJobspecUpdate, Context: []byte(`{"attributes.system.duration":60}`)})
	v, _ := s.m.Job(id)
	require.Equal(t, time.Minute, v.Jobspec().Duration())
	require.Len(t, requests(), 2)
	require.Contains(t, requests()[1], `"duration":60`)
	require.ErrorIs(t, s.m.Step(s.now, joblife.Post{ID: id, Name: jobstate.EventJobspecUpdate, Context: []byte(`{"attributes.system.queue":"c"}`)}), joblife.ErrRefused)

	s.step(joblife.Update{ID: id, Updates: []jobstate.Update{{Path: "attributes.system.queue", Value: []byte(`"b"`)}}})
	require.Len(t, requests(), 2, "its queue is stopped")
	s.step(joblife.StartQueue{Queue: "b", Start: true})
	require.Len(t, requests(), 3)
}

func TestAnExecutorMayRepeatWhatItSaid(t *testing.T) {
	s := newSite(t, joblife.Config{Actions: perilog.Config{Epilogs: []perilog.ActionConfig{{PerRank: true}}}}, 8)
	s.hold["exec"], s.hold["action"] = true, true
	id := s.submit(jobspec.Job{Nodes: 2})
	for range 2 {
		s.step(respond(id, exec.ResponseStart))
		s.step(respond(id, exec.ResponseFinish))
	}
	for range 2 {
		s.step(joblife.ExecResponse{ID: id, Type: exec.ResponseRelease, Ranks: idset.Of(0)})
	}
	for range 2 {
		s.step(joblife.ExecResponse{ID: id, Type: exec.ResponseRelease, Final: true})
	}
	require.Equal(t, "submit validate depend priority alloc start finish epilog-start release release", s.events(id))
}

// A store that keeps the kinds of records apart has to read housekeeping first: what
// still runs on the nodes of a job that is over is not forgotten in silence.
func TestAJobWhoseHousekeepingComesTooLateIsQuarantined(t *testing.T) {
	s := newSite(t, joblife.Config{Actions: perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}}}, 8)
	s.hold["action"] = true
	id := s.submit(jobspec.Job{Nodes: 2})
	require.Contains(t, s.events(id), "clean")
	var events, rest []joblife.Record
	for _, r := range s.store {
		if r.Kind == joblife.RecordHousekeeping {
			rest = append(rest, r)
		} else {
			events = append(events, r)
		}
	}
	_, rec, err := joblife.Restore(s.now, s.cfg, all(append(slices.Clone(events), rest...)))
	require.NoError(t, err)
	require.Len(t, rec.Quarantined, 1)
	require.ErrorIs(t, rec.Quarantined[0].Err, joblife.ErrInvalid)
	m, _, err := joblife.Restore(s.now, s.cfg, all(append(rest, events...)))
	require.NoError(t, err)
	require.Equal(t, 1, m.Stats().Housekeeping)
}

// The executor has released all ranks, and not finally. A new scheduler that takes no
// partial allocations learns nothing of the job, and gets no fragment of it.
func TestAJobThatHoldsNothingIsNotAnnounced(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["exec"] = true
	id := s.submit(jobspec.Job{Nodes: 2})
	s.step(respond(id, exec.ResponseStart))
	s.step(respond(id, exec.ResponseFinish))
	s.step(joblife.ExecResponse{ID: id, Type: exec.ResponseRelease, Ranks: idset.Of(0, 1)})
	require.Equal(t, []string{"free 0-1 final=false"}, s.log)
	s.step(joblife.SchedHello{})
	s.step(joblife.SchedReady{})
	s.step(joblife.ExecResponse{ID: id, Type: exec.ResponseRelease, Final: true})
	require.Equal(t, []string{"free 0-1 final=false"}, s.log)
	require.Equal(t, 0, s.pool.Len())
	v, _ := s.m.Job(id)
	require.Equal(t, jobstate.StateInactive, v.State())
}

// A crash between the event alloc and the start of the prologs: a new executor is asked
// only whether it has the job, and the prologs run when it does not.
func TestACrashBeforeThePrologStartSkipsNoProlog(t *testing.T) {
	s := newSite(t, joblife.Config{Actions: perilog.Config{Prologs: []perilog.ActionConfig{{PerRank: true}}}}, 8)
	s.hold["action"], s.hold["exec"] = true, true
	id := s.submit(jobspec.Job{Nodes: 1})
	i := slices.IndexFunc(s.store, func(r joblife.Record) bool { return strings.Contains(string(r.Data), "prolog-start") })
	s.store, s.log = s.store[:i], nil
	m, _, err := joblife.Restore(s.now, s.cfg, all(s.store))
	require.NoError(t, err)
	s.m = m
	s.exec = nil
	s.hello()
	require.Equal(t, []bool{true}, s.starts(), "I11: Reattach")
	require.Empty(t, s.log)
	s.step(joblife.ExecRefused{ID: id})
	require.Equal(t, []string{"launch prolog job-manager.prolog on 0"}, s.log)
	s.step(joblife.Report{Job: id, Report: perilog.Report{
		Action: perilog.Key{Kind: jobstate.ActionProlog, Description: "job-manager.prolog"}, Kind: perilog.ReportExited, Attempt: 1,
	}})
	require.Equal(t, []bool{true, false}, s.starts())
}

func TestTheIdOfAnInvalidJobIsNotGivenAgain(t *testing.T) {
	later := joblife.Hooks{Validate: func(*joblife.Event) error { return joblife.ErrLater }}
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{later}}, 8)
	id := s.submit(jobspec.Job{Nodes: 1})
	require.NoError(t, s.m.Step(s.now, joblife.Validated{ID: id, Err: errors.New("bad")}))
	again := joblife.Submit{ID: id, Jobspec: text(t, jobspec.Job{Nodes: 1})}
	require.ErrorIs(t, s.m.Step(s.now, again), joblife.ErrInvalid, "I9: the store has it")
	s.act()
	require.ErrorIs(t, s.m.Step(s.now, again), joblife.ErrInvalid, "I9: the store has removed it")
}

func TestASnapshotKeepsTheTombstonesOfAPurgeThatGoesOn(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	id := s.submit(jobspec.Job{Nodes: 1})
	require.NoError(t, s.m.Step(s.now, joblife.PurgeIDs{IDs: []jobid.ID{id}, Force: true}))
	require.True(t, s.m.Ready(&s.rd))
	require.NoError(t, s.m.Done(s.rd.Seq))
	s.store = slices.Collect(s.m.Snapshot())
	s.step(joblife.Unlinked{IDs: []jobid.ID{id}})
	want := joblife.Describe(s.m)
	require.Contains(t, want, "completed ran")
	m, err := joblife.Load(s.now, s.cfg, all(s.store))
	require.NoError(t, err)
	require.Equal(t, want, joblife.Describe(m), "I5")
}

// A hook that cannot judge a job does not accept it.
func TestAHookThatPanicsRefusesTheJob(t *testing.T) {
	boom := func() { panic("oh") }
	for what, hook := range map[string]joblife.Hooks{
		"validate":   {Name: "strict", Validate: func(*joblife.Event) error { boom(); return nil }},
		"dependency": {Name: "strict", Dependency: func(*joblife.Event, jobspec.Dependency) (bool, error) { boom(); return true, nil }},
	} {
		s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{hook}}, 8)
		before := joblife.DescribeAll(s.m)
		err := s.m.Step(s.now, joblife.Submit{Jobspec: needing(t, "a", "x", "")})
		require.ErrorIs(t, err, joblife.ErrRefused, what)
		require.ErrorContains(t, err, `hook "strict" panicked: oh`, what)
		require.Equal(t, before, joblife.DescribeAll(s.m), "I6")
		s.act()
		require.Empty(t, s.faults(), "the error tells it")
	}

	later := true
	hook := joblife.Hooks{Name: "strict", Validate: func(*joblife.Event) error {
		if later {
			return joblife.ErrLater
		}
		panic("oh")
	}}
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{hook}}, 8)
	id := s.submit(jobspec.Job{Nodes: 1})
	later = false
	s.restart()
	require.Equal(t, "submit invalidate", s.events(id))
	require.Contains(t, s.faults()[0], `hook "strict" panicked: oh`)
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
	m, err := joblife.Load(s.now, s.cfg, all(s.store))
	require.NoError(t, err)
	require.Equal(t, joblife.Describe(s.m), joblife.Describe(m), "I5")
}

func TestALostExecutorMayHaveRefusedAJobThatIsGone(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["exec"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	require.NoError(t, s.m.Step(s.now, joblife.ExecHello{}))
	require.NoError(t, s.m.Step(s.now, joblife.ExecRefused{ID: id}))
	require.NoError(t, s.m.Step(s.now, joblife.ExecLost{}))
	s.act()
	v, _ := s.m.Job(id)
	require.Equal(t, jobstate.StateInactive, v.State())
}

func TestALostExecutorIsAskedAgainForAJobThatRuns(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["finish"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	require.Equal(t, []bool{false}, s.starts())
	require.NoError(t, s.m.Step(s.now, joblife.ExecHello{}))
	require.NoError(t, s.m.Step(s.now, joblife.ExecLost{})) // nobody was told to reattach
	s.cancel(id)
	s.hello()
	require.Equal(t, []bool{false, true}, s.starts(), "I10: only the executor can end it")
}

// A crash between alloc and prolog-start leaves open whether the executor was asked.
func TestAnExecutorThatIsAskedWhetherItHasAJobIsAskedOnce(t *testing.T) {
	s := newSite(t, joblife.Config{Actions: perilog.Config{Prologs: []perilog.ActionConfig{{PerRank: true}}}}, 8)
	s.hold["exec"], s.hold["action"] = true, true
	id := s.submit(jobspec.Job{Nodes: 1})
	for i, r := range s.store {
		if strings.Contains(string(r.Data), `"alloc"`) {
			s.store = s.store[:i+1]
			break
		}
	}
	s.restart()
	require.Equal(t, []bool{true}, s.starts())
	s.step(joblife.Reload{}) // no prolog is due any more
	require.Equal(t, []bool{true}, s.starts(), "a second refusal would be taken for one of the start itself")
	s.step(joblife.ExecRefused{ID: id})
	require.Equal(t, []bool{true, false}, s.starts())
}

func TestTheExecutorHearsWhatIsRefused(t *testing.T) {
	each := []perilog.ActionConfig{{PerRank: true}}
	s := newSite(t, joblife.Config{Actions: perilog.Config{Prologs: each, Epilogs: each}}, 8)
	s.hold["exec"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	s.hold["action"] = true
	far := new(idset.Set)
	for rank := uint32(0); rank < 1<<20; rank += 2 {
		far.Insert(rank)
	}
	require.Error(t, s.try(joblife.ExecResponse{ID: id, Type: exec.ResponseRelease, Ranks: far}), "no line has room for them")
	s.step(said(id, exec.ResponseRelease)) // the executor gives the job up
	require.ErrorIs(t, s.try(joblife.ExecResponse{ID: id, Type: exec.ResponseStart}), perilog.ErrOrder, "I11")
}

func TestADependencyThatFailsWhileAJobIsValidated(t *testing.T) {
	put := joblife.Hooks{Validate: func(e *joblife.Event) error {
		if e.Job.Jobspec().Name() == "later" {
			return joblife.ErrLater
		}
		return nil
	}}
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{put, joblife.Dependencies()}}, 8)
	first := s.submit(jobspec.Job{Nodes: 99})
	s.last = nil
	s.step(joblife.Submit{Tag: 1, Jobspec: jobspec1{Slots: 1, Name: "later", Dependencies: []map[string]string{
		{"scheme": "afterok", "value": first.String()}, {"scheme": "afterany", "value": first.String()},
	}}.text(), Urgency: jobstate.UrgencyDefault})
	id := s.last[0].Job
	s.step(joblife.Raise{ID: first, Type: "cancel"})
	require.Equal(t, "submit dependency-add dependency-add", s.events(id))
	s.step(joblife.Validated{ID: id})
	require.Equal(t, "submit dependency-add dependency-add validate exception clean", s.events(id))
}

// depend submits a job with dependencies.
func (s *site) depend(name string, deps ...map[string]string) (jobid.ID, error) {
	s.last = nil
	err := s.m.Step(s.now, joblife.Submit{
		Tag: 1, Jobspec: jobspec1{Slots: 1, Name: name, Dependencies: deps}.text(), Urgency: jobstate.UrgencyDefault,
	})
	if err != nil {
		return 0, err
	}
	s.act()
	return s.last[0].Job, nil
}

func TestAJobWithANewNameIsNoLongerOfTheOldOne(t *testing.T) {
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{joblife.Dependencies()}}, 8)
	singleton := map[string]string{"scheme": "singleton", "value": "x"}
	first := s.submit(jobspec.Job{Nodes: 99, Name: "x"})
	second, err := s.depend("x", singleton)
	require.NoError(t, err)
	require.Equal(t, "submit dependency-add validate", s.events(second))
	s.step(joblife.Update{ID: first, Updates: []jobstate.Update{{Path: "attributes.system.job.name", Value: []byte(`"y"`)}}})
	require.Contains(t, s.events(second), "clean")
	s.step(joblife.Raise{ID: first, Type: "cancel"})
	third, err := s.depend("y", singleton)
	require.NoError(t, err)
	require.Contains(t, s.events(third), "clean")
}

func TestTheWatermarkIsStoredBeforeAPurgeAfterARestart(t *testing.T) {
	s := newSite(t, joblife.Config{TombstoneCount: jobstate.Some(0)}, 8)
	id := s.submit(jobspec.Job{Nodes: 1})
	m, _, err := joblife.Restore(s.now, s.cfg, all(s.store))
	require.NoError(t, err)
	s.m = m
	s.step(joblife.PurgeIDs{IDs: []jobid.ID{id}, Force: true})
	s.store = slices.DeleteFunc(s.store, func(r joblife.Record) bool { return r.Job == id })
	m, err = joblife.Load(s.now, s.cfg, all(s.store))
	require.NoError(t, err)
	require.ErrorIs(t, m.Step(s.now, joblife.Submit{ID: id, Jobspec: text(t, jobspec.Job{Nodes: 1})}), joblife.ErrInvalid, "I9")
}

func TestASingletonDoesNotWaitForALaterJobAfterARestart(t *testing.T) {
	hooks := func() []joblife.Hooks {
		return []joblife.Hooks{{Validate: func(*joblife.Event) error { return joblife.ErrLater }}, joblife.Dependencies()}
	}
	s := newSite(t, joblife.Config{Hooks: hooks()}, 8)
	first, err := s.depend("x", map[string]string{"scheme": "singleton", "value": "x"})
	require.NoError(t, err)
	_, err = s.depend("x")
	require.NoError(t, err)
	s.cfg.Hooks = hooks()
	s.m, _, err = joblife.Restore(s.now, s.cfg, all(s.store))
	require.NoError(t, err)
	s.act()
	require.Equal(t, "submit", s.events(first))
}

// One event makes a job invalid, and satisfies another of its dependencies.
func TestADependencyOfAJobThatIsGoneIsNoFault(t *testing.T) {
	put := joblife.Hooks{Validate: func(*joblife.Event) error { return joblife.ErrLater }}
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{put, joblife.Dependencies()}}, 8)
	first, err := s.depend("x")
	require.NoError(t, err)
	id, err := s.depend("x", map[string]string{"scheme": "afterok", "value": first.String()}, map[string]string{"scheme": "singleton", "value": "x"})
	require.NoError(t, err)
	s.step(joblife.Validated{ID: first, Err: errors.New("bad")})
	s.step(joblife.Validated{ID: id})
	require.Contains(t, s.events(id), "validate exception clean")
	require.Equal(t, uint64(0), s.m.Stats().Faults)
}

func TestTheDeadlineOfAShutdownIsADeadline(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.submit(jobspec.Job{Nodes: 9})
	at := s.now.Add(time.Minute).Truncate(time.Second)
	s.step(joblife.Shutdown{Deadline: eventlog.FromTime(at)})
	due, ok := s.m.Deadline()
	require.True(t, ok)
	require.Equal(t, at.UnixNano(), due.UnixNano())
	require.ErrorIs(t, s.m.Step(due, joblife.Tick{}), perilog.ErrStopped)
}

// A reader may come when a job has ended in a Step whose Ready is to come, also while the
// Ready before it is with the store, and when a job was invalidated.
func TestHistoryHasTheJobsOfWhichTheEndIsToCome(t *testing.T) {
	invalid := joblife.Hooks{Validate: func(e *joblife.Event) error {
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

// What one Step logs, hooks hear event by event.
func TestAHookSeesTheStateAfterItsOwnEvent(t *testing.T) {
	var seen []string
	hook := joblife.Hooks{Event: func(e *joblife.Event) {
		if other, ok := e.Lookup(e.Job.ID()); ok {
			require.Equal(t, e.Job.State(), other.State())
		}
		seen = append(seen, fmt.Sprintf("%s %v-%v", e.Entry.Name, e.Prev, e.Job.State()))
	}}
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{hook}}, 8)
	s.submit(jobspec.Job{Nodes: 1})
	require.Equal(t, []string{"finish RUN-CLEANUP", "release CLEANUP-CLEANUP", "free CLEANUP-CLEANUP", "clean CLEANUP-INACTIVE"}, seen[6:])
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
