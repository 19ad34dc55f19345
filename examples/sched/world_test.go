package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/joblifetest"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
)

// wired is this scheduler at the end of its lines, as joblifetest.RunScheduler drives it.
type wired struct {
	*session
	t       *rapid.T
	options options
	nodes   *rset.R
	out     bytes.Buffer
	ended   map[alloc.ResponseType]int // requests, by their last response
}

// say gives the session a line, which it must not refuse.
func (w *wired) say(text []byte, err error) error {
	if err == nil {
		err = w.session.Take(lines.Line{Text: text})
	}
	if w.refused > 0 {
		err = fmt.Errorf("%s is refused: %s", text, &w.out)
	}
	return err
}

func (w *wired) Hello(a alloc.Announcement) error {
	now := eventlog.Timestamp(1)
	if w.session != nil {
		now = w.now
	}
	w.ended = make(map[alloc.ResponseType]int)
	w.session = newSession(w.options, &w.out, io.Discard)
	w.clock.Advance(now)
	payload := fmt.Appendf(nil, `{"resources":%s,"up":"%v"}`, w.nodes.AppendJSON(nil), w.nodes.Ranks())
	err := w.say(alloc.Line{Topic: pool.TopicAcquire, Payload: payload}.AppendText(nil))
	for _, h := range a.Responses {
		err = errors.Join(err, w.say(alloc.AppendMessage(nil, alloc.TopicHello, h)))
	}
	return errors.Join(err, w.say(alloc.Line{Topic: alloc.TopicHello, Errnum: alloc.NoData}.AppendText(nil)))
}

func (w *wired) Update(c pool.Change) error {
	payload, err := json.Marshal(struct {
		Up   *idset.Set `json:"up,omitempty"`
		Down *idset.Set `json:"down,omitempty"`
	}{c.Up, c.Down})
	require.NoError(w.t, err)
	return w.say(alloc.Line{Topic: pool.TopicAcquire, Payload: payload}.AppendText(nil))
}

func (w *wired) Handle(m alloc.Message) error {
	topic := ""
	switch m.(type) {
	case alloc.Request:
		topic = alloc.TopicAlloc
	case alloc.Cancel:
		topic = alloc.TopicCancel
	case alloc.Prioritize:
		topic = alloc.TopicPrioritize
	case alloc.Free:
		topic = alloc.TopicFree
	case alloc.Expiration:
		topic = alloc.TopicExpiration
	}
	return w.say(alloc.AppendMessage(nil, topic, m))
}

// Decide returns what the session has written, and checks what the world does not judge.
func (w *wired) Decide(now eventlog.Timestamp) (list []alloc.Response) {
	w.clock.Advance(now)
	require.NoError(w.t, w.wake())
	for text := range bytes.Lines(w.out.Bytes()) {
		l, err := alloc.ParseLine(text)
		require.NoError(w.t, err)
		require.Zero(w.t, l.Errnum, l.Errstr)
		if l.Topic != alloc.TopicAlloc {
			continue
		}
		a, err := alloc.Parse[alloc.Response](bytes.Clone(l.Payload))
		require.NoError(w.t, err)
		if a.Type != alloc.ResponseAnnotate {
			w.ended[a.Type]++
		}
		list = append(list, a)
	}
	w.out.Reset()
	require.Equal(w.t, []int{len(w.cores), len(w.since)}, []int{w.Pool().Len(), w.Len()})
	require.Equal(w.t, []int{w.ended[alloc.ResponseSuccess], w.ended[alloc.ResponseDeny], w.ended[alloc.ResponseCancel]},
		[]int{w.allocated, w.denied, w.canceled})
	require.Equal(w.t, w.Pool().Allocated().Count("core"), w.held)
	return list
}

// The world finds nothing wrong with what comes over lines. That of the policies it judges
// in package sched.
func TestTheWorldIsContent(t *testing.T) {
	t.Parallel()
	o := options{policy: "easy", Options: lines.Options{Now: 1}} // time comes from Decide
	rapid.Check(t, func(t *rapid.T) {
		joblifetest.RunScheduler(t, func(nodes *rset.R) joblifetest.Scheduler { return &wired{t: t, options: o, nodes: nodes} }, joblifetest.SchedulerConfig{})
	})
}
