package joblife_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/purge"
)

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
	at, ok := s.m.Deadline()
	require.True(s.t, ok)
	require.WithinDuration(s.t, s.now.Add(d), at, 10*time.Microsecond)
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
	require.Equal(t, "epilog-launch", last.Name)
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
			id := s.submit(jobspec.Job{Nodes: 2, Slots: 2})
			for i, r := range s.store { // the crash came before the epilog was in the log
				if e, err := eventlog.Parse(r.Data); r.Job == id && r.Kind == joblife.RecordEvent && err == nil && e.Name == "epilog-start" {
					s.store = s.store[:i]
					break
				}
			}
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
		cfg.Hooks = []joblife.Hooks{joblife.Dependencies(), {Event: func(e *joblife.Event) {
			if e.Entry.Name == "start" {
				e.PostAt(e.Entry.Timestamp+3.3, joblife.Raise{ID: e.Job.ID(), Type: "timeout"})
			}
		}}}
		s := newSite(t, cfg, 3)
		s.hold["action"], s.hold["finish"] = true, rapid.Bool().Draw(r, "runs on")
		wait := func(*rapid.T) {
			s.now = s.now.Add(time.Duration(rapid.SampledFrom([]int64{1, 13, 119, 142857143, 4e9, 60e9 + 1}).Draw(r, "nanoseconds")))
		}
		tick := func() {
			require.NoError(t, s.m.Step(s.now, joblife.Tick{}))
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
		var stopped bool
		r.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) {
				if !stopped {
					check(r)
				}
			},
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
					end := s.now.Add(2 * time.Second)
					s.step(joblife.Shutdown{Deadline: eventlog.FromTime(end)})
					stopped = true
					for i := 0; ; i++ {
						at, ok := s.m.Deadline()
						if !ok {
							break
						}
						require.Less(t, i, 60, "it spins")
						if at.After(s.now) {
							s.now = at
						}
						_ = s.m.Step(s.now, joblife.Tick{})
						s.act()
					}
				}
			},
		})
	})
}
