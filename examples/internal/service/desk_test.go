package service

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A desk is a service with a store in memory, and a transcript of what it sends.
type desk struct {
	t *testing.T
	*Service
	now     time.Time
	records []joblife.Record
	stored  map[jobid.ID]*Stored
	lines   []string
}

// New returns a service without jobs.
func New(now time.Time, cfg Config) (*Service, error) {
	s, _, err := Restore(now, cfg, func(func(joblife.Record, error) bool) {})
	return s, err
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, now: start, stored: make(map[jobid.ID]*Stored)}
	s, err := New(start, d.config())
	require.NoError(t, err)
	d.Service = s
	return d
}

func (d *desk) config() Config {
	return Config{Manager: joblife.Config{Owner: ownUser}, Lookup: func(id jobid.ID) (Stored, error) {
		if s := d.stored[id]; s != nil {
			return *s, nil
		}
		return Stored{}, nil
	}}
}

const ownUser = 100

// restart gives the desk a service that begins with what is durable.
func (d *desk) restart() {
	s, _, err := Restore(d.now, d.config(), func(yield func(joblife.Record, error) bool) {
		for _, r := range d.records {
			if !yield(r, nil) {
				return
			}
		}
	})
	require.NoError(d.t, err)
	d.Service = s
	d.flush()
}

// send gives the service a request of the instance's owner, and nothing comes out yet.
func (d *desk) send(sender string, tag uint32, topic, payload string) {
	d.now = d.now.Add(time.Second)
	d.Request(d.now, Request{
		Topic: "job-manager." + topic, Sender: sender, Matchtag: tag, UserID: ownUser, Rolemask: roleOwner,
		Payload: json.RawMessage(payload),
	})
}

// ask is send from the sender "a", and returns what came out.
func (d *desk) ask(tag uint32, topic, payload string) string {
	d.t.Helper()
	d.send("a", tag, topic, payload)
	return d.flush()
}

// respond responds to a request without a matchtag, and returns what came out.
func (d *desk) respond(topic, payload string) string {
	d.t.Helper()
	d.now = d.now.Add(time.Second)
	require.NoError(d.t, d.Respond(d.now, Response{Topic: topic, Payload: json.RawMessage(payload)}))
	return d.flush()
}

// store stores an Out.
func (d *desk) store(o *Out) {
	for _, r := range o.Append {
		r = r.Clone()
		d.records = append(d.records, r)
		s := d.stored[r.Job]
		if s == nil {
			s = new(Stored)
			d.stored[r.Job] = s
		}
		switch r.Kind {
		case joblife.RecordEvent:
			s.Eventlog = append(s.Eventlog, r.Data...)
		case joblife.RecordJobspec:
			s.Jobspec = r.Data
		case joblife.RecordR:
			s.R = r.Data
		}
	}
}

// flush does what the service wants until nothing follows, and returns the new lines.
func (d *desk) flush() string {
	d.t.Helper()
	for o := (Out{}); d.Next(&o); {
		require.False(d.t, o.Seq != 0 && len(o.Answers)+len(o.Calls)+len(o.Events) > 0, "records and messages at once")
		d.store(&o)
		d.print(&o)
		require.NoError(d.t, d.Done(d.now, &o, nil))
	}
	text := strings.Join(d.lines, "\n")
	d.lines = nil
	return text
}

func (d *desk) print(o *Out) {
	line := func(format string, args ...any) { d.lines = append(d.lines, fmt.Sprintf(format, args...)) }
	text := func(payload any) string {
		if payload == nil {
			return "-"
		}
		b, err := json.Marshal(payload)
		require.NoError(d.t, err)
		return string(b)
	}
	for _, a := range o.Answers {
		name := strings.TrimPrefix(a.Topic, "job-manager.")
		if a.Errnum != 0 {
			require.Nil(d.t, a.Payload)
			line("%s %s%d: errnum %d %s", name, a.Sender, a.Matchtag, a.Errnum, a.Errstr)
			continue
		}
		line("%s %s%d: %s", name, a.Sender, a.Matchtag, text(a.Payload))
	}
	for _, c := range o.Calls {
		line("> %s %s", c.Topic, text(c.Payload))
	}
	for _, e := range o.Events {
		require.True(d.t, e.Private)
		line("event %s %s", e.Topic, text(e.Payload))
	}
	for _, l := range o.Log {
		line("log %s", l)
	}
}

// submit submits jobs with some flags.
func (d *desk) submit(flags int, ids ...jobid.ID) string {
	d.t.Helper()
	var jobs []string
	for _, id := range ids {
		jobs = append(jobs, fmt.Sprintf(`{"id":%d,"urgency":16,"userid":100,"t_submit":1.0,"flags":%d,"jobspec":%s}`, id, flags, sleep))
	}
	return d.ask(1, "submit", `{"jobs":[`+strings.Join(jobs, ",")+`]}`)
}

// online brings a scheduler and an executor, s and x.
func (d *desk) online() {
	d.t.Helper()
	d.send("s", 1, "sched-hello", `{}`)
	d.send("s", 2, "sched-ready", `{"mode":"unlimited"}`)
	d.send("x", 1, "exec-hello", `{"service":"job-exec"}`)
	d.flush()
}

// success is the payload of a scheduler that gives a job a rank.
func success(id jobid.ID, rank int) string {
	return fmt.Sprintf(`{"id":%d,"type":0,"annotations":{"sched":{"resource_summary":"rank%d"}},"R":%s}`, id, rank, resources(rank))
}

func resources(rank int) string {
	return fmt.Sprintf(`{"version":1,"execution":{"R_lite":[{"rank":"%d","children":{"core":"0"}}],"starttime":0.0,"expiration":0.0,"nodelist":["n%d"]}}`, rank, rank)
}

// run takes a job from SCHED to RUN.
func (d *desk) run(id jobid.ID) {
	d.t.Helper()
	d.respond("sched.alloc", success(id, int(id)))
	d.respond("job-exec.start", fmt.Sprintf(`{"id":%d,"type":"start","data":{}}`, id))
}

// finish ends a job that runs.
func (d *desk) finish(id jobid.ID, status int) string {
	d.t.Helper()
	out := d.respond("job-exec.start", fmt.Sprintf(`{"id":%d,"type":"finish","data":{"status":%d}}`, id, status))
	return join(out, d.respond("job-exec.start", fmt.Sprintf(`{"id":%d,"type":"release","data":{"ranks":"all","final":true}}`, id)))
}

func (d *desk) cancel(id jobid.ID) string {
	d.t.Helper()
	return d.ask(9, "raise", fmt.Sprintf(`{"id":%d,"severity":0,"type":"cancel","note":"why"}`, id))
}

func join(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "\n")
}

// grep returns the lines with a word.
func grep(text, word string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(text, "\n"), func(s string) bool { return !strings.Contains(s, word) }), "\n")
}
