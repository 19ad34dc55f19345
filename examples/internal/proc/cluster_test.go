//go:build linux

package proc

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/sched"
)

const clusterSpec = `{"version":1,"resources":[{"type":"slot","count":1,"label":"t","with":[{"type":"core","count":1}]}],` +
	`"tasks":[{"command":["sh","-c","exit 3"],"slot":"t","count":{"per_slot":1}}],"attributes":{"system":{"duration":0}}}`

// A line is what a Cluster puts in the line of a manager.
type clusterLine struct {
	mu     sync.Mutex
	inputs []joblife.Input
}

func (l *clusterLine) put(in ...joblife.Input) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inputs = append(l.inputs, in...)
}

// status returns the jobs that have finished with a status.
func (l *clusterLine) finished(status int32) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, in := range l.inputs {
		if r, ok := in.(joblife.ExecResponse); ok && r.Type == exec.ResponseFinish && r.Status == status {
			n++
		}
	}
	return n
}

// reported returns the lines of the reports of a kind.
func (l *clusterLine) reported(kind perilog.ReportKind) (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, in := range l.inputs {
		if r, ok := in.(joblife.Report); ok && r.Kind == kind {
			lines = append(lines, string(r.Line))
		}
	}
	return lines
}

// resources returns the resources of n nodes.
func resources(t *testing.T, n uint32) *rset.R {
	t.Helper()
	r, err := rset.New(rset.Config{Entries: []rset.Entry{{Ranks: idset.Range(0, n-1), Children: map[string]*idset.Set{"core": idset.Of(0)}}}})
	require.NoError(t, err)
	return r
}

// cleaned says that a job is over.
func cleaned(id jobid.ID) *joblife.Ready {
	return &joblife.Ready{Journal: []joblife.JournalEntry{{Job: id, Entry: eventlog.Entry{Name: jobstate.EventClean}}}}
}

// begin returns n nodes that put inputs in the line.
func (l *clusterLine) begin(t *testing.T, dir string, n int) *Cluster {
	t.Helper()
	c, err := newCluster(dir, n, func(err error) { t.Error(err) })
	require.NoError(t, err)
	c.executor.Put = l.put
	return c
}

// Tasks end in any goroutine while the manager asks for others, stops them and forgets them
// (-race).
func TestTasksOfAClusterEndAtAnyTime(t *testing.T) {
	const jobs, size = 12, 3
	first := new(clusterLine)
	r := resources(t, size)
	c := first.begin(t, t.TempDir(), size)
	var wait sync.WaitGroup
	for id := range jobid.ID(jobs) {
		if id == jobs/2 {
			wait.Go(func() { require.NoError(t, c.connect()) })
		}
		wait.Go(func() {
			c.executor.Execute(&joblife.Ready{Exec: []exec.Message{exec.Start{ID: id, Jobspec: []byte(clusterSpec), R: r}}})
			if id%4 == 3 {
				c.executor.Execute(&joblife.Ready{Raised: []joblife.Raised{{Job: id}}})
			}
			c.executor.Execute(cleaned(id))
		})
	}
	wait.Wait()
	await(t, "no job ends", func() bool { return first.finished(3<<8) > 0 })

	await(t, "jobs do not end", func() bool {
		for _, node := range c.nodes {
			if len(node.List()) > 0 {
				return false
			}
		}
		return true
	})
}

// Neither the manager nor another node waits for a node with a slow disk, which does all in order.
func TestASlowNodeDelaysNoOther(t *testing.T) {
	l := new(clusterLine)
	c := l.begin(t, t.TempDir(), 2)
	r := resources(t, 2)
	require.NoError(t, c.connect())
	c.nodes[0].mu.Lock()
	c.executor.Execute(&joblife.Ready{Exec: []exec.Message{exec.Start{ID: 5, Jobspec: []byte(clusterSpec), R: r}}})
	c.executor.Execute(cleaned(5))
	await(t, "the other node does not start it", func() bool { return len(c.nodes[1].List()) == 1 })
	require.Empty(t, c.nodes[0].tasks)
	c.nodes[0].mu.Unlock()
	await(t, "the job does not end", func() bool { return l.finished(3<<8) == 1 })
	c.wait()
	require.Empty(t, slices.Concat(c.nodes[0].List(), c.nodes[1].List()))
}

// Each life of a manager hears a control line once, while its action runs.
func TestEachLifeHearsAControlLineOnce(t *testing.T) {
	dir := t.TempDir()
	command := []string{"sh", "-c", "echo perilog-control: 1; while ! test -e " + dir + "/go; do sleep .01; done"}
	ask := &joblife.Ready{Launch: []joblife.Launch{{Job: 7, Launch: perilog.Launch{
		Action: action.Action, Attempt: 1, Ranks: idset.Of(0), Command: command,
	}}}}
	lost := []joblife.Unresolved{{Job: 7, Unresolved: perilog.Unresolved{Action: action.Action, Attempt: 1, Ranks: idset.Of(0), Reason: perilog.ReasonLost}}}
	for life := range 2 {
		l := new(clusterLine)
		c := l.begin(t, dir, 1)
		if life > 0 {
			c.executor.Recover(joblife.Recovered{Unresolved: lost})
		}
		require.NoError(t, c.connect())
		if life == 0 {
			c.executor.Execute(ask)
		}
		await(t, "the line is not heard", func() bool { return len(l.reported(perilog.ReportOutput)) > 0 })
		if life > 0 {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
		}
		await(t, "it does not end", func() bool { return life == 0 || len(l.reported(perilog.ReportExited)) > 0 })
		require.Equal(t, []string{"perilog-control: 1"}, l.reported(perilog.ReportOutput))
		c.executor.Execute(cleaned(7)) // forgets what has ended
	}
	await(t, "its record is not forgotten", func() bool { return len(open(t, filepath.Join(dir, "node-0")).List()) == 0 })
}

// Without a session of the scheduler no Free tells that the last node went back, but the log does.
func TestHousekeepingIsForgottenWhenItsLogEnds(t *testing.T) {
	l := new(clusterLine)
	c := l.begin(t, t.TempDir(), 1)
	require.NoError(t, c.connect())
	c.executor.Execute(&joblife.Ready{Launch: []joblife.Launch{{Job: 7, Launch: perilog.Launch{
		Action: jobstate.ActionKey{Kind: jobstate.ActionHousekeeping}, Attempt: 1, Ranks: idset.Of(0), Command: []string{"true"},
	}}}})
	await(t, "it does not end", func() bool { return len(l.reported(perilog.ReportExited)) > 0 })
	release := func(final bool) *joblife.Ready {
		text := fmt.Sprintf(`{"timestamp":1.0,"name":"release","context":{"ranks":"0","final":%v}}`+"\n", final)
		return &joblife.Ready{Append: []joblife.Record{{Job: 7, Kind: joblife.RecordHousekeeping, Data: []byte(text)}}}
	}
	c.executor.Execute(release(false))
	c.executor.Execute(cleaned(7))
	require.Len(t, c.nodes[0].List(), 1)
	c.executor.Execute(release(true))
	await(t, "its record stays", func() bool { return len(c.nodes[0].List()) == 0 })
}

// Tasks of an earlier life end while the next one opens its nodes.
func TestTasksEndWhileAClusterBegins(t *testing.T) {
	const jobs = 8
	dir, l := t.TempDir(), new(clusterLine)
	earlier := open(t, filepath.Join(dir, "node-0"))
	for id := range jobid.ID(jobs) {
		command := []string{"sh", "-c", "while ! test -e " + dir + "/go; do sleep .001; done; exit 3"}
		require.NoError(t, earlier.Do(exec.Command{Kind: exec.CommandStart, Task: exec.Task{Job: id}}, command))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	c := l.begin(t, dir, 500)
	r := resources(t, 1)
	for id := range jobid.ID(jobs) {
		c.executor.Execute(&joblife.Ready{Exec: []exec.Message{exec.Start{ID: id, R: r, Reattach: true, Started: true}}})
	}
	require.NoError(t, c.connect())
	await(t, "statuses are lost", func() bool { return l.finished(3<<8) == jobs })
}

// A program hears of which job it is, and on which node it runs.
func TestTheEnvironmentOfTasks(t *testing.T) {
	t.Setenv("FLUX_JOB_ID", "of the program")
	out, l := filepath.Join(t.TempDir(), "out"), new(clusterLine)
	command := []string{"sh", "-c", "echo $FLUX_JOB_ID $JOBLIFE_RANK >>" + out}
	c := l.begin(t, t.TempDir(), 2)
	require.NoError(t, c.connect())
	r := resources(t, 2)
	spec, err := jobspec.New(jobspec.Job{Command: command})
	require.NoError(t, err)
	text, err := spec.MarshalJSON()
	require.NoError(t, err)
	for _, key := range []jobstate.ActionKey{{Kind: jobstate.ActionProlog}, {Kind: jobstate.ActionEpilog}, perilog.Housekeeping()} {
		c.executor.Execute(&joblife.Ready{Launch: []joblife.Launch{{Job: 7, Launch: perilog.Launch{Action: key, Attempt: 1, Ranks: idset.Of(1), Command: command}}}})
	}
	c.executor.Execute(&joblife.Ready{Exec: []exec.Message{exec.Start{ID: 8, Jobspec: text, R: r}}})
	await(t, "they do not end", func() bool { return l.finished(0) == 1 && len(l.reported(perilog.ReportExited)) == 3 })
	ran, err := os.ReadFile(out)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"ƒ8 1", "ƒ8 1", "ƒ8 1", "ƒ9 0", "ƒ9 1"}, strings.Split(strings.TrimSpace(string(ran)), "\n"))
}

// Whatever ends the Loop, who serves hears of it.
func TestWhoServesHearsOfTheEnd(t *testing.T) {
	p := Program{Dir: t.TempDir(), Nodes: 1, Cores: 1, Scheduler: sched.New(sched.Config{}), Journal: func([]joblife.JournalEntry) {}}
	heard := make(chan struct{})
	require.NoError(t, p.Run(func(ctx context.Context, c *Cluster) error {
		require.NoError(t, c.Put(joblife.Shutdown{}))
		<-ctx.Done()
		close(heard)
		return nil
	}))
	select {
	case <-heard:
	case <-time.After(time.Second):
		t.Error("it goes on")
	}
}

func TestTheREADMEShowsTheLoop(t *testing.T) {
	readme, err := os.ReadFile("../../../README.md")
	require.NoError(t, err)
	_, text, ok := strings.Cut(string(readme), "\nManage jobs")
	require.True(t, ok)
	_, text, _ = strings.Cut(text, "```go\n")
	text, _, ok = strings.Cut(text, "```\n")
	require.True(t, ok)
	source, err := os.ReadFile("program.go")
	require.NoError(t, err)
	trim := func(text string) (lines []string) {
		for line := range strings.Lines(text) {
			lines = append(lines, strings.TrimSpace(line))
		}
		return lines
	}
	require.Contains(t, strings.Join(trim(string(source)), "\n"), strings.Join(trim(text), "\n"))
}
