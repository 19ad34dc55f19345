package joblifetest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset/alloc"
)

// A ScriptConfig says how [RunScripts] plays scripts. The zero ScriptConfig is valid.
type ScriptConfig struct {
	// New returns the configuration of a Manager. It is called again after a crash, so
	// that hooks begin anew. Nil means joblife.Dependencies and nothing else. The command
	// config replaces Actions; a zero Epoch becomes one in 2020.
	New func() joblife.Config
	// Update rewrites the files with the present output. Set it from a flag of your own,
	// and read the difference.
	Update bool
}

// RunScripts plays the scripts that match a pattern of path/filepath, each as a subtest.
// One fails if its output differs, or if the World or Check finds a fault. A script has
// comments, and commands with their output below:
//
//	# The prolog of a job fails.
//	config {"prologs":[{"per-rank":true}]}
//	submit a nodes=2
//	----
//	a: submit {"userid":0,"urgency":16,"flags":0,"version":1}
//
// A blank line ends the output, which shows the events of jobs and what a Ready wants
// done. Only commands make something happen; time passes at tick. JOB is a name that the
// script gives, RANKS is an idset, and ACTION is prolog, epilog or housekeeping, with
// :DESCRIPTION if it has one. The commands:
//
//	config JSON                      the actions, as a perilog.Config; at first or later
//	submit JOB [nodes=N] [slots=N] [name=NAME] [queue=NAME] [urgency=N] [after=SCHEME:JOB]
//	sched hello|ready|lost           hello takes partial allocations
//	sched alloc JOB RANKS[/CORES]... CORES is an idset, 0 without it
//	sched deny|cancel JOB
//	exec hello|lost
//	exec start|reattached|refused JOB
//	exec finish JOB [STATUS]         STATUS is a wait status
//	exec release JOB [RANKS|final]
//	exec exception JOB NOTE...
//	report JOB ACTION RANKS started|exited|unreachable|launch-failed [STATUS] [attempt=N]
//	report JOB ACTION RANKS output LINE
//	resolve rerun|reattach|finish JOB ACTION RANKS [STATUS]
//	drained RANKS, offline RANKS     confirm a drain; the ranks that are offline
//	raise JOB TYPE [SEVERITY]        an exception
//	post JOB EVENT [CONTEXT]         for a service with actions of its own
//	urgency JOB N
//	queue start|stop [NAME]
//	tick [+10s]                      time passes first
//	crash [before|after]             now, or before or after the next records are durable
//	restore
//	show jobs|holders|unresolved, show log JOB
func RunScripts(t *testing.T, pattern string, cfg ScriptConfig) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("joblifetest: no file matches %q: %v", pattern, err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := playScript(string(want), cfg.New)
			if err != nil {
				t.Errorf("%s: %v\n%s", path, err, got)
			} else if cfg.Update {
				err = os.WriteFile(path, []byte(got), 0o666)
			} else {
				err = difference(string(want), got)
			}
			if err != nil {
				t.Errorf("%s: %v\nIf this is right, rewrite the file with ScriptConfig.Update.", path, err)
			}
		})
	}
}

// difference returns an error that shows where two texts differ first.
func difference(want, got string) error {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			near := func(lines []string) string {
				return strings.Join(lines[min(i, len(lines)):min(i+5, len(lines))], "\n\t")
			}
			return fmt.Errorf("line %d: want\n\t%s\ngot\n\t%s", i+1, near(a), near(b))
		}
	}
	return nil
}

// A stage is a Manager and its surroundings, which do only what the script says.
type stage struct {
	m       *joblife.Manager // nil after a crash
	w       *World
	fresh   func() joblife.Config // a configuration with its own hooks
	cfg     joblife.Config
	now     time.Time
	records []joblife.Record // what is durable

	jobs   map[string]jobid.ID
	naming string // the job that is being submitted
	crash  string // when the next Ready meets a crash: "", "before" or "after" its records are durable
	out    strings.Builder
}

// playScript plays a script and returns it with its present output. The error is what the
// World or Check finds wrong.
func playScript(script string, config func() joblife.Config) (string, error) {
	st := &stage{now: epoch().Add(time.Hour), jobs: make(map[string]jobid.ID)}
	st.fresh = func() joblife.Config {
		if config == nil {
			return joblife.Config{Epoch: epoch(), Hooks: []joblife.Hooks{joblife.Dependencies()}}
		}
		cfg := config()
		if cfg.Epoch.IsZero() {
			cfg.Epoch = epoch()
		}
		return cfg
	}
	st.cfg = st.fresh()
	var text strings.Builder
	played, output := false, false // commands whose output is not in text; old output is left out
	show := func() {
		if played {
			text.WriteString("----\n" + st.out.String())
			st.out.Reset()
		}
		played = false
	}
	for line := range strings.Lines(script + "\n") {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "":
			show()
			output = false
		case output:
			continue
		case line == "----":
			show()
			output = true
			continue
		case !strings.HasPrefix(line, "#"):
			played = true
			st.play(strings.Fields(line))
		}
		text.WriteString(line + "\n")
	}
	return strings.TrimRight(text.String(), "\n") + "\n", st.wrong()
}

// wrong returns what is wrong now, nil for nothing.
func (st *stage) wrong() error {
	if st.w != nil && st.w.Err() != nil {
		return st.w.Err()
	}
	if st.m != nil {
		return Check(st.m)
	}
	return nil
}

// play plays a command.
func (st *stage) play(words []string) {
	l := &line{stage: st, words: words[1:]}
	do := commands[words[0]]
	switch {
	case do == nil:
		l.err = fmt.Errorf("no command %q", words[0])
	case st.m != nil || words[0] == "config":
	case len(st.records) == 0:
		st.w = NewWorld(st.cfg.Actions)
		st.m, l.err = joblife.New(st.cfg)
	case words[0] != "restore" && words[0] != "tick":
		l.err = errors.New("the manager is down: restore it")
	}
	if in := sessions[strings.Join(words, " ")]; in != nil {
		l.send(in)
	} else if l.err == nil {
		do(l)
	}
	for _, in := range l.inputs {
		if l.err == nil {
			st.w.input(in)
			l.err = st.m.Step(st.now, in)
		}
	}
	st.do()
	if l.err != nil {
		st.printf("error: %v", l.err)
	}
	if err := st.wrong(); err != nil {
		st.printf("WRONG: %v", err)
	}
}

// printf adds a line to the output. Ids in it become the names of jobs.
func (st *stage) printf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	names := slices.Collect(maps.Keys(st.jobs))
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(st.jobs[b], st.jobs[a]) }) // the longest ids first
	for _, name := range names {
		line = strings.ReplaceAll(line, st.jobs[name].String(), name)
	}
	st.out.WriteString(line + "\n")
}

// do shows and does what the Manager wants done.
func (st *stage) do() {
	var rd joblife.Ready
	for st.m != nil && st.m.Ready(&rd) {
		if st.crash == "before" {
			st.m, st.crash = nil, ""
			st.printf("crash: %d records are lost", len(rd.Append))
			return
		}
		for _, a := range rd.Answers {
			if a.Tag == 1 && st.naming != "" {
				st.jobs[st.naming], st.naming = a.Job, ""
			}
		}
		for _, rec := range rd.Append {
			st.records = append(st.records, rec.Clone())
			if e, err := eventlog.Parse(rec.Data); rec.Kind == joblife.RecordEvent && err == nil {
				st.printf("%s", strings.TrimRight(fmt.Sprintf("%v: %s %s", rec.Job, e.Name, e.Context), " "))
			}
		}
		if st.crash == "after" {
			st.m, st.crash = nil, ""
			st.printf("crash: the records are durable, and nothing else is done")
			return
		}
		st.w.Do(&rd)
		st.effects(&rd)
		if err := st.m.Done(rd.Seq); err != nil {
			st.printf("error: %v", err)
			return
		}
	}
}

// effects shows what a Ready wants done.
func (st *stage) effects(rd *joblife.Ready) {
	if rd.Hello != nil {
		for _, h := range rd.Hello.Responses {
			st.printf("  sched: %v holds %v, of which %q is free", h.ID, h.R, h.Free)
		}
	}
	for _, msg := range rd.Sched {
		switch msg := msg.(type) {
		case alloc.Request:
			st.printf("  sched: request %v priority %d", msg.ID, msg.Priority)
		case alloc.Cancel:
			st.printf("  sched: cancel %v", msg.ID)
		case alloc.Prioritize:
			st.printf("  sched: prioritize %v", msg.Jobs)
		case alloc.Free:
			st.printf("  sched: free %v %v final=%v", msg.ID, msg.R, msg.Final)
		case alloc.Expiration:
			st.printf("  sched: %v expires at %v", msg.ID, msg.Expiration)
		}
	}
	for _, msg := range rd.Exec {
		if s, ok := msg.(exec.Start); ok {
			st.printf("  exec: start %v on %v reattach=%v", s.ID, s.R, s.Reattach)
		}
	}
	for _, r := range rd.Raised {
		st.printf("  raised: %v %s severity=%d", r.Job, r.Type, r.Severity)
	}
	for _, l := range rd.Launch {
		st.printf("  launch: %v %v on %v attempt=%d", l.Job, l.Action, l.Ranks, l.Attempt)
	}
	for _, s := range rd.Signal {
		st.printf("  signal: %v %v on %v %d", s.Job, s.Action, s.Ranks, s.Signal.Signal)
	}
	for _, d := range rd.Drain {
		st.printf("  drain: %v %s", d.Ranks, d.Reason)
	}
	for _, a := range rd.Answers {
		if a.Report != 0 {
			st.printf("  answer: %v", a.Report)
		} else if a.Err != nil {
			st.printf("  answer: %v", a.Err)
		}
	}
	for _, f := range rd.Faults {
		st.printf("  fault: %v", f)
	}
	if len(rd.Unlink) > 0 {
		st.printf("  unlink: %v", rd.Unlink)
	}
}
