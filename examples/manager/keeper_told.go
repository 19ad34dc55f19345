//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/flux"
	"github.com/joblife/joblife/examples/internal/service"
	"github.com/joblife/joblife/examples/internal/strict"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A told is what a stream was told, which a worker after another would tell again.
type told interface {
	tell(text []byte) []byte     // what is new of an answer; nil: nothing
	again(payload []byte) []byte // the request to the next worker
}

// greeted are the jobs of which a scheduler was told in a hello.
type greeted map[jobid.ID]bool

func (g greeted) tell(text []byte) []byte {
	if b, ok := parseSessionBody(text); ok {
		if g[b.ID] {
			return nil
		}
		g[b.ID] = true
	}
	return text
}

func (g greeted) again(payload []byte) []byte { return payload }

// journalled is how far a stream of events is: see progress.
type journalled struct {
	progress
	begun bool // the end of the history was told
	notes bool // it wants annotations
	// While the history comes, jobs come one after the other: next is how far the stream will
	// be then, and events how many of each job were told.
	next   *progress
	events map[jobid.ID]int
}

func newJournalled(now eventlog.Timestamp, payload []byte) *journalled {
	var f service.Filter
	_ = json.Unmarshal(bytes.TrimSuffix(payload, []byte{0}), &f) // else it is refused
	return &journalled{progress: *newProgress(now), notes: f.Wants("annotations"), next: newProgress(now), events: make(map[jobid.ID]int)}
}

// A progress is a point in a stream of events. No two events of a job have one time, so the time
// of the last one says which were told. Those of all jobs come nearly in the order of their times:
// one may be older than what was told of another job, but not by maxAhead. So it has nothing of a
// job that was silent for longer: events before time were told, or came before the request.
type progress struct {
	time         eventlog.Timestamp
	since        eventlog.Timestamp // when last began
	last, before map[jobid.ID]eventlog.Timestamp
	alone        map[jobid.ID]bool // the submit was told, and nothing that followed it
}

func newProgress(now eventlog.Timestamp) *progress {
	return &progress{now, now, make(map[jobid.ID]eventlog.Timestamp), nil, make(map[jobid.ID]bool)}
}

// maxAhead is how many seconds an event may be ahead of the clock, which begins in the same second
// as the last event in the logs. Those of one Step are a microsecond apart.
const maxAhead = 4

// maxAlone is how many jobs may be alone; beyond that their submits may come twice.
const maxAlone = 1 << 16

// advance takes events that are told.
func (p *progress) advance(id jobid.ID, times []eventlog.Timestamp) {
	for _, t := range times {
		switch t {
		case notLogged:
			continue
		case submitAlone:
			if len(p.alone) >= maxAlone {
				clear(p.alone)
			}
			p.alone[id] = true
			continue
		}
		delete(p.alone, id)
		if t >= p.since+maxAhead {
			p.time, p.since, p.before, p.last = t-maxAhead, t, p.last, make(map[jobid.ID]eventlog.Timestamp)
		}
		if t >= p.time {
			p.last[id] = max(t, p.last[id])
		}
	}
}

// told returns how many of the first events of a job were told.
func (p *progress) told(id jobid.ID, times []eventlog.Timestamp) (n int) {
	if p.alone[id] {
		return min(1, len(times))
	}
	last := max(p.last[id], p.before[id])
	for n < len(times) && (times[n] < p.time || times[n] <= last) && times[n] != submitAlone {
		n++
	}
	return n
}

// A journal is an answer to a request for events.
type journal struct {
	ID      int64             `json:"id"`
	Events  []json.RawMessage `json:"events"`
	Jobspec json.RawMessage   `json:"jobspec,omitempty"`
	R       json.RawMessage   `json:"R,omitempty"`
}

// parseJournal reads an answer, and aliases it.
func parseJournal(text []byte) (a journal) {
	for m := range strict.All(text) {
		switch value := text[m.Value:m.End]; m.Name(text) {
		case "id":
			a.ID, _ = strconv.ParseInt(string(value), 10, 64) // a worker wrote it
		case "events":
			for e := range strict.All(value) {
				a.Events = append(a.Events, value[e.Value:e.End])
			}
		case "jobspec":
			a.Jobspec = value
		case "R":
			a.R = value
		}
	}
	return a
}

func (s *journalled) again(payload []byte) []byte {
	if s.next == nil {
		next := s.progress // nobody changes its before
		next.last, next.alone, s.next = maps.Clone(s.last), maps.Clone(s.alone), &next
		s.events = make(map[jobid.ID]int)
	}
	if !s.begun && len(s.events) == 0 {
		return payload
	}
	object := map[string]any{}
	_ = json.Unmarshal(bytes.TrimSuffix(payload, []byte{0}), &object) // it was accepted once, or is refused again
	object["full"] = true                                             // jobs may have ended
	text, _ := json.Marshal(object)                                   // of JSON
	return flux.Text(text)
}

func (s *journalled) tell(text []byte) []byte {
	a := parseJournal(text)
	id := jobid.ID(a.ID)
	switch {
	case a.ID < 0 && s.next != nil: // the end of the history
		s.progress, s.next, s.events = *s.next, nil, nil
		if s.begun {
			return nil
		}
		s.begun = true
		return text
	case s.next == nil:
		s.advance(id, timesOf(a.Events))
		return text
	}
	times := timesOf(a.Events)
	from := min(s.events[id], len(times))
	if s.begun {
		from = max(from, s.told(id, times))
	}
	s.events[id] = len(times)
	s.next.advance(id, times[from:])
	a.Events = a.Events[from:]
	at, notes := allocIn(a.Events)
	if !s.begun || !s.notes { // a history has none
		notes = nil
	}
	switch {
	case from == 0 && notes == nil:
		return text
	case len(a.Events) == 0:
		return nil
	}
	if from > 0 {
		a.Jobspec = nil
	}
	if at < 0 {
		a.R = nil
	}
	if notes != nil {
		a.Events = slices.Insert(slices.Clone(a.Events), at, notes)
	}
	text, _ = json.Marshal(a) // of JSON
	return text
}

// allocIn returns where the alloc is, below 0 if there is none, and the event with its annotations.
func allocIn(events []json.RawMessage) (at int, notes json.RawMessage) {
	for i, text := range events {
		e, _ := eventlog.Parse(text) // zero: it has no name
		if e.Name != "alloc" {
			continue
		}
		if e, ok := service.AnnotationsOf(e); ok {
			line, _ := eventlog.AppendEntry(nil, e)
			notes = bytes.TrimSpace(line)
		}
		return i, notes
	}
	return -1, nil
}

// Times of events that say nothing of their place in the stream.
const (
	notLogged   = 0
	submitAlone = -1
)

// timesOf returns the times at which events were posted: a submit with what follows it.
func timesOf(events []json.RawMessage) []eventlog.Timestamp {
	times := make([]eventlog.Timestamp, len(events))
	next := eventlog.Timestamp(submitAlone)
	for i, text := range slices.Backward(events) {
		switch e, _ := eventlog.Parse(text); e.Name { // zero: it has no name
		case "annotations", "":
		case "submit":
			times[i] = next
		default:
			times[i], next = e.Timestamp, e.Timestamp
		}
	}
	return times
}
