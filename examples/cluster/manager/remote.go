package manager

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
)

// A remote is the session with a scheduler in another process: the same as that of a node, with
// lines of RFC 27 and RFC 28. A second scheduler is ignored until the first is silent.
type remote struct {
	a *manager

	mu     sync.Mutex
	link   wire.Link
	name   string // of the scheduler
	heard  time.Time
	asked  time.Time  // for a hello
	open   bool       // the answer to the hello of this session was sent
	asking bool       // a hello is in the Loop
	again  bool       // and another session has begun since
	down   *idset.Set // ranks that get no jobs
	lines  []byte
}

// up takes what a scheduler says.
func (r *remote) up(msg *nats.Msg) {
	var u wire.Up
	if err := json.Unmarshal(msg.Data, &u); err != nil {
		r.a.Log.Warn("a scheduler said what is not understood", "error", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if u.Node != r.name && time.Since(r.heard) < r.a.DownTime {
		return
	}
	said, err := r.link.Up(r.a.epoch, &u)
	switch said {
	case wire.SaidBehind:
		r.a.do("sched", r.link.Check())
	case wire.SaidHello:
		r.name, r.open = u.Node, false
		if r.again = r.asking; !r.again {
			r.ask()
		}
	case wire.SaidNews:
		for line := range strings.Lines(u.Lines) {
			var m alloc.Message
			if _, m, err = alloc.ParseFromScheduler([]byte(line)); err != nil {
				break
			}
			if m, ok := m.(alloc.Response); ok {
				r.a.put(joblife.SchedResponse(m))
			}
		}
	}
	if err != nil {
		r.lose(u.Session, err)
		return
	}
	r.heard = time.Now()
}

func (r *remote) ask() {
	r.asking = true
	r.a.put(joblife.SchedHello{PartialOK: true}, joblife.SchedReady{})
}

// lose ends the session, and asks the scheduler that is in session for another, but not too often:
// one that believes what is not so may insist.
func (r *remote) lose(session string, why error) {
	if !errors.Is(why, wire.ErrOrder) {
		r.a.Log.Warn("session of the scheduler", "why", why)
	}
	r.open = false
	if d := r.link.Ask(session); time.Since(r.asked) > wire.BeatEvery/2 { // else after its next beat
		r.asked = time.Now()
		r.a.do("sched", d)
	}
}

// refused ends the session in which the scheduler believes what is not so.
func (r *remote) refused(in joblife.Input, err error) {
	if _, ok := in.(joblife.SchedResponse); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.lose(r.link.Session, err)
	}
}

// effects passes on what the Manager has for the scheduler. A Ready before that with the hello is of
// the session before.
func (r *remote) effects(rd *joblife.Ready) {
	r.pass(rd)
	for _, d := range rd.Drain {
		if err := r.a.drained(d.Ranks, actionFailed, r.a.Manager.Owner); err != nil { // the next manager is asked again
			r.a.Log.Error("drain", "error", err)
			continue
		}
		r.mu.Lock()
		r.change(idset.Union(r.down, idset.Intersect(d.Ranks, r.a.Nodes.Ranks())))
		r.mu.Unlock()
		r.a.put(joblife.Drained{Ranks: d.Ranks})
	}
}

func (r *remote) pass(rd *joblife.Ready) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rd.Hello != nil {
		if r.asking = false; r.again {
			r.again = false
			r.ask()
		} else if r.link.Session != "" {
			r.open = true
			r.acquire(map[string]any{"resources": r.a.Nodes, "up": idset.Difference(r.a.Nodes.Ranks(), r.down).String()})
			for _, h := range rd.Hello.Responses {
				r.add(alloc.AppendMessage(r.lines, alloc.TopicHello, h))
			}
			r.add(alloc.Line{Topic: alloc.TopicHello, Errnum: alloc.NoData}.AppendText(r.lines))
		}
	}
	for _, m := range rd.Sched {
		r.add(alloc.AppendMessage(r.lines, topic(m), m))
	}
	r.send()
}

// changed tells which ranks get no jobs.
func (r *remote) changed(down *idset.Set) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.change(down)
}

func (r *remote) change(down *idset.Set) {
	if up, out := idset.Difference(r.down, down), idset.Difference(down, r.down); up.Len()+out.Len() > 0 {
		r.acquire(map[string]any{"up": up.String(), "down": out.String()})
	}
	r.down = down
	r.send()
}

func (r *remote) acquire(what map[string]any) {
	payload, err := wire.Marshal(what)
	if err != nil {
		r.add(r.lines, err)
		return
	}
	r.add(alloc.Line{Topic: pool.TopicAcquire, Payload: payload}.AppendText(r.lines))
}

// add notes the lines with one more. One that cannot be written is of a job that waits for the
// next session.
func (r *remote) add(lines []byte, err error) {
	if r.lines = lines; err != nil {
		r.a.Log.Error("for the scheduler", "error", err)
	}
	if len(r.lines) > 1<<20 {
		r.send()
	}
}

// send sends the lines that were added, if there is somebody who has those before.
func (r *remote) send() {
	if r.open && len(r.lines) > 0 {
		d := wire.Do{Lines: string(r.lines)}
		r.link.Says(&d)
		r.a.do("sched", d)
	}
	r.lines = r.lines[:0]
}

// topic is that of a message of the Manager.
func topic(m alloc.Message) string {
	switch m.(type) {
	case alloc.ReadyResponse:
		return alloc.TopicReady
	case alloc.Request:
		return alloc.TopicAlloc
	case alloc.Cancel:
		return alloc.TopicCancel
	case alloc.Prioritize:
		return alloc.TopicPrioritize
	case alloc.Expiration:
		return alloc.TopicExpiration
	}
	return alloc.TopicFree
}
