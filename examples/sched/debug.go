package main

import (
	"encoding/json"
	"fmt"

	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/flux"
	"github.com/joblife/joblife/rset/alloc"
)

// The bits of flux module debug that sched-simple has, for tests of what a scheduler's answers
// lead to.
const (
	debugDeny       = 1 // every request for resources
	debugPlaces     = 2 // tell each job that waits how many are before it
	debugExpiration = 4 // deny every new expiration
)

// debug changes the bits as a request says.
func (b *broker) debug(q *flux.Message) error {
	var in struct {
		Op    string
		Flags int
	}
	text, err := q.JSON()
	if err == nil {
		err = json.Unmarshal(text, &in)
	}
	switch {
	case err == nil && in.Op == "setbit":
		b.bits |= in.Flags
	case err == nil && in.Op == "clrbit":
		b.bits &^= in.Flags
	case err == nil && in.Op == "set":
		b.bits = in.Flags
	case err == nil && in.Op == "clr":
		b.bits = 0
	default:
		b.fail(q, errno.Protocol, "want an op and flags")
		return nil
	}
	return b.answer(q, map[string]int{"flags": b.bits})
}

// denied denies a request if a bit says so, and reports whether it did.
func (b *broker) denied(q *flux.Message, m alloc.Message) bool {
	switch m := m.(type) {
	case alloc.Request:
		if b.bits&debugDeny != 0 {
			b.waits[m.ID] = q
			b.respond(alloc.Response{ID: m.ID, Type: alloc.ResponseDeny, Note: "DEBUG_FAIL_ALLOC"})
			return true
		}
	case alloc.Expiration:
		if b.bits&debugExpiration != 0 {
			b.fail(q, errno.Invalid, "a debug bit denies it")
			return true
		}
	}
	return false
}

// places tells the jobs that wait of their new places.
func (b *broker) places() {
	if b.bits&debugPlaces == 0 {
		return
	}
	ahead := 0
	for j := range b.s.Jobs() {
		if old, ok := b.placed[j.ID]; !ok || old != ahead {
			b.placed[j.ID] = ahead
			b.respond(alloc.Response{ID: j.ID, Type: alloc.ResponseAnnotate,
				Annotations: fmt.Appendf(nil, `{"sched":{"reason_pending":"insufficient resources","jobs_ahead":%d}}`, ahead)})
		}
		ahead++
	}
}

// started takes the place of a job back in what it is told with its resources.
func (b *broker) started(r *alloc.Response) {
	_, ok := b.placed[r.ID]
	delete(b.placed, r.ID)
	var told map[string]map[string]any
	if !ok || r.Type != alloc.ResponseSuccess || json.Unmarshal(r.Annotations, &told) != nil {
		return
	}
	told["sched"]["reason_pending"], told["sched"]["jobs_ahead"] = nil, nil
	if text, err := json.Marshal(told); err == nil {
		r.Annotations = text
	}
}
