package perilog_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
		{"an epilog on 2 ranks", 2, perilog.Config{Epilogs: epi}, 2622, true},
		{"a single epilog of 2 ranks", 2, perilog.Config{Epilogs: single}, 124, false},
		{"housekeeping on 1 rank", 1, perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}}, 139, false},
		{"a prolog and an epilog on 2 ranks", 2, perilog.Config{Prologs: pro, Epilogs: epi}, 30273, true},
		{"an epilog and housekeeping on 1 rank", 1, perilog.Config{Epilogs: epi, Housekeeping: &perilog.HousekeepingConfig{}}, 395, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.deep && os.Getenv("JOBLIFE_DEEP") == "" {
				t.Skip("set JOBLIFE_DEEP=1 to visit it")
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
	play := func(path []string) *scene {
		s := newScene(t, nodes, config)
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
			require.Equal(t, 1, s.finals, "%v", path)
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
			there = s.key()
			visit(s, there, append(slices.Clone(paths[0]), move))
		}
	}
	return len(seen), ends
}

// A scene is a bench and the processes of its nodes. Time stands still, so that states do
// not differ by it.
type scene struct {
	*bench
	procs   map[place]string // running, 0 or 1
	attempt map[place]uint32
	asked   bool
	running bool
	drained *idset.Set
	untaken bool // something came in since the last Take
	path    []string
}

func newScene(t *testing.T, nodes int, config *perilog.Config) *scene {
	s := &scene{bench: newBench(t, nodes, *config), procs: map[place]string{}, attempt: map[place]uint32{}, drained: new(idset.Set)}
	s.still = true
	s.take()
	return s
}

func (s *scene) event(name, context string) {
	s.apply(name, context)
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
		s.crash()
		if !s.asked {
			s.job.NotStarted(s.now)
		}
		s.drains, s.freed = new(idset.Set), s.job.Freed()
		if s.job.Final() {
			s.finals = 1
		}
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
		s.job.Drained(s.now, s.drains)
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
			if s.report(rep) == perilog.AckApplied {
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
			if s.procs[place{u.Action, rank}] != "running" && s.job.Rerun(s.now, u.Action, idset.Of(rank)) == nil {
				s.untaken = true
			}
		}
	}
}

// take takes what follows and does it.
func (s *scene) take() {
	todo := s.bench.take()
	s.untaken = false
	for _, l := range todo.Launch {
		for rank := range l.Ranks.All() {
			require.False(s, s.freed.Contains(rank), "I3")
			require.False(s, s.running && l.Action.Kind != jobstate.ActionProlog, "PL-16: %v runs beside the job: %v", l.Action, s.path)
			s.procs[place{l.Action, rank}] = "running"
			s.attempt[place{l.Action, rank}] = l.Attempt
		}
	}
	s.asked = s.asked || todo.Start
	for rank := range todo.Free.R.Ranks().All() {
		require.False(s, s.running, "I3: the job runs on rank %d", rank)
		for at, state := range s.procs {
			require.False(s, at.rank == rank && state == "running", "I3: %v runs on rank %d", at.key, rank)
		}
	}
	require.LessOrEqual(s, s.finals, 1, "I2")
}
