package manager

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/cluster/auth"
	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

type manager struct {
	Config
	*loop.Loop
	epoch uint64
	began time.Time    // when this manager began to listen
	held  *engine.Held // nil: nobody else can be active
	keys  keys
	last  func() uint64 // the last message of the log
	end   func(error)
	sched *scheduler // nil: remote is there
	other *remote    // nil: sched is there

	// Of the Loop's goroutine.
	ended  *recent
	links  map[uint32]*link
	sends  []uint32          // ranks whose links are due
	out    *idset.Set        // ranks that get no jobs, since they say nothing
	lost   *idset.Set        // ranks that the owner has given up, until they say hello: what is due on another waits for it
	waited time.Time         // when the Loop last kept a node waiting
	events map[uint32][]byte // to be published, by user

	requests requests
	limit    *auth.Limiter
	reads    chan struct{} // has one for each large answer that is made

	draining sync.Mutex // held to change drain, also while the store of it is away

	mu    sync.Mutex
	drain drains
}

// A link is the session of a node.
type link struct {
	node string // the Up.Node that has the rank, until it is down
	wire.Link
	tasks  []exec.TaskStatus // of a hello that is not complete
	exec   exec.Session
	heard  time.Time
	up     bool
	orders []wire.Order // for the next Do
	due    bool         // it must not wait for the next beat: it has more than tasks to forget
}

// command sends commands to their nodes, in few messages for each. To forget a task waits for
// another order, or for the next beat.
func (a *manager) command(list []exec.Command) {
	for _, cmd := range list {
		o := a.order(cmd)
		for rank := range cmd.Ranks.All() {
			if l := a.links[rank]; l != nil && l.Session != "" {
				if l.orders = append(l.orders, o); !l.due && o.Kind != exec.CommandForget {
					l.due = true
					a.sends = append(a.sends, rank)
				}
			}
		}
	}
	for _, rank := range a.sends {
		a.send(rank, a.links[rank])
	}
	a.sends = a.sends[:0]
}

// send sends a node what it has to do.
func (a *manager) send(rank uint32, l *link) {
	for part := range slices.Chunk(l.orders, maxOrders) {
		d := wire.Do{Orders: part}
		l.Says(&d)
		a.do(rank, d)
	}
	l.orders, l.due = nil, false
}

// order is a command as nodes get it.
func (a *manager) order(cmd exec.Command) wire.Order {
	o := wire.Order{Kind: cmd.Kind, Task: cmd.Task, Signal: cmd.Signal}
	switch {
	case cmd.Launch != nil:
		o.Args = cmd.Launch.Command
	case cmd.Start != nil:
		o.Job = &wire.Job{UserID: cmd.Start.UserID}
		spec, err := jobspec.Parse(cmd.Start.Jobspec)
		if err != nil {
			a.Log.Warn("jobspec", "job", cmd.Start.ID, "error", err)
			break
		}
		o.Args, o.Job.Dir = spec.Command(), spec.Cwd()
		if env, ok := spec.Lookup("attributes.system.environment"); ok {
			_ = json.Unmarshal(env, &o.Job.Env) // it is no object of texts
		}
	}
	return o
}

// maxOrders is how many orders are in one message: jobspecs have auth.UserMaxPayload bytes, which
// JSON may make six times as long, and a message auth.MaxPayload.
const maxOrders = 16

// do sends a Do. The node sees a gap if it does not arrive. A manager that was stopped may have
// lost the lease without knowing it, and a node that has restarted knows no later epoch.
func (a *manager) do(to any, d wire.Do) {
	if a.held != nil && !a.held.Fresh() {
		return
	}
	d.Epoch = a.epoch
	text, err := wire.Marshal(d)
	if err == nil {
		err = a.Engine.Publish(a.Engine.Subject("do", to), text)
	}
	if err != nil {
		a.Log.Warn("order not sent", "to", to, "error", err)
	}
}

// up takes what a node says. The subject says which node it is.
func (a *manager) up(msg *nats.Msg) {
	if a.other != nil && strings.HasSuffix(msg.Subject, ".sched") {
		a.other.up(msg)
		return
	}
	n, err := strconv.ParseUint(msg.Subject[strings.LastIndexByte(msg.Subject, '.')+1:], 10, 32)
	var u wire.Up
	if err == nil {
		err = json.Unmarshal(msg.Data, &u)
	}
	rank := uint32(n)
	if err != nil || !a.Nodes.Ranks().Contains(rank) {
		a.Log.Warn("a node said what is not understood", "subject", msg.Subject, "error", err)
		return
	}
	came := time.Now()
	_ = a.Hear(func(x *exec.Executor) error { // or its next message shows that one is missing
		if time.Since(came) > wire.BeatEvery {
			a.waited = time.Now()
		}
		a.hear(x, rank, &u)
		return nil
	})
}

func (a *manager) hear(x *exec.Executor, rank uint32, u *wire.Up) {
	l := a.links[rank]
	if l == nil {
		l = new(link)
		a.links[rank] = l
	}
	if l.up && u.Node != l.node {
		a.Log.Error("two nodes have one rank: the second is ignored", "rank", rank, "first", l.node, "second", u.Node)
		return
	}
	l.node = u.Node
	first := l.First(u)
	said, err := l.Up(a.epoch, u)
	if first && (said == wire.SaidPart || said == wire.SaidHello) { // and not a late word of the session before
		l.tasks = nil
	}
	switch said {
	case wire.SaidBehind:
		a.do(rank, l.Check())
	case wire.SaidPart:
		l.tasks = append(l.tasks, u.Tasks...)
	case wire.SaidHello:
		l.exec, err = x.Hello(rank, append(l.tasks, u.Tasks...))
		l.tasks = nil
	case wire.SaidNews:
		for _, st := range u.Tasks {
			if err = x.Update(l.exec, st); err != nil {
				break
			}
		}
	}
	if err != nil {
		a.lose(x, rank, l, u.Session, err)
		return
	}
	if l.heard = time.Now(); l.Session != "" && !l.up {
		l.up = true
		a.change(idset.Of(rank), true)
	}
}

// lose ends the session of a node, and asks for another.
func (a *manager) lose(x *exec.Executor, rank uint32, l *link, session string, why error) {
	if !errors.Is(why, wire.ErrOrder) {
		a.Log.Warn("session of a node", "rank", rank, "why", why)
	}
	if l.Session != "" && a.Metrics != nil {
		a.Metrics.Ended(rank)
	}
	x.Close(l.exec)
	l.exec, l.orders, l.due = exec.Session{}, nil, false
	a.do(rank, l.Ask(session))
}

// beat says that this manager is active, and looks for nodes that say nothing, until ctx ends.
func (a *manager) beat(ctx context.Context) {
	tick := time.NewTicker(wire.BeatEvery)
	defer tick.Stop()
	text, _ := wire.Marshal(wire.Beat{Epoch: a.epoch})
	for {
		if err := a.Engine.Publish(a.Engine.Subject("epoch"), text); err != nil {
			a.Log.Warn("beat", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		a.endWaits()
		_ = a.Hear(func(x *exec.Executor) error { // or it ends
			for rank, l := range a.links {
				a.send(rank, l)
			}
			a.part(x)
			return nil
		})
	}
}

// part ends the sessions of nodes that say nothing. If the Loop kept one waiting, others may wait.
func (a *manager) part(x *exec.Executor) {
	gone := new(idset.Set)
	for rank, l := range a.links {
		if l.up && time.Since(l.heard) > a.DownTime && time.Since(a.waited) > a.DownTime {
			x.Close(l.exec)
			*l = link{heard: l.heard}
			gone.Insert(rank)
		}
	}
	if !gone.IsEmpty() {
		a.Log.Warn("nodes are down", "ranks", gone)
		a.change(gone, false)
	}
	if !a.lost.IsEmpty() {
		_ = a.Do(a.endHousekeeping) // or the next beat does it
	}
}

// endHousekeeping ends the housekeeping that waits for nodes that were given up: it may hold the other
// nodes of its job. Such a node is drained first, as one without its epilog, though its own may have
// ended well: who knows the state of a node that was lost?
func (a *manager) endHousekeeping(m *joblife.Manager) func() {
	var due []joblife.ForceFinish
	ranks := new(idset.Set)
	for h := range m.Holders() {
		if h.Kind != perilog.HolderHousekeeping {
			continue
		}
		for rank := range idset.Intersect(h.Ranks, a.lost).All() {
			action := joblife.Action{Job: h.Job, Key: perilog.Housekeeping(), Ranks: idset.Of(rank)}
			due = append(due, joblife.ForceFinish{Action: action, Status: 1 << 8, Operator: "the node is lost"})
			ranks.Insert(rank)
		}
	}
	a.mu.Lock()
	drained := a.drain.ranks()
	a.mu.Unlock()
	ranks.IntersectWith(a.Nodes.Ranks())
	if !drained.ContainsAll(ranks) {
		if err := a.drained(ranks, actionFailed, a.Manager.Owner); err != nil {
			a.Log.Error("drain", "error", err)
			return nil
		}
		a.refresh()
	}
	for _, in := range due {
		_ = a.Step(in) // refused where it has ended
	}
	return nil
}

// change notes that nodes came or went.
func (a *manager) change(set *idset.Set, up bool) {
	if up {
		a.out = idset.Difference(a.out, set)
		if set.Intersects(a.lost) {
			a.lost = idset.Difference(a.lost, set)
			_ = a.Step(joblife.Offline{Ranks: a.lost}) // before what follows
		}
	} else {
		a.out = idset.Union(a.out, set)
	}
	a.refresh()
}

// refresh tells the scheduler which nodes may get jobs.
func (a *manager) refresh() {
	err := a.Do(func(*joblife.Manager) func() {
		a.mu.Lock()
		drained := a.drain.ranks()
		a.mu.Unlock()
		out := idset.Union(a.out, idset.Intersect(drained, a.Nodes.Ranks())) // others may have been in an earlier inventory
		if a.other != nil {
			a.other.changed(out)
			return nil
		}
		down := a.sched.Pool().Down().Ranks()
		change := pool.Change{Up: idset.Difference(down, out), Down: idset.Difference(out, down)}
		if err := a.sched.Acquire(pool.Acquire{Change: change}); err != nil {
			a.Log.Error("scheduler", "error", err)
		}
		return nil
	})
	if err != nil && !errors.Is(err, loop.ErrEnded) {
		a.end(err)
	}
}

// acquire gives the scheduler the inventory: all nodes are down until they say hello.
func (a *manager) acquire() error {
	return a.sched.Scheduler.Acquire(pool.Acquire{Resources: a.Nodes})
}

// actionFailed is why a node is drained that nobody has drained.
const actionFailed = "a prolog, an epilog or housekeeping failed"

// A scheduler keeps drains over the end of this manager, before the Manager frees the nodes.
type scheduler struct {
	*sched.Scheduler
	a *manager
}

// Drain notes a drain before the scheduler does: an action failed there.
func (s *scheduler) Drain(set *idset.Set) error {
	if err := s.a.drained(set, actionFailed, s.a.Manager.Owner); err != nil {
		return err
	}
	return s.Scheduler.Drain(set)
}
