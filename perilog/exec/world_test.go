package exec_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

const worldRanks = 3

// A process of a task, on a node.
type process struct {
	exec.TaskStatus
	signal int // it was sent
}

func (p *process) lives() bool { return p.State == exec.TaskRunning || p.State == exec.TaskExited }

// A worldNode is a node as it should be: it keeps a record until it is told to forget it.
type worldNode struct {
	rank      uint32
	session   exec.Session
	connected bool
	records   map[exec.Task]*process
	inbox     []exec.Command    // on their way to the node
	outbox    []exec.TaskStatus // on their way to the manager
	began     map[exec.Task]int // how often it started a task
	wiped     bool              // it has lost records
}

func (n *worldNode) tasks() []exec.Task {
	return slices.SortedFunc(maps.Keys(n.records), func(a, b exec.Task) int {
		return slices.Compare([]byte(a.String()), []byte(b.String()))
	})
}

// A world is a manager with an executor, and nodes that outlive it.
type world struct {
	t       *rapid.T
	cfg     joblife.Config
	stored  []joblife.Record
	m       *joblife.Manager
	x       *exec.Executor
	now     time.Time
	nodes   []*worldNode
	inputs  []joblife.Input
	waiting []jobid.ID
	holder  [worldRanks]jobid.ID
	final   map[jobid.ID]int // frees in this life
	said    map[jobid.ID]string
	lines   map[exec.Task][worldRanks]int // how many control lines were reported in this life
	// What the manager asked last.
	reattach map[jobid.ID]bool
	next     jobid.ID
	trace    []string
	lies     bool // nodes say what is not so
	lost     []joblife.Unresolved
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, now: time.Unix(1_700_000_000, 0), next: 1}
	action := []perilog.ActionConfig{{Command: []string{"x"}, PerRank: true}}
	if rapid.Bool().Draw(t, "prolog") {
		w.cfg.Actions.Prologs = action
	}
	if rapid.Bool().Draw(t, "epilog") {
		w.cfg.Actions.Epilogs = action
	}
	if rapid.Bool().Draw(t, "housekeeping") {
		w.cfg.Actions.Housekeeping = &perilog.HousekeepingConfig{Command: []string{"x"}}
	}
	for rank := range uint32(worldRanks) {
		w.nodes = append(w.nodes, &worldNode{rank: rank, records: map[exec.Task]*process{}, began: map[exec.Task]int{}})
	}
	w.begin()
	return w
}

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	for _, line := range w.trace {
		w.t.Log(line)
	}
	w.t.Fatalf(format, args...)
}

func (w *world) stamp() eventlog.Timestamp { return eventlog.FromTime(w.now) }

// begin restores the manager from what is durable.
func (w *world) begin() {
	w.note("the manager begins")
	m, left, err := joblife.Restore(w.now, w.cfg, func(yield func(joblife.Record, error) bool) {
		for _, r := range w.stored {
			if !yield(r, nil) {
				return
			}
		}
	})
	if err != nil {
		w.fail("restore: %v", err)
	}
	w.m, w.x, w.inputs, w.waiting = m, new(exec.Executor), nil, nil
	w.lines = map[exec.Task][worldRanks]int{}
	w.final, w.said, w.reattach = map[jobid.ID]int{}, map[jobid.ID]string{}, map[jobid.ID]bool{}
	for _, n := range w.nodes {
		w.disconnect(n)
	}
	w.lost = left.Unresolved
	for _, u := range left.Unresolved {
		if err := w.x.Recover(u.Job, u.Unresolved); err != nil {
			w.fail("recover: %v", err)
		}
	}
	w.put(joblife.SchedHello{PartialOK: true}, joblife.SchedReady{}, joblife.ExecHello{})
}

func (w *world) put(inputs ...joblife.Input) {
	w.inputs = append(w.inputs, inputs...)
	for len(w.inputs) > 0 {
		in := w.inputs[0]
		w.inputs = w.inputs[1:]
		if err := w.m.Step(w.now, in); err != nil {
			switch in := in.(type) {
			case joblife.Rerun: // of a prolog of a job that ends
				if w.note("%v", err); in.Ranks == nil {
					continue // an administrator is told
				}
				w.inputs = append(w.inputs, joblife.ForceFinish{Action: in.Action, Status: 9, Operator: "test"})
			case joblife.Raise:
			default:
				w.fail("%+v is refused: %v", in, err)
			}
		}
		var rd joblife.Ready
		for w.m.Ready(&rd) {
			for _, r := range rd.Append {
				w.stored = append(w.stored, r.Clone())
			}
			w.do(&rd)
			if err := w.m.Done(rd.Seq); err != nil {
				w.fail("%v", err)
			}
		}
		w.take()
	}
}

// do carries out a Ready: the scheduler first, then the executor.
func (w *world) do(rd *joblife.Ready) {
	if rd.Hello != nil {
		w.holder = [worldRanks]jobid.ID{}
		for _, h := range rd.Hello.Responses {
			for rank := range idset.Difference(h.R.Ranks(), h.Free).All() {
				w.holder[rank] = h.ID
			}
		}
	}
	for _, msg := range rd.Sched {
		switch msg := msg.(type) {
		case alloc.Request:
			w.waiting = append(w.waiting, msg.ID)
		case alloc.Cancel:
			w.waiting = slices.DeleteFunc(w.waiting, func(id jobid.ID) bool { return id == msg.ID })
			w.inputs = append(w.inputs, joblife.SchedResponse{ID: msg.ID, Type: alloc.ResponseCancel})
		case alloc.Free:
			w.free(msg)
		}
	}
	for _, msg := range rd.Exec {
		if s, ok := msg.(exec.Start); ok {
			w.note("start %v on %v reattach=%v started=%v", s.ID, s.R.Ranks(), s.Reattach, s.Started)
			w.said[s.ID], w.reattach[s.ID] = "", s.Reattach
		}
		if err := w.x.Handle(msg); err != nil {
			w.fail("do: %v", err)
		}
	}
	for _, r := range rd.Raised {
		if r.Severity == 0 {
			w.note("raised: %v %s %s", r.Job, r.Type, r.Note)
			w.x.Kill(r.Job, r.WaitStatus)
		}
	}
	for _, l := range rd.Launch {
		w.note("launch %v %v %d on %v", l.Job, l.Action, l.Attempt, l.Ranks)
		if err := w.x.Launch(l.Job, l.Launch); err != nil {
			w.fail("launch: %v", err)
		}
	}
	for _, s := range rd.Signal {
		w.x.Signal(s.Job, s.Signal)
	}
	for _, d := range rd.Drain { // a drained node is rebooted: something may run on there
		for rank := range d.Ranks.All() {
			w.reboot(w.nodes[rank], false)
		}
		w.inputs = append(w.inputs, joblife.Drained{Ranks: d.Ranks.Clone()})
	}
	for _, e := range rd.Journal {
		w.note("%v %s %s", e.Job, e.Entry.Name, e.Entry.Context)
		if e.Entry.Name == jobstate.EventClean {
			w.x.Forget(e.Job, false)
		}
	}
	for _, f := range rd.Faults {
		w.fail("%v", f)
	}
	w.allocate()
}

// free judges that nothing of a job runs where it is freed (I3), and that one fragment is
// final (I2).
func (w *world) free(f alloc.Free) {
	if f.R != nil {
		for rank := range f.R.Ranks().All() {
			for _, task := range w.nodes[rank].tasks() {
				if p := w.nodes[rank].records[task]; task.Job == f.ID && p.lives() && !w.lies {
					w.fail("I3: rank %d is freed, and %v is %v there", rank, task, p.State)
				}
			}
			w.holder[rank] = 0
		}
	}
	if w.final[f.ID] > 0 {
		w.fail("I2: a fragment of %v after the final one", f.ID)
	}
	if f.Final {
		w.final[f.ID]++
		w.x.Forget(f.ID, true)
	}
}

func (w *world) allocate() {
	for len(w.waiting) > 0 {
		id := w.waiting[0]
		spec, _ := w.m.Job(id)
		need := 1 + int(spec.ID()%worldRanks)
		ranks := new(idset.Set)
		for rank, holder := range w.holder {
			if holder == 0 && ranks.Len() < need {
				ranks.Insert(uint32(rank))
			}
		}
		if ranks.Len() < need {
			return
		}
		for rank := range ranks.All() {
			w.holder[rank] = id
		}
		w.waiting = w.waiting[1:]
		expires := eventlog.Timestamp(0)
		if rapid.Bool().Draw(w.t, "expires") {
			expires = w.stamp() + 60
		}
		r, err := rset.New(rset.Config{Start: w.stamp(), Expiration: expires, Entries: []rset.Entry{{Ranks: ranks, Children: map[string]*idset.Set{"core": idset.Of(0)}}}})
		require.NoError(w.t, err)
		w.inputs = append(w.inputs, joblife.SchedResponse{ID: id, R: r})
	}
}

// respond judges the order of the responses of a job in a session, and passes them on.
func (w *world) respond(r exec.Response) {
	w.note("response %v %v %v final=%v status=%d %s", r.ID, r.Type, r.Ranks, r.Final, r.Status, r.Exception.Note)
	if r.Type == exec.ResponseStart && w.reattach[r.ID] || r.Type == exec.ResponseReattached && !w.reattach[r.ID] {
		w.fail("%v: %v, and it was asked with reattach=%v", r.ID, r.Type, w.reattach[r.ID])
	}
	for _, n := range w.nodes {
		if p := n.records[exec.Task{Job: r.ID}]; r.Type == exec.ResponseFinish && p != nil && p.State == exec.TaskRunning && !w.lies {
			w.fail("%v is finished, and runs on rank %d", r.ID, n.rank)
		}
	}
	before := w.said[r.ID]
	code := map[exec.ResponseType]string{
		exec.ResponseStart: "s", exec.ResponseReattached: "s", exec.ResponseException: "x", exec.ResponseFinish: "f", exec.ResponseRelease: "r",
	}[r.Type]
	has := func(c string) bool { return slices.Contains([]byte(before), c[0]) }
	switch {
	case has("z"), code != "r" && has(code), code == "s" && has("f"), code == "r" && !has("f"):
		w.fail("%v: %v after %q", r.ID, r.Type, before)
	case r.Final:
		code = "z"
	}
	w.said[r.ID] += code
	w.inputs = append(w.inputs, joblife.ExecResponse(r))
}

func (w *world) take() {
	require.NoError(w.t, w.x.Check())
	todo := w.x.Take(w.stamp())
	require.NoError(w.t, w.x.Check())
	for _, c := range todo.Commands {
		for rank := range c.Ranks.All() {
			if n := w.nodes[rank]; n.connected {
				n.inbox = append(n.inbox, c)
			}
		}
	}
	for _, r := range todo.Responses {
		w.respond(r)
	}
	for _, r := range todo.Refused {
		w.note("refused %v %q", r.ID, r.Note)
		w.inputs = append(w.inputs, joblife.ExecRefused{ID: r.ID, Note: r.Note})
	}
	for _, r := range todo.Reports {
		w.note("report %v %+v", r.Job, r.Report)
		w.judge(r)
		w.inputs = append(w.inputs, joblife.Report{Job: r.Job, Report: r.Report})
	}
	for _, r := range todo.Missing {
		w.note("missing %+v", r)
		w.inputs = append(w.inputs, joblife.Rerun{Action: joblife.Action{Job: r.Job, Key: r.Action, Ranks: idset.Of(r.Rank)}})
	}
}

func controlLine(n int) string { return fmt.Sprintf(`perilog-control: {"version":1,"note":"%d"}`, n) }

// judge judges that each control line is reported once in a life, in order, and before the end.
func (w *world) judge(r exec.Report) {
	task := exec.Task{Job: r.Job, Action: r.Action, Attempt: r.Attempt}
	heard := w.lines[task]
	if n := heard[r.Rank]; r.Kind == perilog.ReportOutput {
		if string(r.Line) != controlLine(n) {
			w.fail("%v on rank %d: line %d is %s", task, r.Rank, n, r.Line)
		}
		heard[r.Rank]++
		w.lines[task] = heard
	} else if p := w.nodes[r.Rank].records[task]; r.Kind == perilog.ReportExited && p != nil && p.State == exec.TaskReleased && n != len(p.Lines) && !w.lies {
		w.fail("%v on rank %d: %d lines are reported before the end, not %d", task, r.Rank, n, len(p.Lines))
	}
}

func (w *world) connect(n *worldNode) {
	w.note("node %d connects", n.rank)
	n.connected, n.inbox, n.outbox = true, nil, nil
	var list []exec.TaskStatus
	for _, task := range n.tasks() {
		list = append(list, n.records[task].TaskStatus)
		w.note("  and has %v %v %d", task, n.records[task].State, n.records[task].Status)
	}
	s, err := w.x.Hello(n.rank, list)
	if err != nil {
		w.fail("hello: %v", err)
	}
	n.session = s
	w.take()
	w.put()
}

func (w *world) disconnect(n *worldNode) {
	if !n.connected {
		return
	}
	w.note("node %d disconnects", n.rank)
	w.x.Close(n.session)
	n.connected, n.inbox, n.outbox = false, nil, nil
}

// obey carries out the next command.
func (w *world) obey(n *worldNode) {
	c := n.inbox[0]
	n.inbox = n.inbox[1:]
	p := n.records[c.Task]
	w.note("node %d: %v %v %d", n.rank, c.Kind, c.Task, c.Signal)
	switch c.Kind {
	case exec.CommandStart:
		if p != nil {
			return
		}
		if n.began[c.Task]++; n.began[c.Task] > 1 && !n.wiped && !w.lies {
			w.fail("I11: node %d starts %v twice", n.rank, c.Task)
		}
		for _, other := range n.tasks() {
			if !w.lies && other.Job == c.Task.Job && other.Action == c.Task.Action && n.records[other].lives() {
				w.fail("I3: node %d starts %v, and %v is %v", n.rank, c.Task, other, n.records[other].State)
			}
		}
		if w.holder[n.rank] != c.Task.Job && !w.lies {
			w.fail("node %d starts %v, and %v has it", n.rank, c.Task, w.holder[n.rank])
		}
		p = &process{TaskStatus: exec.TaskStatus{Task: c.Task, State: exec.TaskRunning}}
		if rapid.IntRange(0, 9).Draw(w.t, "fails") == 9 {
			p.State, p.Note = exec.TaskFailed, "no such file"
		}
		n.records[c.Task] = p
		n.outbox = append(n.outbox, p.TaskStatus)
	case exec.CommandSignal:
		if p != nil && p.lives() {
			p.signal = max(p.signal, 1)
			if c.Signal == 9 {
				w.end(n, p, 9)
				w.end(n, p, 0)
			}
		}
	case exec.CommandForget:
		if p != nil && p.lives() && !w.lies {
			w.fail("node %d is to forget %v, which is %v", n.rank, c.Task, p.State)
		}
		delete(n.records, c.Task)
	}
}

// end ends a process, or what it left.
func (w *world) end(n *worldNode, p *process, status int32) {
	switch {
	case p.State == exec.TaskExited:
		p.State = exec.TaskReleased
	case p.State != exec.TaskRunning:
		return
	default:
		p.State, p.Status = exec.TaskExited, status
		if rapid.Bool().Draw(w.t, "at once") {
			p.State = exec.TaskReleased
		}
	}
	w.note("node %d: %v is %v %d", n.rank, p.Task, p.State, p.Status)
	if n.connected {
		n.outbox = append(n.outbox, p.TaskStatus)
	}
}

func (w *world) hear(n *worldNode) {
	st := n.outbox[0]
	n.outbox = n.outbox[1:]
	if err := w.x.Update(n.session, st); err != nil {
		w.fail("update: %v", err)
	}
	if rapid.IntRange(0, 9).Draw(w.t, "twice") == 9 {
		require.NoError(w.t, w.x.Update(n.session, st))
	}
	w.take()
	w.put()
}

// reboot ends all processes of a node.
func (w *world) reboot(n *worldNode, wipe bool) {
	w.note("node %d reboots, wiped=%v", n.rank, wipe)
	w.disconnect(n)
	for _, p := range n.records {
		if p.State == exec.TaskRunning {
			p.State = exec.TaskLost
		} else if p.State == exec.TaskExited {
			p.State = exec.TaskReleased
		}
	}
	if wipe {
		n.records, n.wiped = map[exec.Task]*process{}, true
	}
}

func (w *world) tick(d time.Duration) {
	w.now = w.now.Add(d)
	w.take()
	w.put(joblife.Tick{})
}

const worldSpec = `{"version":1,"resources":[{"type":"slot","count":1,"label":"t","with":[{"type":"core","count":1}]}],` +
	`"tasks":[{"command":["x"],"slot":"t","count":{"per_slot":1}}],"attributes":{"system":{"duration":0}}}`

func (w *world) act() {
	n := w.nodes[rapid.IntRange(0, worldRanks-1).Draw(w.t, "node")]
	switch what := rapid.IntRange(0, 21).Draw(w.t, "what"); {
	case what == 0:
		w.next++
		w.put(joblife.Submit{ID: w.next, Jobspec: []byte(worldSpec), Urgency: jobstate.UrgencyDefault})
	case what < 6:
		if !n.connected {
			w.connect(n)
		} else if len(n.inbox) > 0 {
			w.obey(n)
		}
	case what < 10:
		if len(n.outbox) > 0 {
			w.hear(n)
		}
	case what < 14:
		if tasks := n.tasks(); len(tasks) > 0 {
			p := n.records[tasks[rapid.IntRange(0, len(tasks)-1).Draw(w.t, "task")]]
			if p.Task.Action.Kind != 0 && p.State == exec.TaskRunning && rapid.Bool().Draw(w.t, "writes") {
				p.Lines = append(p.Lines, controlLine(len(p.Lines)))
				if n.connected {
					n.outbox = append(n.outbox, p.TaskStatus)
				}
				return
			}
			w.end(n, p, int32(rapid.IntRange(0, 2).Draw(w.t, "status"))<<8)
		}
	case what == 14:
		w.disconnect(n)
	case what == 15:
		w.reboot(n, rapid.Bool().Draw(w.t, "wipe"))
	case what == 16:
		w.reboot(n, false)
		w.note("node %d is given up", n.rank)
		w.x.Fail(n.rank, "fenced")
		w.take()
		w.put()
	case what == 17:
		w.tick(time.Duration(rapid.IntRange(0, 90).Draw(w.t, "seconds")) * time.Second)
	case what == 18:
		if w.next > 1 {
			id := jobid.ID(rapid.IntRange(2, int(w.next)).Draw(w.t, "job"))
			w.put(joblife.Raise{ID: id, Type: "cancel"})
		}
	case what == 19:
		w.begin()
	case what == 20:
		w.note("the executor begins another session")
		w.put(joblife.ExecLost{}, joblife.ExecHello{})
	case !w.lies && len(w.lost) > 0:
		u := w.lost[rapid.IntRange(0, len(w.lost)-1).Draw(w.t, "lost")]
		w.note("an administrator runs %v of %v again", u.Action, u.Job)
		w.put(joblife.Rerun{Action: joblife.Action{Job: u.Job, Key: u.Action}})
	case w.lies && n.connected:
		w.lie(n)
	}
}

// lie lets a node say what is not so.
func (w *world) lie(n *worldNode) {
	st := exec.TaskStatus{
		Task:   exec.Task{Job: jobid.ID(rapid.IntRange(1, int(w.next)+1).Draw(w.t, "job"))},
		State:  rapid.SampledFrom([]exec.TaskState{exec.TaskRunning, exec.TaskExited, exec.TaskReleased, exec.TaskFailed, exec.TaskLost}).Draw(w.t, "state"),
		Status: int32(rapid.IntRange(0, 3).Draw(w.t, "status")), Note: "a lie",
	}
	if rapid.Bool().Draw(w.t, "action") {
		st.Task.Action = jobstate.ActionKey{Kind: jobstate.ActionEpilog, Description: "job-manager.epilog"}
		st.Task.Attempt = uint32(rapid.IntRange(1, 2).Draw(w.t, "attempt"))
	}
	w.note("node %d lies: %v is %v", n.rank, st.Task, st.State)
	require.NoError(w.t, w.x.Update(n.session, st))
	w.take()
	w.put()
}

// heal plays without faults until nothing happens any more.
func (w *world) heal() {
	for range 1000 {
		idle := true
		for _, n := range w.nodes {
			if !n.connected {
				w.connect(n)
				idle = false
			}
			for ; len(n.inbox) > 0; idle = false {
				w.obey(n)
			}
			for _, task := range n.tasks() {
				if p := n.records[task]; p.lives() {
					w.end(n, p, 0)
					idle = false
				}
			}
			for ; len(n.outbox) > 0; idle = false {
				w.hear(n)
			}
		}
		if w.tick(time.Second); idle {
			break
		}
	}
	for v := range w.m.Jobs(jobstate.StateNew | jobstate.StateActive) {
		w.fail("%v does not end: it is in %v", v.ID(), v.State())
	}
	for rank, holder := range w.holder {
		if holder != 0 {
			w.fail("rank %d is held by %v", rank, holder)
		}
		if left := w.nodes[rank].tasks(); len(left) > 0 {
			w.fail("node %d has records for ever: %v", rank, left)
		}
	}
}

// Whatever nodes and the manager do, each job ends, its responses come once and in order,
// the manager refuses none, and no rank is freed while something runs there (I2, I3, I11).
func TestEachJobEndsWhateverFails(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			w.act()
		}
		w.heal()
	})
}

// A node that lies harms only what runs there: no answer is refused, and each job ends.
func TestEachJobEndsThoughNodesLie(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.lies = true
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			w.act()
		}
		w.heal()
	})
}
