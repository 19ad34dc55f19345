package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/attack"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset/alloc"
)

// TestAttackOfStrangers lets schedulers and executors come and go on a socket, each on a
// connection of its own or by way of a bridge, while those who were replaced answer late and
// strangers forge.
func TestAttackOfStrangers(t *testing.T) {
	t.Parallel()
	did := make(map[string]int)
	attack.Soak(t, os.Getenv("JOBLIFE_SOAK"), func(tape *attack.Tape) { newAssault(judge{t, tape}, did).run() })
	t.Log(did)
	for _, what := range []string{"forged", "late", "scheduler", "executor", "clean", "epilog-finish"} {
		require.Positive(t, did[what], what)
	}
}

// A judge ends a run at what is wrong, so that the run can be made short.
type judge struct {
	testing.TB
	tape *attack.Tape
}

func (j judge) Errorf(format string, args ...any) { j.tape.Fail(format, args...) }

// nodes is how many there are. A job has one.
const nodes = 5

// forgedStatus is how no job ends.
const forgedStatus = 7 << 8

// An assault is a manager on a socket, and all who talk to it.
type assault struct {
	t       testing.TB
	tape    *attack.Tape
	socket  *socket
	wires   []*wire
	sched   *partner   // who has the session
	exec    *partner   // the same
	past    []*partner // those that were replaced, and still speak
	last    int        // number of a partner
	jobs    []*fate    // by id, from 1
	held    [nodes]int // which job has a node, as the journal says
	asked   []*remote  // what the bridge was asked
	drained bool
	log     []byte         // what getattr says
	did     map[string]int // for the summary
}

// A wire is a connection. The first is the bridge's, and the second is shared by partners
// that have names.
type wire struct {
	client   int
	partners map[string]*partner // by sender; "": the only one
}

// A partner is a scheduler or an executor, as it believes to be.
type partner struct {
	*wire
	executor bool
	sender   string
	waiting  []int        // jobs that it was asked for, and has not answered to the end
	canceled []int        // requests that it was asked to take back
	holds    map[int]int  // nodes, by job
	reattach map[int]bool // whether a job may run already
	begun    map[int]bool // whether the manager was told that it runs
	welcome  bool         // its ready has its answer
}

// A remote is a call to the bridge.
type remote struct {
	tag   uint32
	topic string
	job   int
	stage int
}

// A fate is what the right partners said of a job, and what is so.
type fate struct {
	node          int // that it was given
	running, over bool
	status        int
	swept         bool // the bridge has run its epilog
	safe          bool // its node was drained
	canceled      bool
	seen          map[string]bool // the events of its log
}

func newAssault(j judge, did map[string]int) *assault {
	a := &assault{t: j, tape: j.tape, socket: newSocket(j, 0, "-owner=100"), jobs: []*fate{nil}, did: did}
	a.say(a.dial(), `"topic":"job-manager.config-reload","payload":{"job-manager":{"epilog":{"command":["sweep"],"per-rank":true}}}`)
	a.say(a.wires[0], `"topic":"job-manager.events-journal","matchtag":5,"payload":{}`)
	a.dial()
	return a
}

func (a *assault) dial() *wire {
	w := &wire{client: a.socket.connect(nil), partners: make(map[string]*partner)}
	a.wires = append(a.wires, w)
	return w
}

func (a *assault) run() {
	for range 600 {
		a.step()
	}
	a.finish()
}

// leave ends a connection.
func (a *assault) leave(w *wire) {
	a.socket.leave(w.client)
	a.wires = slices.DeleteFunc(a.wires, func(o *wire) bool { return o == w })
	a.past = slices.DeleteFunc(a.past, func(p *partner) bool { return p.wire == w })
	for _, p := range w.partners {
		a.lose(p)
	}
	a.read()
}

// lose ends the session of a partner, if it has one.
func (a *assault) lose(p *partner) {
	switch p {
	case a.sched:
		a.sched = nil
	case a.exec:
		a.exec = nil
	}
}

// say sends a line, without its braces, and reads what all connections get of it.
func (a *assault) say(w *wire, format string, args ...any) {
	a.socket.say(w.client, fmt.Sprintf("{"+format+"}", args...))
	a.read()
}

// tell is say for a partner.
func (a *assault) tell(p *partner, format string, args ...any) {
	if p.sender != "" {
		format = `"sender":"` + p.sender + `",` + format
	}
	a.say(p.wire, format, args...)
}

func (a *assault) read() {
	for _, w := range a.wires {
		require.False(a.t, a.socket.closed[w.client])
		for text := range strings.Lines(a.socket.hears(w.client)) {
			a.hear(w, text)
		}
	}
}

// A body is what a payload has that matters here.
type body struct {
	ID       int  `json:"id"`
	Reattach bool `json:"reattach"`
	Events   []struct {
		Name    string `json:"name"`
		Context struct {
			Type   string `json:"type"`
			Status int    `json:"status"`
		} `json:"context"`
	} `json:"events"`
	Eventlog []json.RawMessage `json:"eventlog"`
	Targets  string            `json:"targets"`
	Cmd      struct {
		Env struct {
			ID jobid.ID `json:"FLUX_JOB_ID"`
		} `json:"env"`
	} `json:"cmd"`
	R struct {
		Execution struct {
			List []struct {
				Rank string `json:"rank"`
			} `json:"R_lite"`
		} `json:"execution"`
	}
}

// node returns the node of an R, -1 if there is none.
func (b *body) node() int {
	if len(b.R.Execution.List) != 1 {
		return -1
	}
	node, err := strconv.Atoi(b.R.Execution.List[0].Rank)
	if err != nil {
		return -1
	}
	return node
}

// hear takes a line of the manager.
func (a *assault) hear(w *wire, text string) {
	m, err := parseMessage([]byte(text))
	if err == errNoTopic { // an event
		return
	}
	require.NoError(a.t, err, text)
	var b body
	if m.Payload != nil {
		require.NoError(a.t, json.Unmarshal(m.Payload, &b), text)
	}
	name := ""
	if m.Sender != nil {
		name = *m.Sender
	}
	switch p := w.partners[name]; {
	case m.Errnum != 0 && m.Errnum != 61: // what was said does not count
	case w == a.wires[0]:
		a.bridge(m, b)
	case p != nil:
		a.ask(p, m, b, text)
	default:
		require.True(a.t, strings.HasPrefix(m.Topic, "job-manager."), "a stranger is asked: %s", text)
	}
}

// accepted notes that a hello was.
func (a *assault) accepted(p *partner) {
	now := &a.sched
	if p.executor {
		now = &a.exec
	}
	if *now != p && *now != nil {
		a.past = append(a.past, *now)
	}
	*now = p
}

// ask takes what a partner is asked or told.
func (a *assault) ask(p *partner, m message, b body, text string) {
	switch m.Topic {
	case alloc.TopicHello:
		if a.accepted(p); m.Errnum == 0 {
			p.holds[b.ID] = b.node()
		}
		return
	case exec.TopicHello:
		a.accepted(p)
		return
	}
	if strings.HasPrefix(m.Topic, "job-manager.") {
		p.welcome = p.welcome || m.Topic == "job-manager.sched-ready"
		return
	}
	require.True(a.t, p == a.sched || p == a.exec, "one that was replaced is asked: %s", text)
	switch m.Topic {
	case "sched.alloc":
		require.NotContains(a.t, p.waiting, b.ID, "it is asked twice")
		require.NotContains(a.t, p.holds, b.ID, "it is asked for what it gave")
		p.waiting = append(p.waiting, b.ID)
	case "sched.cancel":
		p.canceled = append(p.canceled, b.ID)
	case "sched.free":
		require.Contains(a.t, p.holds, b.ID, "it is freed twice")
		delete(p.holds, b.ID)
	case "exec.start":
		require.NotContains(a.t, p.waiting, b.ID, "it is asked twice")
		p.waiting = append(p.waiting, b.ID)
		p.reattach[b.ID] = b.Reattach
	}
}

// bridge takes what the bridge is asked or told.
func (a *assault) bridge(m message, b body) {
	switch m.Topic {
	case "job-manager.events-journal":
		for _, e := range b.Events {
			a.judge(b.ID, e.Name, e.Context.Type, e.Context.Status, b.node())
		}
	case "job-manager.getattr":
		a.log = nil
		for _, e := range b.Eventlog {
			a.log = append(append(a.log, e...), '\n')
		}
	case "job-manager.drain":
		a.drained = true
	case "rexec.exec":
		a.asked = append(a.asked, &remote{tag: *m.Matchtag, topic: m.Topic, job: int(b.Cmd.Env.ID)})
	case "resource.drain":
		node, err := strconv.Atoi(b.Targets)
		require.NoError(a.t, err)
		a.asked = append(a.asked, &remote{tag: *m.Matchtag, topic: m.Topic, job: a.held[node]})
	}
}

// judge takes an event of a job.
func (a *assault) judge(id int, name, kind string, status, node int) {
	f := a.jobs[id]
	a.did[name]++
	f.seen[name] = true
	switch name {
	case "alloc":
		require.Equal(a.t, f.node, node, "job %d was given a node by one who may not", id)
		require.Zero(a.t, a.held[node], "node %d is given twice", node)
		a.held[node] = id
	case "start":
		require.True(a.t, f.running, "job %d was not started", id)
	case "finish":
		require.True(a.t, f.over, "job %d is not over", id)
		require.Equal(a.t, f.status, status, "job %d did not end so", id)
	case "exception":
		require.Contains(a.t, []string{"cancel", "epilog"}, kind)
	case "free":
		require.Equal(a.t, id, a.held[f.node])
		require.True(a.t, f.over || !f.running, "job %d runs and its node is free", id)
		a.held[f.node] = 0
		require.True(a.t, !f.seen["perilog-fail"] || f.safe, "job %d: the node was not drained", id)
	case "epilog-finish":
		require.True(a.t, f.swept, "job %d: its epilog is not over", id)
	}
}

// step does something.
func (a *assault) step() {
	a.tape.Steps++
	switch n := a.tape.N(100); {
	case n < 10:
		a.jobs = append(a.jobs, &fate{node: -1, seen: make(map[string]bool)})
		a.say(a.wires[0], `"topic":"job-manager.submit","matchtag":7,"payload":{"jobs":[{"id":%d,"urgency":16,"userid":100,"t_submit":1000.0,"flags":0,"jobspec":%s}]}`, len(a.jobs)-1, sleep)
	case n < 12 && len(a.jobs) > 1:
		id := 1 + a.tape.N(len(a.jobs)-1)
		a.jobs[id].canceled = true
		a.say(a.wires[0], `"topic":"job-manager.raise","matchtag":7,"payload":{"id":%d,"severity":0,"type":"cancel"}`, id)
	case n < 15:
		a.come(false)
	case n < 17:
		a.come(true)
	case n < 19:
		a.depart(a.sched)
	case n < 20:
		a.depart(a.exec)
	case n < 21 && len(a.wires) < 8:
		a.dial()
	case n < 22 && len(a.wires) > 2:
		a.leave(a.wires[2+a.tape.N(len(a.wires)-2)])
	case n < 37:
		a.forge()
	case n < 50:
		a.late()
	case n < 70:
		a.schedule()
	case n < 85:
		a.execute()
	default:
		a.serve()
	}
}

// come lets a scheduler or an executor say hello.
func (a *assault) come(executor bool) {
	a.last++
	p := &partner{
		wire: a.wires[1], executor: executor, sender: fmt.Sprint("p", a.last),
		holds: make(map[int]int), reattach: make(map[int]bool), begun: make(map[int]bool),
	}
	if a.tape.N(2) == 0 {
		p.wire, p.sender = a.dial(), ""
	}
	p.partners[p.sender] = p
	if executor {
		a.did["executor"]++
		a.tell(p, `"topic":"job-manager.exec-hello","payload":{"service":"exec"}`)
		if a.exec != p { // another has jobs
			a.past = append(a.past, p)
		}
		return
	}
	a.did["scheduler"]++
	a.tell(p, `"topic":"job-manager.sched-hello","payload":{"partial-ok":true}`)
	require.Same(a.t, p, a.sched)
	if a.tape.N(2) == 0 {
		a.forge()
		a.late()
	}
	p.welcome = false
	a.tell(p, `"topic":"job-manager.sched-ready","payload":{"mode":"unlimited"}`)
	require.True(a.t, p.welcome || p != a.sched, "its ready is refused")
}

// depart ends a session: the connection ends, or the bridge tells that a sender is gone, which
// may speak on.
func (a *assault) depart(p *partner) {
	if p == nil {
		return
	}
	a.tape.Crashes++
	switch {
	case p.sender == "":
		a.leave(p.wire)
	default:
		a.lose(p)
		a.past = append(a.past, p)
		a.say(p.wire, `"topic":"job-manager.disconnect","sender":"%s"`, p.sender)
	}
}

// schedule lets the scheduler decide.
func (a *assault) schedule() {
	p := a.sched
	if p == nil {
		return
	}
	if len(p.canceled) > 0 {
		id := p.canceled[0]
		p.canceled = p.canceled[1:]
		if i := slices.Index(p.waiting, id); i >= 0 {
			p.waiting = slices.Delete(p.waiting, i, i+1)
			a.tell(p, `"topic":"sched.alloc","payload":{"id":%d,"type":3}`, id)
		}
		return
	}
	used := make(map[int]bool)
	for _, node := range p.holds {
		used[node] = true
	}
	node := a.tape.N(nodes)
	if len(p.waiting) == 0 || used[node] {
		return
	}
	id := p.waiting[0]
	p.waiting = p.waiting[1:]
	p.holds[id], a.jobs[id].node = node, node
	a.tell(p, "%s", gives(id, node))
	a.counts(id, "alloc")
}

// counts checks that what was said of a job came into its log.
func (a *assault) counts(id int, event string) {
	f := a.jobs[id]
	require.True(a.t, f.seen[event] || f.canceled, "job %d: what the right one said of it does not count: %s", id, event)
}

// execute lets the executor go on with a job.
func (a *assault) execute() {
	p := a.exec
	if p == nil || len(p.waiting) == 0 {
		return
	}
	i := a.tape.N(len(p.waiting))
	id := p.waiting[i]
	f := a.jobs[id]
	say := func(kind, data string) {
		a.tell(p, `"topic":"exec.start","payload":{"id":%d,"type":"%s","data":%s}`, id, kind, data)
	}
	if !p.begun[id] {
		p.begun[id] = true
		switch {
		case !p.reattach[id]:
			f.running = true
			say("start", "{}")
			a.counts(id, "start")
		case f.running && !f.over:
			say("reattached", "{}")
		case !f.over: // it was lost before it began
			f.over, f.status = true, 9
		}
		return
	}
	if !f.over {
		f.over, f.status = true, a.tape.N(2)*256
	}
	p.waiting = slices.Delete(p.waiting, i, i+1)
	say("finish", fmt.Sprintf(`{"status":%d}`, f.status))
	say("release", `{"ranks":"all","final":true}`)
	a.counts(id, "finish")
}

// serve lets the bridge go on with what it was asked.
func (a *assault) serve() {
	if len(a.asked) == 0 {
		return
	}
	i := a.tape.N(len(a.asked))
	r := a.asked[i]
	r.stage++
	what := `"payload":{}`
	switch {
	case r.topic == "rexec.exec" && r.stage == 1:
		what = `"payload":{"type":"started","pid":7}`
	case r.topic == "rexec.exec" && r.stage == 2:
		what = fmt.Sprintf(`"payload":{"type":"finished","status":%d}`, a.tape.N(2)*256)
	default:
		a.asked = slices.Delete(a.asked, i, i+1)
		if r.topic == "rexec.exec" {
			what, a.jobs[r.job].swept = `"errnum":61`, true
		} else {
			a.jobs[r.job].safe = true
		}
	}
	a.say(a.wires[0], `"topic":"%s","matchtag":%d,%s`, r.topic, r.tag, what)
}

// lies are what one says who was not asked about a job.
func (a *assault) lies(id int) []string {
	start := func(kind, data string) string {
		return fmt.Sprintf(`"topic":"exec.start","payload":{"id":%d,"type":"%s","data":%s}`, id, kind, data)
	}
	return []string{
		gives(id, a.tape.N(nodes)),
		fmt.Sprintf(`"topic":"sched.alloc","payload":{"id":%d,"type":2,"note":"forged"}`, id),
		fmt.Sprintf(`"topic":"sched.alloc","payload":{"id":%d,"type":3}`, id),
		`"topic":"sched.alloc","errnum":38`,
		start("start", "{}"),
		start("finish", fmt.Sprintf(`{"status":%d}`, forgedStatus)),
		start("release", `{"ranks":"all","final":true}`),
		start("exception", `{"severity":0,"type":"forged"}`),
		`"topic":"exec.start","errnum":38`,
		`"topic":"job-manager.sched-ready","payload":{"mode":"unlimited"}`,
	}
}

// late lets one that was replaced, or never accepted, go on as if nothing had happened.
func (a *assault) late() {
	if len(a.past) == 0 || len(a.jobs) == 1 {
		return
	}
	a.did["late"]++
	p := a.past[a.tape.N(len(a.past))]
	id := 1 + a.tape.N(len(a.jobs)-1)
	if len(p.waiting) > 0 {
		id = p.waiting[a.tape.N(len(p.waiting))]
	}
	lies := a.lies(id)
	a.tell(p, "%s", lies[a.tape.N(len(lies))])
}

// forge lets a stranger say what others may say, in its own name or in that of one of them.
func (a *assault) forge() {
	if len(a.wires) < 3 || len(a.jobs) == 1 {
		return
	}
	w := a.wires[2+a.tape.N(len(a.wires)-2)]
	if len(w.partners) > 0 && a.tape.N(2) == 0 { // another's own answers are no lies
		w = a.dial()
		defer a.leave(w)
	}
	if p := w.partners[""]; p != nil && (p == a.sched || p == a.exec) {
		return
	}
	a.did["forged"]++
	lies := a.lies(1 + a.tape.N(len(a.jobs)-1))
	sender := fmt.Sprint("p", 1+a.tape.N(a.last+1))
	lies = append(lies, `"topic":"job-manager.sched-hello","rolemask":2,"payload":{"partial-ok":true}`,
		`"topic":"job-manager.exec-hello","rolemask":2,"payload":{"service":"exec"}`,
		fmt.Sprintf(`"topic":"job-manager.disconnect","matchtag":0,"sender":"%s"`, sender))
	if len(a.asked) > 0 && a.tape.N(2) == 0 {
		r := a.asked[a.tape.N(len(a.asked))]
		lies = nil
		for _, rest := range []string{`"payload":{"type":"started","pid":9}`, `"payload":{"type":"finished","status":0}`, `"errnum":61`, `"payload":{}`} {
			lies = append(lies, fmt.Sprintf(`"topic":"%s","matchtag":%d,%s`, r.topic, r.tag, rest), fmt.Sprintf(`"topic":"%s",%s`, r.topic, rest))
		}
	}
	lie := lies[a.tape.N(len(lies))]
	if a.tape.N(3) == 0 && !strings.Contains(lie, `"sender"`) {
		lie = `"sender":"` + sender + `",` + lie
	}
	a.say(w, "%s", lie)
}

// finish lets all jobs end, and reads their logs.
func (a *assault) finish() {
	if a.sched == nil {
		a.come(false)
	}
	for a.exec == nil {
		a.come(true)
	}
	a.say(a.wires[0], `"topic":"job-manager.drain","matchtag":9`)
	for n := 0; !a.drained; n++ {
		require.Less(a.t, n, 100_000, "some jobs do not end")
		a.schedule()
		a.execute()
		a.serve()
	}
	require.Zero(a.t, a.held)
	for id, f := range a.jobs {
		if f == nil {
			continue
		}
		require.True(a.t, f.seen["clean"], "job %d: %+v", id, f)
		a.say(a.wires[0], `"topic":"job-manager.getattr","matchtag":7,"payload":{"id":%d,"attrs":["eventlog"]}`, id)
		require.NotEmpty(a.t, a.log)
		for _, f := range jobstate.Validate(a.log) { // one that was canceled may end without a start
			require.Equal(a.t, jobstate.LevelNote, f.Level, "job %d: %v\n%s", id, f, a.log)
		}
	}
	a.socket.end()
}
