package joblife_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// recorded is a job that a Flux instance ran.
type recorded struct {
	ID       uint64          `json:"id"`
	Eventlog string          `json:"eventlog"`
	Jobspec  json.RawMessage `json:"jobspec"`
	R        json.RawMessage `json:"R"`
}

// moment is an event of a recorded job.
type moment struct {
	job *recorded
	e   eventlog.Entry
	n   int // its place in the log
	nth int // how many events of its name there are up to it
}

// reality is a Manager that is told what came from outside in a recording.
type reality struct {
	t    *testing.T
	cfg  joblife.Config
	m    *joblife.Manager
	now  time.Time
	rd   joblife.Ready
	logs map[jobid.ID][]byte
	all  []joblife.Record
	runs map[jobid.ID]joblife.Launch

	restarts int            // after how many events from outside; 0: never
	events   int            // from outside
	actions  perilog.Config // of the last Reload
}

func (r *reality) step(at eventlog.Timestamp, in joblife.Input) error {
	if now := at.Time(); now.After(r.now) {
		r.now = now
	}
	err := r.m.Step(r.now, in)
	r.drain()
	return err
}

func (r *reality) drain() {
	for r.m.Ready(&r.rd) {
		for _, rec := range r.rd.Append {
			rec.Data = slices.Clone(rec.Data)
			r.all = append(r.all, rec)
			if rec.Kind == joblife.RecordEvent {
				r.logs[rec.Job] = append(r.logs[rec.Job], rec.Data...)
			}
		}
		for _, l := range r.rd.Launch {
			r.runs[l.Job] = l
		}
		var drained []joblife.Input
		for _, d := range r.rd.Drain {
			drained = append(drained, joblife.Drained{Ranks: d.Ranks})
		}
		for _, f := range r.rd.Faults {
			r.t.Error(f)
		}
		require.NoError(r.t, r.m.Done(r.rd.Seq))
		for _, in := range drained {
			require.NoError(r.t, r.m.Step(r.now, in))
		}
	}
}

func (r *reality) hello() {
	require.NoError(r.t, r.step(0, joblife.SchedHello{PartialOK: true}))
	require.NoError(r.t, r.step(0, joblife.SchedReady{}))
	require.NoError(r.t, r.step(0, joblife.ExecHello{}))
}

// restart makes another Manager of what was stored.
func (r *reality) restart(at eventlog.Timestamp) {
	if now := at.Time(); now.After(r.now) {
		r.now = now
	}
	cfg := r.config()
	if r.restarts > 0 {
		cfg.Actions = r.actions
	}
	m, rec, err := joblife.Restore(r.now, cfg, all(r.all))
	require.NoError(r.t, err)
	require.Empty(r.t, rec.Quarantined)
	r.m = m
	r.drain()
	if r.restarts > 0 { // so that the next restart is cheap
		r.all = slices.Collect(m.Snapshot())
	}
	r.hello()
}

func (r *reality) config() joblife.Config {
	cfg := r.cfg
	cfg.Hooks = []joblife.Hooks{joblife.Dependencies()}
	return cfg
}

// play tells the Manager what came from outside, and returns the names of the events
// of each job.
func (r *reality) play(jobs []*recorded) {
	var moments []moment
	for _, j := range jobs {
		n, seen := 0, make(map[string]int)
		for e, err := range eventlog.Entries([]byte(j.Eventlog)) {
			require.NoError(r.t, err)
			seen[e.Name]++
			moments = append(moments, moment{j, e, n, seen[e.Name]})
			n++
		}
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return cmp.Compare(a.e.Timestamp, b.e.Timestamp) })
	r.now = moments[0].e.Timestamp.Time().Add(-time.Second)
	m, err := joblife.New(r.config())
	require.NoError(r.t, err)
	r.m = m
	r.hello()
	restarted := eventlog.Timestamp(0)
	for _, m := range moments {
		if m.e.Name == jobstate.EventFluxRestart {
			if m.e.Timestamp-restarted > 1 {
				r.restart(m.e.Timestamp)
				restarted = m.e.Timestamp
			}
			continue
		}
		if err := r.outside(m); err != nil {
			r.t.Errorf("job %v: event %d %s: %v", jobid.ID(m.job.ID), m.n+1, m.e.Name, err)
		}
		if r.events++; r.restarts > 0 && r.events%r.restarts == 0 {
			r.restart(m.e.Timestamp)
		}
	}
	last := moments[len(moments)-1].e.Timestamp
	require.NoError(r.t, r.step(last, joblife.Tick{}))
}

// outside feeds one event, if it came from outside.
func (r *reality) outside(m moment) error {
	id, at := jobid.ID(m.job.ID), m.e.Timestamp
	c, err := jobstate.ParseContext(m.e)
	require.NoError(r.t, err)
	switch c := c.(type) {
	case *jobstate.SubmitContext:
		return r.step(at, joblife.Submit{
			By: joblife.Cred{UserID: c.UserID}, ID: id, Jobspec: m.job.Jobspec, Urgency: int(c.Urgency), Flags: c.Flags,
		})
	case *jobstate.UrgencyContext:
		return r.step(at, joblife.Urgency{By: joblife.Cred{UserID: c.UserID}, ID: id, Urgency: int(c.Urgency)})
	case *jobstate.MemoContext:
		return r.step(at, joblife.Memo{ID: id, Values: c.Values})
	case *jobstate.JobspecUpdateContext:
		return r.step(at, joblife.Update{ID: id, Updates: c.Updates})
	case *jobstate.ResourceUpdateContext:
		return r.step(at, joblife.SetExpiration{ID: id, Expiration: c.Expiration})
	case *jobstate.ExceptionContext:
		switch {
		case c.Type == "prolog" || c.Type == "epilog" || c.Type == "dependency":
			return nil // the manager's own
		case c.Type == "alloc":
			return r.step(at, joblife.SchedResponse{ID: id, Type: alloc.ResponseDeny, Note: c.Note})
		}
		return r.step(at, joblife.Raise{
			By: joblife.Cred{UserID: c.UserID.Value}, ID: id, Type: c.Type, Severity: int(c.Severity), Note: c.Note, WaitStatus: c.WaitStatus,
		})
	case *jobstate.AllocContext:
		cfg := r.config() // of the instance when the job ran
		if cfg.Actions = (perilog.Config{}); strings.Contains(m.job.Eventlog, ownProlog) {
			cfg.Actions.Prologs = []perilog.ActionConfig{{PerRank: true}}
		}
		if strings.Contains(m.job.Eventlog, ownEpilog) {
			cfg.Actions.Epilogs = []perilog.ActionConfig{{PerRank: true}}
		}
		r.actions = cfg.Actions
		if err := r.step(at, joblife.Reload{Config: cfg}); err != nil {
			return err
		}
		r1 := m.job.R
		if r1[0] == '"' {
			var s string
			require.NoError(r.t, json.Unmarshal(r1, &s))
			r1 = json.RawMessage(s)
		}
		set, err := rset.Parse(r1)
		require.NoError(r.t, err)
		return r.step(at, joblife.SchedResponse{ID: id, Type: alloc.ResponseSuccess, R: set, Annotations: c.Annotations})
	case *jobstate.FinishContext:
		return r.step(at, joblife.ExecResponse{ID: id, Type: exec.ResponseFinish, Status: c.Status})
	case *jobstate.ReleaseContext:
		return r.step(at, joblife.ExecResponse{ID: id, Type: exec.ResponseRelease, Ranks: c.Ranks.Set, Final: c.Final})
	case *jobstate.ActionStartContext:
		if !isOwn(c.Description) { // a plugin's
			return r.step(at, joblife.Post{ID: id, Name: m.e.Name, Context: m.e.Context})
		}
		return nil
	case *jobstate.ActionFinishContext:
		if !isOwn(c.Description) {
			return r.step(at, joblife.Post{ID: id, Name: m.e.Name, Context: m.e.Context})
		}
		return r.finish(id, at, c)
	case *jobstate.SetFlagsContext:
		return r.step(at, joblife.SetFlags{ID: id, Flags: c.Flags})
	case *jobstate.DependencyAddContext:
		if !isScheme(c.Description) { // a plugin's
			return r.step(at, joblife.DependencyAdd{ID: id, Description: c.Description})
		}
		return nil
	case *jobstate.DependencyRemoveContext:
		if !isScheme(c.Description) {
			return r.step(at, joblife.DependencyRemove{ID: id, Description: c.Description})
		}
		return r.step(at, joblife.Tick{})
	case *jobstate.PriorityContext:
		if r.count(id, m.e.Name) < m.nth { // a plugin's, while the job waits
			return r.step(at, joblife.Priority{ID: id, Priority: c.Priority})
		}
		return nil
	}
	switch m.e.Name {
	case jobstate.EventStart:
		return r.step(at, joblife.ExecResponse{ID: id, Type: exec.ResponseStart})
	case jobstate.EventFree: // where the reference lost an epilog
		v, ok := r.m.Job(id)
		if ok && v.State() != jobstate.StateInactive && strings.HasPrefix(v.Job().Waiting(), "epilog") {
			return r.finish(id, at, &jobstate.ActionFinishContext{})
		}
	case jobstate.EventValidate, jobstate.EventDepend, jobstate.EventClean, jobstate.EventFluxRestart:
	default: // a plugin's, or an administrator's
		if c == nil && !strings.HasPrefix(m.e.Name, "debug.") {
			return r.step(at, joblife.Post{ID: id, Name: m.e.Name, Context: m.e.Context})
		}
	}
	return nil
}

// What flux-core's own plugins write.
const (
	ownProlog = `"description":"job-manager.prolog"`
	ownEpilog = `"description":"job-manager.epilog"`
)

func isOwn(description string) bool { return strings.HasPrefix(description, "job-manager.") }

func isScheme(description string) bool {
	return strings.HasPrefix(description, "after-") || strings.HasPrefix(description, "begin-time=") || description == "singleton"
}

// count returns how many events of a name a job has.
func (r *reality) count(id jobid.ID, name string) int {
	n := 0
	for e, err := range eventlog.Entries(r.logs[id]) {
		require.NoError(r.t, err)
		if e.Name == name {
			n++
		}
	}
	return n
}

// finish ends the action that a job runs.
func (r *reality) finish(id jobid.ID, at eventlog.Timestamp, c *jobstate.ActionFinishContext) error {
	l := r.runs[id]
	first := true
	for rank := range l.Ranks.All() {
		status := int32(0)
		if first {
			status = c.Status
		}
		first = false
		err := r.step(at, joblife.Report{Job: id, Report: perilog.Report{
			Action: l.Action, Kind: perilog.ReportExited, Attempt: l.Attempt, Rank: rank, Status: status,
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// names returns the events of a log that RFC 21 knows, and those for debugging.
func names(t *testing.T, log []byte, skip string) string {
	var out []string
	for e, err := range eventlog.Entries(log) {
		require.NoError(t, err)
		switch e.Name {
		case "prolog-fail", "prolog-release", "prolog-launch", "epilog-fail", "epilog-release", "epilog-launch",
			jobstate.EventDrained, skip:
		default:
			out = append(out, e.Name)
		}
	}
	return strings.Join(out, " ")
}

func TestRealityRepeatsItself(t *testing.T) {
	sources := map[string]int{
		"recorded/brokers.jsonl.gz": 33, "recorded/mixed.jsonl.gz": 380,
		"recorded/restart-pending.jsonl.gz": 8, "recorded/restart-done.jsonl.gz": 8,
	}
	files := make(map[string][]recorded)
	for name, n := range sources {
		files[name] = refdata.Lines[recorded](t, name, n)
	}
	for _, name := range strings.FieldsFunc(os.Getenv("JOBLIFE_RECORDED"), func(c rune) bool { return c == ':' }) {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		if bytes.HasPrefix(b, []byte("\x1f\x8b")) {
			z, err := gzip.NewReader(bytes.NewReader(b))
			require.NoError(t, err)
			b, err = io.ReadAll(z)
			require.NoError(t, err)
		}
		for line := range strings.Lines(string(b)) {
			var j recorded
			require.NoError(t, json.Unmarshal([]byte(line), &j))
			files[name] = append(files[name], j)
		}
	}
	for name, list := range files {
		t.Run(name, func(t *testing.T) {
			r := &reality{t: t, logs: make(map[jobid.ID][]byte), runs: make(map[jobid.ID]joblife.Launch)}
			r.cfg.Limits = purge.Limits{}
			var jobs []*recorded
			for i := range list {
				jobs = append(jobs, &list[i])
			}
			r.play(jobs)
			for _, j := range jobs {
				skip := ""
				if len(jobstate.Validate([]byte(j.Eventlog))) > 0 {
					skip = jobstate.EventEpilogFinish // the reference frees before it
				}
				want, got := names(t, []byte(j.Eventlog), skip), names(t, r.logs[jobid.ID(j.ID)], skip)
				if want != got {
					t.Errorf("job %v:\n%s\nrepeated:\n%s\n%s", jobid.ID(j.ID), want, got, j.Eventlog)
				}
			}
		})
	}
}
