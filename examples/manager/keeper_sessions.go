//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/flux"
	"github.com/joblife/joblife/jobstate/jobid"
)

// Topics of the messages that belong to a session.
const (
	topicAlloc      = "sched.alloc"
	topicCancel     = "sched.cancel"
	topicFree       = "sched.free"
	topicSchedReady = "job-manager.sched-ready"
	topicJournal    = "job-manager.events-journal"
)

// A schedSession is what a scheduler was asked, and what it has given.
type schedSession struct {
	sender string                       // "": there is none
	ready  []byte                       // the payload with which it began
	wait   map[jobid.ID]bool            // it was asked, and has not answered
	has    map[jobid.ID]json.RawMessage // R that it has given
	// stale has what the worker before asked: it is taken back. The request that follows it
	// waits until then.
	stale map[jobid.ID]*flux.Message
}

func (s *schedSession) reset() {
	*s = schedSession{
		wait: make(map[jobid.ID]bool), has: make(map[jobid.ID]json.RawMessage), stale: make(map[jobid.ID]*flux.Message),
	}
}

// A startedJob is one that an executor was asked to start.
type startedJob struct {
	responses []startResponse
	unasked   bool      // the worker has not asked for it yet
	replaying bool      // the worker is about to be told
	over      time.Time // of its last response
}

// A startResponse is what an executor said of a job.
type startResponse struct {
	flux.Message
	event    string // that follows from it
	severity int
}

// A sessionBody is what the keeper reads of the messages of sessions.
type sessionBody struct {
	ID    jobid.ID
	Type  json.RawMessage
	R     json.RawMessage
	Final bool
	Data  struct {
		Type     string
		Severity int
		Final    bool
	}
	Service  string
	Reattach bool
}

func parseSessionBody(m *flux.Message) (b sessionBody, ok bool) {
	text, err := m.JSON()
	return b, err == nil && json.Unmarshal(text, &b) == nil
}

// notice notes what a request says of its sender.
func (k *keeper) notice(a asked, m *flux.Message) {
	switch {
	case m.Rolemask&flux.RoleOwner == 0: // a session is the owner's
	case m.Topic == topicSchedHello:
		k.sched.reset()
		k.sched.sender = a.sender
		k.told[a] = make(greeted)
	case m.Topic == topicSchedReady:
		if a.sender == k.sched.sender {
			k.sched.ready = m.Payload
		}
	case m.Topic == topicExecHello:
		if b, ok := parseSessionBody(m); ok {
			k.exec[a.sender] = b.Service
		}
	case m.Topic == topicJournal:
		k.told[a] = &journalled{active: make(map[jobid.ID]logged), time: eventlog.FromTime(time.Now())}
	}
}

// disconnect notes that a sender is gone.
func (k *keeper) disconnect(sender string) {
	for a := range k.open {
		if a.sender == sender {
			k.drop(a)
		}
	}
	if sender == k.sched.sender {
		k.sched.reset()
	}
	if _, ok := k.exec[sender]; ok {
		if delete(k.exec, sender); len(k.exec) == 0 {
			clear(k.started)
		}
	}
}

// asks notes what a worker asks of a scheduler or an executor, and reports whether to pass it on.
func (k *keeper) asks(m *flux.Message) bool {
	b, ok := parseSessionBody(m)
	switch {
	case !ok:
	case m.Topic == topicAlloc:
		if _, ok := k.sched.stale[b.ID]; ok {
			k.sched.stale[b.ID] = m
			return false
		}
		k.sched.wait[b.ID] = true
	case m.Topic == topicCancel:
		if again, ok := k.sched.stale[b.ID]; ok {
			if again != nil {
				k.sched.stale[b.ID] = nil
				k.send(flux.Message{
					Type: flux.TypeResponse, Rolemask: flux.RoleOwner, Topic: topicAlloc,
					Payload: flux.Text(fmt.Sprintf(`{"id":%d,"type":3}`, uint64(b.ID))),
				})
			}
			return false
		}
	case m.Topic == topicFree:
		if b.Final {
			delete(k.sched.has, b.ID)
			delete(k.started, b.ID)
		}
	case strings.HasSuffix(m.Topic, ".start"):
		s := k.started[b.ID]
		if s == nil {
			k.forget()
			k.started[b.ID] = new(startedJob)
			return true
		}
		s.unasked, s.replaying = false, true
		go k.replay(k.worker, b.ID, s)
		return false
	}
	return true
}

// answered notes what a scheduler or an executor answers, and reports whether to pass it on.
func (k *keeper) answered(m *flux.Message) bool {
	b, ok := parseSessionBody(m)
	switch {
	case !ok || m.Errnum != 0: // it ends the session
	case m.Topic == topicAlloc:
		return k.allocated(m, &b)
	case strings.HasSuffix(m.Topic, ".start"):
		if s := k.started[b.ID]; s != nil {
			s.responses = append(s.responses, startResponse{*m, eventOf(string(b.Type), &b), b.Data.Severity})
			if string(b.Type) == `"release"` && b.Data.Final {
				s.over = time.Now()
			}
			return !s.unasked && !s.replaying
		}
	}
	return true
}

// eventOf returns the name of the event that follows from a response, "" if there is none.
func eventOf(kind string, b *sessionBody) string {
	switch kind {
	case `"start"`, `"finish"`, `"release"`:
		return strings.Trim(kind, `"`)
	case `"exception"`:
		return "exception " + b.Data.Type
	}
	return ""
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
	switch {
	case stale && again == nil:
		if kind == allocSuccess {
			k.free(b.ID, b.R)
		}
		return false
	case stale && kind == allocCancel:
		s.wait[b.ID] = true
		k.toBroker(*again)
		return false
	case kind == allocSuccess:
		s.has[b.ID] = b.R
	}
	return true
}

// free gives R back that no worker knows of.
func (k *keeper) free(id jobid.ID, r json.RawMessage) {
	var object map[string]json.RawMessage
	if json.Unmarshal(r, &object) != nil {
		return // the scheduler wrote it
	}
	delete(object, "scheduling")
	text, _ := json.Marshal(struct {
		ID    jobid.ID `json:"id"`
		R     any      `json:"R"`
		Final bool     `json:"final"`
	}{id, object, true}) // of JSON
	k.toBroker(flux.NewRequest(topicFree, flux.Text(text)))
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
		s.unasked, s.replaying = true, false
	}
	clear(k.own)
	s := &k.sched
	greets := func(q *request) bool {
		return q.Sender() == s.sender && (q.Topic == topicSchedHello || q.Topic == topicSchedReady)
	}
	own := func(tag uint32, sender, topic string, payload []byte, flags flux.Flags, f func(answer)) error {
		k.own[asked{sender, tag}] = f
		return w.conn.Send(flux.Message{
			Type: flux.TypeRequest, Flags: flux.FlagRoute | flags, Rolemask: flux.RoleOwner, Nodeid: flux.NodeidAny,
			Matchtag: tag, Route: []string{sender}, Topic: topic, Payload: payload,
		})
	}
	if s.ready != nil && !slices.ContainsFunc(slices.Collect(maps.Values(k.open)), greets) {
		for id := range s.stale {
			s.stale[id] = nil // the worker that asked again has ended too
		}
		for id := range s.wait {
			s.stale[id] = nil
			k.toBroker(flux.NewRequest(topicCancel, flux.Text(fmt.Sprintf(`{"id":%d}`, uint64(id)))))
		}
		clear(s.wait)
		held := make(map[jobid.ID]bool)
		err := own(tagHello, s.sender, topicSchedHello, flux.Text(`{"partial-ok":true}`), flux.FlagStreaming, func(a answer) {
			var b sessionBody
			if a.text != nil {
				_ = json.Unmarshal(a.text, &b) // a worker wrote it
				held[b.ID] = true
				return
			}
			for id, r := range s.has {
				if !held[id] && a.errnum == errno.NoData {
					delete(s.has, id)
					k.free(id, r)
				}
			}
		})
		if err == nil {
			err = own(tagReady, s.sender, topicSchedReady, s.ready, 0, func(answer) {})
		}
		if err != nil {
			return err
		}
	}
	n := uint32(0)
	for sender, service := range k.exec {
		text := flux.Text(fmt.Sprintf(`{"service":%q}`, service))
		if err := own(tagExec+n, sender, topicExecHello, text, 0, func(answer) {}); err != nil {
			return err
		}
		n++
	}
	return nil
}

// replay tells a worker what an executor has said of a job, but for what its log has.
func (k *keeper) replay(w *worker, id jobid.ID, s *startedJob) {
	known, err := k.logOf(id)
	k.mu.Lock()
	defer k.mu.Unlock()
	if w != k.worker {
		return
	}
	if err != nil {
		fmt.Fprintf(k.stderr, "manager: the log of job %v: %v\n", id, err)
		_ = w.cmd.Process.Kill() // it has no complete story
		return
	}
	for _, r := range s.responses {
		if n := known[r.event]; n > 0 && r.event != "" {
			known[r.event] = n - 1
			continue
		}
		k.send(r.Message)
	}
	s.replaying = false
}

// logOf counts the events in the log of a job: exceptions by their type.
func (k *keeper) logOf(id jobid.ID) (map[string]int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startWait)
	defer cancel()
	var found struct {
		Value *treeObj `json:"val"`
	}
	in := map[string]any{"namespace": "primary", "key": id.KVSPath() + keyEventlog, "flags": 0}
	if err := k.broker.CallJSON(ctx, "kvs.lookup", flux.NodeidAny, in, &found); err != nil {
		return nil, err
	}
	text, err := found.Value.text()
	if err != nil {
		return nil, err
	}
	known := make(map[string]int)
	for line := range bytes.Lines(text) {
		e, err := eventlog.Parse(line)
		if err != nil {
			return nil, err
		}
		name := e.Name
		if name == "exception" {
			var c struct{ Type string }
			_ = json.Unmarshal(e.Context, &c) // it was read before
			name += " " + c.Type
		}
		known[name]++
	}
	return known, nil
}

// A told is what a stream was told, which a worker after another would tell again.
type told interface {
	tell(text []byte) []byte     // what is new of an answer; nil: nothing
	again(payload []byte) []byte // the request to the next worker
}

// greeted are the jobs of which a scheduler was told in a hello.
type greeted map[jobid.ID]bool

func (g greeted) tell(text []byte) []byte {
	var b sessionBody
	if json.Unmarshal(text, &b) == nil {
		if g[b.ID] {
			return nil
		}
		g[b.ID] = true
	}
	return text
}

func (g greeted) again(payload []byte) []byte { return payload }

// journalled is how far a stream of events is.
type journalled struct {
	active    map[jobid.ID]logged // the last event of jobs that are not over
	time      eventlog.Timestamp  // of the last event, or of the request
	begun     bool                // the end of the history was told
	replaying bool                // the history comes again
}

// A logged is what tells an event of a job from others.
type logged struct {
	name string
	time eventlog.Timestamp
}

// A journal is an answer to a request for events.
type journal struct {
	ID      int64             `json:"id"`
	Events  []json.RawMessage `json:"events"`
	Jobspec json.RawMessage   `json:"jobspec,omitempty"`
	R       json.RawMessage   `json:"R,omitempty"`
}

func (s *journalled) again(payload []byte) []byte {
	s.replaying = true
	object := map[string]any{}
	_ = json.Unmarshal(bytes.TrimSuffix(payload, []byte{0}), &object) // it was accepted once, or is refused again
	object["full"] = true
	text, _ := json.Marshal(object) // of JSON
	return flux.Text(text)
}

func (s *journalled) tell(text []byte) []byte {
	var a journal
	if json.Unmarshal(text, &a) != nil {
		return text
	}
	if a.ID < 0 { // the end of the history
		again := s.begun
		s.begun, s.replaying = true, false
		if again {
			return nil
		}
		return text
	}
	events := make([]eventlog.Entry, len(a.Events))
	for i, e := range a.Events {
		events[i], _ = eventlog.Parse(e) // zero: it has no name
	}
	id := jobid.ID(a.ID)
	if s.replaying {
		if from := s.from(id, events); from > 0 {
			if a.Events, events = a.Events[from:], events[from:]; len(events) == 0 {
				return nil
			}
			a.Jobspec = nil
			if !slices.ContainsFunc(events, func(e eventlog.Entry) bool { return e.Name == "alloc" }) {
				a.R = nil
			}
			text, _ = json.Marshal(a) // of JSON
		}
	}
	for _, e := range events {
		switch e.Name {
		case "annotations", "": // in no log
		case "clean", "invalidate":
			delete(s.active, id)
			s.time = max(s.time, e.Timestamp)
		default:
			s.active[id] = logged{e.Name, e.Timestamp}
			s.time = max(s.time, e.Timestamp)
		}
	}
	return text
}

// from returns how many of the events of a job were told already.
func (s *journalled) from(id jobid.ID, events []eventlog.Entry) int {
	last, ok := s.active[id]
	for i, e := range slices.Backward(events) {
		if ok && last == (logged{e.Name, e.Timestamp}) || !ok && e.Timestamp <= s.time {
			return i + 1
		}
	}
	return 0
}
