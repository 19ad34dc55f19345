package joblifetest

import (
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

// errUsage is the error of a command that is not understood.
var errUsage = errors.New("see RunScripts for how to use the command")

// commandOf returns a command by its name, and nil for no command.
func commandOf(name string) command {
	switch name {
	case "config":
		return playConfig
	case "submit":
		return playSubmit
	case "sched":
		return playSched
	case "exec":
		return playExec
	case "report":
		return playReport
	case "resolve":
		return playResolve
	case "drained", "offline":
		return func(st *stage, args []string) error { return playRanks(st, name, args) }
	case "raise", "urgency", "post", "queue":
		return func(st *stage, args []string) error { return playUser(st, name, args) }
	case "tick":
		return playTick
	case "crash":
		return playCrash
	case "restore":
		return playRestore
	case "show":
		return playShow
	}
	return nil
}

// word returns a word, and "" behind the last.
func word(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

// options returns the values of words such as nodes=2. The names are those that may be.
func options(args []string, names ...string) (map[string]string, error) {
	m := make(map[string]string)
	for _, a := range args {
		k, v, ok := strings.Cut(a, "=")
		if !ok || !slices.Contains(names, k) {
			return nil, fmt.Errorf("%q: %w", a, errUsage)
		}
		m[k] = v
	}
	return m, nil
}

// number returns a number, or less for no text.
func number(text string, less int) (int, error) {
	if text == "" {
		return less, nil
	}
	return strconv.Atoi(text)
}

func playConfig(st *stage, args []string) error {
	var actions perilog.Config
	if err := json.Unmarshal([]byte(strings.Join(args, " ")), &actions); err != nil {
		return err
	}
	st.cfg.Actions = actions
	if st.m == nil {
		return nil
	}
	st.w.Configure(actions)
	return st.step(joblife.Reload{Config: st.cfg})
}

func playSubmit(st *stage, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	opt, err := options(args[1:], "nodes", "slots", "name", "queue", "urgency", "after")
	nodes, err1 := number(opt["nodes"], 1)
	slots, err2 := number(opt["slots"], 1)
	urgency, err3 := number(opt["urgency"], jobstate.UrgencyDefault)
	if err = errors.Join(err, err1, err2, err3); err != nil {
		return err
	}
	spec, err := jobspec.New(jobspec.Job{Nodes: int64(nodes), Slots: int64(slots), Name: opt["name"], Queue: opt["queue"], Command: []string{"true"}})
	if err != nil {
		return err
	}
	if scheme, name, ok := strings.Cut(opt["after"], ":"); ok {
		id, err := st.job(name)
		if err != nil {
			return err
		}
		deps := fmt.Appendf(nil, `[{"scheme":%q,"value":%q}]`, scheme, id)
		if spec, err = spec.Update("attributes.system.dependencies", deps); err != nil {
			return err
		}
	}
	text, err := spec.MarshalJSON()
	if err != nil {
		return err
	}
	st.naming = args[0]
	return st.step(joblife.Submit{Tag: 1, Jobspec: text, Urgency: urgency})
}

func playSched(st *stage, args []string) error {
	switch word(args, 0) {
	case "hello":
		return st.step(joblife.SchedHello{PartialOK: true})
	case "ready":
		return st.step(joblife.SchedReady{})
	case "lost":
		return st.step(joblife.SchedLost{})
	}
	id, err := st.job(word(args, 1))
	if err != nil {
		return err
	}
	resp := alloc.Response{ID: id}
	switch args[0] {
	case "alloc":
		resp.Type = alloc.ResponseSuccess
		if resp.R, err = resources(args[2:]); err != nil {
			return err
		}
		st.w.Allocated(id, resp.R)
	case "deny":
		resp.Type, resp.Note = alloc.ResponseDeny, strings.Join(args[2:], " ")
	case "cancel":
		resp.Type = alloc.ResponseCancel
	default:
		return errUsage
	}
	return st.step(joblife.SchedResponse(resp))
}

// resources reads an R, such as 0-2/0-3 3/0-1.
func resources(words []string) (*rset.R, error) {
	var cfg rset.Config
	for _, w := range words {
		ranks, cores, ok := strings.Cut(w, "/")
		if !ok {
			cores = "0"
		}
		e := rset.Entry{Children: make(map[string]*idset.Set)}
		var err, err2 error
		e.Ranks, err = idset.Parse(ranks)
		e.Children["core"], err2 = idset.Parse(cores)
		if err = errors.Join(err, err2); err != nil {
			return nil, err
		}
		cfg.Entries = append(cfg.Entries, e)
	}
	return rset.New(cfg)
}

func playExec(st *stage, args []string) error {
	switch word(args, 0) {
	case "hello":
		return st.step(joblife.ExecHello{})
	case "lost":
		return st.step(joblife.ExecLost{})
	}
	id, err := st.job(word(args, 1))
	if err != nil {
		return err
	}
	what, rest := exec.Response{ID: id}, args[2:]
	switch args[0] {
	case "refused":
		st.w.Ended(id, nil)
		return st.step(joblife.ExecRefused{ID: id, Note: strings.Join(rest, " ")})
	case "start":
		what.Type = exec.ResponseStart
	case "reattached":
		what.Type = exec.ResponseReattached
	case "finish":
		n, err := number(word(rest, 0), 0)
		if err != nil {
			return err
		}
		what.Type, what.Status = exec.ResponseFinish, int32(n)
		st.w.Ended(id, nil)
	case "release":
		what.Type, what.Final = exec.ResponseRelease, word(rest, 0) == "final"
		if !what.Final && len(rest) > 0 {
			if what.Ranks, err = idset.Parse(rest[0]); err != nil {
				return err
			}
		}
	case "exception":
		what.Type, what.Exception = exec.ResponseException, exec.Exception{Type: "exec", Note: strings.Join(rest, " ")}
	default:
		return errUsage
	}
	return st.step(joblife.ExecResponse(what))
}

// action returns a job, an action of it, and ranks.
func (st *stage) action(args []string) (id jobid.ID, key perilog.Key, ranks *idset.Set, err error) {
	if id, err = st.job(word(args, 0)); err != nil {
		return id, key, nil, err
	}
	kind, description, ok := strings.Cut(word(args, 1), ":")
	switch kind {
	case "prolog":
		key.Kind = jobstate.ActionProlog
	case "epilog":
		key.Kind = jobstate.ActionEpilog
	case "housekeeping":
		key = perilog.Housekeeping()
	default:
		return id, key, nil, errUsage
	}
	if key.Description == "" {
		if key.Description = "job-manager." + kind; ok {
			key.Description = description
		}
	}
	ranks, err = idset.Parse(word(args, 2))
	return id, key, ranks, err
}

func playReport(st *stage, args []string) error {
	id, key, ranks, err := st.action(args)
	if err != nil {
		return err
	}
	what, rest := word(args, 3), args[min(4, len(args)):]
	rep := perilog.Report{Action: key}
	status, attempt := 0, 0
	if n := len(rest) - 1; what != "output" && n >= 0 && strings.HasPrefix(rest[n], "attempt=") {
		opt, _ := options(rest[n:], "attempt")
		if attempt, err = number(opt["attempt"], 0); err != nil {
			return err
		}
		rest = rest[:n]
	}
	switch what {
	case "started":
		rep.Kind = perilog.ReportStarted
	case "unreachable":
		rep.Kind = perilog.ReportUnreachable
	case "output":
		rep.Kind, rep.Line = perilog.ReportOutput, []byte(strings.Join(rest, " "))
	case "exited", "launch-failed":
		rep.Kind = perilog.ReportExited
		if what != "exited" {
			rep.Kind = perilog.ReportLaunchFailed
		}
		if status, err = number(word(rest, 0), 0); err != nil {
			return err
		}
	default:
		return errUsage
	}
	for rank := range ranks.All() {
		rep.Rank, rep.Status = rank, int32(status)
		if rep.Attempt = uint32(attempt); attempt == 0 {
			rep.Attempt = st.attempts[launchKey{id, key.String(), rank}]
		}
		if what != "started" && what != "output" {
			st.w.Exit(Process{Job: id, Action: key, Attempt: rep.Attempt, Rank: rank}, int32(status))
		}
		if err == nil {
			err = st.m.Step(st.now, joblife.Report{Tag: 2, Job: id, Report: rep})
		}
	}
	st.do()
	return err
}

func playResolve(st *stage, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	id, key, ranks, err := st.action(args[1:])
	if err != nil {
		return err
	}
	a := joblife.Action{Job: id, Key: key, Ranks: ranks}
	switch args[0] {
	case "rerun":
		return st.step(joblife.Rerun{Action: a})
	case "reattach":
		return st.step(joblife.Reattach{Action: a})
	case "finish":
		n, err := number(word(args, 4), 0)
		if err != nil {
			return err
		}
		st.w.Excuse(id, ranks)
		return st.step(joblife.ForceFinish{Action: a, Status: int32(n), Who: "root"})
	}
	return errUsage
}

func playRanks(st *stage, name string, args []string) error {
	ranks, err := idset.Parse(word(args, 0))
	if err != nil {
		return err
	}
	if name == "offline" {
		return st.step(joblife.Offline{Ranks: ranks})
	}
	st.w.Excuse(0, ranks)
	return st.step(joblife.Drained{Ranks: ranks})
}

func playUser(st *stage, name string, args []string) error {
	if name == "queue" {
		if what := word(args, 0); what != "start" && what != "stop" {
			return errUsage
		}
		return st.step(joblife.StartQueue{Queue: word(args, 1), Start: args[0] == "start"})
	}
	id, err := st.job(word(args, 0))
	if err != nil || len(args) < 2 {
		return errors.Join(err, errUsage)
	}
	if name == "urgency" {
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		return st.step(joblife.Urgency{ID: id, Urgency: n})
	}
	if name == "post" {
		return st.step(joblife.Post{ID: id, Name: args[1], Context: json.RawMessage(strings.Join(args[2:], " "))})
	}
	n, err := number(word(args, 2), 0)
	if err != nil {
		return err
	}
	return st.step(joblife.Raise{ID: id, Type: args[1], Severity: n})
}

func playTick(st *stage, args []string) error {
	if text := word(args, 0); text != "" {
		d, err := time.ParseDuration(strings.TrimPrefix(text, "+"))
		if err != nil {
			return err
		}
		st.now = st.now.Add(d)
	}
	if st.m == nil {
		return nil
	}
	return st.step(joblife.Tick{})
}

func playCrash(st *stage, args []string) error {
	switch when := word(args, 0); when {
	case "":
		st.m = nil
	case "before", "after":
		st.crash = when
	default:
		return errUsage
	}
	return nil
}

func playRestore(st *stage, _ []string) error {
	actions := st.cfg.Actions
	st.cfg = st.fresh()
	st.cfg.Actions = actions
	m, rec, err := joblife.Restore(st.now, st.cfg, records(st.records))
	if err != nil {
		return err
	}
	st.m = m
	st.printf("restored: %v running %v", rec.Jobs, rec.Running)
	for _, u := range rec.Unresolved {
		st.printf("unresolved: %v %v %v on %v", u.Job, u.Action, u.Reason, u.Ranks)
	}
	for _, q := range rec.Quarantined {
		st.printf("quarantined: %v %v", q.Job, q.Err)
	}
	st.do()
	return nil
}

func playShow(st *stage, args []string) error {
	switch word(args, 0) {
	case "jobs":
		for v := range st.m.Jobs(jobstate.StateNew | jobstate.StateActive | jobstate.StateInactive) {
			result, _ := v.Result()
			if v.State()&(jobstate.StateNew|jobstate.StatePending|jobstate.StateRun) != 0 {
				st.printf("%v %v", v.ID(), v.State())
			} else {
				st.printf("%v %v %v", v.ID(), v.State(), result)
			}
		}
	case "holders":
		for h := range st.m.Holders() {
			st.printf("%v %v", h.Job, strings.Join(strings.Fields(fmt.Sprint(h.Kind, " ", h.Description, " ", h.Ranks)), " "))
		}
	case "unresolved":
		for u := range st.m.Unresolved() {
			st.printf("%v %v %v on %v", u.Job, u.Action, u.Reason, u.Ranks)
		}
	case "log":
		id, err := st.job(word(args, 1))
		if err != nil {
			return err
		}
		for _, r := range st.records {
			if r.Job == id && r.Kind == joblife.RecordEvent {
				st.printf("%s", strings.TrimSpace(string(r.Data)))
			}
		}
	default:
		return errUsage
	}
	return nil
}
