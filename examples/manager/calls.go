package main

import (
	"encoding/json"
	"fmt"
	"slices"
)

// A call is a request to a client that waits for its answer.
type call struct {
	client *client
	topic  string
	stream bool
	tag    uint64                       // of the service, if then is nil
	then   func(json.RawMessage, error) // takes the answer
}

// calls are the requests to clients, by matchtag.
type calls struct {
	last    uint32
	waiting map[uint32]call
	order   map[string][]uint32 // of a topic; some may be answered
}

// add notes a call, and returns its matchtag.
func (w *calls) add(c call) uint32 {
	if w.waiting == nil {
		w.waiting, w.order = make(map[uint32]call), make(map[string][]uint32)
	}
	for w.last++; w.last == 0 || w.waiting[w.last].topic != ""; w.last++ {
	}
	w.waiting[w.last] = c
	list := w.order[c.topic]
	if len(list) > 2*len(w.waiting) { // long calls keep those that were answered behind them
		list = slices.DeleteFunc(list, func(n uint32) bool { return w.waiting[n].topic == "" })
	}
	w.order[c.topic] = append(list, w.last)
	return w.last
}

// tidy drops what is answered from the front of the order.
func (w *calls) tidy(topic string) {
	list := w.order[topic]
	for len(list) > 0 && w.waiting[list[0]].topic == "" {
		list = list[1:]
	}
	if w.order[topic] = list; len(list) == 0 {
		delete(w.order, topic)
	}
}

// answered returns the call that a response answers, and the service's tag for it. One
// without a matchtag answers the oldest call of its topic; if there is none, it is one
// that is matched by the job's id.
func (w *calls) answered(m message) (c call, tag uint64, err error) {
	n := uint32(0)
	switch list := w.order[m.Topic]; {
	case m.Matchtag != nil:
		n = *m.Matchtag
	case len(list) > 0:
		n = list[0]
	}
	if n == 0 {
		return call{}, 0, nil
	}
	c = w.waiting[n]
	if c.topic != m.Topic {
		return call{}, 0, fmt.Errorf("no call of this topic has matchtag %d", n)
	}
	if !c.stream || m.Errnum != 0 {
		delete(w.waiting, n)
		w.tidy(m.Topic)
	}
	return c, c.tag, nil
}

// of takes out all calls to a client, in their order.
func (w *calls) of(c *client) (list []call) {
	var tags []uint32
	for n, o := range w.waiting {
		if o.client == c {
			tags = append(tags, n)
		}
	}
	slices.Sort(tags)
	for _, n := range tags {
		list = append(list, w.waiting[n])
		delete(w.waiting, n)
		w.tidy(list[len(list)-1].topic)
	}
	return list
}
