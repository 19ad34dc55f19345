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

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
)

// runScripts plays the scripts that match a pattern of path/filepath, each as a subtest.
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
func runScripts(t *testing.T, pattern string) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no file matches %q: %v", pattern, err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := playScript(string(want), nil)
			if err != nil {
				t.Errorf("%s: %v\n%s", path, err, got)
			} else if *update {
				err = os.WriteFile(path, []byte(got), 0o666)
			} else {
				err = difference(string(want), got)
			}
			if err != nil {
				t.Errorf("%s: %v\nIf this is right, rewrite the file with -update.", path, err)
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

// A stage is a runner that does only what the script says.
type stage struct {
	*runner
	fresh func() joblife.Config // a configuration with its own hooks
	ids   map[string]jobid.ID   // by the names of jobs
	out   strings.Builder
}

// playScript plays a script and returns it with its present output. The error is what the
// World or Check finds wrong.
func playScript(script string, config func() joblife.Config) (string, error) {
	st := &stage{runner: newRunner(nil, perilog.Config{}, nil), ids: make(map[string]jobid.ID)}
	st.script = st.printf
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
	st.w.Configure(st.cfg.Actions)
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
	if st.e == nil || st.w.Err() != nil {
		return st.w.Err()
	}
	return Check(st.e.Manager())
}

func (st *stage) play(words []string) {
	l := &line{stage: st, words: words[1:]}
	do := commands[words[0]]
	switch {
	case do == nil:
		l.err = fmt.Errorf("no command %q", words[0])
	case st.e != nil || words[0] == "config":
	case len(st.stored) == 0:
		_, l.err = st.restore()
	case words[0] != "restore" && words[0] != "tick":
		l.err = errors.New("the manager is down: restore it")
	}
	if in := sessions[strings.Join(words, " ")]; in != nil {
		l.send(in)
	} else if l.err == nil {
		do(l)
	}
	for i, in := range l.inputs { // which share a Ready
		if l.err == nil && i < len(l.inputs)-1 {
			st.w.input(in)
			l.err = st.e.Manager().Step(st.now, in)
		} else if l.err == nil {
			l.err = st.step(0, in)
		}
	}
	wrong := st.wrong()
	switch {
	case errors.Is(l.err, errCrash):
		st.e = nil
	case wrong != nil:
		st.printf("WRONG: %v", wrong)
	case l.err != nil:
		st.printf("error: %v", l.err)
	}
}

func (st *stage) restore() (joblife.Recovered, error) {
	st.site = &Site{Now: st.now, Config: st.cfg, r: st.runner}
	m, rec, err := joblife.Restore(st.now, st.cfg, st.site.Records())
	if err == nil {
		st.e = &loop{m: m, site: st.site}
	}
	return rec, err
}

// printf adds a line to the output. Ids in it become the names of jobs.
func (st *stage) printf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	names := slices.Collect(maps.Keys(st.ids))
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(st.ids[b], st.ids[a]) }) // the longest ids first
	for _, name := range names {
		line = strings.ReplaceAll(line, st.ids[name].String(), name)
	}
	st.out.WriteString(line + "\n")
}
