package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/flux"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
)

// parsers read the messages of a job manager.
var parsers = map[string]func([]byte) (alloc.Message, error){
	alloc.TopicHello: parse[alloc.HelloResponse], alloc.TopicAlloc: parse[alloc.Request], alloc.TopicCancel: parse[alloc.Cancel],
	alloc.TopicPrioritize: parse[alloc.Prioritize], alloc.TopicFree: parse[alloc.Free],
	alloc.TopicExpiration: parse[alloc.Expiration], alloc.TopicFeasibility: parse[alloc.Feasibility],
}

func parse[M alloc.Payload](payload []byte) (alloc.Message, error) { return alloc.Parse[M](payload) }

// read returns what alloc.ParseFromManager does for a line.
func read(f *flux.Message) (l alloc.Line, m alloc.Message, err error) {
	l.Topic = f.Topic
	if f.Payload != nil {
		l.Payload, err = f.JSON()
	}
	if p := parsers[l.Topic]; p != nil && err == nil {
		m, err = p(l.Payload)
	}
	return l, m, err
}

// session says hello and ready, and serves the manager until the session is over.
func (b *broker) session() error {
	if err := b.hello(); err != nil {
		return err
	}
	b.s.greeted = true
	ready, err := b.s.EndHello()
	if err != nil {
		return fmt.Errorf("%w: %w", errOver, err)
	}
	payload, err := alloc.Append(nil, ready)
	if err == nil {
		err = b.ask(flux.NewRequest(alloc.TopicReady, flux.Text(payload)), func(*flux.Message) {})
	}
	if err != nil {
		return ofManager(err)
	}
	depth := "unlimited"
	if ready.Limit > 0 {
		depth = fmt.Sprint(ready.Limit)
	}
	b.s.logf(flux.LogInfo, "ready: queue-depth=%s log-level=%s policy=%s %v", depth, levels[b.o.level], b.o.policy, b.s.Pool().Inventory())
	held := b.held
	b.held = nil
	for _, q := range held {
		if err := b.receive(q); err != nil {
			return err
		}
	}
	return b.run(func() bool { return false })
}

// renew forgets the session before: what still comes for it is too late, but for the end of its
// manager, which may have sent nothing in the next one.
func (b *broker) renew() error {
	b.era++
	b.waits, b.starts, b.size = make(map[jobid.ID]*flux.Message), nil, 0
	b.placed, b.broken = make(map[jobid.ID]int), nil
	return b.s.renew()
}

// ofManager returns what follows from a failure of the manager: if it is not there, or the broker
// does not read, a session begins when that is over.
func ofManager(err error) error {
	if errors.Is(err, flux.ErrFull) {
		return fmt.Errorf("%w: %w", errOver, err)
	}
	switch flux.Errnum(err) {
	case errno.NoSys, errno.Unreachable, errno.Again, errno.Busy:
		return fmt.Errorf("%w: %w", errOver, err)
	}
	return err
}

// hello takes over the jobs that hold resources.
func (b *broker) hello() error {
	payload, err := alloc.Append(nil, alloc.Hello{PartialOK: !b.o.whole})
	if err != nil {
		return err
	}
	q := flux.NewRequest(alloc.TopicHello, flux.Text(payload))
	q.Flags |= flux.FlagStreaming
	var list []hello
	err = b.ask(q, func(m *flux.Message) {
		var h hello
		var of alloc.Message
		h.line, of, h.err = read(m)
		h.HelloResponse, _ = of.(alloc.HelloResponse)
		list = append(list, h)
	})
	if flux.Errnum(err) != errno.NoData {
		if err == nil {
			err = errors.New("the hello has one response, and no end")
		}
		return ofManager(err)
	}
	if err := b.lookUp(list); err != nil {
		return err
	}
	for i := range list {
		b.adopt(&list[i])
	}
	return nil
}

// adopt takes over a job. If it is not known what the job holds, or none of its nodes is in the
// inventory, it must not run on. What the pool reports of another that holds its resources is logged:
// the exception would take them back (RFC 21), no sched.free would come, and the pool would keep them
// for ever.
func (b *broker) adopt(h *hello) {
	err := h.err
	if h.ID == 0 && err != nil { // of which job is not known
		b.s.Missed(h.line)
		b.s.errorf("hello: %v", err)
		return
	}
	b.s.debugf("hello: id=%v priority=%d userid=%d t_submit=%.1f", h.ID, h.Priority, h.UserID, float64(h.Submit))
	if took := b.s.dispatch(h.line, h.HelloResponse, nil); err == nil {
		err = took
	}
	switch has, held := b.s.Pool().Allocation(h.ID); {
	case err == nil || b.raised[h.ID]:
		return
	case held && h.err == nil && !errors.Is(err, pool.ErrExists) && has.Held.Ranks().Len() > 0:
		b.s.errorf("hello: job %v runs on: %s", h.ID, textOf(err))
		return
	}
	b.raised[h.ID] = true
	b.s.errorf("hello: job %v: %v: raising a fatal exception on it", h.ID, err)
	q, err := requestOf("job-manager.raise", map[string]any{
		"id": h.ID, "type": "scheduler-restart", "severity": 0, "note": "the scheduler cannot take over what the job holds: " + textOf(err)})
	if err == nil {
		err = b.call(q, func(_ *flux.Message, err error) error {
			if err != nil {
				delete(b.raised, h.ID) // the next hello raises it, if it tells of the job
				b.s.errorf("job %v: no exception raised: %v", h.ID, err)
			}
			return nil
		})
	}
	if err != nil {
		delete(b.raised, h.ID)
		b.broken = ofManager(err)
	}
}

// acquired takes a response to resource.acquire.
func (b *broker) acquired(m *flux.Message, err error) error {
	if err != nil {
		return fmt.Errorf("%w: %w", errBlind, err)
	}
	var a pool.Acquire
	text, err := m.JSON()
	if err == nil {
		a, err = pool.ParseAcquire(text)
	}
	p := b.s.Pool()
	if p != nil && a.Change.Shrink != nil { // a broker that is gone may have had nothing to schedule
		a.Change.Shrink = idset.Intersect(a.Change.Shrink, p.Inventory().Ranks())
	}
	b.s.tick()
	if err == nil {
		err = b.s.acquire(a)
	}
	switch {
	case err != nil && p == nil:
		return fmt.Errorf("the inventory is refused: %w", err)
	case err != nil:
		b.s.errorf("resource.acquire: %s", textOf(err))
	case a.Change.Expiration != nil:
		b.s.logf(flux.LogInfo, "resource expiration updated to %.2f", float64(*a.Change.Expiration))
	}
	return b.s.wake()
}

// receive handles a message that is no answer.
func (b *broker) receive(q *flux.Message) error {
	service, method := q.Service()
	own := !slices.Contains(services, service) // of the module, by its name
	switch owner := q.Rolemask&flux.RoleOwner != 0; {
	case q.Type != flux.TypeRequest:
		return nil
	case method == "disconnect":
		if sender := q.Sender(); owner && b.managers[sender] {
			delete(b.managers, sender) // each service that it used hears of its end
			return errGone
		}
		return nil
	case own && method == "ping" && q.Rolemask != 0:
		_ = b.tell(q.Pong())
	case !owner:
		b.fail(q, errno.Perm, "Request requires owner credentials")
	case own && method == "shutdown":
		return errRemoved
	case own && method == "stats-get":
		return b.answer(q, b.s.counts())
	case own && method == "debug":
		return b.debug(q)
	case own && (method == "config-reload" || method == "config-update"):
		_ = b.tell(q.Respond(nil)) // nothing of it is about a scheduler
	case own:
		b.fail(q, errno.NoSys, "no such topic")
	case q.Topic == topicHolders && !q.Flags.Has(flux.FlagStreaming):
		b.fail(q, errno.Protocol, "many responses come: ask for a stream")
	case b.early(q) && len(b.held) < maxHeld:
		b.held = append(b.held, q)
	case b.early(q):
		b.fail(q, errno.Again, "the scheduler is not ready")
	default:
		return b.handle(q)
	}
	return nil
}

// early reports whether a request has to wait for the end of the hello, since only then it is
// known what there is, and what is held.
func (b *broker) early(q *flux.Message) bool {
	switch q.Topic {
	case alloc.TopicFeasibility:
		return b.s.Pool() == nil
	case topicStatus, topicHolders:
		return !b.s.greeted || !b.s.Ready() // the pool of a new session is ready, and nothing is held
	}
	return false
}

// handle handles a request for the session.
func (b *broker) handle(q *flux.Message) error {
	l, m, err := read(q)
	if b.bits != 0 && b.s.greeted && b.denied(q, m) {
		return nil
	}
	b.at = q
	defer func() { b.at = nil }()
	if b.s.greeted && slices.Contains(ofSession, q.Topic) {
		b.managers[q.Sender()] = true
	}
	switch m := m.(type) {
	case alloc.Request:
		if b.waits[m.ID] == nil && b.s.greeted {
			route := *q
			route.Payload = nil
			b.waits[m.ID], b.at = &route, &route
		}
	case alloc.Free:
		if b.s.verbose {
			b.s.debugf("free: %v: %v%s", m.ID, m.R, map[bool]string{true: " (final)"}[m.Final])
		}
	}
	return b.s.handle(l, m, err)
}

// reply answers the request that is handled.
func (b *broker) reply(l alloc.Line) error {
	if l.Errnum != 0 {
		return b.tell(b.at.RespondError(uint32(l.Errnum), l.Errstr))
	}
	var payload []byte
	if l.Payload != nil {
		payload = flux.Text([]byte(l.Payload))
	}
	return b.tell(b.at.Respond(payload))
}

// refuse answers the request that is handled with an error. That ends the session if it was for
// an allocation: flux-core does not go on after it either.
func (b *broker) refuse(l alloc.Line, why error) {
	b.fail(b.at, uint32(errnumOf(why)), textOf(why))
	if l.Topic == alloc.TopicAlloc {
		b.broken = fmt.Errorf("%w: a request is refused: %s", errOver, textOf(why))
	}
}

// fail answers a request with an error, if somebody waits for it.
func (b *broker) fail(q *flux.Message, errnum uint32, text string) {
	if q.Matchtag != 0 || q.Topic == alloc.TopicAlloc {
		_ = b.tell(q.RespondError(errnum, text))
	}
}

// answer answers a request with JSON.
func (b *broker) answer(q *flux.Message, payload any) error {
	text, err := json.Marshal(payload)
	if err == nil {
		_ = b.tell(q.Respond(flux.Text(text)))
	}
	return err
}

// tell sends a response, if somebody wants it. The error is that there is no room for it, which
// whoever asks for much can cause while the broker is slow: it has no answer then.
func (b *broker) tell(m flux.Message) error {
	if m.Flags.Has(flux.FlagNoResponse) {
		return nil
	}
	err := b.conn.Send(m)
	if err != nil && !errors.Is(err, flux.ErrFull) {
		b.broken, err = err, nil
	}
	return err
}

// send takes what the session answers to a sched.alloc; it has nothing else to send here.
func (b *broker) send(_ string, m alloc.Message) {
	r, ok := m.(alloc.Response)
	switch {
	case !ok:
	case r.Type == alloc.ResponseSuccess:
		b.later(r)
	default:
		b.respond(r)
	}
}

// respond answers a sched.alloc by the route of its request.
func (b *broker) respond(r alloc.Response) {
	q := b.waits[r.ID]
	if q == nil {
		return
	}
	if r.Type != alloc.ResponseAnnotate {
		delete(b.waits, r.ID)
		b.started(&r)
	}
	if b.ascii {
		r.Annotations = bytes.ReplaceAll(r.Annotations, []byte("ƒ"), []byte("f"))
	}
	payload, err := alloc.Append(nil, r)
	if err != nil {
		b.fail(q, uint32(errnumOf(err)), textOf(err))
		b.broken = fmt.Errorf("%w: %w", errOver, err)
		return
	}
	if err := b.tell(q.Respond(flux.Text(payload))); err != nil {
		b.broken = fmt.Errorf("%w: %w", errOver, err)
	}
}
