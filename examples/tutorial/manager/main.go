//go:build unix

package main

import (
	"context"
	"fmt"
	"log"
	"os"
	osexec "os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/purge/boltstore"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

func main() {
	store := try(boltstore.Open("jobs.db"))
	epilogs := []perilog.ActionConfig{{Command: []string{"sleep 1"}, PerRank: true}}
	m, left, err := joblife.Restore(time.Now(), joblife.Config{Actions: perilog.Config{Epilogs: epilogs}}, store.Records())
	check(err)
	fmt.Println("jobs left:", len(left.Jobs))
	id := m.Stats().MaxID

	s := sched.New(sched.Config{Policy: sched.EASY{}})
	cores := map[string]*idset.Set{"core": idset.Range(0, 7)}
	nodes := try(rset.New(rset.Config{Entries: []rset.Entry{{Ranks: idset.Range(0, 3), Children: cores}}}))
	check(s.Acquire(pool.Acquire{Resources: nodes, Change: pool.Change{Up: nodes.Ranks()}}))

	var l *loop.Loop
	l = try(loop.New(m, loop.Config{
		Store:     store,
		Scheduler: s,
		Effects:   func(_ *joblife.Manager, rd *joblife.Ready) { execute(l, rd) },
		Refused:   func(_ joblife.Input, err error) { log.Println(err) },
	}))
	ctx := context.Background()
	go func() { check(l.Run(ctx)) }()
	check(l.Put(joblife.ExecHello{}))
	for _, u := range left.Unresolved {
		check(l.Put(joblife.Rerun{Action: joblife.Action{Job: u.Job, Key: u.Action, Ranks: u.Ranks}}))
	}
	for _, script := range os.Args[1:] {
		id++
		job := try(jobspec.New(jobspec.Job{Nodes: 1, Exclusive: true, Command: []string{script}}))
		try(l.Call(ctx, joblife.Submit{ID: id, Spec: job, Urgency: jobstate.UrgencyDefault}))
	}
	try(l.Call(ctx, joblife.WaitEmpty{States: jobstate.StateNew | jobstate.StateActive}))
}

func execute(l *loop.Loop, rd *joblife.Ready) {
	for _, msg := range rd.Exec {
		if job, ok := msg.(exec.Start); ok {
			script := try(jobspec.Parse(job.Jobspec)).Command()
			check(l.Put(joblife.ExecResponse{ID: job.ID, Type: exec.ResponseStart}))
			go run(fmt.Sprintf("job-%d", job.ID), script, func(status int32) {
				check(l.Put(
					joblife.ExecResponse{ID: job.ID, Type: exec.ResponseFinish, Status: status},
					joblife.ExecResponse{ID: job.ID, Type: exec.ResponseRelease, Final: true}))
			})
		}
	}
	for _, a := range rd.Launch {
		for rank := range a.Ranks.All() {
			r := perilog.Report{Action: a.Action, Attempt: a.Attempt, Rank: rank, Kind: perilog.ReportExited}
			go run(fmt.Sprintf("job-%d-epilog-%d", a.Job, rank), a.Command, func(status int32) {
				r.Status = status
				check(l.Put(joblife.Report{Job: a.Job, Report: r}))
			})
		}
	}
}

func run(folder string, script []string, ended func(status int32)) {
	shell := osexec.Command("sh", "-c", `mkdir "$0" 2>&- || exit; (eval "$1"); echo $? >"$0/new"; mv "$0/new" "$0/status"`, folder, script[0])
	shell.Stdout, shell.Stderr, shell.SysProcAttr = os.Stdout, os.Stderr, &syscall.SysProcAttr{Setpgid: true}
	_ = shell.Run()
	for {
		if text, err := os.ReadFile(folder + "/status"); err == nil {
			fmt.Printf("%s ended with status %s", folder, text)
			ended(int32(try(strconv.Atoi(strings.TrimSpace(string(text)))) << 8)) // as wait(2) has it
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func try[T any](v T, err error) T {
	check(err)
	return v
}
