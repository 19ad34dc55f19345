//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/flux"
	"github.com/joblife/joblife/examples/internal/service"
	"github.com/joblife/joblife/examples/internal/strict"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// A schedSession is what a scheduler was asked, and what it has given.
type schedSession struct {
	sender string              // "": there is none
	hello  *request            // with which it began
	ready  []byte              // the payload of what followed
	wait   map[jobid.ID]bool   // it was asked, and has not answered
	has    map[jobid.ID]*given // what jobs hold, as it sees it
	// stale has what the worker before asked: it is taken back. The request that follows it
	// waits until then.
	stale map[jobid.ID]*flux.Message
	later map[jobid.ID]uint64 // priorities that such a request has got meanwhile
}

func (s *schedSession) reset() {
	*s = schedSession{
		wait: make(map[jobid.ID]bool), has: make(map[jobid.ID]*given), stale: make(map[jobid.ID]*flux.Message),
		later: make(map[jobid.ID]uint64),
	}
}

// A startedJob is one that an executor was asked to start.
type startedJob struct {
	responses []flux.Message
	unasked   bool      // the worker has not asked for it yet
	over      time.Time // of its last response
}

// A sessionBody is what the keeper reads of the messages of sessions.
type sessionBody struct {
	ID      jobid.ID
	Type    json.RawMessage
	R       json.RawMessage
	Free    string
	Final   bool
	Data    json.RawMessage
	Service string
}

// parseSessionBody reads a message that is JSON. It passes over what the keeper has no use for, such
// as a jobspec, and aliases the message.
func parseSessionBody(text []byte) (b sessionBody, ok bool) {
	for m := range strict.All(text) {
		var err error
		switch value := text[m.Value:m.End]; m.Name(text) {
		case "id":
			err = b.ID.UnmarshalJSON(value)
		case "type":
			b.Type = value
		case "R":
			b.R = value
		case "free":
			err = json.Unmarshal(value, &b.Free)
		case "final":
			b.Final = string(value) == "true"
		case "data":
			b.Data = value
		case "service":
			err = json.Unmarshal(value, &b.Service)
		}
		if err != nil {
			return b, false
		}
	}
	return b, true
}

// textOf returns the payload of a message that a worker wrote, or has accepted.
func textOf(m *flux.Message) []byte { return bytes.TrimSuffix(m.Payload, []byte{0}) }

// An execSession is who executes jobs.
type execSession struct {
	sender  string // "": there is none
	service string
}

// notice notes which requests are of streams that the next worker would tell again.
func (k *keeper) notice(a asked, m *flux.Message) {
	switch {
	case m.Rolemask&flux.RoleOwner == 0: // a session is the owner's
	case m.Topic == alloc.TopicHello:
		k.told[a] = make(greeted)
	case m.Topic == topicJournal:
		k.told[a] = newJournalled(eventlog.FromTime(time.Now()), m.Payload)
	}
}

// cancel notes that a stream is to end, which the next worker has to hear again. It keeps nothing
// else of what the sender wrote.
func (k *keeper) cancel(sender string, m flux.Message) {
	var p struct{ Matchtag uint32 }
	if text, err := m.JSON(); err == nil && json.Unmarshal(text, &p) == nil {
		if q := k.open.of(asked{sender, p.Matchtag}); q != nil && q.Topic == topicJournal {
			m.Flags |= flagAgain
			m.Payload = flux.Text(fmt.Sprintf(`{"matchtag":%d}`, p.Matchtag))
			q.cancel = &m
		}
	}
}

// heeds notes what an answer says of the session of who has asked, and what has changed in the
// worker alone. A hello that is refused begins none, and ends none.
func (k *keeper) heeds(a asked, q *request, m *flux.Message) {
	switch ok := m.Errnum == 0; {
	case q.Rolemask&flux.RoleOwner == 0:
	case q.Topic == alloc.TopicHello && (ok || m.Errnum == errno.NoData) && k.sched.hello != q:
		k.sched.reset()
		k.sched.sender, k.sched.hello = a.sender, q
		k.greets(m)
	case q.Topic == alloc.TopicHello && ok:
		k.greets(m)
	case q.Topic == alloc.TopicReady && ok && a.sender == k.sched.sender:
		k.sched.ready = q.Payload
	case q.Topic == exec.TopicHello && ok:
		b, _ := parseSessionBody(textOf(&q.Message)) // a worker has accepted it
		k.exec = execSession{a.sender, b.Service}
		clear(k.started)
	case q.Topic == topicReload && ok:
		k.conf = textOf(&q.Message)
	case q.Topic == topicQueueStart && ok:
		k.startsQueue(textOf(&q.Message))
	case q.Topic == topicJobtap && ok:
		k.loads(textOf(&q.Message))
	}
}

// A change is a request that changed a worker alone, and that the next one is told.
type change struct {
	method string
	name   string // of a queue or a plugin, or a pattern; "": all queues
	text   []byte
}

// startsQueue notes what the next worker does not find in the store: a queue that was stopped
// without a checkpoint.
func (k *keeper) startsQueue(text []byte) {
	var p struct {
		Name         string
		NoCheckpoint bool
	}
	_ = json.Unmarshal(text, &p) // a worker has accepted it
	k.starts = slices.DeleteFunc(k.starts, func(c change) bool { return p.Name == "" || p.Name == c.name })
	if p.NoCheckpoint || len(k.starts) > 0 { // of one that was stopped with all others it is news, too
		k.starts = append(k.starts, change{"queue-start", p.Name, text})
	}
}

// maxPlugins is how many changes of plugins are kept, the last ones. All plugins are fewer: only
// patterns may be more.
const maxPlugins = 64

// loads notes what was loaded and removed: the last of each plugin.
func (k *keeper) loads(text []byte) {
	var p struct {
		Load, Remove string
		Conf         json.RawMessage
		Query        bool `json:"query_only"`
	}
	if json.Unmarshal(text, &p) != nil || p.Query {
		return
	}
	add := func(name string, over func(string) bool, request map[string]any) {
		k.plugins = slices.DeleteFunc(k.plugins, func(c change) bool { return over(c.name) })
		text, _ := json.Marshal(request) // of JSON
		k.plugins = append(k.plugins, change{"jobtap", name, text})
		k.plugins = k.plugins[max(0, len(k.plugins)-maxPlugins):]
	}
	if p.Remove != "" {
		add(p.Remove, func(name string) bool {
			match, _ := path.Match(p.Remove, name)
			return (match || p.Remove == "all") && strings.HasPrefix(name, ".") == strings.HasPrefix(p.Remove, ".") // as the service has it
		}, map[string]any{"remove": p.Remove})
	}
	if name := path.Base(p.Load); p.Load != "" {
		request := map[string]any{"load": p.Load}
		if p.Conf != nil {
			request["conf"] = p.Conf
		}
		add(name, func(other string) bool { return other == name }, request)
	}
}

// greets notes what a scheduler is told that a job holds.
func (k *keeper) greets(m *flux.Message) {
	if b, ok := parseSessionBody(textOf(m)); ok && b.R != nil {
		k.sched.has[b.ID] = &given{r: b.R, ranks: b.Free}
	}
}

// disconnect notes that a sender is gone, and reports whether it waited for an answer.
func (k *keeper) disconnect(sender string) (waited bool) {
	for tag := range k.open[sender] {
		k.drop(asked{sender, tag})
		waited = true
	}
	if sender == k.sched.sender {
		k.sched.reset()
	}
	if sender == k.exec.sender {
		k.exec = execSession{}
		clear(k.started)
	}
	return waited
}

// asks notes what a worker asks of a scheduler or an executor, and reports whether to pass it on.
func (k *keeper) asks(m *flux.Message) bool {
	b, ok := parseSessionBody(textOf(m))
	switch {
	case !ok:
	case m.Topic == alloc.TopicAlloc:
		if _, ok := k.sched.stale[b.ID]; ok {
			k.sched.stale[b.ID] = m
			delete(k.sched.later, b.ID)
			return false
		}
		k.sched.wait[b.ID] = true
	case m.Topic == alloc.TopicCancel:
		if again, ok := k.sched.stale[b.ID]; ok {
			if again != nil {
				k.sched.stale[b.ID] = nil
				k.send(flux.Message{
					Type: flux.TypeResponse, Rolemask: flux.RoleOwner, Topic: alloc.TopicAlloc,
					Payload: flux.Text(fmt.Sprintf(`{"id":%d,"type":3}`, uint64(b.ID))),
				})
			}
			return false
		}
	case m.Topic == alloc.TopicPrioritize && len(k.sched.stale) > 0:
		var p struct{ Jobs [][2]uint64 }
		_ = json.Unmarshal(textOf(m), &p) // a worker wrote it
		for _, j := range p.Jobs {
			if id := jobid.ID(j[0]); k.sched.stale[id] != nil {
				k.sched.later[id] = j[1]
			}
		}
	case m.Topic == alloc.TopicFree:
		if b.Final {
			delete(k.sched.has, b.ID)
			delete(k.started, b.ID)
		} else if g := k.sched.has[b.ID]; g != nil {
			g.freed = append(g.freed, b.R)
		}
	case strings.HasSuffix(m.Topic, ".start"):
		s := k.started[b.ID]
		if s == nil {
			k.forget()
			k.started[b.ID] = new(startedJob)
			return true
		}
		s.unasked = false
		for _, r := range s.responses {
			r.Flags |= flagAgain
			k.send(r)
		}
		return false
	}
	return true
}

// answered notes what a scheduler or an executor answers, and reports whether to pass it on.
func (k *keeper) answered(m *flux.Message) bool {
	text, err := m.JSON()
	if err != nil || m.Errnum != 0 { // it ends the session
		return true
	}
	b, ok := parseSessionBody(text)
	switch {
	case !ok:
	case m.Topic == alloc.TopicAlloc:
		return k.allocated(m, &b)
	case strings.HasSuffix(m.Topic, ".start"):
		if s := k.started[b.ID]; s != nil {
			m.Flags &^= flagAgain
			s.responses = append(s.responses, *m)
			if string(b.Type) == `"release"` {
				if data, _ := parseSessionBody(b.Data); data.Final {
					s.over = time.Now()
				}
			}
			return !s.unasked
		}
	}
	return true
}

// The types of the responses of a scheduler.
const (
	allocSuccess  = "0"
	allocAnnotate = "1"
	allocCancel   = "3"
)

func (k *keeper) allocated(m *flux.Message, b *sessionBody) bool {
	s, kind := &k.sched, string(b.Type)
	again, stale := s.stale[b.ID]
	if kind == allocAnnotate {
		return !stale || again != nil
	}
	delete(s.wait, b.ID)
	delete(s.stale, b.ID)
	defer delete(s.later, b.ID)
	switch {
	case stale && again == nil:
		if kind == allocSuccess {
			k.free(b.ID, &given{r: b.R}, nil)
		}
		return false
	case stale && kind == allocCancel:
		s.wait[b.ID] = true
		k.toBroker(*again)
		if priority, ok := s.later[b.ID]; ok {
			k.toBroker(flux.NewRequest(alloc.TopicPrioritize, flux.Text(fmt.Sprintf(`{"jobs":[[%d,%d]]}`, uint64(b.ID), priority))))
		}
		return false
	case kind == allocSuccess:
		s.has[b.ID] = &given{r: b.R}
	}
	return true
}

// A given is R of a job, of which the scheduler has got fragments back.
type given struct {
	r     json.RawMessage
	ranks string            // that a hello said were free
	freed []json.RawMessage // since
}

// left returns what the job holds. Of n fragments that are free it takes time in proportion to
// n log n, in whatever order they came.
func (g *given) left() (*rset.R, error) {
	r, err := rset.Parse(g.r)
	if err == nil && g.ranks != "" {
		var ranks *idset.Set
		if ranks, err = idset.Parse(g.ranks); err == nil {
			r, err = r.Without(ranks)
		}
	}
	free := make([]*rset.R, len(g.freed))
	for i, text := range g.freed {
		if err == nil {
			free[i], err = rset.Parse(text)
		}
	}
	var all *rset.R
	if err == nil {
		all, err = service.Union(free)
	}
	if err == nil {
		r, _, err = rset.Subtract(r, all)
	}
	return r, err
}

// free gives back what a job does not hold in the eyes of a worker; a nil held is nothing.
func (k *keeper) free(id jobid.ID, g, held *given) {
	r, err := g.left()
	if err == nil && held != nil {
		var h *rset.R
		if h, err = held.left(); err == nil {
			r, _, err = rset.Subtract(r, h)
		}
	}
	if err != nil || held != nil && r.IsEmpty() {
		return // the scheduler wrote it
	}
	text, err := alloc.Append(nil, alloc.Free{ID: id, R: r, Final: held == nil})
	if err != nil {
		return
	}
	if k.toBroker(flux.NewRequest(alloc.TopicFree, flux.Text(text))); held != nil {
		text, _ := r.MarshalJSON()
		g.freed = append(g.freed, text)
	}
}

// forgetAfter is how long the responses of a job that has ended are kept if nobody frees it.
const forgetAfter = 10 * time.Minute

// forget drops what was kept of jobs that ended long ago, when there are many.
func (k *keeper) forget() {
	if n := len(k.started); n < 1<<12 || n&(n-1) != 0 {
		return
	}
	for id, s := range k.started {
		if !s.over.IsZero() && time.Since(s.over) > forgetAfter {
			delete(k.started, id)
		}
	}
}

// The matchtags of the keeper's own requests to workers. No connection counts so far.
const (
	tagHello = 1<<32 - 16 + iota
	tagReady
	tagExec
)

// resume begins the sessions of a scheduler and of executors that never left.
func (k *keeper) resume(w *worker) error {
	for _, s := range k.started {
		s.unasked = true
	}
	clear(k.own)
	s := &k.sched
	open := func(topic string) bool { // it is about to be asked again
		for _, q := range k.open[s.sender] {
			if q.Topic == topic {
				return true
			}
		}
		return false
	}
	own := func(tag uint32, sender, topic string, payload []byte, flags flux.Flags, f func(answer)) error {
		k.own[asked{sender, tag}] = f
		return w.conn.Send(flux.Message{
			Type: flux.TypeRequest, Flags: flux.FlagRoute | flags, Rolemask: flux.RoleOwner, Nodeid: flux.NodeidAny,
			Matchtag: tag, Route: []string{sender}, Topic: topic, Payload: payload,
		})
	}
	for id := range s.wait {
		s.stale[id] = nil
		k.toBroker(flux.NewRequest(alloc.TopicCancel, flux.Text(fmt.Sprintf(`{"id":%d}`, uint64(id)))))
	}
	clear(s.wait)
	if s.sender != "" && !open(alloc.TopicHello) {
		held := make(map[jobid.ID]*given)
		err := own(tagHello, s.sender, alloc.TopicHello, flux.Text(`{"partial-ok":true}`), flux.FlagStreaming, func(a answer) {
			if a.text != nil {
				b, _ := parseSessionBody(a.text)
				held[b.ID] = &given{r: b.R, ranks: b.Free}
				return
			}
			for id, g := range s.has {
				if a.errnum != errno.NoData {
					break
				}
				if k.free(id, g, held[id]); held[id] == nil {
					delete(s.has, id)
				}
			}
		})
		if err == nil && s.ready != nil && !open(alloc.TopicReady) {
			err = own(tagReady, s.sender, alloc.TopicReady, s.ready, 0, func(answer) {})
		}
		if err != nil {
			return err
		}
	}
	if k.exec.sender == "" {
		return nil
	}
	text := flux.Text(fmt.Sprintf(`{"service":%q}`, k.exec.service))
	return own(tagExec, k.exec.sender, exec.TopicHello, text, 0, func(answer) {})
}
