//go:build unix

// Command embed is the smallest resource manager: local "nodes" that run shell commands, with
// a prolog and an epilog on each node. It keeps its jobs in one bbolt file and goes on with
// them after kill -9.
//
//	embed -dir /tmp/jobs -epilog 'sleep 1' 'echo a; sleep 5' 'echo b'
//	embed -dir /tmp/jobs -epilog 'sleep 1'      # goes on with the jobs that are left
//
// Each argument is a job that runs on each of -n nodes. Commands have the job's id in
// FLUX_JOB_ID, and the rank of their node in JOBLIFE_RANK. An interrupt cancels the jobs. After
// kill -9, or a second interrupt, jobs, prologs and epilogs run on, and the next start finds
// them, or their status. A node whose prolog or epilog failed is out of service until the next
// start, or longer if it still runs then. The exit status is 0 when all jobs are over, 1 for a
// fault, 2 for bad arguments. It needs a Unix system.
//
// The nodes, their executor, the loop and the restart are those of package proc, whose
// processes outlive the program. Command httpd is a manager of the same kind that serves
// requests.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"strings"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/proc"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

// unfinished are the states of jobs that are not over.
const unfinished = jobstate.StateNew | jobstate.StateActive

func main() {
	p := proc.New("embed") // whose tasks may be this program again
	n := flag.Int64("n", 1, "the `number` of nodes of each job")
	p.Parse("COMMAND…")
	jobs, err := submissions(p.User(), *n, flag.Args())
	p.Exit(2, err)
	p.Scheduler = shrinking{sched.New(sched.Config{})}
	p.Journal = func(events []joblife.JournalEntry) {
		for _, e := range events {
			fmt.Println(strings.TrimSpace(fmt.Sprintf("%v %s %s", e.Job, e.Entry.Name, e.Entry.Context)))
		}
	}
	p.Exit(1, p.Run(func(ctx context.Context, c *proc.Cluster) error { return finish(ctx, c, jobs) }))
}

// finish submits jobs, and returns when all jobs are over. When ctx ends it cancels them.
func finish(ctx context.Context, c *proc.Cluster, jobs []joblife.Input) error {
	if err := c.Put(jobs...); err != nil {
		return err
	}
	over := joblife.WaitEmpty{States: unfinished}
	if _, err := c.Call(ctx, over); ctx.Err() == nil {
		return err
	}
	var cancel []joblife.Input
	err := c.View(context.Background(), func(m *joblife.Manager) {
		for v := range m.Jobs(unfinished) {
			cancel = append(cancel, joblife.Raise{By: c.Program.User(), ID: v.ID(), Type: "cancel"})
		}
	})
	if err = cmp.Or(err, c.Put(cancel...)); err == nil {
		_, err = c.Call(context.Background(), over)
	}
	return err
}

// A shrinking scheduler has no more of a node that is out of service, so that no job waits for it.
type shrinking struct{ *sched.Scheduler }

func (s shrinking) Drain(ranks *idset.Set) error {
	there := idset.Intersect(ranks, s.Pool().Inventory().Ranks())
	return s.Acquire(pool.Acquire{Change: pool.Change{Shrink: there}})
}

// submissions are the inputs that submit shell commands as jobs.
func submissions(by joblife.Cred, n int64, commands []string) (jobs []joblife.Input, err error) {
	if n < 1 {
		return nil, fmt.Errorf("-n %d: want 1 or more", n)
	}
	for _, command := range commands {
		spec, err := jobspec.New(jobspec.Job{Nodes: n, Exclusive: true, Command: []string{"sh", "-c", command}})
		if err != nil {
			return nil, fmt.Errorf("job %q: %w", command, err)
		}
		jobs = append(jobs, joblife.Submit{By: by, Spec: spec, Urgency: jobstate.UrgencyDefault})
	}
	return jobs, nil
}
