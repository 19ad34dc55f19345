//go:build unix

// Command partialrelease shows what it saves to give the nodes of a job back one by one. A job
// ends on all nodes, and its epilog is slow on one of them. Jobs that wait start on the others at
// once: a manager that gives back all or nothing would keep them until the last epilog ends.
//
//	partialrelease                                           8 nodes, of which one takes 5 seconds
//	partialrelease -nodes 64 -epilog 'sleep $((JOBLIFE_RANK/8))'
//	partialrelease -actions '{"epilogs":[{"command":["sh","-c","test $JOBLIFE_RANK != 0 || sleep 60"],"timeout":"3s","per-rank":true}]}'
//
// The nodes run processes of this machine, as those of command embed do. After kill -9 or an
// interrupt they run on, and the next start with this -dir goes on with them: no node comes back
// early, and no epilog runs twice. When all is over it only reports again. A node whose epilog
// fails or is late is out of service until the next start. The exit status is 0, 1 for a fault, 2
// for bad arguments. It needs a Unix system.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/proc"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/purge/boltstore"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/sched"
)

// slow is an epilog that takes longer on one node than on the others.
const slow = "test $JOBLIFE_RANK = 0 && sleep 4; sleep 1"

func main() {
	p := proc.New("partialrelease") // whose tasks may be this program again
	p.Parse("")
	if p.Manager.Actions.Epilogs == nil {
		p.Manager.Actions.Epilogs = []perilog.ActionConfig{{Command: []string{"sh", "-c", slow}, PerRank: true}}
	}
	p.Scheduler = sched.New(sched.Config{})
	p.Journal = func(events []joblife.JournalEntry) {
		for _, e := range events {
			if e.Entry.Name == "start" || e.Entry.Name == "perilog-release" || e.Entry.Name == "free" {
				fmt.Println(strings.TrimSpace(fmt.Sprintf("%s %v %s %s", e.Entry.Timestamp.Time().Format("15:04:05.000"), e.Job, e.Entry.Name, e.Entry.Context)))
			}
		}
	}
	p.Exit(1, p.Run(serve))
}

// serve submits a job of all nodes and then one for each, waits for their end, and reports on the
// first. Each has a key, by which the next start finds the jobs that it has submitted.
func serve(ctx context.Context, c *proc.Cluster) error {
	var first jobid.ID
	for i := range c.Program.Nodes + 1 {
		nodes := int64(1)
		if i == 0 {
			nodes = int64(c.Program.Nodes)
		}
		spec, err := jobspec.New(jobspec.Job{Nodes: nodes, Exclusive: true, Command: []string{"true"}})
		if err != nil {
			return err
		}
		answer, err := c.Call(ctx, joblife.Submit{By: c.Program.User(), Key: fmt.Sprint(i), Spec: spec, Urgency: jobstate.UrgencyDefault})
		if err != nil {
			return err
		}
		first = cmp.Or(first, answer.Job)
	}
	if _, err := c.Call(ctx, joblife.WaitEmpty{States: jobstate.StateNew | jobstate.StateActive}); err != nil {
		return err
	}
	stored, err := c.Store.Read(first)
	if err != nil {
		return err
	}
	return report(os.Stdout, stored)
}

// report tells how long each node was held after the end of a job.
func report(out io.Writer, stored boltstore.Job) error {
	r, err := rset.Parse(stored.R)
	if err != nil {
		return err
	}
	type fragment struct {
		ranks *idset.Set
		at    time.Time
	}
	var fragments []fragment
	holds, left := perilog.NewHolds(stored.ID, r), new(idset.Set)
	for e, err := range eventlog.Entries(stored.Eventlog) {
		if err != nil {
			return err
		}
		if _, err := holds.Apply(e); err != nil {
			return err
		}
		now := holds.Released().Ranks
		if ranks := idset.Difference(now, left); !ranks.IsEmpty() {
			fragments = append(fragments, fragment{ranks, e.Timestamp.Time()})
		}
		left = now
	}
	finish, ended := holds.Job().FinishTime()
	if !ended || fragments == nil {
		return nil // there was no job to end, such as after a prolog that failed
	}
	end := fragments[len(fragments)-1].at.Sub(finish.Time()).Seconds()
	held := 0.0
	fmt.Fprintf(out, "\njob %v ended; its nodes were held for   █ with partial release   · all or nothing\n", stored.ID)
	for _, f := range fragments {
		after := f.at.Sub(finish.Time()).Seconds()
		held += after * float64(f.ranks.Len())
		bar := int(math.Round(30 * after / max(end, 0.001)))
		fmt.Fprintf(out, "%8.1f s  %s%s  %v\n", after, strings.Repeat("█", bar), strings.Repeat("·", 30-bar), f.ranks)
	}
	fmt.Fprintf(out, "node-seconds: %.1f with partial release, %.1f all or nothing\n", held, end*float64(r.Ranks().Len()))
	return nil
}
