package joblifetest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

var errUsage = errors.New("see runScripts for how to use the command")

// A line is a command of a script. Its words are read one by one; the script shows the
// first error, and the inputs are passed if there is none.
type line struct {
	*stage
	words  []string
	inputs []joblife.Input
	err    error
}

var commands = map[string]func(*line){
	"config": playConfig, "submit": playSubmit, "sched": playSched, "exec": playExec, "report": playReport,
	"resolve": playResolve, "queue": playQueue, "tick": playTick, "crash": playCrash, "restore": playRestore, "show": playShow,
	"drained": func(l *line) { l.send(joblife.Drained{Ranks: l.ranks(l.word())}) },
	"offline": func(l *line) { l.send(joblife.Offline{Ranks: l.ranks(l.word())}) },
	"urgency": func(l *line) { l.send(joblife.SetUrgency{ID: l.job(), Urgency: l.number(l.must(), 0)}) },
	"raise":   func(l *line) { l.send(joblife.Raise{ID: l.job(), Type: l.must(), Severity: l.number(l.word(), 0)}) },
	"post":    func(l *line) { l.send(joblife.Post{ID: l.job(), Name: l.must(), Context: json.RawMessage(l.rest())}) },
}

var sessions = map[string]joblife.Input{
	"sched hello": joblife.SchedHello{PartialOK: true}, "sched ready": joblife.SchedReady{}, "sched lost": joblife.SchedLost{},
	"exec hello": joblife.ExecHello{}, "exec lost": joblife.ExecLost{},
}

func (l *line) send(in joblife.Input) { l.inputs = append(l.inputs, in) }

func (l *line) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

func (l *line) word() (w string) {
	if len(l.words) > 0 {
		w, l.words = l.words[0], l.words[1:]
	}
	return w
}

// must returns the next word, which there has to be.
func (l *line) must() string {
	if len(l.words) == 0 {
		l.fail(errUsage)
	}
	return l.word()
}

func (l *line) rest() string { return strings.Join(l.words, " ") }

func (l *line) job() jobid.ID {
	name := l.word()
	id, ok := l.ids[name]
	if !ok {
		l.fail(fmt.Errorf("no job %q", name))
	}
	return id
}

// number returns a number, or less for no text.
func (l *line) number(text string, less int) int {
	if text == "" {
		return less
	}
	n, err := strconv.Atoi(text)
	l.fail(err)
	return n
}

// named returns the one of some values that has a name, with - for a space.
func named[T fmt.Stringer](l *line, name string, values ...T) (v T) {
	for _, v := range values {
		if strings.ReplaceAll(v.String(), " ", "-") == name {
			return v
		}
	}
	l.fail(errUsage)
	return v
}

func (l *line) ranks(text string) *idset.Set {
	ranks, err := idset.Parse(text)
	l.fail(err)
	return ranks
}

func playConfig(l *line) {
	var actions perilog.Config
	if l.fail(json.Unmarshal([]byte(l.rest()), &actions)); l.err != nil {
		return
	}
	l.cfg.Actions = actions
	l.w.Configure(actions)
	if l.e != nil {
		l.send(joblife.Reload{Config: l.cfg})
	}
}

func playSubmit(l *line) {
	name, opt := l.must(), make(map[string]string)
	for _, w := range l.words {
		k, v, ok := strings.Cut(w, "=")
		if !ok || !slices.Contains([]string{"nodes", "slots", "name", "queue", "urgency", "after"}, k) {
			l.fail(fmt.Errorf("%q: %w", w, errUsage))
		}
		opt[k] = v
	}
	nodes, slots, urgency := l.number(opt["nodes"], 1), l.number(opt["slots"], 1), l.number(opt["urgency"], jobstate.UrgencyDefault)
	spec, err := jobspec.New(jobspec.Job{Nodes: int64(nodes), Slots: int64(slots), Name: opt["name"], Queue: opt["queue"], Command: []string{"true"}})
	if scheme, on, ok := strings.Cut(opt["after"], ":"); ok && err == nil {
		l.words = []string{on}
		spec, err = spec.Update("attributes.system.dependencies", fmt.Appendf(nil, `[{"scheme":%q,"value":%q}]`, scheme, l.job()))
	}
	var text []byte
	if err == nil {
		text, err = spec.MarshalJSON()
	}
	if l.fail(err); l.err == nil {
		l.tag++
		l.ids[name] = jobid.ID(1000 + l.tag)
		l.send(joblife.Submit{Tag: l.tag, ID: l.ids[name], Jobspec: text, Urgency: urgency})
	}
}

func playSched(l *line) {
	what := l.word()
	resp := alloc.Response{ID: l.job()}
	switch what {
	case "alloc":
		resp.Type, resp.R = alloc.ResponseSuccess, l.resources()
		if l.err == nil {
			l.w.Allocated(resp.ID, resp.R)
		}
	case "deny":
		resp.Type, resp.Note = alloc.ResponseDeny, l.rest()
	case "cancel":
		resp.Type = alloc.ResponseCancel
	default:
		l.fail(errUsage)
	}
	l.send(joblife.SchedResponse(resp))
}

// resources reads an R, such as 0-2/0-3 3/0-1.
func (l *line) resources() *rset.R {
	var cfg rset.Config
	for _, w := range l.words {
		ranks, cores, ok := strings.Cut(w, "/")
		if !ok {
			cores = "0"
		}
		cfg.Entries = append(cfg.Entries, rset.Entry{Ranks: l.ranks(ranks), Children: map[string]*idset.Set{"core": l.ranks(cores)}})
	}
	if l.err != nil {
		return nil
	}
	r, err := rset.New(cfg)
	l.fail(err)
	return r
}

func playExec(l *line) {
	what := l.word()
	resp := exec.Response{ID: l.job()}
	if what == "refused" {
		l.w.Ended(resp.ID, nil)
		l.send(joblife.ExecRefused{ID: resp.ID, Note: l.rest()})
		return
	}
	resp.Type = named(l, what, exec.ResponseStart, exec.ResponseReattached, exec.ResponseFinish, exec.ResponseRelease, exec.ResponseException)
	switch resp.Type {
	case exec.ResponseFinish:
		resp.Status = int32(l.number(l.word(), 0))
		l.w.Ended(resp.ID, nil)
	case exec.ResponseRelease:
		if ranks := l.word(); ranks == "final" {
			resp.Final = true
		} else if ranks != "" {
			resp.Ranks = l.ranks(ranks)
		}
	case exec.ResponseException:
		resp.Exception = exec.Exception{Type: "exec", Note: l.rest()}
	}
	l.send(joblife.ExecResponse(resp))
}

func (l *line) action() joblife.Action {
	a := joblife.Action{Job: l.job()}
	kind, description, _ := strings.Cut(l.word(), ":")
	a.Key = jobstate.ActionKey{Kind: named(l, kind, jobstate.ActionProlog, jobstate.ActionEpilog, jobstate.ActionHousekeeping), Description: cmp.Or(description, "job-manager."+kind)}
	if a.Key.Kind == jobstate.ActionHousekeeping {
		a.Key = perilog.Housekeeping()
	}
	a.Ranks = l.ranks(l.word())
	return a
}

func playReport(l *line) {
	a := l.action()
	rep, attempt, latest := perilog.Report{Action: a.Key}, 0, make(map[uint32]uint32)
	for _, p := range l.w.Processes() {
		if p.Job == a.Job && p.Action == a.Key {
			latest[p.Rank] = p.Attempt
		}
	}
	rep.Kind = named(l, l.word(), perilog.ReportStarted, perilog.ReportExited, perilog.ReportLaunchFailed, perilog.ReportUnreachable, perilog.ReportOutput)
	if rep.Kind == perilog.ReportOutput {
		rep.Line, l.words = []byte(l.rest()), nil
	}
	for _, w := range l.words {
		if text, ok := strings.CutPrefix(w, "attempt="); ok {
			attempt = l.number(text, 0)
		} else {
			rep.Status = int32(l.number(w, 0))
		}
	}
	for rank := range a.Ranks.All() {
		rep.Rank, rep.Attempt = rank, cmp.Or(uint32(attempt), latest[rank])
		l.send(joblife.Report{Tag: 2, Job: a.Job, Report: rep})
	}
}

func playResolve(l *line) {
	what := l.must()
	switch a := l.action(); what {
	case "rerun":
		l.send(joblife.Rerun{Action: a})
	case "reattach":
		l.send(joblife.Reattach{Action: a})
	case "finish":
		l.send(joblife.ForceFinish{Action: a, Status: int32(l.number(l.word(), 0)), Operator: "root"})
	default:
		l.fail(errUsage)
	}
}

func playQueue(l *line) {
	what := l.word()
	if what != "start" && what != "stop" {
		l.fail(errUsage)
	}
	l.send(joblife.StartQueue{Queue: l.word(), Start: what == "start"})
}

func playTick(l *line) {
	if text := l.word(); text != "" {
		d, err := time.ParseDuration(strings.TrimPrefix(text, "+"))
		l.fail(err)
		l.now = l.now.Add(d)
	}
	if l.e != nil {
		l.send(joblife.Tick{})
	}
}

func playCrash(l *line) {
	switch l.word() {
	case "":
		l.e = nil
	case "before":
		l.site.armed = crashBefore
	case "after":
		l.site.armed = crashAfter
	default:
		l.fail(errUsage)
	}
}

func playRestore(l *line) {
	actions := l.cfg.Actions
	l.cfg = l.fresh()
	l.cfg.Actions = actions
	rec, err := l.restore()
	if l.fail(err); err != nil {
		return
	}
	l.printf("restored: %v running %v", rec.Jobs, rec.Running)
	for _, u := range rec.Unresolved {
		l.printf("unresolved: %v %v %v on %v", u.Job, u.Action, u.Reason, u.Ranks)
	}
	for _, q := range rec.Quarantined {
		l.printf("quarantined: %v %v", q.Job, q.Err)
	}
}

func playShow(l *line) {
	switch l.word() {
	case "jobs":
		for v := range l.e.Manager().Jobs(jobstate.StateNew | jobstate.StateActive | jobstate.StateInactive) {
			result, _ := v.Result()
			if v.State()&(jobstate.StateNew|jobstate.StatePending|jobstate.StateRun) != 0 {
				l.printf("%v %v", v.ID(), v.State())
			} else {
				l.printf("%v %v %v", v.ID(), v.State(), result)
			}
		}
	case "holders":
		for h := range l.e.Manager().Holders() {
			l.printf("%v %v", h.Job, strings.Join(strings.Fields(fmt.Sprint(h.Kind, " ", h.Description, " ", h.Ranks)), " "))
		}
	case "unresolved":
		for u := range l.e.Manager().Unresolved() {
			l.printf("%v %v %v on %v", u.Job, u.Action, u.Reason, u.Ranks)
		}
	case "log":
		id := l.job()
		for _, r := range l.stored {
			if r.Job == id && r.Kind == joblife.RecordEvent {
				l.printf("%s", strings.TrimSpace(string(r.Data)))
			}
		}
	default:
		l.fail(errUsage)
	}
}
