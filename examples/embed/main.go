// Command embed is the smallest resource manager: eight local "nodes" that run shell
// commands, with a prolog and an epilog on each node. It keeps its jobs in one bbolt file
// and goes on with them after kill -9.
//
//	embed -dir /tmp/jobs -epilog 'sleep 1' 'echo a; sleep 5' 'echo b'
//	embed -dir /tmp/jobs -epilog 'sleep 1'      # goes on with the jobs that are left
//
// Each argument is a job that runs on each of -n nodes. An interrupt cancels the jobs. After
// kill -9 jobs, prologs and epilogs run on, and the next start finds them, or their status. A
// node whose prolog or epilog failed is out of service until the next start, or longer if it
// still runs then. The exit status is 0 when all jobs are over, 1 for a fault, 2 for bad
// arguments. It needs a Unix system.
//
// This file has the restart and the [loop.Loop] that runs the [joblife.Manager], nodes.go the
// inputs and what it prints. The executor and its nodes are those of package proc, whose
// processes outlive the program. Command httpd is a manager of the same kind that serves
// requests.
package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/proc"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/purge/boltstore"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

func main() {
	proc.Shim() // it is one, or goes on
	dir := flag.String("dir", filepath.Join(os.TempDir(), "joblife-embed"), "the `folder` that keeps the jobs")
	prolog := flag.String("prolog", "", "a `command` to run on each node before a job")
	epilog := flag.String("epilog", "", "a `command` to run on each node after a job")
	n := flag.Int64("n", 1, "the `number` of nodes of each job, 1 to 8")
	flag.Parse()
	jobs, err := submissions(*n, flag.Args())
	if warn(err) {
		os.Exit(2)
	}
	err = run(*dir, perilog.Config{Prologs: action(*prolog), Epilogs: action(*epilog)}, jobs)
	if !errors.Is(err, context.Canceled) && warn(err) {
		os.Exit(1)
	}
}

// run returns context.Canceled when all jobs are over.
func run(dir string, actions perilog.Config, jobs []joblife.Input) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	store, err := boltstore.Open(filepath.Join(dir, "jobs.db"))
	if err != nil {
		return err
	}
	defer store.Close()
	m, left, err := joblife.Restore(time.Now(), joblife.Config{Epoch: time.Unix(1_700_000_000, 0), Actions: actions}, store.Records())
	if err != nil {
		return err
	}

	var l *loop.Loop
	ctx, end := context.WithCancelCause(context.Background())
	put := func(inputs ...joblife.Input) {
		if err := l.Put(inputs...); err != nil {
			end(err)
		}
	}
	r, err := rset.Parse([]byte(nodes))
	if err != nil {
		return err
	}
	cluster, err := proc.NewCluster(dir, size, put, func(err error) { warn(err) })
	if err != nil {
		return err
	}
	defer cluster.Wait()
	scheduler, busy := sched.New(sched.Config{}), cluster.GivenUp(m)
	if err := scheduler.Acquire(pool.Acquire{Resources: r, Change: pool.Change{Up: idset.Difference(r.Ranks(), busy), Shrink: busy}}); err != nil {
		return err
	}
	cluster.Recover(left)
	l, err = loop.New(m, loop.Config{
		Store:     store,     // durably, before anything else
		Scheduler: scheduler, // serves jobs in the order of their priority
		Effects: func(_ *joblife.Manager, rd *joblife.Ready) {
			cluster.Do(rd)
			for _, d := range rd.Drain {
				warn(scheduler.Acquire(pool.Acquire{Change: pool.Change{Shrink: d.Ranks}})) // no job waits for them
				put(joblife.Drained{Ranks: d.Ranks.Clone()})
			}
			show(rd)
		},
		Refused: cluster.Refused, // nothing has changed
	})
	if err != nil {
		return err
	}
	put(jobs...)
	go cancelOnInterrupt(ctx, l)
	go func() {
		err := cluster.Connect(ctx, l)
		if err == nil {
			_, err = l.Call(ctx, joblife.WaitEmpty{States: jobstate.StateNew | jobstate.StateActive})
		}
		end(err)
	}()
	return l.Run(ctx)
}
