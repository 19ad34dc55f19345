package exec

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/btree"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
)

// ErrSession is returned when a node says something in a session that is over.
var ErrSession = errors.New("exec: session is over")

// The limits of what nodes and the manager say.
const (
	maxTasks       = 1 << 22 // of an Executor, each counted once for each of its ranks
	maxHello       = 1 << 16 // tasks
	maxDescription = 4 << 10 // bytes, of an action
	maxNoteLength  = 1 << 10 // bytes; a longer one is cut
	maxLines       = 1 << 10 // control lines of a task
	maxLine        = 4 << 10 // bytes, as in package perilog
)

// An Executor turns what nodes say into the responses of RFC 32 and the reports of package
// perilog, and what the manager asks into commands for nodes. A loop.Loop drives it:
//
//	l, err := loop.New(m, loop.Config{Executor: x, Commands: send, Recovered: left, …}) // 1
//	err = l.Hear(func(x *exec.Executor) (err error) { // 2
//		session, err = x.Hello(rank, tasks) // a node connects
//		return err
//	})
//	err = l.Hear(func(x *exec.Executor) error { // it says what became of a task
//		return x.Update(session, status)
//	})
//
// Your duties:
//
//  1. Send commands in order. Drop those for a node that is gone: its hello repairs that.
//  2. A node keeps a record of each [Task] until it is told to forget it, and its hello
//     has all of them. Authenticate the rank. Update refuses what it says in an earlier
//     connection. Call Close when the connection has ended.
//
// Without a Loop there are more, for each joblife.Ready and at each restart:
//
//  3. Pass Exec to Handle, Raised of severity 0 to Kill, Launch to Launch, and Signal to Signal.
//  4. Call Forget when the log of a job is closed, and again when all its resources are free:
//     without housekeeping, both are so at clean. After a restart, a hello that has records of
//     a closed job is enough.
//  5. Call Take after any of these and what nodes say, and at Deadline. Its Responses, Refused,
//     Reports and Missing are the inputs ExecResponse, ExecRefused, Report and Rerun of package
//     joblife. If a Rerun is refused, its job is ending: ForceFinish the action, but not while a
//     Shutdown goes on.
//  6. An Executor lives as long as its manager. After a restart, pass Unresolved to Recover, and
//     Quarantined to Keep. Then pass the starts of the manager's hello to Handle, before the first
//     Hello of a node: a task that nothing asked for is killed.
//
// A node that is gone may come back, so its tasks go on. If it never will, call [Executor.Fail].
//
// The zero Executor has no jobs and nodes. It takes at most 2^22 tasks, each counted once for each
// of its ranks. A job takes memory and time for each of its ranks; a message of a node takes the
// same however large its job is. After an error nothing has changed. An Executor has no clock, and
// keeps nothing durable. One goroutine at a time may use it. It must not be copied.
type Executor struct {
	// KillTimeout is the time from SIGTERM to SIGKILL when a job is stopped; 0 or less means
	// 5 seconds. An action has the timeouts of its configuration.
	KillTimeout time.Duration

	_        guard.NoCopy
	now      eventlog.Timestamp
	jobs     map[jobid.ID]*job
	onRank   map[uint32][]*group
	tasks    int               // of all ranks
	online   idset.Set         // the ranks of nodes with a session
	heardOf  idset.Set         // the ranks of nodes that said hello once: nothing ran there before
	sessions map[uint32]uint64 // the number of the latest, by rank
	session  uint64            // the number of the latest of all
	kept     map[jobid.ID]bool
	held     map[jobid.ID]bool   // jobs whose housekeeping failed before a restart, on nodes that they hold
	timers   *btree.BTreeG[*job] // of jobs that have a timer
	changed  []*job
	out      Effects
}

// Effects is what follows from the inputs of an [Executor]. The caller owns it, but not what a
// Start or a Launch points to: a later command may have it too.
type Effects struct {
	// Commands are for nodes, in this order.
	Commands []Command
	// Responses are for the manager: of a job a start, a finish and releases, in this order, and at
	// most one exception; each once, unless the manager asks for the job again.
	Responses []Response
	// Refused are jobs that no node has run or will run.
	Refused []Refused
	// Reports are what became of prologs, epilogs and housekeeping.
	Reports []Report
	// Missing are actions that were lost in a restart and that a node does not have: Rerun them.
	// The Kind is 0.
	Missing []Report
}

// A Refused is a job that did not start and will not.
type Refused struct {
	ID   jobid.ID
	Note string // why; "" if the manager stopped it, or no node has what Start.Reattach asks for
}

// A Report is a report to package perilog, with its job.
type Report struct {
	Job jobid.ID
	perilog.Report
}

// A CommandKind says what a node has to do. The empty CommandKind is invalid.
type CommandKind string

// The kinds of commands. Each is idempotent.
const (
	CommandStart  CommandKind = "start"  // start the task, unless there is a record of it
	CommandSignal CommandKind = "signal" // send Signal to all processes of the task
	CommandForget CommandKind = "forget" // delete the record of the task, which has ended
)

// A Command is for each node of Ranks.
type Command struct {
	Kind   CommandKind
	Task   Task
	Ranks  *idset.Set      // not empty
	Start  *Start          // of CommandStart of a job's shell: what the manager asked
	Launch *perilog.Launch // of CommandStart of an action
	Signal int             // of CommandSignal: 15, SIGTERM, or 9, SIGKILL
}

// A Session is the time from a hello of a node to the next. The zero Session is over.
type Session struct {
	rank uint32
	n    uint64
}

// Handle does what the manager asks: a [Start], whose R must be set, or an [Expiration], ignored if
// the job is not there. It retains R, and copies the rest. Without Reattach the job starts on each
// node, at once or with the node's hello; with it, it must be there. If the Executor has the job, a
// Start repeats the responses. When its resources expire, the job gets the exception timeout.
func (x *Executor) Handle(m Message) error {
	switch m := m.(type) {
	case Start:
		return x.start(m)
	case Expiration:
		if j := x.jobs[m.ID]; j != nil && j.shells != nil && !j.stopping && !j.told.finish {
			x.setTimer(j, m.Expiration)
		}
		return nil
	}
	return fmt.Errorf("exec: %T is not for an executor", m)
}

func (x *Executor) start(m Start) error {
	if j := x.jobs[m.ID]; j != nil && j.shells != nil {
		if !j.stopping && !j.told.finish {
			x.setTimer(j, m.R.Expiration()) // which may be another than before
		}
		j.reattach, j.started = m.Reattach, m.Started
		j.told, j.stopped = told{}, false
		j.unused.UnionWith(&j.shells.sets[stateOver])
		x.touch(j)
		return nil
	}
	ranks, first := m.R.Ranks(), statePending
	if m.Reattach {
		first = stateAsked
	}
	g := &group{Task: Task{Job: m.ID}, start: &m, ran: m.Started}
	if err := x.admit(g, ranks); err != nil {
		return err
	}
	m.Jobspec = bytes.Clone(m.Jobspec)
	j := x.add(g, ranks, first)
	j.shells, j.reattach, j.started = g, m.Reattach, m.Started
	x.setTimer(j, m.R.Expiration())
	x.begin(g)
	return nil
}

// Launch launches an action. It copies what it retains. An attempt that is not above the latest on
// all of the ranks changes nothing. A later attempt replaces an earlier one, which is killed first
// if it still runs.
func (x *Executor) Launch(id jobid.ID, l perilog.Launch) error {
	l.Ranks, l.Command = l.Ranks.Clone(), slices.Clone(l.Command)
	if l.Serves != nil {
		l.Serves = l.Serves.Clone()
	}
	return x.place(&group{Task: Task{Job: id, Action: l.Action, Attempt: l.Attempt}, launch: &l}, l.Ranks, statePending)
}

// Recover makes the Executor expect an action that was lost in a restart of the manager: pass each
// of [joblife.Recovered].Unresolved, whatever its reason. Effects has a report if a node has the
// action, or else it is in Effects.Missing. Without an Executor, and if an action runs only once by
// its name, Rerun it at once instead. Where housekeeping failed and still runs, it ends before a
// later attempt begins.
//
// [joblife.Recovered]: https://pkg.go.dev/github.com/joblife/joblife#Recovered
func (x *Executor) Recover(id jobid.ID, u perilog.Unresolved) error {
	switch u.Reason {
	case perilog.ReasonHeld:
		if x.held == nil {
			x.held = make(map[jobid.ID]bool)
		}
		x.held[id] = true
	case perilog.ReasonLost:
		return x.place(&group{Task: Task{Job: id, Action: u.Action, Attempt: u.Attempt}}, u.Ranks, stateAsked)
	}
	return nil
}

// place has an action replace earlier attempts, unless one of the ranks has it or a later one.
func (x *Executor) place(g *group, ranks *idset.Set, first state) error {
	if err := x.admit(g, ranks); err != nil {
		return err
	}
	same := x.attempts(g.Task, ranks)
	for _, other := range same {
		if !other.stray && other.Attempt >= g.Attempt && idset.Difference(&other.ranks, &other.replaced).Intersects(ranks) {
			return nil
		}
	}
	for _, earlier := range same {
		old := idset.Intersect(&earlier.ranks, ranks)
		old.SubtractWith(&earlier.replaced)
		x.forget(earlier, idset.Intersect(old, &earlier.sets[stateOver]))
		old.IntersectWith(&earlier.ranks)
		earlier.replaced.UnionWith(old)
		x.signal(earlier, old, sigkill)
	}
	x.add(g, ranks, first)
	x.begin(g)
	return nil
}

// Keep leaves the tasks of a job alone that the Executor was not asked for: the manager
// has a quarantined job, and somebody may repair it.
func (x *Executor) Keep(id jobid.ID) {
	if x.kept == nil {
		x.kept = make(map[jobid.ID]bool)
	}
	x.kept[id] = true
}

// Kill stops a job, if it is there: the manager raised an exception of severity 0. If that stops
// the job first, the finish has this wait status, if there is one, in the form of a shell. Where a
// shell was not sent to its node, it does not start.
func (x *Executor) Kill(id jobid.ID, status jobstate.Optional[int32]) {
	if j := x.jobs[id]; j != nil && j.shells != nil {
		if j.stopped = true; !j.stopping {
			j.status = status
		}
		x.stop(j)
	}
}

// stop sends SIGTERM to a job. SIGKILL follows.
func (x *Executor) stop(j *job) {
	if !j.stopping {
		j.stopping = true
		x.signal(j.shells, &j.shells.ranks, sigterm)
		x.setTimer(j, 0) // Take sets it
		x.touch(j)
	}
}

// Signal sends a signal to the processes of an action. Where the action was not sent to its
// node, it does not start, and counts as ended by the signal.
func (x *Executor) Signal(id jobid.ID, s perilog.Signal) {
	for _, g := range x.attempts(Task{Job: id, Action: s.Action}, s.Ranks) {
		if g.Attempt == s.Attempt {
			x.signal(g, idset.Difference(s.Ranks, &g.replaced), s.Signal)
		}
	}
}

// Forget lets nodes delete the records of a job's tasks, now or when they have ended. Call it when
// the event clean is durable, and with housekeeping when its final release is: for what Ready.Over
// names. What runs then is stopped, and what has not started never does.
func (x *Executor) Forget(id jobid.ID, housekeeping bool) {
	if housekeeping {
		delete(x.held, id)
	}
	if j := x.jobs[id]; j != nil {
		for _, g := range j.groups {
			if g.forgettable = g.forgettable || housekeeping || g.Action.Kind != jobstate.ActionHousekeeping; g.forgettable {
				x.signal(g, idset.Difference(&g.sets[stateRunning], &g.signaled), sigterm)
			}
		}
		x.touch(j)
	}
}

// Hello begins a session of a node, which ends its earlier one. The tasks are all of which it has
// a record, at most 65536, in any order. A task that the node lacks is lost if the node had it, or
// if the log of its job has the event start; an action from before a restart is in
// Effects.Missing; else it starts. A node that reports an action by another Description than it was
// told lacks the action. Records must outlive the manager: a node without them runs again what
// began just before a crash.
func (x *Executor) Hello(rank uint32, tasks []TaskStatus) (Session, error) {
	if rank > idset.MaxID || len(tasks) > maxHello {
		return Session{}, fmt.Errorf("exec: rank %d has %d tasks: at most %d are taken, and the rank %d", rank, len(tasks), maxHello, uint32(idset.MaxID))
	}
	has := make(map[Task]bool, len(tasks))
	for i := range tasks {
		if err := tasks[i].check(); err != nil {
			return Session{}, fmt.Errorf("exec: rank %d: %w", rank, err)
		}
		if has[tasks[i].Task] {
			return Session{}, fmt.Errorf("exec: rank %d names %v twice", rank, tasks[i].Task)
		}
		has[tasks[i].Task] = true
	}
	if x.sessions == nil {
		x.sessions = make(map[uint32]uint64)
	}
	x.Close(Session{rank, x.sessions[rank]})
	x.session++
	x.sessions[rank] = x.session
	x.online.Insert(rank)
	x.heardOf.Insert(rank)
	for _, g := range x.onRank[rank] {
		if !has[g.Task] && g.sets[stateSent].Contains(rank) {
			x.move(g, rank, statePending) // its start did not arrive
		}
	}
	for i := range tasks {
		x.heard(rank, &tasks[i], true)
	}
	for _, g := range slices.Clone(x.onRank[rank]) {
		if !has[g.Task] {
			x.lacks(g, rank)
		}
	}
	return Session{rank, x.session}, nil
}

// lasts reports whether a session is not over.
func (x *Executor) lasts(s Session) bool { return s.n != 0 && x.sessions[s.rank] == s.n }

// Update takes what a node says of one task. A repetition changes nothing. The first end of a task
// counts: if its node then says that it runs, it is killed.
func (x *Executor) Update(s Session, st TaskStatus) error {
	if !x.lasts(s) {
		return fmt.Errorf("%w: rank %d must say hello first", ErrSession, s.rank)
	}
	if err := st.check(); err != nil {
		return fmt.Errorf("exec: rank %d: %w", s.rank, err)
	}
	x.heard(s.rank, &st, false)
	return nil
}

// Close ends a session, unless it is over. The tasks of the node go on. Commands for it are dropped
// that Take has not returned.
func (x *Executor) Close(s Session) {
	if !x.lasts(s) {
		return
	}
	x.online.Remove(s.rank)
	delete(x.sessions, s.rank)
	x.out.Commands = slices.DeleteFunc(x.out.Commands, func(c Command) bool {
		c.Ranks.Remove(s.rank)
		return c.Ranks.IsEmpty()
	})
}

// Fail gives a node up and ends its session. Call it when nothing runs there any more: the node is
// powered off or fenced. Its shells are lost, which ends their jobs; its actions are unreachable.
// If it comes back, what still runs there is stopped.
func (x *Executor) Fail(rank uint32, note string) {
	x.Close(Session{rank, x.sessions[rank]})
	note = clean(note)
	for _, g := range slices.Clone(x.onRank[rank]) {
		switch s := g.state(rank); {
		case s >= stateExited:
			x.move(g, rank, stateOver)
		case !g.isShell():
			x.move(g, rank, stateOver)
			x.report(g, perilog.Report{Rank: rank, Kind: perilog.ReportUnreachable, Detail: note})
		case s == stateAbsent || s == statePending && x.heardOf.Contains(rank):
			x.failed(g, rank, note)
		default:
			x.lost(g, rank, note)
		}
	}
}

// Expiring returns the jobs that Take would stop at a time, since their resources have expired. If
// the [Expiration] of one is still on its way, pass it on first.
func (x *Executor) Expiring(now eventlog.Timestamp) (list []jobid.ID) {
	if now = x.clamp(now); x.next() != nil {
		x.timers.Ascend(func(j *job) bool {
			if j.due > now {
				return false
			}
			if j.expires() {
				list = append(list, j.id)
			}
			return true
		})
	}
	return list
}

// Take returns what follows from the inputs and the time since the last Take: jobs expire, and those
// that ignored SIGTERM get SIGKILL. A time that steps back, or is none, counts as the last one.
func (x *Executor) Take(now eventlog.Timestamp) Effects {
	x.now = x.clamp(now)
	for j := x.next(); j != nil && j.due <= x.now; j = x.next() {
		switch x.setTimer(j, 0); {
		case j.stopping:
			x.signal(j.shells, &j.shells.ranks, sigkill)
		case j.expires():
			j.fail("timeout", "resource allocation expired")
			x.stop(j)
		}
	}
	for i := 0; i < len(x.changed); i++ { // a response may change the job again
		j := x.changed[i]
		if j.changed = false; j.stopping && !j.timed {
			j.timed = true
			x.setTimer(j, x.now+eventlog.Timestamp(cmp.Or(max(0, x.KillTimeout), 5*time.Second).Seconds()))
		}
		x.respond(j)
		for i := 0; i < len(j.groups); i++ {
			if g := j.groups[i]; g.forgettable && !g.has(statePending, stateExited) { // it is released, since the response comes first
				x.forget(g, g.ranks.Clone())
				i--
			}
		}
	}
	clear(x.changed)
	x.changed = x.changed[:0]
	out := x.out
	x.out = Effects{}
	return out
}

// clamp returns what counts as a time.
func (x *Executor) clamp(now eventlog.Timestamp) eventlog.Timestamp {
	if !guard.IsTime(now) {
		return x.now
	}
	return max(now, x.now)
}

// Deadline returns when Take, which moves it on, is due if nothing else happens; false: never.
func (x *Executor) Deadline() (eventlog.Timestamp, bool) {
	if j := x.next(); j != nil {
		return j.due, true
	}
	return 0, false
}

// next returns the job with the next timer, or nil.
func (x *Executor) next() *job {
	if x.timers == nil {
		return nil
	}
	j, _ := x.timers.Min()
	return j
}

// setTimer replaces the timer of a job; what is no time, such as 0, means never.
func (x *Executor) setTimer(j *job, at eventlog.Timestamp) {
	if j.due > 0 {
		x.timers.Delete(j)
	}
	if j.due = 0; guard.IsTime(at) {
		j.due = at
		x.timers.ReplaceOrInsert(j)
	}
}

// respond appends the responses of a job that are due.
func (x *Executor) respond(j *job) {
	g := j.shells
	if g == nil {
		return
	}
	if g.ran { // where it is absent it must not start: it may have other prologs by now
		for rank := range g.sets[stateAbsent].Clone().All() {
			x.failed(g, rank, "the node does not have it")
		}
	}
	heard := !g.has(statePending, stateAsked)
	ended := heard && g.sets[stateRunning].IsEmpty()
	if ended && !g.ran {
		x.out.Refused = append(x.out.Refused, Refused{ID: j.id, Note: j.cause.Note})
		x.forget(g, g.ranks.Clone())
		return
	}
	say := func(r Response) {
		r.ID = j.id
		x.out.Responses = append(x.out.Responses, r)
	}
	if heard && !j.told.start && !j.told.finish && (g.found || !j.reattach || !j.started) {
		j.told.start = true // which it needs for epilogs, unless the log has it
		r := Response{Type: ResponseStart}
		if j.reattach {
			r.Type = ResponseReattached
		}
		say(r)
	}
	if j.cause.Type != "" && !j.stopped && !j.told.exception {
		j.told.exception = true
		say(Response{Type: ResponseException, Exception: j.cause})
	}
	if !ended {
		return
	}
	if !j.told.finish {
		if j.told.finish = true; !j.stopping {
			x.setTimer(j, 0)
		}
		say(Response{Type: ResponseFinish, Status: j.waitStatus()})
	}
	if j.unused.IsEmpty() {
		return
	}
	r := Response{Type: ResponseRelease, Ranks: j.unused.Clone(), Final: !g.has(statePending, stateExited)}
	if r.Ranks.Equal(&g.ranks) {
		r.Ranks = nil
	}
	j.unused = idset.Set{}
	say(r)
}

// clean makes a note of words from outside.
func clean(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxNoteLength)], "\uFFFD")
}
