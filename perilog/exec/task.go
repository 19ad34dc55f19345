package exec

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/google/btree"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
)

const (
	sigkill = 9
	sigterm = 15

	statusLost   = sigkill // a wait status
	statusFailed = 1 << 8
)

// A Task is what a node runs: the shell of a job, or an attempt of an action.
type Task struct {
	Job     jobid.ID           `json:"job"`
	Action  jobstate.ActionKey `json:"action,omitzero"`  // zero: the shell
	Attempt uint32             `json:"attempt,omitzero"` // at least 1; of a shell 0
}

func (t Task) isShell() bool { return t.Action == jobstate.ActionKey{} }

// String returns a text such as "ƒuZZybuNNy" or "ƒuZZybuNNy epilog scrub 2".
func (t Task) String() string {
	if t.isShell() {
		return t.Job.String()
	}
	return fmt.Sprintf("%v %v %d", t.Job, t.Action, t.Attempt)
}

// check returns an error that names what is wrong with a task of a job.
func (t Task) check() error {
	switch {
	case t.isShell() != (t.Attempt == 0):
		return fmt.Errorf("a task of %v has the attempt %d: a shell has 0, an action at least 1", t.Job, t.Attempt)
	case !t.isShell() && (t.Action.Kind < jobstate.ActionProlog || t.Action.Kind > jobstate.ActionHousekeeping):
		return fmt.Errorf("an action of %v has the kind %d", t.Job, t.Action.Kind)
	case len(t.Action.Description) > maxDescription:
		return fmt.Errorf("an action of %v has a description of %d bytes, at most %d are taken", t.Job, len(t.Action.Description), maxDescription)
	}
	return nil
}

// A TaskState says what became of a task on a node. The empty TaskState is invalid.
type TaskState string

// The states of a task.
const (
	TaskRunning  TaskState = "running"  // it has started
	TaskExited   TaskState = "exited"   // it ended with Status, and some of its processes are left
	TaskReleased TaskState = "released" // it ended with Status, and nothing of it is left
	TaskFailed   TaskState = "failed"   // it could not be started
	TaskLost     TaskState = "lost"     // nothing of it is left, and its status is not known
)

// A TaskStatus is what a node says of a task.
type TaskStatus struct {
	Task   Task      `json:"task"`
	State  TaskState `json:"state"`
	Status int32     `json:"status,omitzero"` // of TaskExited and TaskReleased: a wait status, as wait(2) gives it
	Note   string    `json:"note,omitzero"`   // in words, for administrators; may be empty; more than 1 KiB is cut
	// Lines are the control lines that an action wrote so far, in order, at most 1024 of at
	// most 4 KiB: see package perilog. Each status and each hello has all of them; an
	// Executor reports each once.
	Lines []string `json:"lines,omitempty"`
}

func (st *TaskStatus) check() error {
	switch st.State {
	case TaskRunning, TaskExited, TaskReleased, TaskFailed, TaskLost:
	default:
		return fmt.Errorf("%v has the state %.64q", st.Task.Job, st.State)
	}
	if st.Status < 0 || st.Status > 0xffff || st.Status&0x7f == 0x7f { // stopped or continued
		return fmt.Errorf("%v has the wait status %d", st.Task.Job, st.Status)
	}
	long := func(line string) bool { return len(line) > maxLine }
	if len(st.Lines) > maxLines || slices.ContainsFunc(st.Lines, long) {
		return fmt.Errorf("%v has %d control lines: at most %d of at most %d bytes are taken", st.Task.Job, len(st.Lines), maxLines, maxLine)
	}
	return st.Task.check()
}

// A state is what is known of a task on a rank.
type state uint8

const (
	statePending state = iota // to be sent to the node, and perhaps sent in an earlier life
	stateSent                 // sent, and the node has not named it
	stateAsked                // perhaps sent in an earlier life: the node's hello tells
	stateAbsent               // a shell that was asked for, and the node never had it
	stateRunning
	stateExited // a shell of which something may be left
	stateOver
	states
)

// A group is a task on all of its ranks.
type group struct {
	Task
	ranks       idset.Set
	sets        [states]idset.Set // which share no rank, and together are ranks
	start       *Start            // of shells
	launch      *perilog.Launch   // of an action, unless it was recovered
	ran         bool              // perhaps, on some rank
	found       bool              // a node has named it
	stray       bool              // it failed in an earlier life of the manager, and still runs
	status      int32             // the greatest wait status
	forgettable bool              // when it has ended
	replaced    idset.Set         // where a later attempt starts when this one has ended: no reports
	signaled    idset.Set         // the ranks that were sent a signal
	killed      idset.Set         // those of them that were sent SIGKILL
	lines       map[uint32]int    // how many control lines are reported, by rank
}

func (g *group) state(rank uint32) state {
	for s := range states - 1 {
		if g.sets[s].Contains(rank) {
			return s
		}
	}
	return stateOver
}

// has reports whether a rank is in one of these states.
func (g *group) has(first, last state) bool {
	for s := first; s <= last; s++ {
		if !g.sets[s].IsEmpty() {
			return true
		}
	}
	return false
}

// signal is the one to repeat on a rank.
func (g *group) signal(rank uint32) int {
	if g.killed.Contains(rank) {
		return sigkill
	}
	return sigterm
}

// A job is the tasks of a job.
type job struct {
	id      jobid.ID
	groups  []*group
	shells  *group // one of groups, or nil
	changed bool   // it is in Executor.changed

	reattach bool                     // the manager said so in this session
	started  bool                     // likewise
	cause    Exception                // of the Executor's own; the zero Exception: none
	stopped  bool                     // the manager said so in this session
	stopping bool                     // SIGTERM was sent
	timed    bool                     // and it has the timer of SIGKILL
	status   jobstate.Optional[int32] // of the task that was the cause, as the manager said
	told     told
	unused   idset.Set          // ranks of shells that are over, and not released in this session
	due      eventlog.Timestamp // when its timer is due; 0: it has none
}

// expires reports whether the end of its resources stops the job: not if it was heard before that
// the job has ended.
func (j *job) expires() bool { return !j.stopping && j.shells.has(statePending, stateRunning) }

// waitStatus is the greatest of the shells, or that of the cause in the form of a shell.
func (j *job) waitStatus() int32 {
	switch s := j.status.Value; {
	case !j.status.Set:
		return j.shells.status
	case s&0x7f != 0:
		return (128 + s&0x7f) << 8
	default:
		return s & 0xff00
	}
}

// told is what the manager was told of a job in its session.
type told struct{ start, exception, finish bool }

// fail makes something the cause of a job's end, unless it has one.
func (j *job) fail(kind, note string) {
	if j.cause.Type == "" {
		j.cause = Exception{Type: kind, Note: note}
	}
}

func (x *Executor) touch(j *job) {
	if !j.changed {
		j.changed = true
		x.changed = append(x.changed, j)
	}
}

// admit returns an error for a group that is invalid, or for which there is no room.
func (x *Executor) admit(g *group, ranks *idset.Set) error {
	if err := g.check(); err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	if n := ranks.Len(); n == 0 || g.isShell() != (g.start != nil) {
		return fmt.Errorf("exec: %v has no ranks or no action", g.Task)
	} else if n > maxTasks-x.tasks {
		return fmt.Errorf("exec: %d tasks, and %d more: at most %d are taken", x.tasks, n, maxTasks)
	}
	return nil
}

// near returns groups with all of a job on a rank among them, since both may have many others.
func (x *Executor) near(id jobid.ID, rank uint32) []*group {
	list := x.onRank[rank]
	if j := x.jobs[id]; j != nil && len(j.groups) < len(list) {
		return j.groups
	}
	return list
}

// fewRanks is how many ranks are looked at one by one.
const fewRanks = 2

// attempts returns the groups of an action that are on some of these ranks.
func (x *Executor) attempts(t Task, ranks *idset.Set) (list []*group) {
	j := x.jobs[t.Job]
	switch {
	case j == nil:
	case ranks.Len() <= fewRanks:
		for rank := range ranks.All() {
			for _, g := range x.near(t.Job, rank) {
				if g.Job == t.Job && g.Action == t.Action && g.ranks.Contains(rank) && !slices.Contains(list, g) {
					list = append(list, g)
				}
			}
		}
	default:
		for _, g := range j.groups {
			if g.Action == t.Action && g.ranks.Intersects(ranks) {
				list = append(list, g)
			}
		}
	}
	return list
}

// on returns the group of a task on a rank, or nil.
func (x *Executor) on(rank uint32, t Task) *group {
	for _, g := range x.near(t.Job, rank) {
		if g.Task == t && g.ranks.Contains(rank) {
			return g
		}
	}
	return nil
}

func (x *Executor) add(g *group, ranks *idset.Set, first state) *job {
	if x.jobs == nil {
		x.jobs, x.onRank = make(map[jobid.ID]*job), make(map[uint32][]*group)
		x.timers = btree.NewG(32, func(a, b *job) bool {
			return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.id, b.id)) < 0
		})
	}
	j := x.jobs[g.Job]
	if j == nil {
		j = &job{id: g.Job}
		x.jobs[g.Job] = j
	}
	j.groups = append(j.groups, g)
	g.ranks.UnionWith(ranks)
	g.sets[first].UnionWith(ranks)
	x.tasks += ranks.Len()
	for rank := range ranks.All() {
		x.onRank[rank] = append(x.onRank[rank], g)
	}
	return j
}

// forget lets nodes delete the records of a task, and removes it there with what is empty then.
func (x *Executor) forget(g *group, ranks *idset.Set) {
	x.command(Command{Kind: CommandForget, Task: g.Task}, ranks)
	x.remove(g, ranks)
}

func (x *Executor) remove(g *group, ranks *idset.Set) {
	isG := func(other *group) bool { return other == g }
	for rank := range ranks.All() {
		if x.onRank[rank] = slices.DeleteFunc(x.onRank[rank], isG); len(x.onRank[rank]) == 0 {
			delete(x.onRank, rank)
		}
	}
	x.tasks -= ranks.Len()
	g.ranks.SubtractWith(ranks)
	for s := range g.sets {
		g.sets[s].SubtractWith(ranks)
	}
	if !g.ranks.IsEmpty() {
		return
	}
	j := x.jobs[g.Job]
	j.groups = slices.DeleteFunc(j.groups, isG)
	if j.shells == g {
		x.setTimer(j, 0)
		*j = job{id: j.id, groups: j.groups, changed: j.changed}
	}
	if len(j.groups) == 0 {
		delete(x.jobs, g.Job)
	}
}

func (x *Executor) move(g *group, rank uint32, to state) {
	was := g.state(rank)
	if was == to {
		return
	}
	g.sets[was].Remove(rank)
	g.sets[to].Insert(rank)
	j := x.jobs[g.Job]
	if g == j.shells || g.forgettable {
		x.touch(j)
	}
	switch {
	case to != stateOver:
	case g == j.shells:
		j.unused.Insert(rank)
	case g.replaced.Contains(rank): // what waits for its end may begin
		here := idset.Of(rank)
		x.forget(g, here)
		for _, later := range x.attempts(g.Task, here) {
			if s := later.state(rank); x.online.Contains(rank) && (s == statePending || s == stateAsked) {
				x.lacks(later, rank)
			}
		}
	}
}

// command appends a command for the ranks that have a session.
func (x *Executor) command(c Command, ranks *idset.Set) {
	if c.Ranks = idset.Intersect(ranks, &x.online); !c.Ranks.IsEmpty() {
		x.out.Commands = append(x.out.Commands, c)
	}
}

// send sends a task to nodes that have a session.
func (x *Executor) send(g *group, ranks *idset.Set) {
	x.command(Command{Kind: CommandStart, Task: g.Task, Start: g.start, Launch: g.launch}, ranks)
}

// begin sends what is pending to nodes that have a session. They lack what is asked for there,
// since their hello came before.
func (x *Executor) begin(g *group) {
	for rank := range idset.Intersect(&g.sets[stateAsked], &x.online).All() {
		x.lacks(g, rank)
	}
	send := idset.Intersect(&g.sets[statePending], &x.online)
	send.SubtractWith(x.blocked(g, send))
	g.sets[statePending].SubtractWith(send)
	g.sets[stateSent].UnionWith(send)
	x.send(g, send)
}

// blocked returns where an attempt waits for the end of another that is on some of these ranks.
func (x *Executor) blocked(g *group, on *idset.Set) *idset.Set {
	ranks := new(idset.Set)
	for _, other := range x.attempts(g.Task, on) {
		if other != g && !other.replaced.IsEmpty() {
			ranks.UnionWith(idset.Intersect(&other.ranks, &other.replaced))
		}
	}
	ranks.SubtractWith(&g.replaced)
	return ranks
}

// lacks notes that a node has no record of a task.
func (x *Executor) lacks(g *group, rank uint32) {
	switch s := g.state(rank); {
	case s == stateOver, s == stateSent, s == stateAbsent: // by this hello
	case s == stateExited, g.replaced.Contains(rank):
		x.move(g, rank, stateOver)
	case s == stateRunning, s == stateAsked && g.isShell() && x.jobs[g.Job].started:
		x.lost(g, rank, "the node does not have it")
	case g.forgettable: // its job ended without it
		x.move(g, rank, stateOver)
	case x.blocked(g, idset.Of(rank)).Contains(rank):
	case s == stateAsked && !g.isShell():
		x.out.Missing = append(x.out.Missing, Report{g.Job, perilog.Report{Action: g.Action, Attempt: g.Attempt, Rank: rank}})
		x.remove(g, idset.Of(rank))
	case g.signaled.Contains(rank):
		x.neverRan(g, rank)
	case s == stateAsked:
		x.move(g, rank, stateAbsent)
	default:
		x.move(g, rank, stateSent)
		x.send(g, idset.Of(rank))
	}
}

// neverRan ends a task that was stopped before it was started.
func (x *Executor) neverRan(g *group, rank uint32) {
	x.move(g, rank, stateOver)
	x.report(g, perilog.Report{
		Rank: rank, Kind: perilog.ReportExited, Status: int32(g.signal(rank)), Detail: "stopped before it was started",
	})
}

// failed ends a task that could not be started.
func (x *Executor) failed(g *group, rank uint32, note string) {
	x.abort(g, "could not be started", statusFailed, perilog.Report{Rank: rank, Kind: perilog.ReportLaunchFailed, Detail: note})
}

// lost ends a task of which the status is not known.
func (x *Executor) lost(g *group, rank uint32, note string) {
	g.ran = true
	x.abort(g, "is lost", statusLost, perilog.Report{Rank: rank, Kind: perilog.ReportExited, Status: statusLost, Detail: note})
}

// abort ends a task, and the job if it is one of its shells.
func (x *Executor) abort(g *group, what string, status int32, r perilog.Report) {
	x.move(g, r.Rank, stateOver)
	x.report(g, r)
	if !g.isShell() {
		return
	}
	if r.Detail != "" {
		what += ": " + r.Detail
	}
	j := x.jobs[g.Job]
	j.fail("exec", fmt.Sprintf("rank %d: the job shell %s", r.Rank, what))
	g.status = max(g.status, status)
	x.stop(j)
}

// report reports on an action that the manager waits for, and no other attempt replaces.
func (x *Executor) report(g *group, r perilog.Report) {
	if !g.isShell() && !g.stray && !g.replaced.Contains(r.Rank) {
		r.Action, r.Attempt = g.Action, g.Attempt
		x.out.Reports = append(x.out.Reports, Report{g.Job, r})
	}
}

// heard takes what a node says of a task. A signal that may have been missed is sent again.
func (x *Executor) heard(rank uint32, st *TaskStatus, hello bool) {
	g := x.on(rank, st.Task)
	if g == nil {
		x.stray(rank, st, hello)
		return
	}
	g.found = true
	if n := g.lines[rank]; n < len(st.Lines) {
		if g.lines == nil {
			g.lines = make(map[uint32]int)
		}
		g.lines[rank] = len(st.Lines)
		for _, line := range st.Lines[n:] {
			x.report(g, perilog.Report{Rank: rank, Kind: perilog.ReportOutput, Line: []byte(line)})
		}
	}
	said, was, note := st.State, g.state(rank), clean(st.Note)
	if said == TaskExited && !g.isShell() {
		said = TaskRunning // its end is reported when nothing of it is left
	}
	switch ended := was >= stateExited; {
	case ended && said == TaskRunning, was == stateOver && said == TaskExited:
		x.command(Command{Kind: CommandSignal, Task: g.Task, Signal: sigkill}, idset.Of(rank))
		return
	case ended && said != TaskExited:
		x.move(g, rank, stateOver)
	case said == TaskRunning:
		if g.ran = true; g.forgettable {
			g.signaled.Insert(rank) // its job ended without it
		}
		x.move(g, rank, stateRunning)
		if was == stateAsked {
			x.report(g, perilog.Report{Rank: rank, Kind: perilog.ReportStarted})
		}
	case ended:
	case said == TaskFailed:
		x.failed(g, rank, note)
	case said == TaskLost:
		x.lost(g, rank, note)
	default:
		g.ran = true
		g.status = max(g.status, st.Status)
		if x.move(g, rank, stateExited); said == TaskReleased {
			x.move(g, rank, stateOver)
		}
		x.report(g, perilog.Report{Rank: rank, Kind: perilog.ReportExited, Status: st.Status, Detail: note})
	}
	goesOn := st.State == TaskRunning && was == stateRunning && !hello
	if (said == TaskRunning || said == TaskExited) && g.signaled.Contains(rank) && !goesOn {
		x.command(Command{Kind: CommandSignal, Task: g.Task, Signal: g.signal(rank)}, idset.Of(rank))
	}
}

// stray ends a task that nothing asked for: its job is over, it was given up, or its node lies.
func (x *Executor) stray(rank uint32, st *TaskStatus, hello bool) {
	switch {
	case x.kept[st.Task.Job]:
	case st.State != TaskRunning && st.State != TaskExited:
		x.command(Command{Kind: CommandForget, Task: st.Task}, idset.Of(rank))
	case st.Task.isShell():
		x.command(Command{Kind: CommandSignal, Task: st.Task, Signal: sigkill}, idset.Of(rank))
	case x.precedes(st.Task, rank):
		g := &group{Task: st.Task}
		x.add(g, idset.Of(rank), stateRunning)
		g.replaced.Insert(rank)
		x.signal(g, &g.ranks, sigkill)
	case x.held[st.Task.Job] && st.Task.Action == perilog.Housekeeping() && len(x.attempts(st.Task, idset.Of(rank))) == 0:
		g := &group{Task: st.Task, stray: true}
		x.add(g, idset.Of(rank), stateRunning)
		x.signal(g, &g.ranks, sigterm)
	case hello || len(st.Lines) == 0: // an action that was given up, on a node that is drained; with a line it got the signal
		x.command(Command{Kind: CommandSignal, Task: st.Task, Signal: sigterm}, idset.Of(rank))
	}
}

// precedes reports whether a later attempt of an action waits for this one, or will.
func (x *Executor) precedes(t Task, rank uint32) (precedes bool) {
	for _, g := range x.attempts(t, idset.Of(rank)) {
		switch s := g.state(rank); {
		case g.replaced.Contains(rank):
			if s == stateRunning {
				return false
			}
		case s == statePending, s == stateAsked:
			precedes = g.Attempt > t.Attempt
		}
	}
	return precedes
}

// signal signals a task on ranks where it has not ended.
func (x *Executor) signal(g *group, ranks *idset.Set, signal int) {
	ranks = idset.Intersect(&g.ranks, ranks)
	if signal == sigkill {
		g.killed.UnionWith(ranks)
	}
	unheard := idset.Difference(&g.sets[statePending], &x.heardOf)
	unheard.UnionWith(idset.Intersect(&g.sets[statePending], x.blocked(g, ranks))) // it ends after the earlier attempt
	unheard.UnionWith(&g.sets[stateAsked])
	never := idset.Difference(idset.Union(&g.sets[statePending], &g.sets[stateAbsent]), unheard)
	for rank := range idset.Intersect(never, ranks).All() {
		x.neverRan(g, rank)
	}
	live := idset.Intersect(&g.ranks, ranks)
	live.SubtractWith(&g.sets[stateOver])
	g.signaled.UnionWith(live)
	live.SubtractWith(unheard)
	x.command(Command{Kind: CommandSignal, Task: g.Task, Signal: signal}, live)
}
