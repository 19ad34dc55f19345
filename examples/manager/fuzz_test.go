package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/examples/internal/linestest"
)

// script is what lines are made of.
type script struct{ linestest.Script }

// answered are the topics of requests that have one answer, which the fuzz test makes up
// payloads for, by their number.
var answered = []string{
	"submit", "submit", "submit", "submit", "raise", "raiseall", "kill", "killall", "urgency", "memo", "update", "list", "getattr",
	"purge", "purge-id", "stats-get", "history.get", "post-event.post", "getinfo", "alloc-query", "resource-status",
	"queue-list", "queue-status", "queue-enable", "queue-start", "exec-hello", "sched-ready", "drain", "idle",
	"wait", "config-reload", "housekeeping-kill", "nosuch", "sched-hello", "events-journal",
}

// kinds are the payloads that suit some requests.
var kinds = map[string]int{
	"submit": 0, "raise": 3, "urgency": 3, "memo": 3, "kill": 3, "getattr": 3, "purge-id": 3, "post-event.post": 3, "wait": 10,
	"raiseall": 5, "killall": 5, "queue-enable": 7, "queue-start": 7, "purge": 8, "update": 9, "history.get": 6, "list": 6,
	"exec-hello": 6, "sched-hello": 6, "sched-ready": 6, "events-journal": 6,
}

// payload returns a payload for a request, or for another.
func (s *script) payload(topic string) string {
	job := 16 + s.Next(4)
	kind, ok := kinds[topic]
	if n := s.Next(24); !ok || n < 12 {
		kind = n
	}
	switch kind {
	case 0, 1, 2:
		flags := s.Next(2) * 4
		return fmt.Sprintf(`{"jobs":[{"id":%d,"urgency":%d,"userid":%d,"t_submit":1000.0,"flags":%d,"jobspec":%s}]}`, job, s.Next(33), s.Next(3), flags, sleep)
	case 3, 4:
		return fmt.Sprintf(`{"id":%d,"severity":%d,"type":"cancel","urgency":%d,"signum":15,"memo":{"a":%d},"force":1,"attrs":["eventlog","R"],"name":"x"}`, job, s.Next(2), s.Next(32), s.Next(3))
	case 5:
		return fmt.Sprintf(`{"dry_run":false,"userid":%d,"states":126,"severity":0,"type":"cancel","signum":15}`, s.Next(3))
	case 6:
		return `{"mode":"unlimited","service":"exec","partial-ok":true,"full":true,"slice":"[:]","max_entries":0}`
	case 7:
		return fmt.Sprintf(`{"enable":%t,"start":%t,"all":false,"reason":"x"}`, s.Next(2) == 0, s.Next(2) == 0)
	case 8:
		return fmt.Sprintf(`{"age_limit":-1,"num_limit":%d,"batch":10,"force":true}`, s.Next(3))
	case 9:
		return fmt.Sprintf(`{"id":%d,"updates":{"attributes.system.duration":%d}}`, job, s.Next(100))
	case 10:
		return `{"id":-1,"matchtag":` + fmt.Sprint(s.Next(9)) + `}`
	}
	return []string{`{}`, `null`, `7`, `[]`, `{"id":"x"}`}[s.Next(5)]
}

// hellos are the beginning of all scripts.
var hellos = []string{
	`{"topic":"job-manager.sched-hello","sender":"A","payload":{"partial-ok":true}}`,
	`{"topic":"job-manager.sched-ready","sender":"A","payload":{"mode":"unlimited"}}`,
	`{"topic":"job-manager.exec-hello","sender":"A","payload":{"service":"exec"}}`,
}

// line returns a line, and its matchtag if it has one answer, and the sender.
func (s *script) line(tag int) (text string, expect bool, sender string) {
	sender = string(rune('A' + s.Next(2)))
	job := 16 + s.Next(4)
	switch s.Next(20) {
	case 0, 6, 7:
		rest := []string{`0,"R":` + fmt.Sprintf(resources, job), `1,"annotations":{"sched":{"a":1}}`, `2,"note":"x"`, `3`}[s.Next(9)/2%4]
		return fmt.Sprintf(`{"topic":"sched.alloc","payload":{"id":%d,"type":%s}}`, job, rest), false, ""
	case 1, 2, 8, 9:
		kind := []string{`"start","data":{}`, `"finish","data":{"status":0}`, `"release","data":{"ranks":"all","final":true}`, `"exception","data":{"severity":0,"type":"exec"}`}[s.Next(4)]
		return fmt.Sprintf(`{"topic":"exec.start","payload":{"id":%d,"type":%s}}`, job, kind), false, ""
	case 3:
		if s.Next(4) > 0 {
			break
		}
		return fmt.Sprintf(`{"topic":"job-manager.disconnect","sender":"%s"}`, sender), false, sender
	case 4:
		return fmt.Sprintf(`{"topic":"job-manager.events-journal-cancel","sender":"%s","payload":{"matchtag":%d}}`, sender, s.Next(tag+1)), false, ""
	case 5:
		return []string{`{`, `{}`, `"x"`, `{"time":1001}`, `{"topic":"rexec.exec","matchtag":1,"payload":{"type":"started","pid":1}}`, `{"topic":"sched.expiration"}`, `{"topic":"feasibility.check","errnum":22,"errstr":"no"}`}[s.Next(7)], false, ""
	}
	role := 1 + s.Next(3)%3
	topic := answered[s.Next(len(answered))]
	return fmt.Sprintf(`{"topic":"job-manager.%s","sender":"%s","matchtag":%d,"userid":%d,"rolemask":%d,"payload":%s}`,
		topic, sender, tag, s.Next(3), role, s.payload(topic)), true, sender
}

// collector counts the ends of answers.
type collector struct {
	t    *testing.T
	ends map[string]int // by sender and matchtag
}

func (c *collector) Write(text []byte) (int, error) {
	require.Equal(c.t, 1, strings.Count(string(text), "\n"))
	m, err := parseMessage(text)
	if err == errNoTopic {
		return len(text), nil // an event
	}
	require.NoError(c.t, err, string(text))
	if m.Matchtag != nil && strings.HasPrefix(m.Topic, "job-manager.") {
		if stream := m.Topic == "job-manager.events-journal" || m.Topic == "job-manager.sched-hello"; !stream || m.Errnum != 0 {
			c.ends[fmt.Sprint(*m.Sender, *m.Matchtag)]++
		}
	}
	return len(text), nil
}

// Whatever comes in whatever order, the process goes on, and each request with a matchtag
// has one end of its answer, unless its sender went away.
func FuzzLines(f *testing.F) {
	f.Add([]byte{0, 0, 15, 1, 0, 0, 0, 0, 0, 16, 0, 0})
	f.Add([]byte{0, 0, 6, 0, 0, 30, 6, 0, 0, 6, 0, 23, 6, 0, 0, 6, 0, 22, 6, 1, 0, 15, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1})
	var long []byte
	for i := range 600 {
		long = append(long, byte(i*i*7+i*3+i/11))
	}
	f.Add(long)
	f.Fuzz(func(t *testing.T, input []byte) {
		c := &collector{t: t, ends: make(map[string]int)}
		p, err := newProcess(options{Options: lines.Options{Now: 1000}, store: "memory"}, io.Discard)
		require.NoError(t, err)
		client := p.only(c)
		p.start()
		expected, gone := make(map[string]bool), make(map[string]bool)
		for _, text := range hellos {
			p.handle(client, lines.Line{Number: 1, Text: []byte(text)})
		}
		rest := script{input}
		for tag := 1; len(rest.Script) > 0 && tag < 200; tag++ {
			text, expect, sender := rest.line(tag)
			key := fmt.Sprint(sender, tag)
			if expect {
				expected[key] = true
			} else if sender != "" { // what it waited for needs no answer any more
				for key := range expected {
					gone[key] = gone[key] || strings.HasPrefix(key, sender)
				}
			}
			p.handle(client, lines.Line{Number: tag, Text: []byte(text)})
			require.NoError(t, p.failed, text)
			require.False(t, p.writing)
		}
		p.stop()
		require.NoError(t, p.end())
		for key := range expected {
			if n := c.ends[key]; n != 1 && !(n == 0 && gone[key]) {
				t.Errorf("request %s has %d answers", key, n)
			}
		}
		for key, n := range c.ends {
			require.True(t, n == 1 && expected[key], "%s: %d", key, n)
		}
	})
}

// The scripts are about jobs that are submitted and end.
func TestScriptsReachJobs(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	submitted, over, ran := 0, 0, 0
	for range 60 {
		input := script{make(linestest.Script, 1000)}
		for i := range input.Script {
			input.Script[i] = byte(rng.IntN(256))
		}
		l := live(t, "-now=1000")
		l.ask(hellos...)
		for tag := 1; len(input.Script) > 0; tag++ {
			text, _, _ := input.line(tag)
			if l.ask(text); strings.HasPrefix(text, `{"topic":"sched.alloc"`) { // one that is refused ends the session
				l.ask(hellos[:2]...)
			}
		}
		submitted += l.p.stats.submitted
		over += l.p.stats.over
		for _, j := range l.p.store.(memory) {
			if strings.Contains(string(j.Eventlog), `"name":"release"`) {
				ran++
			}
		}
	}
	require.Greater(t, submitted, 30)
	require.Greater(t, over, 15, "%d ran", ran)
	require.Greater(t, ran, 3)
}
