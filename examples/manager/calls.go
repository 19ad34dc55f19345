package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// A call is a request to a client that waits for its answer.
type call struct {
	client  *client
	sender  *string // of the client, whom it is for; nil: the client itself
	topic   string
	session uint32 // of a scheduler or an executor; 0: none
	stream  bool
	until   time.Time           // it is lost then, unless it is a stream
	then    func(message) error // takes the answer; nil: it has no matchtag, or does not come
}

// calls are the requests to clients, by matchtag.
type calls struct {
	last    uint32
	waiting map[uint32]call
	order   map[question][]uint32 // some may be answered
	timed   []uint32              // all but streams, by until; some may be answered
}

// A question is what answers without a matchtag are for.
type question struct {
	client *client
	topic  string
}

func (c call) question() question { return question{c.client, c.topic} }

// add notes a call, and returns its matchtag.
func (w *calls) add(c call) uint32 {
	if w.waiting == nil {
		w.waiting, w.order = make(map[uint32]call), make(map[question][]uint32)
	}
	for w.last++; w.last == 0 || w.waiting[w.last].topic != ""; w.last++ {
	}
	w.waiting[w.last] = c
	if !c.stream {
		w.timed = append(w.timed, w.last)
	}
	list := w.order[c.question()]
	if len(list) > 2*len(w.waiting) { // long calls keep those that were answered behind them
		list = slices.DeleteFunc(list, func(n uint32) bool { return w.waiting[n].topic == "" })
	}
	w.order[c.question()] = append(list, w.last)
	return w.last
}

// overdue takes out a call that is lost.
func (w *calls) overdue(now time.Time) (call, bool) {
	for ; len(w.timed) > 0; w.timed = w.timed[1:] {
		n := w.timed[0]
		switch c := w.waiting[n]; {
		case c.topic == "" || c.stream: // it was answered
		case c.until.After(now):
			return call{}, false
		default:
			w.drop(n)
			return c, true
		}
	}
	return call{}, false
}

// drop takes out a call, and what was answered behind it in the order.
func (w *calls) drop(n uint32) {
	q := w.waiting[n].question()
	delete(w.waiting, n)
	list := w.order[q]
	for len(list) > 0 && w.waiting[list[0]].topic == "" {
		list = list[1:]
	}
	if w.order[q] = list; len(list) == 0 {
		delete(w.order, q)
	}
}

// answered returns the call that a response of a client answers. One without a matchtag
// answers the oldest call of its topic; if there is none, it is one that is matched by the
// job's id, and ok is false. An error is for a response of somebody else.
func (w *calls) answered(from *client, m message) (c call, ok bool, err error) {
	n := uint32(0)
	switch list := w.order[question{from, m.Topic}]; {
	case m.Matchtag != nil:
		n = *m.Matchtag
	case len(list) > 0:
		n = list[0]
	}
	if n == 0 {
		return call{}, false, nil
	}
	c = w.waiting[n]
	switch {
	case c.question() != question{from, m.Topic}:
		return call{}, false, fmt.Errorf("no call of this topic to this client has matchtag %d", n)
	case !m.isFrom(c.sender):
		return call{}, false, errStranger
	}
	if !c.stream || m.Errnum != 0 {
		w.drop(n)
	}
	return c, true, nil
}

// errStranger is for a response of one who was not asked.
var errStranger = errors.New("this is from somebody else than the one who was asked")

// isFrom reports whether a response may be of a sender. One that names nobody is of the one
// who was asked there. No guest is asked, and one may put any name there.
func (m message) isFrom(sender *string) bool {
	return m.isOwners() && (m.Sender == nil || sender != nil && *m.Sender == *sender)
}

// of takes out all calls to a client, in their order.
func (w *calls) of(c *client) (list []call) {
	for _, n := range slices.Sorted(maps.Keys(w.waiting)) {
		if o := w.waiting[n]; o.client == c {
			list = append(list, o)
			w.drop(n)
		}
	}
	return list
}
