package service

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

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

// A cluster is a naive subprocess server (RFC 42) on each rank, with a resource module and
// a store, around a Service.
type cluster struct {
	*desk
	next    Config       // of the next life
	slow    bool         // nobody starts a command before begin
	noKill  int          // the errnum of rexec.kill
	noDrain int          // the errnum of resource.drain
	free    func(string) // gets each sched.free

	pids    int32
	started map[int32]bool // pids of which a Service was told
	running map[uint64]*command
	answers []Answer
	logged  []string
	levels  []Level  // of each of them
	kills   []string // "rank pid signum"
	drained []string // "targets: reason"
}

// A command runs on a rank.
type command struct {
	tag  uint64
	rank int
	pid  int32 // 0: it has not begun
	Cmd  struct {
		Cmdline  []string
		Env      map[string]string
		Opts     map[string]string
		Channels []string
	}
	Flags   int
	payload string
	signal  int // the last one that it got
}

func newCluster(t tester, cfg Config) *cluster {
	c := &cluster{desk: newDesk(t, cfg), started: map[int32]bool{}, running: map[uint64]*command{}}
	c.next, c.sent = c.cfg, c.hear
	c.hello()
	return c
}

// ran returns a cluster where job 16 ran on some ranks, to what follows it.
func ran(t tester, cfg Config, ranks string) *cluster {
	c := newCluster(t, cfg)
	c.submit(16, ranks)
	c.run(16)
	return c
}

// hello begins the sessions of a scheduler and an executor.
func (c *cluster) hello() {
	c.do(joblife.SchedHello{PartialOK: true})
	c.do(joblife.SchedReady{})
	c.do(joblife.ExecHello{})
	c.pump()
}

// pump stores and sends all that comes out.
func (c *cluster) pump() {
	c.t.Helper()
	c.desk.pump(func(*parcel) {})
}

// hear takes in an Out.
func (c *cluster) hear(o *parcel) {
	c.answers = append(c.answers, o.Answers...)
	c.logged = append(c.logged, texts(o.Log)...)
	c.levels = append(c.levels, levels(o.Log)...)
	for _, call := range o.Calls {
		c.serve(call)
	}
}

// release lets the store finish, and holds nothing more.
func (c *cluster) release() {
	c.hold = nil
	c.desk.release()
	c.pump()
}

func (c *cluster) serve(call Call) {
	c.t.Helper()
	payload := []byte(text(c.t, call.Payload))
	switch {
	case call.Tag == 0: // a message to the scheduler or the executor
		if call.Topic == "sched.free" && c.free != nil {
			c.free(string(payload))
		}
	case call.Topic == "rexec.exec":
		require.True(c.t, call.Stream)
		p := &command{tag: call.Tag, rank: call.Nodeid, payload: string(payload)}
		require.NoError(c.t, json.Unmarshal(payload, p))
		c.running[call.Tag] = p
		if !c.slow {
			c.spawn(p)
		}
	case call.Topic == "rexec.kill":
		var k struct{ PID, Signum int32 }
		require.NoError(c.t, json.Unmarshal(payload, &k))
		require.Truef(c.t, c.started[k.PID], "%s: of pid %d nobody was told", payload, k.PID)
		c.kills = append(c.kills, fmt.Sprint(call.Nodeid, " ", k.PID, " ", k.Signum))
		errnum := 3
		for _, p := range c.running {
			if p.rank == call.Nodeid && p.pid == k.PID {
				errnum, p.signal = c.noKill, int(k.Signum)
			}
		}
		require.NoError(c.t, c.Respond(c.now, Response{Topic: call.Topic, Tag: call.Tag, Errnum: errnum}))
	case call.Topic == "resource.drain":
		require.Equal(c.t, 0, call.Nodeid)
		var d struct{ Targets, Reason, Mode string }
		require.NoError(c.t, json.Unmarshal(payload, &d))
		require.Equal(c.t, "update", d.Mode)
		c.drained = append(c.drained, d.Targets+": "+d.Reason)
		require.NoError(c.t, c.Respond(c.now, Response{Topic: call.Topic, Tag: call.Tag, Errnum: c.noDrain}))
	default:
		c.t.Fatalf("call %s", call.Topic)
	}
}

// tell responds to rexec.exec.
func (c *cluster) tell(p *command, errnum int, payload, errstr string) {
	c.t.Helper()
	if errnum != 0 {
		delete(c.running, p.tag)
	}
	require.NoError(c.t, c.Respond(c.now, Response{
		Topic: "rexec.exec", Tag: p.tag, Payload: json.RawMessage(payload), Errnum: errnum, Errstr: errstr,
	}))
}

// spawn starts a command.
func (c *cluster) spawn(p *command) {
	c.t.Helper()
	c.pids++
	p.pid = 1000 + c.pids
	c.started[p.pid] = true
	c.tell(p, 0, fmt.Sprintf(`{"type":"started","pid":%d}`, p.pid), "")
}

// end ends a command: its output may come after its exit.
func (c *cluster) end(p *command, status int, stdout ...string) {
	c.t.Helper()
	c.tell(p, 0, fmt.Sprintf(`{"type":"finished","status":%d}`, status), "")
	for _, data := range stdout {
		io := text(c.t, map[string]any{"stream": "stdout", "rank": fmt.Sprint(p.rank), "data": data})
		c.tell(p, 0, fmt.Sprintf(`{"type":"output","pid":%d,"io":%s}`, p.pid, io), "")
	}
	c.tell(p, 0, `{"type":"output","io":{"stream":"stdout","rank":"0","eof":true}}`, "")
	c.tell(p, 61, "", "")
	c.pump()
}

// commands returns what runs, in the order of the calls.
func (c *cluster) commands() []*command {
	var list []*command
	for _, tag := range slices.Sorted(maps.Keys(c.running)) {
		list = append(list, c.running[tag])
	}
	return list
}

// endAll ends what runs with success, and what follows.
func (c *cluster) endAll() {
	c.t.Helper()
	for len(c.running) > 0 {
		for _, p := range c.commands() {
			c.end(p, 0)
		}
	}
}

// ask sends a request of the owner, and returns the answer.
func (c *cluster) ask(r Request) Answer {
	c.t.Helper()
	c.answers = nil
	c.Request(c.now, r)
	c.pump()
	require.Len(c.t, c.answers, 1)
	return c.answers[0]
}

// submit submits a job of user 100, and gives it ranks.
func (c *cluster) submit(id int, ranks string) {
	c.t.Helper()
	require.Zero(c.t, c.ask(owner("submit", submission1(jobid.ID(id), ownUser))).Errnum)
	c.do(joblife.SchedResponse{ID: jobid.ID(id), Type: alloc.ResponseSuccess, R: nodes(c.t, ranks)})
}

// nodes returns an R of some ranks.
func nodes(t tester, ranks string) *rset.R {
	set, err := idset.Parse(ranks)
	require.NoError(t, err)
	last, _ := set.Max()
	r, err := rset.Parse(fmt.Appendf(nil, `{"version":1,"execution":{"R_lite":[{"rank":"0-%d","children":{"core":"0-3"}}],`+
		`"starttime":0,"expiration":0,"nodelist":["n[0-%d]"]}}`, last+1, last+1))
	require.NoError(t, err)
	r, err = r.Restrict(set)
	require.NoError(t, err)
	return r
}

// run is what the executor says of a job: it starts, ends, and lets all ranks go.
func (c *cluster) run(id int) {
	c.t.Helper()
	c.exec(id, exec.Response{Type: exec.ResponseStart})
	c.exec(id, exec.Response{Type: exec.ResponseFinish})
	c.exec(id, exec.Response{Type: exec.ResponseRelease, Final: true})
	c.pump()
}

func (c *cluster) exec(id int, r exec.Response) {
	c.t.Helper()
	r.ID = jobid.ID(id)
	require.NoError(c.t, c.step(joblife.ExecResponse(r)))
}

// wait passes time, with the ticks that are due in it.
func (c *cluster) wait(d time.Duration) {
	c.t.Helper()
	end := c.now.Add(d)
	for {
		at, ok := c.Deadline()
		if !ok || at.After(end) {
			c.now = end
			return
		}
		c.now = at
		require.NoError(c.t, c.Tick(c.now))
		c.pump()
	}
}

// crash ends the Service, and all processes with it, and restores another one.
func (c *cluster) crash() {
	c.t.Helper()
	c.running = map[uint64]*command{}
	c.begin(c.next)
}

// log returns the names of the events of a job.
func (c *cluster) log(id int) (names []string) {
	for _, r := range c.records {
		if r.Job != jobid.ID(id) || r.Kind != joblife.RecordEvent {
			continue
		}
		e, err := eventlog.Parse(r.Data)
		require.NoError(c.t, err)
		names = append(names, e.Name)
	}
	return names
}

// holders returns what is held, as "id kind ranks".
func (c *cluster) holders() (list []string) {
	for h := range c.m.Holders() {
		list = append(list, fmt.Sprint(uint64(h.Job), " ", h.Kind, " ", h.Ranks))
	}
	return list
}

// gone checks that a job is inactive, and that nothing is left of its actions.
func (c *cluster) gone(id int) {
	c.t.Helper()
	require.Equal(c.t, jobstate.StateInactive, c.view(jobid.ID(id)).State())
	require.Empty(c.t, c.holders())
	require.Empty(c.t, c.processes.running)
	require.Empty(c.t, c.calls)
}

// actions is a configuration with a command on each rank.
func actions(prolog, epilog, housekeeping bool) Config {
	var a perilog.Config
	if prolog {
		a.Prologs = []perilog.ActionConfig{{Command: []string{"prolog", "-v"}, PerRank: true}}
	}
	if epilog {
		a.Epilogs = []perilog.ActionConfig{{Command: []string{"epilog"}, PerRank: true}}
	}
	if housekeeping {
		a.Housekeeping = &perilog.HousekeepingConfig{Command: []string{"clean", "up"}}
	}
	return Config{Manager: joblife.Config{Actions: a}, Environ: []string{"PATH=/bin", "odd", "EMPTY="}}
}
