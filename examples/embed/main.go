//go:build unix

// Command embed is the smallest resource manager: eight local "nodes" that run shell
// commands, with a prolog and an epilog on each node. It keeps its jobs in one bbolt file
// and goes on with them after kill -9.
//
//	embed -dir /tmp/jobs -epilog 'sleep 1' 'echo a; sleep 5' 'echo b'
//	embed -dir /tmp/jobs -epilog 'sleep 1'      # goes on with the jobs that are left
//
// Each argument is a job that runs on each of -n nodes. Commands have the job's id in
// FLUX_JOB_ID, and the rank of their node in JOBLIFE_RANK. An interrupt cancels the jobs. After
// kill -9 jobs, prologs and epilogs run on, and the next start finds them, or their status. A
// node whose prolog or epilog failed is out of service until the next start, or longer if it
// still runs then. The exit status is 0 when all jobs are over, 1 for a fault, 2 for bad
// arguments. It needs a Unix system.
//
// The nodes, their executor and the restart are those of package proc, whose processes outlive
// the program. Command httpd is a manager of the same kind that serves requests.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/proc"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

const size = 8 // nodes

// unfinished are the states of jobs that are not over.
const unfinished = jobstate.StateNew | jobstate.StateActive

func main() {
	proc.Shim() // it is one, or goes on
	dir := flag.String("dir", filepath.Join(os.TempDir(), "joblife-embed"), "the `folder` that keeps the jobs")
	prolog := flag.String("prolog", "", "a `command` to run on each node before a job")
	epilog := flag.String("epilog", "", "a `command` to run on each node after a job")
	n := flag.Int64("n", 1, "the `number` of nodes of each job, 1 to 8")
	flag.Parse()
	jobs, err := submissions(*n, flag.Args())
	exit(2, err)
	exit(1, run(*dir, perilog.Config{Prologs: action(*prolog), Epilogs: action(*epilog)}, jobs))
}

func warn(err error) { fmt.Fprintln(os.Stderr, "embed:", err) }

// exit ends the program if there is an error.
func exit(status int, err error) {
	if err != nil {
		warn(err)
		os.Exit(status)
	}
}

// run returns when all jobs are over.
func run(dir string, actions perilog.Config, jobs []joblife.Input) error {
	scheduler := shrinking{sched.New(sched.Config{})}
	cluster, err := proc.Open(proc.Config{
		Dir: dir, Nodes: size, Cores: 1, Scheduler: scheduler, Warn: warn,
		Manager: joblife.Config{Epoch: time.Unix(1_700_000_000, 0), Actions: actions},
	})
	if err != nil {
		return err
	}
	defer cluster.Close()
	l, err := loop.New(cluster.Manager, loop.Config{
		Store:     cluster.Store, // durably, before anything else
		Scheduler: scheduler,     // serves jobs in the order of their priority
		Effects: func(_ *joblife.Manager, rd *joblife.Ready) {
			cluster.Do(rd) // prologs, jobs and epilogs
			for _, e := range rd.Journal {
				fmt.Println(strings.TrimSpace(fmt.Sprintf("%v %s %s", e.Job, e.Entry.Name, e.Entry.Context)))
			}
		},
		Refused: cluster.Refused, // nothing has changed
	})
	if err != nil {
		return err
	}
	if err := l.Put(jobs...); err != nil {
		return err
	}
	go cancelOnInterrupt(l)
	return cluster.Run(context.Background(), l, func(ctx context.Context) error {
		_, err := l.Call(ctx, joblife.WaitEmpty{States: unfinished})
		return err
	})
}

// A shrinking scheduler has no more of a node that is out of service, so that no job waits for it.
type shrinking struct{ *sched.Scheduler }

func (s shrinking) Drain(ranks *idset.Set) error {
	there := idset.Intersect(ranks, s.Pool().Inventory().Ranks())
	return s.Acquire(pool.Acquire{Change: pool.Change{Shrink: there}})
}

// submissions are the inputs that submit shell commands as jobs.
func submissions(n int64, commands []string) (jobs []joblife.Input, err error) {
	if n < 1 || n > size {
		return nil, fmt.Errorf("-n must be 1 to %d", size)
	}
	for _, command := range commands {
		spec, err := jobspec.New(jobspec.Job{Nodes: n, Exclusive: true, Command: []string{"sh", "-c", command}})
		if err != nil {
			return nil, fmt.Errorf("job %q: %w", command, err)
		}
		jobs = append(jobs, joblife.Submit{Spec: spec, Urgency: jobstate.UrgencyDefault})
	}
	return jobs, nil
}

// action is a prolog or an epilog that runs a shell command on each node, if there is one.
func action(command string) []perilog.ActionConfig {
	if command == "" {
		return nil
	}
	return []perilog.ActionConfig{{Command: []string{"sh", "-c", command}, PerRank: true}}
}

// cancelOnInterrupt cancels the jobs when the user interrupts the program.
func cancelOnInterrupt(l *loop.Loop) {
	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt, syscall.SIGTERM)
	for range interrupt {
		var cancel []joblife.Input
		err := l.View(context.Background(), func(m *joblife.Manager) {
			for v := range m.Jobs(unfinished) {
				cancel = append(cancel, joblife.Raise{ID: v.ID(), Type: "cancel"})
			}
		})
		if err = cmp.Or(err, l.Put(cancel...)); err != nil {
			warn(err)
		}
	}
}
