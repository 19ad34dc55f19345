package service

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset/alloc"
)

// A simple is a desk with a scheduler like flux-core's sched-simple, which gives each job
// one core, and no executor.
type simple struct {
	*desk
	mode    string // of sched-ready
	jobs    int
	cores   []jobid.ID
	pending []alloc.Request
	ahead   map[jobid.ID]int // what was told last
	told    map[jobid.ID]any // annotations as a reader of the journal has them
}

func newSimple(t *testing.T, mode string, cores int, cfg Config) *simple {
	d := &simple{desk: newDesk(t, cfg), mode: mode, cores: make([]jobid.ID, cores), told: make(map[jobid.ID]any)}
	d.sent = d.hear
	d.send("journal", 9, "events-journal", `{}`)
	return d
}

// hear takes in an Out as a scheduler does, and as job-list.
func (d *simple) hear(o *parcel) {
	for _, a := range o.Answers {
		d.follow(a)
	}
	for _, c := range o.Calls {
		d.called(c)
	}
	d.schedule()
}

// follow takes in the journal as job-list does.
func (d *simple) follow(a Answer) {
	var m struct {
		ID     int64
		Events []struct {
			Name    string
			Context struct{ Annotations any }
		}
	}
	if a.Sender != "journal" {
		return
	}
	require.NoError(d.t, json.Unmarshal([]byte(text(d.t, a.Payload)), &m))
	for _, e := range m.Events {
		if e.Name == "annotations" {
			d.told[jobid.ID(m.ID)] = e.Context.Annotations
		}
	}
}

func (d *simple) called(c Call) {
	text := c.Payload.(json.RawMessage)
	drop := func(id jobid.ID) bool {
		n := len(d.pending)
		d.pending = slices.DeleteFunc(d.pending, func(r alloc.Request) bool { return r.ID == id })
		delete(d.ahead, id)
		return len(d.pending) < n
	}
	var m struct {
		ID   jobid.ID
		Jobs [][2]int64
	}
	require.NoError(d.t, json.Unmarshal(text, &m))
	switch c.Topic {
	case alloc.TopicAlloc:
		r, err := alloc.Parse[alloc.Request](text)
		require.NoError(d.t, err)
		d.pending = append(d.pending, r)
	case alloc.TopicCancel:
		if drop(m.ID) {
			d.tell(`{"id":%d,"type":3}`, m.ID)
		}
	case alloc.TopicPrioritize:
		for _, j := range m.Jobs {
			i := slices.IndexFunc(d.pending, func(r alloc.Request) bool { return int64(r.ID) == j[0] })
			require.GreaterOrEqual(d.t, i, 0, "a priority of a job that nobody asked for")
			d.pending[i].Priority = uint32(j[1])
		}
	case alloc.TopicFree:
		i := slices.Index(d.cores, m.ID)
		require.GreaterOrEqual(d.t, i, 0)
		d.cores[i] = 0
	default:
		d.t.Fatalf("%s", c.Topic)
	}
}

func (d *simple) tell(format string, args ...any) {
	require.NoError(d.t, d.Respond(d.now, Response{Topic: alloc.TopicAlloc, Payload: json.RawMessage(fmt.Sprintf(format, args...))}))
}

// schedule gives cores to the first jobs, and tells the others how many are ahead.
func (d *simple) schedule() {
	slices.SortStableFunc(d.pending, func(a, b alloc.Request) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
	})
	for len(d.pending) > 0 {
		i := slices.Index(d.cores, 0)
		if i < 0 {
			break
		}
		id := d.pending[0].ID
		d.cores[i], d.pending = id, d.pending[1:]
		d.tell(`{"id":%d,"type":0,"annotations":{"sched":{"resource_summary":"core%d","reason_pending":null,"jobs_ahead":null}},`+
			`"R":{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"%d"}}],"starttime":0.0,"expiration":0.0,"nodelist":["n0"]}}}`, id, i, i)
	}
	for i, r := range d.pending {
		if n, ok := d.ahead[r.ID]; !ok || n != i {
			d.ahead[r.ID] = i
			d.tell(`{"id":%d,"type":1,"annotations":{"sched":{"reason_pending":"insufficient resources","jobs_ahead":%d}}}`, r.ID, i)
		}
	}
}

// note is short for annotations: core0 of a job that has it, the number of jobs ahead of one
// that waits, or nothing.
func note(annotations any) string {
	m, _ := annotations.(map[string]any)
	s, _ := m["sched"].(map[string]any)
	switch {
	case annotations == nil:
		return "-"
	case len(m) == 1 && len(s) == 1 && s["resource_summary"] != nil:
		return s["resource_summary"].(string)
	case len(m) == 1 && len(s) == 2 && s["reason_pending"] == "insufficient resources":
		return fmt.Sprint(s["jobs_ahead"])
	}
	return fmt.Sprint(annotations)
}

// shown returns what is compared of jobs 1 to n: their states in list and their notes, the notes
// in the journal, and the counts of alloc-query.
func (d *simple) shown(n int) map[string]string {
	answer := func(topic, payload string, to any) {
		_, text, _ := strings.Cut(d.ask(1, topic, payload), " a1: ")
		require.NoError(d.t, json.Unmarshal([]byte(text), to))
	}
	var list struct {
		Jobs []struct {
			ID          jobid.ID
			State       uint8
			Annotations any
		}
	}
	var q struct {
		Queue   int `json:"queue_length"`
		Pending int `json:"alloc_pending"`
		Running int
	}
	answer("list", `{"max_entries":0}`, &list)
	answer("alloc-query", ``, &q)
	states, notes, journal := slices.Repeat([]string{"I"}, n), slices.Repeat([]string{"-"}, n), slices.Repeat([]string{"-"}, n)
	for _, j := range list.Jobs {
		states[j.ID-1], notes[j.ID-1] = jobstate.State(j.State).String()[:1], note(j.Annotations)
	}
	for id, annotations := range d.told {
		journal[id-1] = note(annotations)
	}
	return map[string]string{
		"states": strings.Join(states, ""), "notes": strings.Join(notes, " "), "journal": strings.Join(journal, " "),
		"counts": fmt.Sprint(q.Queue, q.Pending, q.Running),
	}
}

// play does steps, each with what is shown after it: "submit 16 0" with urgencies, "cancel 1 2", "urgency 1 20", "stop", "start" of
// all queues or one, "reload" of the configuration, "unload" and "load" of the scheduler, and what
// is compared with shown: "states", "notes", "journal", "counts".
func (d *simple) play(steps string) {
	for i, step := range strings.FieldsFunc(steps, func(r rune) bool { return r == ';' || r == '\n' }) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(step), " ")
		args := strings.Fields(rest)
		name := fmt.Sprintf("step %d: %s", i+1, step)
		switch verb {
		case "submit":
			for _, a := range args {
				d.jobs++
				urgency, queue, _ := strings.Cut(a, "@")
				spec := sleep
				if queue != "" {
					spec = strings.Replace(sleep, `{"duration"`, `{"queue":"`+queue+`","duration"`, 1)
				}
				submission := submissionOf(jobid.ID(d.jobs), ownUser, 2, spec)
				out := d.ask(1, "submit", strings.Replace(submission, `"urgency":16`, `"urgency":`+urgency, 1))
				require.Contains(d.t, out, `submit a1: {"errors":[]}`, name)
			}
		case "cancel":
			for _, id := range args {
				d.ask(1, "raise", fmt.Sprintf(`{"id":%s,"severity":0,"type":"cancel"}`, id))
			}
		case "urgency":
			require.Contains(d.t, d.ask(1, "urgency", fmt.Sprintf(`{"id":%s,"urgency":%s}`, args[0], args[1])), "urgency a1: {", name)
		case "stop", "start":
			which := `"all":true`
			if rest != "" {
				which = fmt.Sprintf(`"all":false,"name":"%s"`, rest)
			}
			d.ask(1, "queue-start", fmt.Sprintf(`{"start":%v,%s}`, verb == "start", which))
		case "reload":
			require.Contains(d.t, d.ask(1, "config-reload", `{}`), "config-reload a1: -")
		case "unload":
			d.send("s", 0, "disconnect", ``)
			d.flush()
		case "load":
			d.send("s", 1, "sched-hello", `{}`)
			d.send("s", 2, "sched-ready", d.mode)
			d.pending, d.ahead = nil, make(map[jobid.ID]int)
			d.flush()
		default:
			shown, ok := d.shown(d.jobs)[verb]
			require.True(d.t, ok, name)
			require.Equal(d.t, rest, shown, name)
		}
	}
}

// single takes one job after the other, the others two, or all.
const (
	single    = `{"mode":"limited","limit":1}`
	limited   = `{"mode":"limited","limit":2}`
	unlimited = `{"mode":"unlimited"}`
)

// TestStatesAndAnnotations: what the scheduler says of a job is there for as long as it holds.
func TestStatesAndAnnotations(t *testing.T) {
	for _, c := range []struct{ name, mode, steps string }{
		{"single", single, `
			load; submit 16 16 16 16 16; states RRSSS; notes core0 core1 0 - -; journal core0 core1 0 - -; counts 2 1 2
			cancel 2; states RIRSS; notes core0 - core1 0 -; journal core0 core1 core1 0 -
			unload; states RIRSS; notes core0 - core1 - -; journal core0 core1 core1 - -; counts 2 0 2
			load; states RIRSS
			cancel 1; states IIRRS; journal core0 core1 core1 core0 0
			cancel 3 4 5; states IIIII; journal core0 core1 core1 core0 core1`},
		{"limited", limited, `
			load; submit 16 16 16 16 16; states RRSSS; notes core0 core1 0 1 -
			cancel 2; states RIRSS; notes core0 - core1 0 1
			cancel 4 5; cancel 1 3; states IIIII; notes - - - - -; journal core0 core1 core1 - -`},
		{"unlimited", unlimited, `
			load; submit 16 16 16 16 16; notes core0 core1 0 1 2
			cancel 2; states RIRSS; journal core0 core1 core1 0 1
			cancel 5; states RIRSI; notes core0 - core1 0 -; journal core0 core1 core1 0 -`},
		{"without a scheduler", unlimited, `
			submit 16 16 16; states SSS; notes - - -; journal - - -
			stop; load; states SSS
			start; states RRS; journal core0 core1 0`},
		{"hold", single, `
			load; submit 16 16 16 0 16 16; states RRSSSS; notes core0 core1 0 - - -
			urgency 5 0; cancel 1; states IRRSSS; notes - core1 core0 - - 0
			urgency 4 0; urgency 5 0; states IRRSSS
			urgency 5 20; notes - core1 core0 - 0 -; journal core0 core1 core0 - 0 -
			cancel 3; states IRISRS; notes - core1 - - core0 0
			cancel 5; states IRISIR; counts 0 0 2
			urgency 4 16; notes - core1 - 0 - core0`},
		{"hold while it is pending", unlimited, `
			load; submit 16 16 16 0 16; notes core0 core1 0 - 1
			urgency 3 0; urgency 4 0; states RRSSS; notes core0 core1 - - 0; journal core0 core1 - - 0
			cancel 1 2; states IISSR
			urgency 3 16; states IIRSR
			urgency 4 16; notes - - core1 0 core0
			cancel 3; states IIIRR`},
		{"priority and single", single, `
			load; submit 16 16 16 16; notes core0 core1 0 -
			urgency 4 20; notes core0 core1 - 0; journal core0 core1 - 0
			cancel 2; states RISR; notes core0 - 0 core1
			submit 20; states RISRS; notes core0 - - core1 0`},
		{"queue and limited", limited, `
			load; stop; submit 10 12 14 16 18 20; start; states SSSSRR; counts 2 2 2
			stop; urgency 3 20; counts 0 0 2
			cancel 6; start; states SSRSRI; counts 1 2 2
			stop; urgency 1 20; cancel 5; start; states RSRSII`},
	} {
		t.Run(c.name, func(t *testing.T) { newSimple(t, c.mode, 2, Config{}).play(c.steps) })
	}
}

// TestNamedQueuesInTurn: a queue that is stopped leaves the cores to the other.
func TestNamedQueuesInTurn(t *testing.T) {
	const begin = `
		load; stop; submit 10@batch 12@batch 14@batch 16@batch 18@batch 10@debug 12@debug 14@debug 16@debug 18@debug
		start; states SSSSRSSSSR; `
	for mode, steps := range map[string]string{
		limited: `counts 6 2 2
			stop debug; cancel 5 10; states SSRRISSSSI; counts 0 2 2
			urgency 7 18; start debug; cancel 3 4; states SSIIISRSRI; counts 2 2 2`,
		unlimited: `counts 0 8 2
			stop debug; cancel 5 10; states SSRRISSSSI; counts 0 2 2
			urgency 6 18; start debug; cancel 3 4; states SSIIIRSSRI; counts 0 4 2`,
	} {
		newSimple(t, mode, 2, Config{Queues: map[string]Queue{"batch": {}, "debug": {}}}).play(begin + steps)
	}
}

// TestReloadWithJobs: queues come and go while jobs of theirs are active. Those jobs end, and
// no other starts.
func TestReloadWithJobs(t *testing.T) {
	queues := map[string]Queue{"a": {}}
	d := newSimple(t, unlimited, 2, Config{Parse: func(c Config, _ []byte) (Config, error) {
		c.Queues, c.Manager.QueuesStopped = queues, true
		return c, nil
	}})
	d.play(`
		load; submit 16 16 16 16; states RRSS; counts 0 2 2
		reload; cancel 1 3; states IRIS`)
	queues = nil
	d.play(`reload; states IRIR`)
}

// TestDenied: a job that the scheduler refuses ends with its words.
func TestDenied(t *testing.T) {
	d := newDesk(t, Config{})
	d.online()
	d.submit(0, 1)
	d.respond("sched.alloc", `{"id":1,"type":1,"annotations":{"sched":{"reason_pending":"x"}}}`)
	d.ask(2, "events-journal", `{}`)
	out := d.respond("sched.alloc", `{"id":1,"type":2,"note":"DEBUG_FAIL_ALLOC"}`)
	require.Equal(t, "1 annotations\n1 exception\n1 clean", told(t, out, "a2"))
	require.Contains(t, out, `"context":{"annotations":null}`)
	require.Contains(t, out, `"context":{"type":"alloc","severity":0,"note":"DEBUG_FAIL_ALLOC","userid":100}`)
	require.Contains(t, out, `event job-exception {"id":1,"type":"alloc","severity":0}`)
}
