package perilog_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
)

// TestEveryReachableState visits every state that a small job can be in, with a
// crash in each: whatever the order of the executor's events, reports, exits,
// drains, cancellation and Takes. The number of states is asserted, so that a
// change that makes some unreachable shows. JOBLIFE_DEEP=1 visits larger jobs.
func TestEveryReachableState(t *testing.T) {
	pro, epi := []perilog.ActionConfig{{PerRank: true}}, []perilog.ActionConfig{{PerRank: true}}
	single := []perilog.ActionConfig{{Leader: 9}}
	for _, c := range []struct {
		name   string
		nodes  int
		config perilog.Config
		states int
		deep   bool
	}{
		{"a prolog and an epilog on 1 rank", 1, perilog.Config{Prologs: pro, Epilogs: epi}, 605, false},
		{"an epilog on 2 ranks", 2, perilog.Config{Epilogs: epi}, 2622, false},
		{"a single epilog of 2 ranks", 2, perilog.Config{Epilogs: single}, 124, false},
		{"housekeeping on 1 rank", 1, perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}}, 139, false},
		{"a prolog and an epilog on 2 ranks", 2, perilog.Config{Prologs: pro, Epilogs: epi}, 30273, true},
		{"an epilog and housekeeping on 1 rank", 1, perilog.Config{Epilogs: epi, Housekeeping: &perilog.HousekeepingConfig{}}, 395, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.deep && os.Getenv("JOBLIFE_DEEP") == "" {
				t.Skip("set JOBLIFE_DEEP=1 to visit it")
			}
			if testing.Short() && c.states > 1000 {
				t.Skip("takes more than a second: run without -short")
			}
			states, ends := explore(t, c.nodes, &c.config)
			t.Logf("%d states, %d ends", states, ends)
			require.Equal(t, c.states, states)
			require.Positive(t, ends)
		})
	}
}

// explore visits the states, and returns how many there are, and in how many of
// them the job is done.
func explore(t *testing.T, nodes int, config *perilog.Config) (states, ends int) {
	r := allocation(t, nodes)
	play := func(path []string) *scene {
		s := newScene(t, perilog.Spec{ID: 1, R: r}, config)
		for _, move := range path {
			s.move(move)
		}
		return s
	}
	seen := map[string]bool{}
	var paths [][]string // to states whose moves are not played yet
	visit := func(s *scene, key string, path []string) {
		if seen[key] {
			return
		}
		seen[key] = true
		if s.job.Done() && !s.untaken {
			ends++
			require.Equal(t, nodes, s.freed.Len(), "%v", path)
			require.True(t, s.final, "%v", path)
		}
		paths = append(paths, path)
	}
	start := play(nil)
	visit(start, start.key(), nil)
	for ; len(paths) > 0; paths = paths[1:] {
		s := play(paths[0]) // the shortest: it is played from the start
		here := s.key()
		there := here
		for _, move := range s.moves() {
			if there != here {
				s = play(paths[0])
			}
			s.move(move)
			require.NoError(t, s.job.Check())
			there = s.key()
			visit(s, there, append(slices.Clone(paths[0]), move))
		}
	}
	return len(seen), ends
}

// A scene is a job, its logs and its processes. Time stands still, so that states
// do not differ by it.
type scene struct {
	t      *testing.T
	spec   perilog.Spec
	config *perilog.Config
	job    *perilog.Job
	logs
	procs   map[place]string // running, 0 or 1
	attempt map[place]uint32
	asked   bool
	running bool
	drains  *idset.Set
	drained *idset.Set
	freed   *idset.Set
	final   bool
	untaken bool // something came in since the last Take
	path    []string
}

func newScene(t *testing.T, spec perilog.Spec, config *perilog.Config) *scene {
	s := &scene{t: t, spec: spec, config: config, procs: map[place]string{}, attempt: map[place]uint32{},
		drains: new(idset.Set), drained: new(idset.Set), freed: new(idset.Set)}
	var err error
	s.job, err = perilog.NewJob(config, spec)
	require.NoError(t, err)
	for _, e := range [][2]string{
		{"submit", `{"userid":1,"urgency":16,"flags":0,"version":1}`}, {"validate"}, {"depend"}, {"priority", `{"priority":16}`}, {"alloc"},
	} {
		s.event(e[0], e[1])
	}
	s.take()
	return s
}

func (s *scene) event(name, context string) {
	e := eventlog.Entry{Timestamp: 1, Name: name}
	if context != "" {
		e.Context = []byte(context)
	}
	_, err := s.job.Apply(1, e)
	require.NoError(s.t, err)
	s.untaken = true
}

// key tells states apart.
func (s *scene) key() string {
	places := make([]string, 0, len(s.procs))
	for at, state := range s.procs {
		places = append(places, fmt.Sprint(at, state, s.attempt[at]))
	}
	slices.Sort(places)
	return fmt.Sprint(s.job, places, s.asked, s.running, s.drains, s.drained, s.untaken)
}

// moves returns what can happen now.
func (s *scene) moves() []string {
	moves := []string{"take"}
	if s.log != nil && !s.job.Done() {
		moves = append(moves, "crash")
	}
	j := s.job.State()
	switch {
	case j.State() == jobstate.StateRun && s.asked && !j.Started() && !j.Released():
		moves = append(moves, "start")
	case j.Started() && s.running:
		moves = append(moves, "end")
	case j.Started() && !j.Finished() && j.State() == jobstate.StateRun:
		moves = append(moves, "finish")
	}
	if j.State() == jobstate.StateRun {
		if _, fatal := j.Cause(); !fatal {
			moves = append(moves, "cancel")
		}
	}
	if j.State().In(jobstate.StateRunning) && s.asked && !s.running && !j.Released() {
		moves = append(moves, "release")
	}
	if !s.drains.IsEmpty() {
		moves = append(moves, "drained")
	}
	// An action is repeated once at most: attempts have no end.
	once := true
	for _, n := range s.attempt {
		once = once && n < 2
	}
	if once && len(s.job.Unresolved()) > 0 {
		moves = append(moves, "rerun")
	}
	for at, state := range s.procs {
		name := fmt.Sprintf(" %v %s %d", at.key.Kind, at.key.Description, at.rank)
		if state == "running" {
			moves = append(moves, "0"+name, "1"+name)
		} else {
			moves = append(moves, "report"+name)
		}
	}
	slices.Sort(moves)
	return moves
}

// move lets something happen.
func (s *scene) move(move string) {
	s.path = append(s.path, move)
	verb, rest, _ := strings.Cut(move, " ")
	switch verb {
	case "take":
		s.take()
	case "crash":
		var err error
		s.job, err = perilog.RecoverJob(1, s.config, s.spec, s.log, s.hk)
		require.NoError(s.t, err)
		if !s.asked {
			s.job.NotStarted(1)
		}
		s.drains = new(idset.Set)
		s.freed = s.job.Freed()
		s.final = s.final || s.job.Final()
		s.untaken = true
	case "start":
		s.running = true
		s.event("start", "")
	case "end":
		s.running = false
	case "finish":
		s.event("finish", `{"status":0}`)
	case "release":
		s.event("release", `{"ranks":"all","final":true}`)
	case "cancel":
		s.event("exception", `{"type":"cancel","severity":0,"note":""}`)
	case "drained":
		s.drained.UnionWith(s.drains)
		s.job.Drained(1, s.drains)
		s.drains = new(idset.Set)
		s.untaken = true
	case "rerun":
		s.rerun()
	default:
		for at, state := range s.procs {
			if fmt.Sprintf("%v %s %d", at.key.Kind, at.key.Description, at.rank) != rest {
				continue
			}
			if verb != "report" {
				s.procs[at] = verb
				continue
			}
			rep := perilog.Report{Action: at.key, Kind: perilog.ReportExited, Attempt: s.attempt[at], Rank: at.rank}
			if state == "1" {
				rep.Status = 1 << 8
			}
			if s.job.Report(1, rep) == perilog.AnswerApplied {
				s.untaken = true
			}
		}
	}
}

// rerun repeats what was lost where its process has ended, as an operator does who
// looks first.
func (s *scene) rerun() {
	for _, u := range s.job.Unresolved() {
		for rank := range u.Ranks.All() {
			if s.procs[place{u.Action, rank}] != "running" && s.job.Rerun(1, u.Action, idset.Of(rank)) == nil {
				s.untaken = true
			}
		}
	}
}

// take takes what follows and does it.
func (s *scene) take() {
	todo := s.job.Take(1)
	s.untaken = false
	s.store(s.t, todo.Post)
	for _, l := range todo.Launch {
		for rank := range l.Ranks.All() {
			require.False(s.t, s.freed.Contains(rank), "I3")
			require.False(s.t, s.running && l.Action.Kind != jobstate.ActionProlog, "PL-16: %v runs beside the job: %v", l.Action, s.path)
			s.procs[place{l.Action, rank}] = "running"
			s.attempt[place{l.Action, rank}] = l.Attempt
		}
	}
	s.asked = s.asked || todo.Start
	for _, d := range todo.Drain {
		s.drains.UnionWith(d.Ranks)
	}
	for rank := range todo.Free.R.Ranks().All() {
		require.False(s.t, s.freed.Contains(rank), "I1")
		s.freed.Insert(rank)
		require.False(s.t, s.running, "I3: the job runs on rank %d", rank)
		for at, state := range s.procs {
			if at.rank == rank {
				require.NotEqual(s.t, "running", state, "I3: %v runs on rank %d", at.key, rank)
			}
		}
	}
	require.False(s.t, s.final && todo.Free.Final, "I2")
	s.final = s.final || todo.Free.Final
}
