package service

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/strict"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// The limits of streams, whose readers may be slow.
const (
	maxStreams   = 128     // of all
	maxOfSender  = 16      // of one sender
	backlogBytes = 4 << 20 // of an Out, or one job
	maxTogether  = 1 << 16 // bytes of events in an answer, beside the last of them
)

// A journal has the readers of the events of all jobs.
type journal struct {
	*core
	list []*listener
}

// A listener is a stream of events.
type listener struct {
	*Request
	Filter
	full bool // begin with the jobs that are over
	live bool // it has the history, and gets what happens
}

// A Filter says which events a stream has, by name. A nil Allow allows all, a nil Deny denies none.
type Filter struct{ Allow, Deny map[string]json.RawMessage }

// Wants reports whether a stream has the events of a name.
func (f Filter) Wants(name string) bool {
	if _, ok := f.Allow[name]; !ok && f.Allow != nil {
		return false
	}
	_, denied := f.Deny[name]
	return !denied
}

// begin begins a stream of events: the history that is durable now, then an answer with the
// id -1, and then what happens.
func (s *journal) begin(r *Request, p struct {
	Full  bool            `json:"full,omitempty"`
	Allow json.RawMessage `json:"allow,omitempty"`
	Deny  json.RawMessage `json:"deny,omitempty"`
}) (any, error) {
	if r.Single {
		return nil, fail(errno.Protocol, "job-manager.events requires streaming RPC flag")
	}
	ofSender := 0
	for _, l := range s.list {
		if l.Sender == r.Sender {
			ofSender++
		}
	}
	if len(s.list) >= maxStreams || ofSender >= maxOfSender {
		return nil, fail(errno.Again, "there are too many streams of events")
	}
	l := &listener{Request: r, full: p.Full}
	var ok bool
	if l.Allow, ok = names(p.Allow); !ok {
		return nil, fail(errno.Protocol, "job-manager.events allow should be an object")
	}
	if l.Deny, ok = names(p.Deny); !ok {
		return nil, fail(errno.Protocol, "job-manager.events deny should be an object")
	}
	if r.Matchtag != 0 {
		s.list = append(s.list, l)
		s.then = append(s.then, func() { s.backlog(l) })
	}
	return nil, errLater
}

// names reads an object of which only the keys matter; nil if it is absent.
func names(text json.RawMessage) (m map[string]json.RawMessage, ok bool) {
	if text == nil {
		return nil, true
	}
	m = make(map[string]json.RawMessage)
	return m, strict.Members(text, func(name string, _ json.RawMessage) error { m[name] = nil; return nil }) == nil
}

// cancel ends a stream of the same sender. It has no answer of its own.
func (s *journal) cancel(r *Request, p struct {
	Matchtag uint32 `json:"matchtag"`
}) (any, error) {
	for _, l := range s.remove(func(l *Request) bool { return l.Sender == r.Sender && l.Matchtag == p.Matchtag }) {
		s.quick.fail(l, errNoData)
	}
	return nil, errLater
}

func (s *journal) remove(which func(*Request) bool) []*Request { return takeOut(&s.list, which) }

// backlog sends a new reader the history, in parts, so that an Out stays small however long
// the history is. What it lacks comes with the next Ready that is durable.
func (s *journal) backlog(l *listener) {
	if !slices.Contains(s.list, l) {
		return
	}
	l.live = true
	var list []jobid.ID
	logs := maps.Collect(s.m.History())
	if l.full {
		for v := range s.m.Jobs(jobstate.StateInactive) {
			if logs[v.ID()] == nil {
				list = append(list, v.ID())
			}
		}
		slices.Sort(list)
	}
	size := 0
	for _, id := range append(list, slices.Sorted(maps.Keys(logs))...) {
		if size > backlogBytes {
			s.flush()
			size = 0
		}
		var stored Stored
		if v, ok := s.m.Job(id); !ok || v.Jobspec() == nil || isUpdated(v.Job()) { // what the Manager has may not be durable, or gone
			stored = s.lookup(id)
		} else {
			stored.Jobspec, _ = v.Jobspec().MarshalJSON() // which never fails
			if v.R() != nil {
				stored.R = v.R().AppendJSON(nil)
			}
		}
		if log, ok := logs[id]; ok {
			if stored.Eventlog = log; !isAllocated(log) { // the R of an alloc that is not durable yet is nobody's
				stored.R = nil
			}
		}
		if len(stored.Eventlog) > 0 { // or else it was purged
			s.sendLog(l, id, stored)
		}
		size += len(stored.Eventlog) + len(stored.Jobspec) + len(stored.R)
	}
	s.quick.answer(l.Request, json.RawMessage(`{"id":-1,"events":[]}`))
	s.flush()
}

// isUpdated reports whether a job has another jobspec or another R than the log says that it
// began with.
func isUpdated(j *jobstate.Job) bool {
	for range j.Updates() {
		return true
	}
	_, ok := j.Expiration()
	return ok
}

func isAllocated(log []byte) bool {
	for line := range bytes.Lines(log) {
		if e, err := eventlog.Parse(line); err == nil && e.Name == jobstate.EventAlloc {
			return true
		}
	}
	return false
}

func (s *journal) lookup(id jobid.ID) Stored {
	if s.cfg.Lookup == nil {
		return Stored{}
	}
	stored, err := s.cfg.Lookup(id)
	if err != nil {
		s.quick.errorf("events-journal: job %v: %v", id, err)
	}
	return stored
}

// jobEvents is an answer: events of a job.
type jobEvents struct {
	ID      jobid.ID          `json:"id"`
	Events  []json.RawMessage `json:"events"`
	Jobspec json.RawMessage   `json:"jobspec,omitempty"`
	R       json.RawMessage   `json:"R,omitempty"`
}

// text returns an answer of what is JSON, which package encoding/json would read again.
func (e *jobEvents) text() json.RawMessage {
	size := 64 + len(e.Jobspec) + len(e.R) // of the rest, and what they have
	for _, event := range e.Events {
		size += len(event) + 1
	}
	b := append(make([]byte, 0, size), `{"id":`...)
	b = append(strconv.AppendUint(b, uint64(e.ID), 10), `,"events":[`...)
	for i, event := range e.Events {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, event...)
	}
	b = append(b, ']')
	if len(e.Jobspec) > 0 {
		b = append(append(b, `,"jobspec":`...), e.Jobspec...)
	}
	if len(e.R) > 0 {
		b = append(append(b, `,"R":`...), e.R...)
	}
	return append(b, '}')
}

func (s *journal) sendLog(l *listener, id jobid.ID, stored Stored) {
	list := slices.DeleteFunc(events(stored.Eventlog), func(line json.RawMessage) bool {
		if l.Allow == nil && l.Deny == nil {
			return false
		}
		e, err := eventlog.Parse(line)
		if err != nil {
			s.quick.errorf("events-journal: job %v: %v", id, err)
		}
		return err != nil || !l.Wants(e.Name)
	})
	s.quick.answer(l.Request, jobEvents{id, list, redactSpec(stored.Jobspec), redactR(stored.R)})
}

func (s *journal) emit(rd *joblife.Ready) {
	if len(s.list) == 0 {
		return
	}
	// A job that has ended since has neither jobspec nor R any more.
	specs, rs := make(map[jobid.ID][]byte), make(map[jobid.ID][]byte)
	for _, r := range rd.Append {
		switch r.Kind {
		case joblife.RecordJobspec:
			specs[r.Job] = bytes.Clone(redactSpec(r.Data))
		case joblife.RecordR:
			rs[r.Job] = bytes.Clone(redactR(r.Data))
		}
	}
	for list := rd.Journal; len(list) > 0; {
		id, n, size := list[0].Job, 1, len(list[0].Entry.Context)
		for n < len(list) && list[n].Job == id && size < maxTogether {
			size += len(list[n].Entry.Context)
			n++
		}
		s.emitEvents(list[:n], specs[id], rs[id])
		list = list[n:]
	}
}

// AnnotationsOf returns the event that tells of the annotations of an alloc: readers take them from
// that alone.
func AnnotationsOf(e eventlog.Entry) (notes eventlog.Entry, ok bool) {
	ok = e.Name == jobstate.EventAlloc && bytes.HasPrefix(e.Context, []byte(`{"annotations":`))
	return eventlog.Entry{Timestamp: e.Timestamp, Name: eventAnnotations, Context: e.Context}, ok
}

const eventAnnotations = "annotations"

// emitEvents tells of events of one job, which come one after the other, in one answer: each
// answer passes through several processes.
func (s *journal) emitEvents(list []joblife.JournalEntry, spec, r []byte) {
	id := list[0].Job
	var names []string
	var lines []json.RawMessage
	add := func(e eventlog.Entry) {
		line, err := eventlog.AppendEntry(nil, e)
		if err != nil {
			s.open.errorf("events-journal: job %v: %v", id, err)
			return
		}
		names, lines = append(names, e.Name), append(lines, bytes.TrimSuffix(line, []byte("\n")))
	}
	for _, e := range list {
		if notes, ok := AnnotationsOf(e.Entry); ok {
			add(notes)
		}
		add(e.Entry)
	}
	for _, l := range s.list {
		if !l.live {
			continue
		}
		a := jobEvents{ID: id}
		for i, name := range names {
			if !l.Wants(name) {
				continue
			}
			switch a.Events = append(a.Events, lines[i]); name {
			case jobstate.EventSubmit:
				a.Jobspec = spec
			case jobstate.EventAlloc:
				a.R = r
			}
		}
		if a.Events != nil {
			s.open.answer(l.Request, a.text())
		}
	}
}
