package main

import (
	"container/heap"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/hostlist"
)

// What the made-up cluster takes its time for.
const (
	prologTime  = 2  // on every node
	jobTime     = 60 // from start to finish
	obeyTime    = 2  // from SIGTERM to the end of a process that obeys
	drainTime   = 1  // from the request to its confirmation
	restartTime = 20 // from the death of the daemon to its return
)

// never is how long the epilog takes on a node where it hangs.
var never = fsd.Infinity()

// draw returns how long the epilog takes on each node, in tenths of a second:
// nodes often end together, as the clocks of daemons see it.
func draw(o options) []fsd.Duration {
	rng := rand.New(rand.NewPCG(o.seed, 0))
	work := make([]fsd.Duration, o.nodes)
	for i, node := range rng.Perm(o.nodes) {
		factor := 0.75 + rng.Float64()/2
		if i < o.hang+o.stragglers {
			factor = 4 + 8*rng.Float64()
		}
		work[node] = fsd.Duration(math.Round(o.epilog.Seconds()*factor*10) / 10)
		if i < o.hang {
			work[node] = never
		}
	}
	return work
}

// allocation returns the R of a job on all of n nodes.
func allocation(n int) (*rset.R, error) {
	all, cores := new(idset.Set), new(idset.Set)
	all.InsertRange(0, uint32(n-1))
	cores.InsertRange(0, 47)
	hosts, err := hostlist.Parse(fmt.Sprintf("fluke[0-%d]", n-1))
	if err != nil {
		return nil, err
	}
	return rset.New(rset.Config{Entries: []rset.Entry{{Ranks: all, Children: map[string]*idset.Set{"core": cores}}}, Hosts: hosts})
}

// A history is what happened in one simulation. Times are seconds from the end
// of the job.
type history struct {
	mode      string
	fragments []fragment
	notes     []note
	clean     []float64 // by rank: when its work had ended well, or it was drained
	drained   *idset.Set
}

type fragment struct {
	at    float64
	ranks *idset.Set
	final bool
}

// A note has a format for the nodes that it is of.
type note struct {
	at     float64
	format string
	ranks  *idset.Set // nil: of none
}

// A daemon decides. After each input it is told to act.
type daemon interface {
	exited(rank uint32, p process)
	drained(ranks *idset.Set)
	deadline() (eventlog.Timestamp, bool)
	tick()
	act() error
	finish() error  // the processes of the job have ended
	recover() error // after a crash: forget everything but the log
	checkIn(rank uint32, p process)
	over() bool
}

// A process is the command that was launched last on a node.
type process struct {
	action  perilog.Key
	running bool
	status  int32 // that it ended with
}

// world is the nodes, the clock and what is to happen.
type world struct {
	work      []fsd.Duration
	now, zero eventlog.Timestamp // zero: when the job ended; 0: it has not
	queue     queue
	seq       int
	processes []process
	daemon    daemon
	down      bool
	crash     fsd.Duration
	history   *history
}

// simulate returns what happens in one of the two modes.
func simulate(o options, work []fsd.Duration, whole bool) (*history, error) {
	w, err := newWorld(o, work, whole)
	if err != nil {
		return nil, err
	}
	return w.history, w.play()
}

// newWorld returns a world in which the daemon knows the job, and nothing has
// happened.
func newWorld(o options, work []fsd.Duration, whole bool) (*world, error) {
	r, err := allocation(o.nodes)
	if err != nil {
		return nil, err
	}
	h := &history{mode: "partial", clean: make([]float64, o.nodes), drained: new(idset.Set)}
	if whole {
		h.mode = "whole"
	}
	w := &world{work: work, now: 1000, processes: make([]process, o.nodes), crash: o.crash, history: h}
	w.daemon, err = newDaemon(w, o, r, whole)
	return w, err
}

// play lets happen what happens until everything is over.
func (w *world) play() error {
	err := w.daemon.act()
	for err == nil && !w.daemon.over() {
		err = w.step()
	}
	return err
}

// step goes on to the next time at which something happens. What happened then
// counts before what is due: a process that ends at its timeout has ended.
func (w *world) step() error {
	at, due := w.daemon.deadline()
	if due = due && !w.down; !due {
		if len(w.queue) == 0 {
			return errors.New("nothing is to come, and not everything is over")
		}
		at = w.queue[0].at
	} else if len(w.queue) > 0 {
		at = min(at, w.queue[0].at)
	}
	w.now = max(w.now, at)
	for len(w.queue) > 0 && w.queue[0].at <= w.now {
		if err := heap.Pop(&w.queue).(event).happen(); err != nil {
			return err
		}
	}
	if w.down {
		return nil
	}
	if at, due := w.daemon.deadline(); due && at <= w.now {
		w.daemon.tick()
	}
	return w.daemon.act()
}

// after lets something happen later.
func (w *world) after(d fsd.Duration, happen func() error) {
	w.seq++
	heap.Push(&w.queue, event{at: w.now + eventlog.Timestamp(d), seq: w.seq, happen: happen})
}

// since returns the time since the end of the job.
func (w *world) since() float64 { return math.Round(float64(w.now-w.zero)*1000) / 1000 }

// note notes something of some nodes, or of none.
func (w *world) note(format string, ranks *idset.Set) {
	w.history.notes = append(w.history.notes, note{w.since(), format, ranks})
}

// ended lets the job end, and the daemon die some time after.
func (w *world) ended() error {
	w.zero = w.now
	if w.crash >= 0 {
		w.after(w.crash, w.die)
	}
	return w.daemon.finish()
}

// takes returns how long an action takes on a node.
func (w *world) takes(action perilog.Key, rank uint32) fsd.Duration {
	if action.Kind == jobstate.ActionProlog {
		return prologTime
	}
	return w.work[rank]
}

// do does what an action wants done on the nodes.
func (w *world) do(action perilog.Key, q perilog.Request) {
	switch q.Kind {
	case perilog.RequestLaunch:
		for rank := range q.Ranks.All() {
			w.processes[rank] = process{action: action, running: true}
			if d := w.takes(action, rank); d != never {
				w.after(d, func() error { w.exit(rank, 0); return nil })
			}
		}
	case perilog.RequestSignal:
		w.note("SIGTERM to %s", q.Ranks)
		for rank := range q.Ranks.All() {
			if w.takes(action, rank) != never {
				w.after(obeyTime, func() error { w.exit(rank, int32(q.Signal)); return nil })
			}
		}
	case perilog.RequestDrain:
		w.note("%s to be drained: "+q.Reason, q.Ranks)
		w.after(drainTime, func() error { w.drain(q.Ranks); return nil })
	}
}

// exit ends a process, unless it has ended.
func (w *world) exit(rank uint32, status int32) {
	p := &w.processes[rank]
	if !p.running {
		return
	}
	p.running, p.status = false, status
	if status == 0 {
		w.history.clean[rank] = w.since()
	}
	if !w.down {
		w.daemon.exited(rank, *p)
	}
}

// drain takes nodes out of service.
func (w *world) drain(ranks *idset.Set) {
	for rank := range idset.Difference(ranks, w.history.drained).All() {
		w.history.clean[rank] = w.since()
	}
	w.history.drained.UnionWith(ranks)
	if !w.down {
		w.note("%s drained", ranks)
		w.daemon.drained(ranks)
	}
}

// free gives a fragment back to the scheduler.
func (w *world) free(f rset.Fragment) {
	w.history.fragments = append(w.history.fragments, fragment{w.since(), f.R.Ranks(), f.Final})
}

// die ends the daemon; what was asked for and not done yet is done all the same.
func (w *world) die() error {
	w.down = true
	w.note("the daemon dies", nil)
	w.after(restartTime, w.restart)
	return nil
}

// restart brings the daemon back. Each process tells what became of it.
func (w *world) restart() error {
	w.down = false
	if err := w.daemon.recover(); err != nil {
		return err
	}
	for rank, p := range w.processes {
		if p != (process{}) {
			w.daemon.checkIn(uint32(rank), p)
		}
	}
	return nil
}

// An event happens at a time, those of one time in the order in which they were
// made.
type event struct {
	at     eventlog.Timestamp
	seq    int
	happen func() error
}

type queue []event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(e any)   { *q = append(*q, e.(event)) }
func (q *queue) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}
