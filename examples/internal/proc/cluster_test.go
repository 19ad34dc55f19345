//go:build linux

package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/purge/boltstore"
	"github.com/joblife/joblife/rset/sched"
)

// live is a life of a manager of nodes with 8 cores.
func live(t *testing.T, dir string, nodes int, actions perilog.Config, serve func(context.Context, *Cluster) error) {
	t.Helper()
	require.NoError(t, lives(t, dir, nodes, actions, serve))
}

func lives(t *testing.T, dir string, nodes int, actions perilog.Config, serve func(context.Context, *Cluster) error) error {
	p := Program{Name: t.Name(), Dir: dir, Nodes: nodes, Cores: 8, Scheduler: sched.New(sched.Config{}), Journal: func([]joblife.JournalEntry) {}}
	p.Manager = joblife.Config{Epoch: time.Unix(1_700_000_000, 0), Actions: actions}
	return p.Run(func(_ context.Context, c *Cluster) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return serve(ctx, c)
	})
}

func submitTo(ctx context.Context, c *Cluster, job jobspec.Job) (jobid.ID, error) {
	spec, err := jobspec.New(job)
	if err != nil {
		return 0, err
	}
	answer, err := c.Call(ctx, joblife.Submit{Spec: spec, Urgency: jobstate.UrgencyDefault})
	return answer.Job, err
}

// whole is a job of whole nodes.
func whole(nodes int64, command string) jobspec.Job {
	return jobspec.Job{Nodes: nodes, Exclusive: true, Command: []string{"sh", "-c", command}}
}

// status waits for the end of a job.
func status(ctx context.Context, c *Cluster, id jobid.ID) (int, error) {
	if _, err := c.Call(ctx, joblife.Wait{ID: id, States: jobstate.StateInactive}); err != nil {
		return 0, err
	}
	stored, err := c.Store.Read(id)
	if err != nil {
		return 0, err
	}
	job, err := jobstate.Replay(id, stored.Eventlog)
	if err != nil {
		return 0, err
	}
	n, _ := job.WaitStatus()
	return n, nil
}

// forgotten waits until no node has a record.
func forgotten(ctx context.Context, c *Cluster) error {
	for ctx.Err() == nil {
		n := 0
		for _, node := range c.nodes {
			n += len(node.List())
		}
		if n == 0 {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("a node has records for ever: %w", ctx.Err())
}

// Tasks end in any goroutine while the manager asks for others, stops them and forgets them
// (-race).
func TestTasksOfAClusterEndAtAnyTime(t *testing.T) {
	t.Parallel() // it waits
	live(t, t.TempDir(), 3, perilog.Config{}, func(ctx context.Context, c *Cluster) error {
		var wait sync.WaitGroup
		for i := range 12 {
			wait.Go(func() {
				id, err := submitTo(ctx, c, whole(1+int64(i%3), "exit 3"))
				if err == nil && i%4 == 3 {
					_ = c.Put(joblife.Raise{ID: id, Type: "cancel"})
				}
				n, err := status(ctx, c, id)
				if err != nil || n != 3<<8 && i%4 != 3 {
					t.Errorf("a job ended with %d: %v", n, err)
				}
			})
		}
		wait.Wait()
		return forgotten(ctx, c)
	})
}

// Neither the manager nor another node waits for a node with a slow disk, which does all in order.
func TestASlowNodeDelaysNoOther(t *testing.T) {
	t.Parallel() // it waits
	live(t, t.TempDir(), 3, perilog.Config{}, func(ctx context.Context, c *Cluster) error {
		c.nodes[0].mu.Lock()
		slow, err := submitTo(ctx, c, whole(2, "exit 3"))
		if err != nil {
			return err
		}
		for len(c.nodes[1].List()) == 0 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		other, err := submitTo(ctx, c, whole(1, "exit 4"))
		if err != nil {
			return err
		}
		if n, err := status(ctx, c, other); n != 4<<8 || len(c.nodes[0].tasks) > 0 {
			t.Errorf("the other job ended with %d: %v", n, err)
		}
		c.nodes[0].mu.Unlock()
		if n, err := status(ctx, c, slow); n != 3<<8 {
			t.Errorf("the job ended with %d: %v", n, err)
		}
		return forgotten(ctx, c)
	})
}

// Each life of a manager hears a control line once, while its action runs.
func TestEachLifeHearsAControlLineOnce(t *testing.T) {
	dir := t.TempDir()
	command := []string{"sh", "-c", "echo perilog-control: 1; while ! test -e " + dir + "/go; do sleep .01; done"}
	for life := range 2 {
		n, x := open(t, filepath.Join(dir, "node-0")), new(exec.Executor)
		if life > 0 {
			require.NoError(t, x.Recover(7, perilog.Unresolved{Action: action.Action, Attempt: 1, Ranks: idset.Of(0), Reason: perilog.ReasonLost}))
		}
		session, err := x.Hello(0, n.List())
		require.NoError(t, err)
		if life == 0 {
			require.NoError(t, x.Launch(7, perilog.Launch{Action: action.Action, Attempt: 1, Ranks: idset.Of(0), Command: command}))
		}
		count, last := map[perilog.ReportKind]int{}, perilog.ReportOutput
		if life > 0 {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
			last = perilog.ReportExited
		}
		await(t, "its end is not heard", func() bool {
			if st, ok := n.Last(action); ok {
				require.NoError(t, x.Update(session, st))
			}
			todo := x.Take(0)
			for _, c := range todo.Commands {
				require.NoError(t, n.Do(c, command))
			}
			for _, r := range todo.Reports {
				count[r.Kind]++
			}
			return count[last] > 0
		})
		require.Equal(t, 1, count[perilog.ReportOutput])
	}
}

// A node that is not there says nothing of its tasks, and their job would not end.
func TestAClusterHasTheNodesOfItsJobs(t *testing.T) {
	dir, id := t.TempDir(), jobid.ID(0)
	live(t, dir, 2, perilog.Config{}, func(ctx context.Context, c *Cluster) (err error) {
		if id, err = submitTo(ctx, c, whole(2, "until [ -e "+dir+"/end ]; do sleep 0.01; done; exit 3")); err == nil {
			_, err = c.Call(ctx, joblife.Wait{ID: id, States: jobstate.StateRun})
		}
		return err
	})
	err := lives(t, dir, 1, perilog.Config{}, func(context.Context, *Cluster) error { return nil })
	require.EqualError(t, err, fmt.Sprintf("-nodes 1: job %v has node 1: give at least 2 until it is over", id))
	require.NoError(t, os.WriteFile(dir+"/end", nil, 0o600))
	live(t, dir, 2, perilog.Config{}, func(ctx context.Context, c *Cluster) error {
		n, err := status(ctx, c, id)
		require.Equal(t, 3<<8, n)
		return err
	})
}

// A job that cannot be read has its nodes for ever: the cluster may have fewer.
func TestAJobThatCannotBeReadNeedsNoNodes(t *testing.T) {
	dir := t.TempDir()
	s, err := boltstore.Open(filepath.Join(dir, "jobs.db"))
	require.NoError(t, err)
	log := `{"timestamp":1,"name":"submit","context":{"userid":0,"urgency":16,"flags":0,"version":1}}` + "\n" + `{"timestamp":2,"name":"alloc"}` + "\n"
	r := `{"version":1,"execution":{"R_lite":[{"rank":"1","children":{"core":"0-7"}}]}}`
	require.NoError(t, s.Append([]joblife.Record{{Job: 7, Kind: joblife.RecordR, Data: []byte(r)}, {Job: 7, Kind: joblife.RecordEvent, Data: []byte(log)}}))
	require.NoError(t, s.Close())
	live(t, dir, 1, perilog.Config{}, func(ctx context.Context, c *Cluster) error {
		require.Len(t, c.left.Quarantined, 1)
		require.NotNil(t, c.left.Quarantined[0].R)
		id, err := submitTo(ctx, c, whole(1, "exit 3"))
		require.NoError(t, err)
		n, err := status(ctx, c, id)
		require.Equal(t, 3<<8, n)
		return err
	})
}

// Tasks of an earlier life end while the next one opens its nodes.
func TestTasksEndWhileAClusterBegins(t *testing.T) {
	t.Parallel() // it waits
	const jobs = 8
	dir := t.TempDir()
	var ids []jobid.ID
	live(t, dir, 1, perilog.Config{}, func(ctx context.Context, c *Cluster) error {
		for range jobs {
			id, err := submitTo(ctx, c, jobspec.Job{Slots: 1, Cores: 1, Command: []string{"sh", "-c", "echo >>" + dir + "/started; while ! test -e " + dir + "/go; do sleep .001; done; exit 3"}})
			if err != nil {
				return err
			}
			ids = append(ids, id)
		}
		for started := 0; started < jobs; time.Sleep(time.Millisecond) {
			if err := ctx.Err(); err != nil {
				return err
			}
			text, _ := os.ReadFile(filepath.Join(dir, "started"))
			started = len(text)
		}
		return os.WriteFile(filepath.Join(dir, "go"), nil, 0o600)
	})
	live(t, dir, 500, perilog.Config{}, func(ctx context.Context, c *Cluster) error {
		for _, id := range ids {
			if n, err := status(ctx, c, id); n != 3<<8 {
				t.Errorf("%v ended with %d: %v", id, n, err)
			}
		}
		return nil
	})
}

// A program hears of which job it is, and on which node it runs.
func TestTheEnvironmentOfTasks(t *testing.T) {
	t.Setenv("FLUX_JOB_ID", "of the program")
	out := filepath.Join(t.TempDir(), "out")
	command := func(what string) []string {
		return []string{"sh", "-c", "echo " + what + " $FLUX_JOB_ID $JOBLIFE_RANK >>" + out}
	}
	actions := perilog.Config{
		Prologs: []perilog.ActionConfig{{Command: command("prolog"), PerRank: true}}, Epilogs: []perilog.ActionConfig{{Command: command("epilog"), PerRank: true}},
		Housekeeping: &perilog.HousekeepingConfig{Command: command("housekeeping")},
	}
	want := []string{}
	live(t, t.TempDir(), 2, actions, func(ctx context.Context, c *Cluster) error {
		id, err := submitTo(ctx, c, whole(2, command("job")[2]))
		if err != nil {
			return err
		}
		for _, what := range []string{"prolog", "job", "epilog", "housekeeping"} {
			for rank := range 2 {
				want = append(want, fmt.Sprint(what, " ", id, " ", rank))
			}
		}
		if n, err := status(ctx, c, id); n != 0 || err != nil {
			t.Errorf("it ended with %d: %v", n, err)
		}
		return forgotten(ctx, c)
	})
	ran, err := os.ReadFile(out)
	require.NoError(t, err)
	require.ElementsMatch(t, want, strings.Split(strings.TrimSpace(string(ran)), "\n"))
}

// A task ends while the inbox is full. The manager hears of it when there is room again.
func TestAFullInboxDelaysAnEnd(t *testing.T) {
	t.Parallel() // it waits
	dir := t.TempDir()
	live(t, dir, 1, perilog.Config{}, func(ctx context.Context, c *Cluster) error {
		end := filepath.Join(dir, "end")
		id, err := submitTo(ctx, c, whole(1, "until test -e "+end+"; do sleep .01; done"))
		if err != nil {
			return err
		}
		is := func(state exec.TaskState) func() bool {
			return func() bool { l := c.nodes[0].List(); return len(l) == 1 && l[0].State == state }
		}
		await(t, "it runs", is(exec.TaskRunning))
		room := make(chan struct{})
		if err := c.Do(func(*joblife.Manager) func() { <-room; return nil }); err != nil {
			return err
		}
		for c.Put(joblife.Tick{}) == nil {
		}
		if err := os.WriteFile(end, nil, 0o600); err != nil {
			return err
		}
		await(t, "it has ended", is(exec.TaskReleased))
		time.Sleep(time.Second / 10) // it is told, or refused
		close(room)
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_, err = status(ctx, c, id)
		for errors.Is(err, loop.ErrFull) {
			_, err = status(ctx, c, id)
		}
		return err
	})
}

// Whatever ends the Loop, who serves hears of it.
func TestWhoServesHearsOfTheEnd(t *testing.T) {
	t.Parallel() // it waits
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

// An epilog was given up and still runs, while another one of its job has the node: a restart does
// not put the node in service when that ends (I3).
func TestANodeIsDrainedWhateverElseItsJobRuns(t *testing.T) {
	t.Parallel() // it waits
	dir := t.TempDir()
	epilog := func(command, until string) perilog.ActionConfig {
		return perilog.ActionConfig{Description: until, PerRank: true, Command: []string{"sh", "-c", command + "until test -e " + dir + "/" + until + "; do sleep .01; done"}}
	}
	deaf, slow := epilog("trap '' TERM; ", "end"), epilog("", "swept")
	deaf.Timeout, deaf.KillTimeout = fsd.Duration(time.Second), fsd.Duration(time.Second/10) // the shell has to come to its trap
	actions := perilog.Config{Epilogs: []perilog.ActionConfig{deaf, slow}}
	var id jobid.ID
	live(t, dir, 1, actions, func(ctx context.Context, c *Cluster) (err error) {
		id, err = submitTo(ctx, c, whole(1, "true"))
		for ; err == nil; err = ctx.Err() {
			if job, _ := c.Store.Read(id); strings.Contains(string(job.Eventlog), `"name":"drained"`) { // its drain is not asked for again
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		return err
	})
	live(t, dir, 1, actions, func(ctx context.Context, c *Cluster) error {
		err := os.WriteFile(filepath.Join(dir, "swept"), nil, 0o600)
		_, waitErr := status(ctx, c, id)
		err = errors.Join(err, waitErr, c.View(ctx, func(*joblife.Manager) {
			if down := c.Program.Scheduler.Pool().Down().Ranks(); !down.Contains(0) {
				t.Error("the node is in service")
			}
		}))
		return errors.Join(err, os.WriteFile(filepath.Join(dir, "end"), nil, 0o600), forgotten(ctx, c))
	})
}
