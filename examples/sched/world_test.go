package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/joblifetest"
	"github.com/joblife/joblife/jobstate/jobid"
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
	starts  map[jobid.ID]eventlog.Timestamp // that jobs which wait were told
	passed  []jobid.ID                      // of them, whom another one passed without a word
	ended   map[alloc.ResponseType]int      // requests, by their last response
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
	w.starts, w.ended = make(map[jobid.ID]eventlog.Timestamp), make(map[alloc.ResponseType]int)
	w.session = newSession(w.options, &w.out, io.Discard)
	w.clock.Advance(now)
	payload := fmt.Appendf(nil, `{"resources":%s,"up":"%v"}`, w.nodes.AppendJSON(nil), w.nodes.Ranks())
	err := w.say(alloc.Line{Topic: topicAcquire, Payload: payload}.AppendText(nil))
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
	return w.say(alloc.Line{Topic: topicAcquire, Payload: payload}.AppendText(nil))
}

func (w *wired) Take(m alloc.Message) error {
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
	if w.clock.Advance(now); w.due() != nil || w.options.policy == "fifo" {
		require.NoError(w.t, w.forecast())
	}
	for text := range bytes.Lines(w.out.Bytes()) {
		l, err := alloc.ParseLine(text)
		require.NoError(w.t, err)
		require.Zero(w.t, l.Errnum, l.Errstr)
		if l.Topic != alloc.TopicAlloc {
			continue
		}
		a, err := alloc.Parse[alloc.Response](bytes.Clone(l.Payload))
		require.NoError(w.t, err)
		w.heard(a)
		list = append(list, a)
	}
	w.out.Reset()
	require.Equal(w.t, len(w.jobs), w.pool.Len()+len(w.waiting))
	require.Equal(w.t, []int{w.ended[alloc.ResponseSuccess], w.ended[alloc.ResponseDeny], w.ended[alloc.ResponseCancel]},
		[]int{w.stats.allocated, w.stats.denied, w.stats.canceled})
	require.Equal(w.t, w.pool.Allocated().Count("core"), w.stats.held)
	w.told()
	return list
}

// heard takes the annotations of a response: a job that was told its start is told that this
// is over, and one that overtakes the head tells whose reservation it starts before.
func (w *wired) heard(a alloc.Response) {
	text := string(a.Annotations)
	if a.Type == alloc.ResponseAnnotate {
		var m struct {
			Sched struct {
				Start eventlog.Timestamp `json:"t_estimate"`
			}
		}
		require.NoError(w.t, json.Unmarshal(a.Annotations, &m))
		if w.starts[a.ID] = m.Sched.Start; m.Sched.Start == 0 {
			delete(w.starts, a.ID)
		}
		return
	}
	w.ended[a.Type]++
	_, told := w.starts[a.ID]
	delete(w.starts, a.ID)
	if a.Type != alloc.ResponseSuccess {
		return
	}
	require.Contains(w.t, text, `"resource_summary":"rank`)
	require.Equal(w.t, told, strings.Contains(text, `"t_estimate":null`), text)
	for id := range w.starts {
		if w.options.policy != "easy" || compareJobs(w.jobs[id], w.jobs[a.ID]) > 0 {
			continue
		}
		if strings.Contains(text, `"backfill":"`+id.String()+`"`) {
			return
		}
		w.passed = append(w.passed, id)
	}
	require.NotContains(w.t, text, "backfill")
}

// told checks who knows its start: of EASY one head, and of FIFO the first, one after the other.
func (w *wired) told() {
	for _, id := range w.passed { // it has no start any more, or else its resources were planned
		require.NotContains(w.t, w.starts, id, "a job overtook it and does not say so")
	}
	if w.passed = nil; w.options.policy == "easy" {
		require.LessOrEqual(w.t, len(w.starts), 1)
		return
	}
	require.LessOrEqual(w.t, len(w.starts), maxTold)
	if f := w.policy.(*forecasting); f.stale || f.next != w.now+f.period {
		return // it is an old one
	}
	last := w.now
	for i, j := range w.waiting[:len(w.starts)] {
		at, ok := w.starts[j.id]
		require.True(w.t, ok, "job %d of the queue", i)
		require.GreaterOrEqual(w.t, at, last)
		last = at
	}
}

// The world finds nothing wrong with any policy, nor with what is said of it.
func TestTheWorldIsContent(t *testing.T) {
	for _, o := range []options{{policy: "fifo", period: 1}, {policy: "easy", depth: defaultDepth}, {policy: "easy", depth: 1, fit: pool.FitWorst}} {
		o.Now = 1 // time comes from Decide
		t.Run(fmt.Sprint(o.policy, o.depth), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				joblifetest.RunScheduler(t, func(nodes *rset.R) joblifetest.Scheduler { return &wired{t: t, options: o, nodes: nodes} }, joblifetest.SchedulerConfig{})
			})
		})
	}
}
