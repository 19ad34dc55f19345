package joblifetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobspec"
)

func TestBadHooksAreFound(t *testing.T) {
	lives := 0
	wait := func(e *joblife.HookEvent, what string) {
		e.Post(joblife.DependencyAdd{ID: e.Job.ID(), Description: what})
	}
	later := func(e *joblife.HookEvent, in joblife.Input) { e.PostAt(e.Now()+5, in) }
	end := func(e *joblife.HookEvent, what string) {
		later(e, joblife.DependencyRemove{ID: e.Job.ID(), Description: what})
	}
	memo := func(e *joblife.HookEvent) { later(e, joblife.Memo{ID: e.Job.ID(), Values: []byte(`{"x":1}`)}) }
	atSubmit := func(do func(*joblife.HookEvent)) func(*joblife.HookEvent) {
		return func(e *joblife.HookEvent) {
			if e.Entry.Name == "submit" {
				do(e)
			}
		}
	}
	for _, c := range []struct {
		name, want string
		hooks      joblife.Hooks
	}{
		{"forgets after a restart", "is left in DEPEND", joblife.Hooks{
			Event: atSubmit(func(e *joblife.HookEvent) { wait(e, "license"); end(e, "license") }),
		}},
		{"loses a dependency", "is left in DEPEND", joblife.Hooks{
			Event: atSubmit(func(e *joblife.HookEvent) { wait(e, "license") }),
		}},
		{"waits for something else after a restart", `waits for .* before a restart, and .* after it|is left in DEPEND`, joblife.Hooks{
			Event: atSubmit(func(e *joblife.HookEvent) { wait(e, "license"); end(e, "license") }),
			Restored: func(e *joblife.HookEvent) {
				if e.Job.State() == jobstate.StateDepend {
					lives++
					life := fmt.Sprint("life", lives)
					wait(e, life)
					end(e, life)
					e.Post(joblife.DependencyRemove{ID: e.Job.ID(), Description: "license"})
				}
			},
		}},
		{"lets go what waits at a restart", "waits for .* before a restart, and .* after it|is left in DEPEND", joblife.Hooks{
			Event:    atSubmit(func(e *joblife.HookEvent) { wait(e, "license"); end(e, "license") }),
			Restored: func(e *joblife.HookEvent) { e.Post(joblife.DependencyRemove{ID: e.Job.ID(), Description: "license"}) },
		}},
		{"has another priority after a restart", "has the priority .* before a restart, and has the priority .* after it", joblife.Hooks{
			Priority: func(*joblife.HookEvent) (uint32, bool) { lives++; return uint32(lives), false },
		}},
		{"vetoes what it has let in", "before a restart, and does not wait any more after it", joblife.Hooks{
			Restored: func(e *joblife.HookEvent) {
				if e.Job.State()&jobstate.StatePending != 0 {
					e.Post(joblife.Raise{ID: e.Job.ID(), Type: "veto"})
				}
			},
		}},
		{"panics", "oh", joblife.Hooks{Inactive: func(*joblife.HookEvent) { panic("oh") }}},
		{"panics where it may veto", "panicked: oh", joblife.Hooks{Validate: func(*joblife.HookEvent) error { panic("oh") }}},
		{"never says whether a job is valid", "is left in NEW", joblife.Hooks{Validate: func(*joblife.HookEvent) error { return joblife.ErrLater }}},
		{"posts nonsense", "inactive", joblife.Hooks{
			Inactive: func(e *joblife.HookEvent) { e.Post(joblife.SetUrgency{ID: e.Job.ID(), Urgency: 3}) },
		}},
		{"posts for a job that is not there", "unknown job", joblife.Hooks{
			Event: atSubmit(func(e *joblife.HookEvent) { e.Post(joblife.Memo{ID: 77, Values: []byte(`{"x":1}`)}) }),
		}},
		{"keeps a job", "is left in PRIORITY", joblife.Hooks{Priority: func(*joblife.HookEvent) (uint32, bool) { return 0, true }}},
		{"posts without end", "is inactive|limit", joblife.Hooks{
			Event: func(e *joblife.HookEvent) { e.Post(joblife.Memo{ID: e.Job.ID(), Values: []byte(`{"x":1}`)}) },
		}},
		{"never ends", "again and again", joblife.Hooks{
			Event: func(e *joblife.HookEvent) {
				atSubmit(func(e *joblife.HookEvent) { wait(e, "x") })(e)
				memo(e)
			},
			Restored: memo,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := find(t, func(t *rapid.T) error {
				return runHooks(t, func() []joblife.Hooks { return []joblife.Hooks{c.hooks} }, Workloads(5, 4).Draw(t, "workload"))
			})
			require.Regexp(t, `(?s)^[^\n]*(`+c.want+`).*\nthe nodes are rank.* submit {after`, found.Error())
		})
	}
}

func TestHooksMayRefuse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		RunHooks(t, func() []joblife.Hooks {
			return []joblife.Hooks{{Validate: func(e *joblife.HookEvent) error {
				if e.Job.State() == jobstate.StateNew {
					return errors.New("closed today")
				}
				return nil
			}}}
		}, Workloads(5, 4).Draw(t, "workload"))
	})
}

// What is no fault of hooks is not found: what a scheduler makes of constraints and counts, a job
// that a user holds, and a job that was refused when its user cancels it.
func TestGoodHooksPass(t *testing.T) {
	text := func(count, constraints string) []byte {
		return fmt.Appendf(nil, `{"version":1,"resources":[{"type":"slot","count":%s,"label":"task","with":[{"type":"core","count":1}]}],`+
			`"tasks":[{"command":["true"],"slot":"task","count":{"per_slot":1}}],"attributes":{"system":{"duration":0,"constraints":%s}}}`, count, constraints)
	}
	one, err := jobspec.Parse(text("1", "{}"))
	require.NoError(t, err)
	job := func(in joblife.Submit) Arrival { return Arrival{Runs: time.Second, Submit: in} }
	for name, jobs := range map[string][]Arrival{
		"a constraint that one node meets": {
			job(joblife.Submit{Jobspec: text("1", `{"ranks":["0"]}`), Urgency: 16}), job(joblife.Submit{Jobspec: text("1", `{"ranks":["0"]}`), Urgency: 16}),
		},
		"a constraint that no node meets": {job(joblife.Submit{Jobspec: text("1", `{"properties":["batch"]}`), Urgency: 16})},
		"a count with a range":            {job(joblife.Submit{Jobspec: text(`{"min":1,"max":8,"operator":"+","operand":1}`, "{}"), Urgency: 16})},
		"a job that is held":              {job(joblife.Submit{Spec: one})},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { RunHooks(t, func() []joblife.Hooks { return nil }, jobs) })
		})
	}
	t.Run("a job that is refused later", func(t *testing.T) {
		hooks := joblife.Hooks{Validate: func(e *joblife.HookEvent) error {
			e.PostAt(e.Now()+5, joblife.Validated{ID: e.Job.ID(), Err: errors.New("no budget")})
			return joblife.ErrLater
		}}
		canceled := job(joblife.Submit{Spec: one, Urgency: 16})
		canceled.Cancel = 20 * time.Second
		rapid.Check(t, func(t *rapid.T) {
			RunHooks(t, func() []joblife.Hooks { return []joblife.Hooks{hooks} }, []Arrival{canceled})
		})
	})
}

func TestAnIDOfTwoJobsIsRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs := Workloads(1, 1).Draw(t, "workload")
		jobs = append(jobs, jobs[0])
		jobs[0].Submit.ID = 1001
		err := runHooks(t, func() []joblife.Hooks { return nil }, jobs)
		require.ErrorContains(t, err, "two jobs of the workload have the id ƒJG: a job without an ID gets 1000 and its index")
	})
}
