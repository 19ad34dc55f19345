package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/examples/internal/linestest"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset/alloc"
)

// badHello is an answer to hello that does not tell of which job.
const badHello = `{"topic":"job-manager.sched-hello","payload":{}}`

// script is what lines are made of.
type script struct{ linestest.Script }

// line returns the next line: a message about one of four nodes of two cores
// with a job of eight, at a time that goes on.
func (s *script) line(now *int) string {
	job := s.Next(8)
	some := func() string { // resources
		first := s.Next(4)
		return fmt.Sprintf(`{"version":1,"execution":{"R_lite":[{"rank":"%d-%d","children":{"core":"%s"}}],"starttime":1,"expiration":%d}}`,
			first, first+s.Next(5-first), []string{"0", "1", "0-1"}[s.Next(3)], *now+s.Next(100))
	}
	spec := func() string {
		j := jobspec.Job{Command: []string{"a"}, Slots: 1}
		constraints := ""
		if s.Next(2) == 0 {
			j.Slots = int64(1 + s.Next(10))
		} else {
			j.Nodes, j.Exclusive = int64(1+s.Next(5)), true
			constraints = []string{"", `{"properties":["big"]}`, `{"properties":["^big"]}`}[s.Next(3)]
		}
		j.Duration = time.Duration(s.Next(50)) * time.Second
		return specOf(j, constraints)
	}
	switch s.Next(16) {
	case 0, 1, 2, 3:
		*now += s.Next(20)
		return fmt.Sprintf(`{"topic":"sched.alloc","payload":{"id":%d,"priority":%d,"userid":1,"t_submit":%d,"jobspec":%s}}`, job, s.Next(3), *now, spec())
	case 4:
		return fmt.Sprintf(`{"topic":"sched.free","payload":{"id":%d,"R":%s}}`, job, some())
	case 5, 6:
		return fmt.Sprintf(`{"topic":"sched.free","payload":{"id":%d,"R":{"version":1,"execution":{"R_lite":[]}},"final":true}}`, job)
	case 7:
		return fmt.Sprintf(`{"topic":"sched.cancel","payload":{"id":%d}}`, job)
	case 8:
		return fmt.Sprintf(`{"topic":"sched.prioritize","payload":{"jobs":[[%d,%d],[%d,%d]]}}`, job, s.Next(3), s.Next(8), s.Next(3))
	case 9:
		return fmt.Sprintf(`{"topic":"sched.expiration","payload":{"id":%d,"expiration":%d}}`, job, *now+s.Next(100)-10)
	case 10:
		return fmt.Sprintf(`{"topic":"job-manager.sched-hello","payload":{"id":%d,"priority":1,"userid":1,"R":%s}}`, job, some())
	case 11:
		return fmt.Sprintf(`{"topic":"resource.acquire","payload":{"%s":"%d"}}`, []string{"up", "down", "up", "shrink"}[s.Next(4)], s.Next(4))
	case 12:
		return fmt.Sprintf(`{"topic":"resource.acquire","payload":{"expiration":%d}}`, s.Next(2)*(*now+s.Next(100)))
	case 13:
		return badHello
	case 14:
		return "{" // what nobody can read, perhaps a hello
	}
	return helloDone
}

// specOf returns a jobspec, with constraints if they are not "".
func specOf(j jobspec.Job, constraints string) string {
	spec, err := jobspec.New(j)
	if err == nil && constraints != "" {
		spec, err = spec.Update("attributes.system.constraints", json.RawMessage(constraints))
	}
	text, fail := json.Marshal(spec)
	if err = errors.Join(err, fail); err != nil {
		panic(err)
	}
	return string(text)
}

// Whatever comes in whatever order, the session goes on, says only what can be
// read, and keeps its books in order. The same input has the same output.
func FuzzSession(f *testing.F) {
	f.Add(false, []byte{1, 0, 5, 1, 1, 3, 0, 40, 2, 0, 1, 1, 0, 1, 0, 1, 5, 0, 0, 7})
	f.Add(true, []byte{1, 0, 5, 1, 1, 2, 0, 40, 2, 0, 1, 1, 1, 4, 0, 9, 3, 0, 0, 1, 0, 2, 20, 1, 5, 2, 10, 1, 2, 1, 9, 1, 13})
	f.Add(true, []byte{0, 11, 1, 3, 2, 12, 1, 50, 3, 0, 5, 1, 1, 3, 0, 40, 3, 9, 5, 3, 4, 0, 1, 2, 0})
	f.Fuzz(func(t *testing.T, backfill bool, input []byte) {
		out := play(t, backfill, input)
		for text := range bytes.Lines(out) {
			_, err := alloc.ParseLine(text)
			require.NoError(t, err)
		}
		require.Equal(t, string(out), string(play(t, backfill, input)))
	})
}

// play gives a session what a script says, and returns what it writes.
func play(t *testing.T, backfill bool, input []byte) []byte {
	o := options{policy: "fifo", depth: 3, period: time.Second, Options: lines.Options{Now: 1}}
	if backfill {
		o.policy = "easy"
	}
	var out bytes.Buffer
	s := newSession(o, &out, io.Discard)
	require.NoError(t, s.hello())
	rest := script{input}
	now := 1
	text := `{"topic":"resource.acquire","payload":{"resources":{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0-1"}}],"properties":{"big":"2-3"}}},"up":"all"}}`
	missed := false // something of the hello that goes on
	for n := 1; n == 1 || n < 200 && len(rest.Script) > 0; n++ {
		missed = missed || text == badHello || text == "{" && !s.Ready()
		require.NoError(t, s.Take(lines.Line{Number: n, Text: []byte(text)}))
		require.False(t, missed && s.Ready(), text)
		missed = missed && text != helloDone
		require.Equal(t, len(s.cores), s.Pool().Len(), text)
		require.Equal(t, len(s.since), s.Len(), text)
		if n == 1 {
			text = helloDone
		} else {
			text = rest.line(&now)
		}
	}
	for _, topic := range []string{topicStatus, topicHolders} {
		require.NoError(t, s.Take(lines.Line{Text: []byte(`{"topic":"` + topic + `"}`)}))
	}
	s.summarize()
	return out.Bytes()
}
