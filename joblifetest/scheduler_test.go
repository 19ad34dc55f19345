package joblifetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/sched"
)

// talkative annotates each job that waits in each Decide.
type talkative struct {
	Scheduler
	waits map[jobid.ID]bool
	calls int
}

func (c *talkative) Hello(a alloc.Announcement) error {
	c.waits = make(map[jobid.ID]bool)
	return c.Scheduler.Hello(a)
}

func (c *talkative) Handle(m alloc.Message) error {
	if r, ok := m.(alloc.Request); ok {
		c.waits[r.ID] = true
	}
	return c.Scheduler.Handle(m)
}

func (c *talkative) Decide(now eventlog.Timestamp) []alloc.Response {
	if c.calls++; c.calls > 10_000 {
		panic("there is no end")
	}
	list := c.Scheduler.Decide(now)
	for _, r := range list {
		c.waits[r.ID] = c.waits[r.ID] && r.Type == alloc.ResponseAnnotate
	}
	for _, id := range slices.Sorted(maps.Keys(c.waits)) {
		if c.waits[id] {
			list = append(list, alloc.Response{ID: id, Type: alloc.ResponseAnnotate, Annotations: []byte(`{"sched":{"waits":true}}`)})
		}
	}
	return list
}

func TestASchedulerMayAnnotateAtEachDecide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		RunScheduler(t, func(nodes *rset.R) Scheduler { return &talkative{Scheduler: NewScheduler(sched.Config{})(nodes)} }, SchedulerConfig{})
	})
}

// slow is told the time only by Decide, and decides when it is told something.
type slow struct {
	Scheduler
	now eventlog.Timestamp
	out []alloc.Response
}

func (s *slow) Handle(m alloc.Message) error {
	err := s.Scheduler.Handle(m)
	s.out = append(s.out, s.Scheduler.Decide(s.now)...)
	return err
}

func (s *slow) Decide(now eventlog.Timestamp) []alloc.Response {
	out := append(s.out, s.Scheduler.Decide(now)...)
	s.now, s.out = now, nil
	return out
}

func TestASchedulerLearnsTheTimeBeforeWhatHappensThen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		RunScheduler(t, func(nodes *rset.R) Scheduler { return &slow{Scheduler: NewScheduler(sched.Config{})(nodes)} }, SchedulerConfig{})
	})
}

// failing is a test that fails, and keeps what it prints.
type failing struct {
	testing.TB
	failed bool
	out    strings.Builder
}

func (f *failing) Log(args ...any)                 { fmt.Fprintln(&f.out, args...) }
func (f *failing) Logf(format string, args ...any) { fmt.Fprintf(&f.out, format+"\n", args...) }
func (f *failing) Errorf(format string, args ...any) {
	f.failed = true
	f.Logf(format, args...)
}
func (f *failing) Failed() bool { return f.failed }
func (f *failing) FailNow()     { f.failed = true }

// What happened before is printed if a policy panics, or finds itself that the test fails.
func TestWhatHappenedBeforeAPolicyFailsIsPrinted(t *testing.T) {
	setFlags(t, map[string]string{"rapid.nofailfile": "true", "rapid.shrinktime": "100ms", "rapid.seed": "1"})
	for name, fail := range map[string]func(*rapid.T){
		"panic": func(*rapid.T) { panic("too many jobs") },
		"Fatal": func(t *rapid.T) { t.Fatal("too many jobs") },
		"Error": func(t *rapid.T) { t.Error("too many jobs") },
	} {
		t.Run(name, func(t *testing.T) {
			f := &failing{TB: t}
			rapid.Check(f, func(t *rapid.T) {
				RunScheduler(t, NewScheduler(sched.Config{Policy: policy(func(p *sched.Pass) {
					for job := range p.Jobs() {
						if !p.Start(job.ID) {
							fail(t)
						}
					}
				})}), SchedulerConfig{MayWait: true})
			})
			_, out, _ := strings.Cut(f.out.String(), "Failed test output:")
			require.Regexp(t, "(?s)the nodes are rank.* submit .* as .*sched: request ", out)
		})
	}
}
