package main

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// recorded is a job that a Flux instance ran.
type recorded struct {
	ID       jobid.ID        `json:"id"`
	Eventlog string          `json:"eventlog"`
	Jobspec  json.RawMessage `json:"jobspec"`
	R        json.RawMessage `json:"R"`
}

// moment is an event of a recorded job.
type moment struct {
	job *recorded
	e   eventlog.Entry
}

// A player tells a manager what came from outside in a recording.
type player struct {
	*life
	store string
	begin string             // the time before all
	runs  map[jobid.ID][]int // matchtags of rexec.exec, by job
}

func (p *player) live() {
	p.life = live(p.t, p.store, "-now="+p.begin, "-owner=0")
	p.say(0, `"topic":"job-manager.sched-hello","matchtag":1,"payload":{"partial-ok":true}`)
	p.say(0, `"topic":"job-manager.sched-ready","matchtag":2,"payload":{"mode":"unlimited"}`)
	p.say(0, `"topic":"job-manager.exec-hello","matchtag":3,"payload":{"service":"exec"}`)
}

// say sends a line at a time, and answers what the manager asks.
func (p *player) say(at eventlog.Timestamp, text string) {
	p.t.Helper()
	if at > 0 {
		text = `"time":` + strconv.FormatFloat(float64(at), 'g', 17, 64) + "," + text
	}
	for _, out := range p.ask("{" + strings.TrimSuffix(text, ",") + "}") {
		for line := range strings.Lines(out) {
			m, err := parseMessage([]byte(line))
			if err == errNoTopic {
				continue // an event
			}
			require.NoError(p.t, err)
			switch {
			case strings.HasPrefix(m.Topic, "job-manager."):
				if m.Errnum != 0 && m.Errnum != 61 {
					p.t.Errorf("%s\n%s", text, line)
				}
				require.NotContains(p.t, line, `"errors":[[`)
			case m.Topic == "rexec.exec":
				var q struct {
					Cmd struct{ Env map[string]string }
				}
				require.NoError(p.t, json.Unmarshal(m.Payload, &q), line)
				id, err := jobid.Parse(q.Cmd.Env["FLUX_JOB_ID"])
				require.NoError(p.t, err)
				p.runs[id] = append(p.runs[id], int(*m.Matchtag))
				p.rexec(at, int(*m.Matchtag), `"payload":{"type":"started","pid":7}`)
			case m.Matchtag != nil:
				p.say(at, `"topic":"`+m.Topic+`","matchtag":`+strconv.Itoa(int(*m.Matchtag)))
			}
		}
	}
}

// rexec responds to rexec.exec.
func (p *player) rexec(at eventlog.Timestamp, tag int, rest string) {
	p.t.Helper()
	p.say(at, `"topic":"rexec.exec","matchtag":`+strconv.Itoa(tag)+","+rest)
}

// finish ends the prolog or the epilog of a job, on the first rank with the status.
func (p *player) finish(at eventlog.Timestamp, id jobid.ID, status int32) {
	p.t.Helper()
	tags := p.runs[id]
	delete(p.runs, id)
	for _, tag := range tags {
		p.rexec(at, tag, `"payload":{"type":"finished","status":`+strconv.Itoa(int(status))+`}`)
		p.rexec(at, tag, `"errnum":61`)
		status = 0
	}
}

// configure gives the manager the prolog and the epilog that a job had.
func (p *player) configure(m moment) {
	manager := make(map[string]any)
	for _, name := range []string{"prolog", "epilog"} {
		if strings.Contains(m.job.Eventlog, `"description":"job-manager.`+name+`"`) {
			manager[name] = map[string]any{"command": []string{name}, "per-rank": true}
		}
	}
	p.request(m.e.Timestamp, 0, "config-reload", map[string]any{"job-manager": manager})
}

// request sends a request.
func (p *player) request(at eventlog.Timestamp, user uint32, topic string, payload map[string]any) {
	p.t.Helper()
	p.message(at, `"matchtag":9,"rolemask":1,"userid":`+strconv.Itoa(int(user))+`,"topic":"job-manager.`+topic+`"`, payload)
}

// message says a line with a payload.
func (p *player) message(at eventlog.Timestamp, head string, payload any) {
	p.t.Helper()
	text, err := json.Marshal(payload)
	require.NoError(p.t, err)
	p.say(at, head+`,"payload":`+string(text))
}

// play tells the manager what came from outside, and returns the logs.
func (p *player) play(jobs []recorded) map[jobid.ID]string {
	var moments []moment
	for i := range jobs {
		for e, err := range eventlog.Entries([]byte(jobs[i].Eventlog)) {
			require.NoError(p.t, err)
			moments = append(moments, moment{&jobs[i], e})
		}
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return cmp.Compare(a.e.Timestamp, b.e.Timestamp) })
	p.begin = strconv.Itoa(int(moments[0].e.Timestamp) - 1)
	p.live()
	restarted := eventlog.Timestamp(0)
	for _, m := range moments {
		if m.e.Name != jobstate.EventFluxRestart {
			p.outside(m)
			continue
		}
		if m.e.Timestamp-restarted > 1 {
			restarted = m.e.Timestamp
			p.begin = strconv.FormatFloat(float64(restarted), 'f', -1, 64)
			p.end()
			p.live()
		}
	}
	logs := make(map[jobid.ID]string)
	for _, j := range jobs {
		stored, err := p.p.store.lookup(j.ID)
		require.NoError(p.t, err)
		logs[j.ID] = string(stored.Eventlog)
	}
	return logs
}

// outside tells one event, if it came from outside.
func (p *player) outside(m moment) {
	id, at := m.job.ID, m.e.Timestamp
	var ev jobstate.Event
	require.NoError(p.t, ev.Decode(m.e))
	switch c := ev.Context().(type) {
	case *jobstate.SubmitContext:
		p.request(at, 0, "submit", map[string]any{"jobs": []any{map[string]any{
			"id": id, "userid": c.UserID, "urgency": c.Urgency, "flags": c.Flags, "t_submit": at, "jobspec": m.job.Jobspec,
		}}})
	case *jobstate.UrgencyContext:
		p.request(at, c.UserID, "urgency", map[string]any{"id": id, "urgency": c.Urgency})
	case *jobstate.MemoContext:
		p.request(at, 0, "memo", map[string]any{"id": id, "memo": c.Values})
	case *jobstate.JobspecUpdateContext:
		values := make(map[string]json.RawMessage)
		for _, u := range c.Updates {
			values[u.Path] = u.Value
		}
		p.request(at, 0, "update", map[string]any{"id": id, "updates": values})
	case *jobstate.ExceptionContext:
		p.exception(m, c)
	case *jobstate.AllocContext:
		p.configure(m)
		r := m.job.R
		if r[0] == '"' {
			var text string
			require.NoError(p.t, json.Unmarshal(r, &text))
			r = json.RawMessage(text)
		}
		answer := map[string]any{"id": id, "type": 0, "R": r}
		if c.Annotations != nil {
			answer["annotations"] = c.Annotations
		}
		p.message(at, `"topic":"sched.alloc"`, answer)
	case *jobstate.FinishContext:
		p.message(at, `"topic":"exec.start"`, map[string]any{"id": id, "type": "finish", "data": map[string]any{"status": c.Status}})
	case *jobstate.ReleaseContext:
		p.message(at, `"topic":"exec.start"`, map[string]any{"id": id, "type": "release", "data": m.e.Context})
	case *jobstate.ActionFinishContext:
		p.finish(at, id, c.Status)
	case *jobstate.DependencyRemoveContext: // of a time
		p.say(at, "")
	}
	switch m.e.Name {
	case jobstate.EventStart:
		p.message(at, `"topic":"exec.start"`, map[string]any{"id": id, "type": "start", "data": map[string]any{}})
	case jobstate.EventFree: // where the reference lost an epilog
		p.finish(at, id, 0)
	}
}

// exception raises an exception that is not the manager's own.
func (p *player) exception(m moment, c *jobstate.ExceptionContext) {
	switch c.Type {
	case "prolog", "epilog", "dependency":
	case "alloc":
		p.message(m.e.Timestamp, `"topic":"sched.alloc"`, map[string]any{"id": m.job.ID, "type": 2, "note": c.Note})
	default:
		raise := map[string]any{"id": m.job.ID, "type": c.Type, "severity": c.Severity, "note": c.Note}
		if c.WaitStatus.Set {
			raise["wait_status"] = c.WaitStatus.Value
		}
		p.request(m.e.Timestamp, c.UserID.Value, "raise", raise)
	}
}

// events returns the events of a log with their contexts, keys in order. Of what it tells of
// prologs and epilogs it returns no more than the names, and nothing that flux-core does not
// tell. It leaves out events of the name skip.
func events(t *testing.T, log, skip string) string {
	var list []string
	for e, err := range eventlog.Entries([]byte(log)) {
		require.NoError(t, err)
		var context map[string]any
		if len(e.Context) > 0 {
			require.NoError(t, json.Unmarshal(e.Context, &context))
		}
		action, rest, _ := strings.Cut(e.Name, "-")
		switch own := action == "prolog" || action == "epilog"; {
		case e.Name == skip || own && rest != "start" && rest != "finish" || e.Name == jobstate.EventDrained:
			continue
		case own:
			context = map[string]any{"description": context["description"]}
		case context["type"] == "prolog" || context["type"] == "epilog":
			delete(context, "note") // which rank, and when it was
		}
		text := e.Name
		if context != nil {
			b, err := json.Marshal(context)
			require.NoError(t, err)
			text += " " + string(b)
		}
		list = append(list, text)
	}
	return strings.Join(list, "\n")
}

// What came from outside in a recording gives the logs that were recorded, but for times.
func TestRecordedJobsGiveTheirLogs(t *testing.T) {
	for name, n := range map[string]int{"brokers": 33, "mixed": 380, "restart-pending": 8, "restart-done": 8} {
		t.Run(name, func(t *testing.T) {
			store := "-store=memory"
			if strings.HasPrefix(name, "restart") {
				store = "-store=bolt:" + filepath.Join(t.TempDir(), "jobs.db")
			}
			jobs := refdata.Lines[recorded](t, "recorded/"+name+".jsonl.gz", n)
			p := &player{life: &life{t: t}, store: store, runs: make(map[jobid.ID][]int)}
			logs := p.play(jobs)
			for _, j := range jobs {
				skip := ""
				if len(jobstate.Validate([]byte(j.Eventlog))) > 0 {
					skip = jobstate.EventEpilogFinish // the reference frees before it
				}
				if want, got := events(t, j.Eventlog, skip), events(t, logs[j.ID], skip); want != got {
					t.Errorf("job %v: recorded:\n%s\nrepeated:\n%s", j.ID, want, got)
				}
			}
		})
	}
}
