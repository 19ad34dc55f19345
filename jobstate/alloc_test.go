package jobstate_test

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/jobstate"
)

// TestApplyAllocatesNothingItNeedNotKeep: the events of a plain life, and those
// that a job meets again and again, cost no memory.
func TestApplyAllocatesNothingItNeedNotKeep(t *testing.T) {
	race.Skip(t)
	life := script(
		submit, "validate", "debug.x {}", "depend", `priority {"priority":16}`, `urgency {"userid":1,"urgency":3}`,
		`priority {"priority":3}`, "flux-restart", `priority {"priority":3}`, `alloc {}`, "start",
		`finish {"status":0}`, `release {"ranks":"all","final":true}`, "free", "clean",
	)
	jobs := make([]jobstate.Job, 101)
	n := 0
	allocs := testing.AllocsPerRun(100, func() {
		for _, e := range life {
			if _, err := jobs[n].Apply(e); err != nil {
				t.Fatal(err)
			}
		}
		n++
	})
	require.Zero(t, allocs)
	require.Equal(t, jobstate.StateInactive, jobs[100].State())
}

// keptLog is the log of an inactive job as most are.
func keptLog() []byte {
	alloc := `alloc {"annotations":{"sched":{"resource_summary":"rank[0-3]/core[0-3],gpu[0-1]"}}}`
	return []byte(logOf(append(append(append([]string{}, whole[:4]...), alloc), whole[5:]...)...))
}

// TestReplayAllocatesTheJobAndItsAnnotations: a million inactive jobs of a restart take
// 240 bytes each.
func TestReplayAllocatesTheJobAndItsAnnotations(t *testing.T) {
	race.Skip(t)
	log := keptLog()
	jobs := make([]*jobstate.Job, 0, 4096)
	before := heap()
	require.Equal(t, 2.0, testing.AllocsPerRun(cap(jobs)-1, func() {
		j, err := jobstate.Replay(1, log)
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, j)
	}))
	require.LessOrEqual(t, (heap()-before)/int64(len(jobs)), int64(270))
	runtime.KeepAlive(jobs)
}

func TestJobIsSmall(t *testing.T) {
	require.LessOrEqual(t, reflect.TypeFor[jobstate.Job]().Size(), uintptr(192))
}

// actionEvents are the events of an action's life, in the forms that this library
// writes.
var actionEvents = []string{
	`prolog-start {"description":"job-manager.prolog","ranks":"0-3,7","resources":["ssd","rabbit"],"per-rank":true,"timeout":90.5,"attempt":1}`,
	`perilog-launch {"description":"job-manager.prolog","kind":"prolog","attempt":2,"ranks":"3"}`,
	`perilog-fail {"description":"job-manager.prolog","kind":"prolog","ranks":"3","cause":"exited","status":256,"note":"out of memory","drain":true}`,
	`perilog-release {"description":"job-manager.prolog","kind":"prolog","ranks":"0-3","status":0,"resources":["ssd"]}`,
	`exception {"type":"prolog","severity":2,"note":"lost","ranks":"3","nodelist":"n3","action":"drop"}`,
	`drained {"ranks":"3"}`,
	`prolog-finish {"description":"job-manager.prolog","status":256}`,
	`release {"ranks":"0-2","final":false}`,
}

// TestTheSteadyStateAllocatesNothing: an Event has met the descriptions and names, and the
// events of an action that is active come again and again.
func TestTheSteadyStateAllocatesNothing(t *testing.T) {
	race.Skip(t)
	j, _ := run(t, append(upTo(jobstate.StateRun), actionEvents[0])...)
	for i, e := range script(actionEvents...) {
		var ev jobstate.Event
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if err := ev.Decode(e); err != nil || ev.Context() == nil {
				t.Fatal(err)
			}
			if 1 <= i && i < 4 { // of a rank: the job keeps nothing of it
				e.Timestamp++
				if o, err := j.ApplyEvent(&ev); err != nil || o != jobstate.Applied {
					t.Fatal(o, err)
				}
			}
		}), e.Name)
	}
	live := 0
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for a := range j.Actions() {
			live += a.Active
		}
		_, _ = j.Result()
		_, _ = j.Cause()
		_, _ = j.ExitCode()
		_, _ = j.Entered(jobstate.StateRun)
		_ = j.MayFree()
	}))
	require.Positive(t, live)

	waits, _ := run(t, append(upTo(jobstate.StateDepend), `dependency-add {"description":"a"}`)...)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if waits.MayDepend() {
			t.Fatal("it waits for a")
		}
	}))
}

func TestAppendContextAllocatesNothingWithRoom(t *testing.T) {
	race.Skip(t)
	dst := make([]byte, 0, 1024)
	for _, e := range script(append(actionEvents, whole[3], submit)...) {
		c, err := jobstate.ParseContext(e)
		require.NoError(t, err)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if dst, err = jobstate.AppendContext(dst[:0], c); err != nil {
				t.Fatal(err)
			}
		}), e.Name)
		require.Equal(t, string(e.Context), string(dst), "the usual form comes back")
	}
	set := idset.Of(1, 2, 3)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		c := jobstate.ActionReleaseContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionEpilog, Description: "e"}, Ranks: set}
		dst, _ = jobstate.AppendContext(dst[:0], &c) // which stays on the stack
	}))
	oom := &jobstate.ExceptionContext{Type: "oom", Severity: 1}
	require.Zero(t, testing.AllocsPerRun(100, func() { dst, _ = jobstate.AppendContext(dst[:0], oom) }), "it has no Extra with ranks")
}

// doc.go says how much a Job keeps of a hostile log.
func TestAJobIsInProportionToItsLog(t *testing.T) {
	race.Skip(t)
	for _, c := range []struct{ line, each, end string }{
		{`set-flags {"flags":[`, `,"%04x"`, `]}`},
		{`jobspec-update {`, `,"tasks.%04x":1`, `}`},
	} {
		var members strings.Builder
		for i := range 60_000 {
			fmt.Fprintf(&members, c.each, i)
		}
		log := []byte(logOf(append(upTo(jobstate.StateDepend), c.line+members.String()[1:]+c.end)...))
		before := heap()
		j, err := jobstate.Replay(1, log)
		require.NoError(t, err)
		kept := heap() - before
		runtime.KeepAlive(j)
		require.LessOrEqual(t, kept, int64(16*len(log)), c.line)
	}
}
