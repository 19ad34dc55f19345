package joblife_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/purge"
)

// needing is a jobspec with dependencies, each a scheme and a value.
func needing(t testing.TB, name string, deps ...string) []byte {
	t.Helper()
	b := text(t, jobspec.Job{Nodes: 1, Name: name})
	if len(deps) == 0 {
		return b
	}
	var list []map[string]string
	for i := 0; i+1 < len(deps); i += 2 {
		list = append(list, map[string]string{"scheme": deps[i], "value": deps[i+1]})
	}
	value, err := json.Marshal(list)
	require.NoError(t, err)
	spec, err := jobspec.Parse(b)
	require.NoError(t, err)
	spec, err = spec.Update("attributes.system.dependencies", value)
	require.NoError(t, err)
	b, err = spec.MarshalJSON()
	require.NoError(t, err)
	return b
}

// depending is a site whose jobs run until they are told to finish.
func depending(t testing.TB) *site {
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{joblife.Dependencies()}}, 8)
	s.hold["finish"] = true
	return s
}

func (s *site) restartDepending() {
	s.t.Helper()
	s.cfg.Hooks = []joblife.Hooks{joblife.Dependencies()}
	s.restart()
}

// add submits a jobspec and returns the id.
func (s *site) add(spec []byte) jobid.ID {
	s.t.Helper()
	a := s.ask(joblife.Submit{Tag: 7, Jobspec: spec, Urgency: jobstate.UrgencyDefault})
	require.NoError(s.t, a.Err)
	return a.Job
}

// finish ends a job that runs.
func (s *site) finish(id jobid.ID, status int32) {
	s.t.Helper()
	s.step(joblife.ExecResponse{ID: id, Type: exec.ResponseFinish, Status: status})
	s.step(said(id, exec.ResponseRelease))
}

func (s *site) cancel(id jobid.ID) {
	s.t.Helper()
	s.step(joblife.Raise{ID: id, Type: "cancel"})
}

func TestAfterDependenciesFollowTheOtherJob(t *testing.T) {
	tests := []struct {
		scheme string
		end    func(s *site, id jobid.ID)
		want   jobstate.State // once the other is over
	}{
		{"afterok", func(s *site, id jobid.ID) { s.finish(id, 0) }, jobstate.StateRun},
		{"afterok", func(s *site, id jobid.ID) { s.finish(id, 256) }, jobstate.StateInactive},
		{"afternotok", func(s *site, id jobid.ID) { s.finish(id, 0) }, jobstate.StateInactive},
		{"afternotok", func(s *site, id jobid.ID) { s.finish(id, 256) }, jobstate.StateRun},
		{"afterany", func(s *site, id jobid.ID) { s.finish(id, 256) }, jobstate.StateRun},
		{"afterexcept", func(s *site, id jobid.ID) { s.finish(id, 256) }, jobstate.StateInactive},
		{"afterexcept", func(s *site, id jobid.ID) { s.cancel(id); s.step(said(id, exec.ResponseRelease)) }, jobstate.StateRun},
	}
	for i, test := range tests {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %d restart=%v", test.scheme, i, restart), func(t *testing.T) {
				s := depending(t)
				first := s.add(needing(t, "a"))
				second := s.add(needing(t, "b", test.scheme, first.String()))
				require.Equal(t, jobstate.StateDepend, s.state(second))
				if restart {
					s.restartDepending()
					require.Equal(t, jobstate.StateDepend, s.state(second))
				}
				test.end(s, first)
				require.Equal(t, jobstate.StateInactive, s.state(first))
				require.Equal(t, test.want, s.state(second), s.events(second))
				require.Empty(t, s.faults())
			})
		}
	}
}

func TestAfterstartEndsWhenTheOtherJobStarts(t *testing.T) {
	s := depending(t)
	s.hold["exec"] = true
	first := s.add(needing(t, "a"))
	second := s.add(needing(t, "b", "afterstart", first.String()))
	require.Equal(t, jobstate.StateRun, s.state(first))
	require.Equal(t, jobstate.StateDepend, s.state(second), "alloc is not start (SM-11)")
	s.hold["exec"] = false
	s.step(said(first, exec.ResponseStart))
	require.Equal(t, jobstate.StateRun, s.state(second))
}

func TestADependencyOnAnInactiveOrPurgedJobIsAnsweredAtOnce(t *testing.T) {
	s := depending(t)
	first := s.add(needing(t, "a"))
	s.finish(first, 0)
	for _, purged := range []bool{false, true} {
		if purged {
			a := s.ask(joblife.PurgeIDs{Tag: 7, IDs: []jobid.ID{first}, Force: true})
			require.NoError(t, a.Err)
			_, ok := s.m.Job(first)
			require.False(t, ok)
		}
		for _, restart := range []bool{false, true} {
			if restart {
				s.restartDepending()
			}
			second := s.add(needing(t, "b", "afterok", first.String()))
			require.Equal(t, jobstate.StateRun, s.state(second), s.events(second))
			s.finish(second, 0)
			err := s.try(joblife.Submit{Jobspec: needing(t, "b", "afternotok", first.String())})
			require.ErrorIs(t, err, joblife.ErrRefused)
		}
	}
	require.Empty(t, s.faults())
}

func TestARefusedJobLeavesNoDependencyBehind(t *testing.T) {
	s := depending(t)
	first := s.add(needing(t, "a"))
	err := s.try(joblife.Submit{Jobspec: needing(t, "b", "afterany", first.String(), "nonsense", "1")})
	require.ErrorIs(t, err, joblife.ErrRefused)
	err = s.try(joblife.Submit{Jobspec: needing(t, "a", "singleton", "", "nonsense", "1")})
	require.ErrorIs(t, err, joblife.ErrRefused)
	single := s.add(needing(t, "a", "singleton", ""))
	s.finish(first, 0)
	require.Empty(t, s.faults())
	require.Equal(t, jobstate.StateRun, s.state(single))
}

func TestABeginTimeHoldsAJobUntilThen(t *testing.T) {
	for _, restart := range []bool{false, true} {
		s := depending(t)
		at := s.now.Add(time.Hour)
		id := s.add(needing(t, "a", "begin-time", fmt.Sprint(at.Unix())))
		require.Equal(t, jobstate.StateDepend, s.state(id))
		if restart {
			s.restartDepending()
			require.Equal(t, jobstate.StateDepend, s.state(id))
		}
		due, ok := s.m.Deadline()
		require.True(t, ok)
		require.Equal(t, at.Unix(), due.Unix())
		s.now = due
		s.step(joblife.Tick{})
		require.Equal(t, jobstate.StateRun, s.state(id))
		for _, bad := range []string{"", "x", "-1", "NaN", "inf"} {
			require.ErrorIs(t, s.try(joblife.Submit{Jobspec: needing(t, "a", "begin-time", bad)}), joblife.ErrRefused, bad)
		}
	}
}

func TestASingletonWaitsForAllOfItsName(t *testing.T) {
	s := depending(t)
	first := s.add(needing(t, "a"))
	other := s.add(needing(t, "b"))
	second := s.add(needing(t, "a", "singleton", ""))
	third := s.add(needing(t, "a", "singleton", ""))
	require.Equal(t, jobstate.StateDepend, s.state(second))
	s.restartDepending()
	s.finish(other, 0)
	require.Equal(t, jobstate.StateDepend, s.state(second))
	s.finish(first, 0)
	require.Equal(t, jobstate.StateRun, s.state(second))
	require.Equal(t, jobstate.StateDepend, s.state(third))
	s.restartDepending()
	require.Equal(t, jobstate.StateDepend, s.state(third))
	s.finish(second, 0)
	require.Equal(t, jobstate.StateRun, s.state(third))
	require.Empty(t, s.faults())
}

func TestASingletonGoesOnIfTheOtherEndedJustBeforeACrash(t *testing.T) {
	s := depending(t)
	first := s.add(needing(t, "a"))
	second := s.add(needing(t, "a", "singleton", ""))
	third := s.add(needing(t, "a", "singleton", ""))
	n := len(s.store)
	s.finish(first, 0)
	for i := n; i < len(s.store); i++ { // what follows the end of the first is lost
		if e := s.store[i]; e.Job == second {
			s.store = s.store[:i]
		}
	}
	s.restartDepending()
	require.Equal(t, jobstate.StateInactive, s.state(first))
	require.Equal(t, jobstate.StateRun, s.state(second), s.events(second))
	require.Equal(t, jobstate.StateDepend, s.state(third))
}

func TestAnInvalidatedJobEndsTheDependenciesOnIt(t *testing.T) {
	later := joblife.Hooks{Name: "later", Validate: func(e *joblife.Event) error {
		if e.Job.Job().Urgency() == 1 {
			return joblife.ErrLater
		}
		return nil
	}}
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{later, joblife.Dependencies()}}, 8)
	first := s.ask(joblife.Submit{Tag: 7, Jobspec: needing(t, "a"), Urgency: 1}).Job
	require.Equal(t, jobstate.StateNew, s.state(first))
	second := s.add(needing(t, "b", "afterany", first.String()))
	single := s.add(needing(t, "a", "singleton", ""))
	s.step(joblife.Validated{ID: first, Err: fmt.Errorf("no")})
	require.Equal(t, "submit dependency-add validate exception clean", s.events(second))
	require.Equal(t, jobstate.StateInactive, s.state(single))
	result, _ := must(s.m.Job(single)).Result()
	require.Equal(t, jobstate.ResultCompleted, result)
	require.Empty(t, s.faults())
}

// must returns a View of a job that is there.
func must(v joblife.View, ok bool) joblife.View {
	if !ok {
		panic("no such job")
	}
	return v
}

func TestADependencyOnAJobOfAnotherUserIsRefused(t *testing.T) {
	s := depending(t)
	first := s.ask(joblife.Submit{Tag: 7, By: joblife.Cred{UserID: 1}, Jobspec: needing(t, "a"), Urgency: 16}).Job
	spec := needing(t, "b", "afterok", first.String())
	require.ErrorIs(t, s.try(joblife.Submit{By: joblife.Cred{UserID: 2}, Jobspec: spec}), joblife.ErrRefused)
	s.finish(first, 0)
	require.ErrorIs(t, s.try(joblife.Submit{By: joblife.Cred{UserID: 2}, Jobspec: spec}), joblife.ErrRefused)
	a := s.ask(joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true})
	require.Equal(t, 1, a.Count)
	require.ErrorIs(t, s.try(joblife.Submit{By: joblife.Cred{UserID: 2}, Jobspec: spec}), joblife.ErrRefused)
	require.NoError(t, s.try(joblife.Submit{By: joblife.Cred{UserID: 1}, Jobspec: spec}))
}

func TestATimeThatComesAfterTheEndOfItsJobIsNoFault(t *testing.T) {
	s := depending(t)
	at := s.now.Add(time.Hour)
	id := s.add(needing(t, "a", "begin-time", fmt.Sprint(at.Unix())))
	s.cancel(id)
	require.Equal(t, jobstate.StateInactive, s.state(id))
	s.now = at.Add(time.Second)
	s.step(joblife.Tick{})
	require.Empty(t, s.faults())
}

func TestManyTimesThatComeAtOnceAllCount(t *testing.T) {
	now := time.Unix(1_600_000_000, 0)
	m, err := joblife.New(joblife.Config{Epoch: now, Volatile: true, Hooks: []joblife.Hooks{joblife.Dependencies()}})
	require.NoError(t, err)
	at := now.Add(time.Hour)
	spec := needing(t, "a", "begin-time", fmt.Sprint(at.Unix()))
	const n = 1<<12 + 10 // more than hooks may ask for by themselves
	var rd joblife.Ready
	for i := range n {
		require.NoError(t, m.Step(now.Add(time.Duration(i/400)*time.Millisecond), joblife.Submit{Jobspec: spec, Urgency: 16}))
		require.True(t, m.Ready(&rd))
		require.NoError(t, m.Done(rd.Seq))
	}
	require.Equal(t, n, m.Stats().States[jobstate.StateDepend])
	require.NoError(t, m.Step(at.Add(time.Second), joblife.Tick{}))
	require.Zero(t, m.Stats().Faults)
	require.Equal(t, n, m.Stats().States[jobstate.StateSched])
}

// SM-15.
func TestADependencyIsAddedAndRemovedOnce(t *testing.T) {
	add := joblife.Hooks{Name: "add", Dependency: func(e *joblife.Event, d jobspec.Dependency) (bool, error) {
		e.Post(joblife.DependencyAdd{ID: e.Job.ID(), Description: d.Scheme})
		return true, nil
	}}
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{add}}, 8)
	id := s.add(needing(t, "a", "x", "", "y", ""))
	require.Equal(t, "submit dependency-add dependency-add validate", s.events(id))
	s.step(joblife.DependencyAdd{ID: id, Description: "x"})
	s.step(joblife.DependencyRemove{ID: id, Description: "unknown"})
	require.Equal(t, "submit dependency-add dependency-add validate", s.events(id), "no event")
	s.step(joblife.DependencyRemove{ID: id, Description: "x"})
	require.ErrorIs(t, s.try(joblife.DependencyAdd{ID: id, Description: "x"}), jobstate.ErrTransition)
	s.step(joblife.DependencyRemove{ID: id, Description: "x"})
	s.restart()
	require.Empty(t, s.faults(), "the hook adds it again")
	require.Equal(t, "submit dependency-add dependency-add validate dependency-remove", s.events(id))
	s.step(joblife.DependencyRemove{ID: id, Description: "y"})
	require.Equal(t, jobstate.StateInactive, s.state(id))
	require.ErrorIs(t, s.try(joblife.DependencyAdd{ID: id, Description: "z"}), joblife.ErrInactive)
}

// What a job that is over waited for is no matter to a hook that asks too late.
func TestADependencyOfAJobThatIsOverIsRemovedInVain(t *testing.T) {
	s := silent(t, joblife.Config{Hooks: []joblife.Hooks{{Inactive: func(e *joblife.Event) {
		e.Post(joblife.DependencyRemove{ID: e.Job.ID(), Description: "x"})
	}}}})
	s.cancel(s.waits(false))
	require.Empty(t, s.faults())
}
