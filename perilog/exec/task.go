package exec

import (
	"fmt"
	"slices"

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
	Job     jobid.ID
	Action  jobstate.ActionKey // zero: the shell
	Attempt uint32             // at least 1; of a shell 0
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
	Task   Task
	State  TaskState
	Status int32  // of TaskExited and TaskReleased: a wait status, as wait(2) gives it
	Note   string // in words, for administrators; may be empty; more than 1 KiB is cut
	// Lines are the control lines that an action wrote so far, in order, at most 1024 of at
	// most 4 KiB: see package perilog. Each status and each hello has all of them.
	Lines []string
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
	stateExited // something of it may be left
	stateOver
	states
)

// A group is a task on all of its ranks.
type group struct {
	Task
	ranks    idset.Set
	sets     [states]idset.Set // which share no rank, and together are ranks
	open     int               // ranks that are not over
	from     state             // where its ranks begin
	start    *Start            // of shells
	launch   *perilog.Launch   // of an action, unless it was recovered
	ran      bool              // perhaps, on some rank
	found    bool              // a node has named it
	status   int32             // the greatest wait status
	forget   bool              // when it has ended
	replaced bool              // by a later attempt, which starts when this one has ended: no reports
	signaled idset.Set         // the ranks that were sent a signal
	killed   idset.Set         // those of them that were sent SIGKILL
	lines    map[uint32]int    // how many control lines are reported, by rank
}

func (g *group) state(rank uint32) state {
	for s := range states - 1 {
		if g.sets[s].Contains(rank) {
			return s
		}
	}
	return stateOver
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

	reattach bool      // the manager said so in this session
	started  bool      // likewise
	cause    Exception // of the Executor's own; the zero Exception: none
	stopped  bool      // the manager said so in this session
	stopping bool      // SIGTERM was sent
	timed    bool      // and it has the timer of SIGKILL
	told     told
	unused   idset.Set          // ranks of shells that are over, and not released in this session
	due      eventlog.Timestamp // when its timer is due; 0: it has none
}

// told is what the manager was told of a job in its session.
type told struct{ start, exception, finish, final bool }

// fail makes something the cause of a job's end, unless it has one.
func (j *job) fail(kind, note string) {
	if j.cause.Type == "" {
		j.cause = Exception{Type: kind, Note: note}
	}
}

// A node is a rank with a session or with tasks.
type node struct {
	session uint64 // 0: none
	groups  []*group
}

func (x *Executor) node(rank uint32) *node {
	if x.nodes == nil {
		x.nodes = make(map[uint32]*node)
	}
	n := x.nodes[rank]
	if n == nil {
		n = new(node)
		x.nodes[rank] = n
	}
	return n
}

// trim forgets a node of which nothing is left.
func (x *Executor) trim(rank uint32) {
	if n := x.nodes[rank]; n.session == 0 && len(n.groups) == 0 {
		delete(x.nodes, rank)
	}
}

func (x *Executor) touch(j *job) {
	if !j.changed {
		j.changed = true
		x.changed = append(x.changed, j)
	}
}

// admit returns an error for a task that is not what it should be, or for which there is no
// room.
func (x *Executor) admit(t Task, shell bool, ranks *idset.Set) error {
	if err := t.check(); err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	if n := ranks.Len(); n == 0 || t.isShell() != shell {
		return fmt.Errorf("exec: %v has no ranks or no action", t)
	} else if n > maxTasks-x.tasks {
		return fmt.Errorf("exec: %d tasks, and %d more: at most %d are taken", x.tasks, n, maxTasks)
	}
	return nil
}

func (x *Executor) find(t Task) *group {
	if j := x.jobs[t.Job]; j != nil {
		for _, g := range j.groups {
			if g.Task == t && !g.replaced {
				return g
			}
		}
	}
	return nil
}

// at returns the group of a task on a rank, which may be replaced there.
func (x *Executor) at(t Task, rank uint32) *group {
	for _, g := range x.nodes[rank].groups {
		if g.Task == t {
			return g
		}
	}
	return nil
}

func (x *Executor) add(g *group, ranks *idset.Set) *job {
	if x.jobs == nil {
		x.jobs = make(map[jobid.ID]*job)
	}
	j := x.jobs[g.Job]
	if j == nil {
		j = &job{id: g.Job}
		x.jobs[g.Job] = j
	}
	j.groups = append(j.groups, g)
	g.ranks.UnionWith(ranks)
	g.sets[g.from].UnionWith(ranks)
	g.open = ranks.Len()
	x.tasks += g.open
	for rank := range ranks.All() {
		n := x.node(rank)
		n.groups = append(n.groups, g)
	}
	return j
}

// remove removes ranks from a group, and what is empty then.
func (x *Executor) remove(g *group, ranks *idset.Set) {
	isG := func(other *group) bool { return other == g }
	for rank := range ranks.All() {
		n := x.nodes[rank]
		n.groups = slices.DeleteFunc(n.groups, isG)
		x.trim(rank)
	}
	x.tasks -= ranks.Len()
	g.ranks.SubtractWith(ranks)
	g.open -= idset.Difference(ranks, &g.sets[stateOver]).Len()
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
	g.sets[g.state(rank)].Remove(rank)
	g.sets[to].Insert(rank)
	if to == stateOver {
		g.open--
	}
	j := x.jobs[g.Job]
	if g == j.shells && to == stateOver {
		j.unused.Insert(rank)
	}
	if g.replaced && to == stateOver && x.online.Contains(rank) { // what waits for it may begin
		for _, later := range slices.Clone(j.groups) {
			if s := later.state(rank); later.Action == g.Action && (s == statePending || s == stateAsked) {
				x.lacks(later, rank)
			}
		}
	}
	if g == j.shells || g.forget {
		x.touch(j)
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

// begin sends what is pending to nodes that have a session. They do not have what is asked
// for there, since their hello came before.
func (x *Executor) begin(g *group) {
	for rank := range idset.Intersect(&g.sets[stateAsked], &x.online).All() {
		x.lacks(g, rank)
	}
	send := idset.Intersect(&g.sets[statePending], &x.online)
	send.SubtractWith(x.blocked(g))
	for rank := range send.All() {
		x.move(g, rank, stateSent)
	}
	x.send(g, send)
}

// blocked returns the ranks where an earlier attempt has not ended.
func (x *Executor) blocked(g *group) *idset.Set {
	ranks := new(idset.Set)
	for _, old := range x.jobs[g.Job].groups {
		if old.replaced && old.Action == g.Action {
			ranks.UnionWith(idset.Difference(&old.ranks, &old.sets[stateOver]))
		}
	}
	return ranks
}

// lacks notes that a node has no record of a task.
func (x *Executor) lacks(g *group, rank uint32) {
	switch s := g.state(rank); {
	case s == stateOver, s == stateSent: // by this hello
	case s == stateExited, g.replaced:
		x.move(g, rank, stateOver)
	case (s == statePending || s == stateAsked) && x.blocked(g).Contains(rank):
	case s == statePending:
		if g.signaled.Contains(rank) {
			x.neverRun(g, rank)
			return
		}
		x.move(g, rank, stateSent)
		x.send(g, idset.Of(rank))
	case s == stateAsked && !g.isShell():
		x.out.Missing = append(x.out.Missing, Report{Job: g.Job, Report: perilog.Report{Action: g.Action, Attempt: g.Attempt, Rank: rank}})
		x.remove(g, idset.Of(rank))
	case s == stateAsked && !x.jobs[g.Job].started && g.signaled.Contains(rank):
		x.neverRun(g, rank)
	case s == stateAsked && !x.jobs[g.Job].started:
		x.move(g, rank, stateAbsent)
	case s != stateAbsent:
		x.lose(g, rank, "the node does not have it")
	}
}

// neverRun ends a task that was stopped before it was started.
func (x *Executor) neverRun(g *group, rank uint32) {
	x.move(g, rank, stateOver)
	if !g.isShell() {
		x.report(g, rank, perilog.ReportExited, int32(g.signal(rank)), "stopped before it was started")
	}
}

// lose ends a task of which the status is not known.
func (x *Executor) lose(g *group, rank uint32, note string) {
	x.move(g, rank, stateOver)
	g.ran = true
	g.status = max(g.status, statusLost)
	if !g.isShell() {
		x.report(g, rank, perilog.ReportExited, statusLost, note)
		return
	}
	x.abort(x.jobs[g.Job], rank, "is lost", note)
}

func (x *Executor) report(g *group, rank uint32, kind perilog.ReportKind, status int32, detail string) {
	if g.replaced {
		return
	}
	x.out.Reports = append(x.out.Reports, Report{Job: g.Job, Report: perilog.Report{
		Action: g.Action, Attempt: g.Attempt, Rank: rank, Kind: kind, Status: status, Detail: detail,
	}})
}

// heard takes what a node says of a task.
func (x *Executor) heard(rank uint32, st *TaskStatus) {
	g := x.at(st.Task, rank)
	if g == nil {
		x.stray(rank, st)
		return
	}
	said := st.State
	if said == TaskExited && !g.isShell() {
		said = TaskRunning // its end is reported when nothing of it is left
	}
	g.found = true
	x.reportLines(g, rank, st.Lines)
	was, note := g.state(rank), clean(st.Note)
	if was >= stateExited {
		x.afterEnd(g, rank, was, said)
		return
	}
	switch said {
	case TaskRunning:
		x.runs(g, rank, was)
	case TaskExited, TaskReleased:
		g.ran = true
		g.status = max(g.status, st.Status)
		if x.move(g, rank, stateExited); said == TaskReleased {
			x.move(g, rank, stateOver)
		}
		if !g.isShell() {
			x.report(g, rank, perilog.ReportExited, st.Status, note)
		}
	case TaskFailed:
		x.failed(g, rank, note)
	case TaskLost:
		x.lose(g, rank, note)
	}
}

// afterEnd takes what a node says of a task that has ended there.
func (x *Executor) afterEnd(g *group, rank uint32, was state, now TaskState) {
	switch {
	case now == TaskRunning, now == TaskExited && was == stateOver:
		x.command(Command{Kind: CommandSignal, Task: g.Task, Signal: sigkill}, idset.Of(rank))
	case now == TaskExited && g.signaled.Contains(rank):
		x.command(Command{Kind: CommandSignal, Task: g.Task, Signal: g.signal(rank)}, idset.Of(rank))
	case now != TaskExited && was == stateExited:
		x.move(g, rank, stateOver)
	}
}

// runs notes that a task runs. A signal that its node may have missed is sent again.
func (x *Executor) runs(g *group, rank uint32, was state) {
	g.ran = true
	if was != stateRunning {
		x.move(g, rank, stateRunning)
	}
	if was == stateAsked && !g.isShell() {
		x.report(g, rank, perilog.ReportStarted, 0, "")
	}
	if g.signaled.Contains(rank) {
		x.command(Command{Kind: CommandSignal, Task: g.Task, Signal: g.signal(rank)}, idset.Of(rank))
	}
}

func (x *Executor) failed(g *group, rank uint32, note string) {
	x.move(g, rank, stateOver)
	if !g.isShell() {
		x.report(g, rank, perilog.ReportLaunchFailed, 0, note)
		return
	}
	g.status = max(g.status, statusFailed)
	x.abort(x.jobs[g.Job], rank, "could not be started", note)
}

// abort ends a job because of one of its shells.
func (x *Executor) abort(j *job, rank uint32, what, note string) {
	if note != "" {
		what += ": " + note
	}
	j.fail("exec", fmt.Sprintf("rank %d: the job shell %s", rank, what))
	x.stop(j)
}

// reportLines reports the control lines that are new.
func (x *Executor) reportLines(g *group, rank uint32, lines []string) {
	if g.isShell() || g.replaced || len(lines) <= g.lines[rank] {
		return
	}
	for _, line := range lines[g.lines[rank]:] {
		x.report(g, rank, perilog.ReportOutput, 0, "")
		x.out.Reports[len(x.out.Reports)-1].Line = []byte(line)
	}
	if g.lines == nil {
		g.lines = make(map[uint32]int)
	}
	g.lines[rank] = len(lines)
}

// stray ends a task that nothing asked for: its job is over, it was given up, or its node
// lies.
func (x *Executor) stray(rank uint32, st *TaskStatus) {
	switch {
	case x.kept[st.Task.Job]:
	case st.State != TaskRunning && st.State != TaskExited:
		x.command(Command{Kind: CommandForget, Task: st.Task}, idset.Of(rank))
	case st.Task.isShell():
		x.command(Command{Kind: CommandSignal, Task: st.Task, Signal: sigkill}, idset.Of(rank))
	case x.precedes(st.Task, rank):
		g := &group{Task: st.Task, from: stateRunning, replaced: true, forget: true}
		x.add(g, idset.Of(rank))
		x.signal(g, &g.ranks, sigkill)
	default: // an action that was given up, on a node that is drained
		x.command(Command{Kind: CommandSignal, Task: st.Task, Signal: sigterm}, idset.Of(rank))
	}
}

// precedes reports whether a later attempt of an action waits for the node, or will. It
// waits for one at a time, since each starts when the earlier one has ended.
func (x *Executor) precedes(t Task, rank uint32) (precedes bool) {
	for _, g := range x.nodes[rank].groups {
		if g.Job != t.Job || g.Action != t.Action {
			continue
		}
		switch s := g.state(rank); {
		case g.replaced && (s == stateRunning || s == stateExited):
			return false
		case !g.replaced && (s == statePending || s == stateAsked):
			precedes = g.Attempt > t.Attempt
		}
	}
	return precedes
}

// signal signals a task on ranks where it has not ended.
func (x *Executor) signal(g *group, ranks *idset.Set, signal int) {
	if signal == sigkill {
		g.killed.UnionWith(idset.Intersect(&g.ranks, ranks))
	}
	unheard := idset.Union(&g.sets[stateAsked], idset.Difference(&g.sets[statePending], &x.heardOf))
	if !g.replaced { // it ends after the earlier attempt
		unheard.UnionWith(idset.Intersect(&g.sets[statePending], x.blocked(g)))
	}
	never := idset.Difference(idset.Union(&g.sets[statePending], &g.sets[stateAbsent]), unheard)
	never.IntersectWith(ranks)
	for rank := range never.All() {
		x.neverRun(g, rank)
	}
	live := idset.Union(&g.sets[stateSent], &g.sets[stateRunning])
	live.UnionWith(&g.sets[stateExited])
	live.IntersectWith(ranks)
	g.signaled.UnionWith(live)
	g.signaled.UnionWith(idset.Intersect(unheard, ranks))
	x.command(Command{Kind: CommandSignal, Task: g.Task, Signal: signal}, live)
}
