// Command embed is the smallest resource manager: eight local "nodes" that run shell
// commands, with a prolog and an epilog, durable in one file, which goes on after
// kill -9.
//
//	embed -dir /tmp/jobs -epilog 'sleep 1' 'echo a; sleep 5' 'echo b'
//	embed -dir /tmp/jobs -epilog 'sleep 1'      go on with what an earlier life left
//
// Each argument is a job on -n nodes. A prolog or epilog that died with the earlier
// life runs again; a job that died with it ends with an exception. The exit status is 0
// when all jobs are over, 1 for a fault, 2 for bad flags.
//
// This file is the loop around the [joblife.Manager]; nodes.go is what it drives.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	pexec "github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
)

const nodes = 8

func main() {
	dir := flag.String("dir", filepath.Join(os.TempDir(), "joblife-embed"), "the `folder` that keeps the jobs")
	prolog := flag.String("prolog", "", "a `command` to run on each node before a job")
	epilog := flag.String("epilog", "", "a `command` to run on each node after a job")
	n := flag.Int64("n", 1, "the `number` of nodes of each job, 1 to 8")
	flag.Parse()
	if *n < 1 || *n > nodes {
		fmt.Fprintln(os.Stderr, "embed: -n must be 1 to 8")
		os.Exit(2)
	}
	if err := run(*dir, *prolog, *epilog, *n, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
}

// site is all that is around the manager.
type site struct {
	m       *joblife.Manager
	log     *logfile.Log
	pool    *pool.Pool
	waiting []alloc.Request
	inputs  chan joblife.Input
}

func run(dir, prolog, epilog string, n int64, commands []string) error {
	cfg := joblife.Config{Epoch: time.Unix(1_700_000_000, 0), Hooks: []joblife.Hooks{joblife.Dependencies()}}
	if prolog != "" {
		cfg.Actions.Prologs = []perilog.ActionConfig{{Command: []string{"sh", "-c", prolog}, PerRank: true}}
	}
	if epilog != "" {
		cfg.Actions.Epilogs = []perilog.ActionConfig{{Command: []string{"sh", "-c", epilog}, PerRank: true}}
	}
	s := &site{inputs: make(chan joblife.Input, 64)}
	name := filepath.Join(dir, "records")
	if err := s.open(dir, name); err != nil {
		return err
	}
	defer s.log.Close()
	records, err := os.Open(name)
	if err != nil {
		return err
	}
	defer records.Close()
	m, left, err := joblife.Restore(time.Now(), cfg, joblife.ReadRecords(records))
	if err != nil {
		return err
	}
	s.m = m
	todo := []joblife.Input{joblife.SchedHello{PartialOK: true}, joblife.SchedReady{}, joblife.ExecHello{}}
	for _, q := range left.Quarantined {
		fmt.Fprintf(os.Stderr, "embed: %v cannot be read: %v\n", q.Job, q.Err)
	}
	for _, u := range left.Unresolved { // its processes died with the earlier life
		if u.Reason == perilog.ReasonLost {
			todo = append(todo, joblife.Rerun{Action: joblife.Action{Job: u.Job, Key: u.Action}})
		}
	}
	for _, command := range commands {
		spec, err := jobspec.New(jobspec.Job{Nodes: n, Exclusive: true, Command: []string{"sh", "-c", command}})
		if err != nil {
			return err
		}
		text, _ := spec.MarshalJSON()
		todo = append(todo, joblife.Submit{Jobspec: text, Urgency: jobstate.UrgencyDefault})
	}
	for _, in := range append(todo, joblife.WaitEmpty{Tag: 1, States: jobstate.StateNew | jobstate.StateActive}) {
		if err := s.m.Step(time.Now(), in); err != nil {
			return err
		}
	}
	for {
		if over, err := s.do(); over || err != nil {
			return err
		}
		var timer <-chan time.Time
		if at, ok := s.m.Deadline(); ok {
			timer = time.After(time.Until(at))
		}
		select {
		case in := <-s.inputs:
			err = s.m.Step(time.Now(), in)
		case <-timer:
			err = s.m.Step(time.Now(), joblife.Tick{})
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "embed:", err)
		}
	}
}

// do stores and carries out what is ready, and reports whether all jobs are over.
func (s *site) do() (over bool, err error) {
	var rd joblife.Ready
	for s.m.Ready(&rd) {
		var batch []byte
		for _, r := range rd.Append {
			if batch, err = r.AppendText(batch); err != nil {
				return false, err
			}
		}
		if err := errors.Join(s.log.Append(batch), s.log.Sync()); err != nil {
			return false, errors.Join(err, s.m.Abandon(rd.Seq))
		}
		if rd.Hello != nil {
			if err := s.adopt(rd.Hello); err != nil {
				return false, err
			}
		}
		s.schedule(rd.Sched)
		for _, msg := range rd.Exec {
			if start, ok := msg.(pexec.Start); ok {
				go s.start(start)
			}
		}
		for _, l := range rd.Launch {
			for rank := range l.Ranks.All() {
				go s.launch(l, rank)
			}
		}
		for _, e := range rd.Journal {
			fmt.Println(e.Job, e.Entry.Name)
		}
		over = len(rd.Answers) > 0
		if err := s.m.Done(rd.Seq); err != nil {
			return false, err
		}
	}
	return over, nil
}
