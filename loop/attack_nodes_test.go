package loop_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/attack"
	"github.com/joblife/joblife/joblifetest"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

// Nodes connect, vanish, reboot, and in half of the runs lie, while a Loop with a Scheduler and
// an Executor crashes and restarts. No task runs twice, no node is freed while something runs
// there, each job ends, and no node keeps a record (I2, I3, I11).
func TestAttackOfNodes(t *testing.T) {
	attackBy(t, func(tape *attack.Tape) { newFarm(t, tape).run() })
}

// A farmer is a node. It keeps a record of each task until it is told to forget it.
type farmer struct {
	rank    uint32
	up      bool
	session exec.Session
	records map[exec.Task]*exec.TaskStatus
	began   map[exec.Task]bool
	wiped   bool
	inbox   []exec.Command    // on their way to the node
	outbox  []exec.TaskStatus // on their way to the Loop
}

func lives(st *exec.TaskStatus) bool {
	return st != nil && (st.State == exec.TaskRunning || st.State == exec.TaskExited)
}

func (n *farmer) tasks() []exec.Task {
	return slices.SortedFunc(maps.Keys(n.records), func(a, b exec.Task) int { return slices.Compare([]byte(a.String()), []byte(b.String())) })
}

// A farm is what survives a Loop: the disk, and nodes with their processes.
type farm struct {
	*attack.Tape
	t     testing.TB
	cfg   joblife.Config
	nodes []*farmer
	disk  *disk
	now   time.Time
	lies  bool

	// Of this life.
	s     *site
	x     *exec.Executor
	sched *sched.Scheduler
	final map[jobid.ID]bool
	write func() // ends what the disk does; nil: it does nothing
	left  int    // how many times it may crash, the last of which it does; 0: it does not
}

func newFarm(t testing.TB, tape *attack.Tape) *farm {
	f := &farm{Tape: tape, t: t, cfg: plain(), disk: new(disk), now: start, lies: tape.P(0.5)}
	f.Clock = func() string { return f.now.Format("05.000") }
	timeout := fsd.Duration(f.N(2)) * fsd.Duration(20*time.Second)
	action := []perilog.ActionConfig{{Command: []string{"x"}, PerRank: true, Timeout: timeout}}
	if f.P(0.5) {
		f.cfg.Actions.Prologs = action
	}
	if f.P(0.6) {
		f.cfg.Actions.Epilogs = action
	}
	if f.P(0.4) {
		f.cfg.Actions.Housekeeping = &perilog.HousekeepingConfig{Command: []string{"x"}, Timeout: timeout}
	}
	for rank := range 1 + f.N(3) {
		f.nodes = append(f.nodes, &farmer{rank: uint32(rank), records: map[exec.Task]*exec.TaskStatus{}, began: map[exec.Task]bool{}})
	}
	return f
}

// A fielder is a Scheduler that judges what is freed. A node that it drains is rebooted.
type fielder struct {
	*sched.Scheduler
	f *farm
}

func (s fielder) Handle(msg alloc.Message) error {
	if free, ok := msg.(alloc.Free); ok {
		s.f.Say("free %v of %v, final=%v", free.R, free.ID, free.Final)
		if s.f.final[free.ID] {
			s.f.Fail("I2: %v is freed after the final fragment", free.ID)
		}
		s.f.final[free.ID] = free.Final
		for rank := range free.R.Ranks().All() {
			n := s.f.nodes[rank]
			for _, task := range n.tasks() {
				if task.Job == free.ID && lives(n.records[task]) && !s.f.lies {
					s.f.Fail("I3: node %d is freed, and runs %v", rank, task)
				}
			}
		}
	}
	return s.Scheduler.Handle(msg)
}

func (s fielder) Drain(ranks *idset.Set) error {
	for rank := range ranks.All() {
		s.f.reboot(s.f.nodes[rank], false)
	}
	return s.Scheduler.Drain(ranks)
}

func (f *farm) crash() {
	if f.left--; f.left == 0 {
		panic(errCrash)
	}
}

// begin restores a Manager, and begins a Loop.
func (f *farm) begin(left int) {
	f.Say("a life begins")
	f.left, f.final, f.write = left, map[jobid.ID]bool{}, nil
	f.disk.apart, f.disk.busy, f.disk.stores = nil, false, float64(f.N(3))/2
	f.disk.fault = func(int) error {
		if f.left--; f.left == 0 {
			return errCrash
		}
		return nil
	}
	if f.P(0.5) {
		f.disk.apart = func(rd *joblife.Ready, done func(map[jobid.ID]error, error)) {
			f.write = func() {
				f.write = nil
				done(nil, f.disk.Append(rd.Append))
			}
		}
	}
	f.sched, f.x = onMachine(f.t, uint32(len(f.nodes))), new(exec.Executor)
	f.s = scheduled(f.t, f.now, f.disk, fielder{f.sched, f}, f.cfg, func(c *loop.Config) {
		c.Executor, c.Commands, c.Refused = f.x, f.send, f.refused
	})
	f.s.effects, f.s.did = func(rd *joblife.Ready) {
		for _, e := range rd.Journal {
			f.Say("event %v %s %s", e.Job, e.Entry.Name, e.Entry.Context)
		}
		for _, m := range rd.Exec {
			f.Say("asked %T", m)
		}
		f.crash()
	}, f.crash
	for _, n := range f.nodes {
		f.hangUp(n)
	}
}

func (f *farm) refused(in joblife.Input, err error) {
	switch in.(type) {
	case joblife.Raise, joblife.SetExpiration, joblife.ForceFinish, joblife.Rerun: // the last of a prolog of a job that ends
	default:
		f.Fail("%T %v is refused: %v", in, in, err)
	}
}

// send carries commands to nodes. Some obey at once.
func (f *farm) send(list []exec.Command) {
	for _, c := range list {
		f.crash()
		for rank := range c.Ranks.All() {
			if n := f.nodes[rank]; n.up {
				if n.inbox = append(n.inbox, c); f.P(0.1) {
					f.obey(n)
					f.speak(n)
				}
			}
		}
	}
}

func (f *farm) hangUp(n *farmer) {
	if n.up {
		f.x.Close(n.session)
	}
	n.up, n.inbox, n.outbox = false, nil, nil
}

func (f *farm) connect(n *farmer) {
	f.Say("node %d connects", n.rank)
	f.hangUp(n)
	var list []exec.TaskStatus
	for _, task := range n.tasks() {
		list = append(list, *n.records[task])
	}
	var err error
	n.session, err = f.x.Hello(n.rank, list)
	f.Must(err)
	n.up = true
}

func (f *farm) reboot(n *farmer, wipe bool) {
	f.Say("node %d reboots, wiped=%v", n.rank, wipe)
	f.hangUp(n)
	for _, st := range n.records {
		if st.State == exec.TaskRunning {
			st.State = exec.TaskLost
		} else if st.State == exec.TaskExited {
			st.State = exec.TaskReleased
		}
	}
	if wipe {
		n.records, n.wiped = map[exec.Task]*exec.TaskStatus{}, true
	}
}

// obey carries out the next command.
func (f *farm) obey(n *farmer) {
	if len(n.inbox) == 0 {
		return
	}
	c := n.inbox[0]
	n.inbox = n.inbox[1:]
	st := n.records[c.Task]
	f.Say("node %d: %v %v %d", n.rank, c.Kind, c.Task, c.Signal)
	switch c.Kind {
	case exec.CommandStart:
		if st != nil {
			return
		}
		for _, other := range n.tasks() {
			if lives(n.records[other]) && (other.Job != c.Task.Job || other.Action == c.Task.Action) && !f.lies {
				f.Fail("I3: node %d starts %v, and runs %v", n.rank, c.Task, other)
			}
		}
		if f.final[c.Task.Job] && !f.lies {
			f.Fail("I3: node %d starts %v, and the job has nothing any more", n.rank, c.Task)
		}
		if n.began[c.Task] && !n.wiped && !f.lies {
			f.Fail("I11: node %d starts %v twice", n.rank, c.Task)
		}
		st = &exec.TaskStatus{Task: c.Task, State: exec.TaskRunning}
		if f.P(0.05) { // it never ran, so a manager that dies now may ask again
			st.State = exec.TaskFailed
		}
		n.began[c.Task] = st.State == exec.TaskRunning
		n.records[c.Task] = st
		n.outbox = append(n.outbox, *st)
	case exec.CommandSignal:
		if lives(st) && (c.Signal == 9 || f.P(0.5)) {
			f.ends(n, st, int32(c.Signal))
		}
	case exec.CommandForget:
		if lives(st) && !f.lies {
			f.Fail("node %d is to forget %v, which lives", n.rank, c.Task)
		}
		delete(n.records, c.Task)
	}
}

// ends ends a task, or what is left of it.
func (f *farm) ends(n *farmer, st *exec.TaskStatus, status int32) {
	left := st.State == exec.TaskRunning && status != 9 && f.P(0.3)
	if st.State == exec.TaskRunning {
		st.Status = status
	}
	if st.State = exec.TaskReleased; left {
		st.State = exec.TaskExited
	}
	f.Say("node %d: %v is %v", n.rank, st.Task, st.State)
	n.outbox = append(n.outbox, *st)
}

// speak has a node say the next thing, in this goroutine: the Loop's, or it is between two
// Advances.
func (f *farm) speak(n *farmer) {
	if !n.up || len(n.outbox) == 0 {
		return
	}
	st := n.outbox[0]
	n.outbox = n.outbox[1:]
	f.Must(f.x.Update(n.session, st))
	if f.P(0.1) {
		f.Must(f.x.Update(n.session, st))
	}
}

// lie has a node say what is not so.
func (f *farm) lie(n *farmer) {
	st := exec.TaskStatus{
		Task:   exec.Task{Job: jobid.ID(1 + f.N(f.Jobs+1))},
		State:  []exec.TaskState{exec.TaskRunning, exec.TaskExited, exec.TaskReleased, exec.TaskFailed, exec.TaskLost}[f.N(5)],
		Status: int32(f.N(3)) << 8, Lines: []string{perilog.ControlPrefix + ` {"version":1}`},
	}
	if kind := jobstate.ActionKind(f.N(4)); kind > 0 {
		st.Task.Action, st.Task.Attempt = jobstate.ActionKey{Kind: kind, Description: []string{"", "job-manager.prolog", "job-manager.epilog", ""}[kind]}, 1
	}
	f.Say("node %d lies: %v is %v", n.rank, st.Task, st.State)
	f.Must(f.x.Update(n.session, st))
}

// advance reports whether the Loop has not crashed.
func (f *farm) advance() bool {
	err := f.s.advance(f.now)
	if errors.Is(err, errCrash) {
		f.Say("crash")
		return false
	}
	f.Must(errors.Join(append(f.s.refused, err, joblifetest.Check(f.s.m))...)) // faults
	return true
}

// acts lets one thing happen at a node.
func (f *farm) acts(n *farmer) {
	switch what := f.N(20); {
	case !f.s.l.Hailed(): // as Hear waits
	case !n.up:
		if what < 8 {
			f.connect(n)
		}
	case what < 8:
		f.obey(n)
	case what < 12:
		f.speak(n)
	case what < 14 && len(n.outbox) > 0: // from another goroutine, if there were one
		session, st := n.session, n.outbox[0]
		n.outbox = n.outbox[1:]
		f.Must(f.s.l.Do(func(*joblife.Manager) func() {
			if err := f.x.Update(session, st); !errors.Is(err, exec.ErrSession) {
				f.Must(err)
			}
			return nil
		}))
	case what < 17:
		if tasks := n.tasks(); len(tasks) > 0 {
			if st := n.records[tasks[f.N(len(tasks))]]; lives(st) {
				f.ends(n, st, int32(f.N(5)/4)<<8)
			}
		}
	case what == 17:
		f.hangUp(n)
	case what == 18 && f.P(0.3):
		f.reboot(n, f.P(0.5))
	case what == 18 && f.P(0.3):
		f.reboot(n, false)
		f.Say("node %d is given up", n.rank)
		f.x.Fail(n.rank, "fenced")
	case what == 19 && f.lies:
		f.lie(n)
	}
}

// force has an operator end an action on a node that is gone, where nothing runs. It reports
// whether the Loop has not crashed.
func (f *farm) force(id jobid.ID, n *farmer) bool {
	if n.up || slices.ContainsFunc(n.tasks(), func(task exec.Task) bool { return lives(n.records[task]) }) {
		return true
	}
	f.Say("an operator ends the actions of %v on node %d", id, n.rank)
	for _, key := range []jobstate.ActionKey{{Kind: jobstate.ActionProlog, Description: "job-manager.prolog"}, {Kind: jobstate.ActionEpilog, Description: "job-manager.epilog"}} {
		a := joblife.Action{Job: id, Key: key, Ranks: idset.Of(n.rank)}
		f.s.put(joblife.ForceFinish{Action: a, Status: 256, Operator: "root"})
	}
	for goes := f.advance(); ; goes = f.advance() {
		if !goes || f.write == nil {
			return goes
		}
		f.write()
	}
}

// live is a life of the Loop.
func (f *farm) live(left int) {
	f.begin(left)
	for range 10 + f.N(80) {
		f.Steps++
		if f.write != nil && f.P(0.3) {
			f.write()
		}
		id := jobid.ID(1 + f.N(4))
		switch n := f.N(20); {
		case n < 6:
			if !f.advance() {
				return
			}
		case n < 15:
			f.acts(f.nodes[f.N(len(f.nodes))])
		case n == 15:
			f.now = f.now.Add(time.Duration(f.N(9)) * time.Second)
		case n == 16 && !f.lies && f.P(0.5):
			if !f.force(id, f.nodes[f.N(len(f.nodes))]) {
				return
			}
		case n == 17 && f.P(0.5):
			f.s.put(joblife.Raise{ID: id, Type: "cancel"})
		case n == 18 && f.P(0.5):
			f.s.put(joblife.SetExpiration{ID: id, Expiration: eventlog.FromTime(f.now.Add(5 * time.Second))})
		case f.Jobs < 4:
			f.Jobs++
			f.s.put(wholeNodes(f.t, jobid.ID(f.Jobs), int64(1+f.N(len(f.nodes)))))
		}
	}
}

func (f *farm) run() {
	for range f.N(6) {
		f.live(f.N(60))
		f.Crashes++ // or it ends between two inputs
	}
	f.begin(0)
	for n, idle := 0, false; !idle; n++ {
		if n > 1000 {
			f.Fail("it goes on for ever")
		}
		for f.advance(); f.write != nil; f.advance() {
			f.write()
		}
		idle = true
		for _, n := range f.nodes {
			if !n.up {
				f.connect(n)
				idle = false
			}
			for ; len(n.inbox) > 0; idle = false {
				f.obey(n)
			}
			for _, task := range n.tasks() {
				if st := n.records[task]; lives(st) {
					f.ends(n, st, 0)
					idle = false
				}
			}
			for ; len(n.outbox) > 0; idle = false {
				f.speak(n)
			}
		}
		for _, due := range []func() (time.Time, bool){f.s.m.Deadline, func() (time.Time, bool) { at, ok := f.x.Deadline(); return at.Time(), ok }} {
			if at, ok := due(); ok && idle {
				f.now, idle = later(f.now, at), false
			}
		}
		if down := f.sched.Pool().Down().Ranks(); idle && !down.IsEmpty() {
			idle = false
			f.Must(f.s.l.Do(func(*joblife.Manager) func() {
				f.Must(f.sched.Acquire(pool.Acquire{Change: pool.Change{Up: down}}))
				return nil
			}))
		}
	}
	for v := range f.s.m.Jobs(jobstate.StateNew | jobstate.StateActive) {
		f.Fail("job %v is left in %v", v.ID(), v.State())
	}
	if free := f.sched.Pool().Available().Ranks(); free.Len() != len(f.nodes) {
		f.Fail("only %v is free in the end", free)
	}
	for _, n := range f.nodes {
		if left := n.tasks(); len(left) > 0 {
			f.Fail("node %d has records for ever: %v", n.rank, left)
		}
	}
	_, _ = fmt.Fprint(f.Hash, f.disk.text(f.t))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
