//go:build unix

package main

import (
	"context"
	"fmt"
	"log"
	"os"
	osexec "os/exec"
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

const epilog = "wipe"

func main() {
	store := try(boltstore.Open("jobs.db"))
	epilogs := []perilog.ActionConfig{{Description: epilog, Command: []string{"sleep 1"}, PerRank: true}}
	m, left, err := joblife.Restore(time.Now(), joblife.Config{Actions: perilog.Config{Epilogs: epilogs}}, store.Records())
	check(err)
	fmt.Println("jobs left:", len(left.Jobs))
	id := m.Stats().MaxID

	s := sched.New(sched.Config{Policy: sched.EASY{}})
	cores := map[string]*idset.Set{"core": idset.Range(0, 7)}
	nodes := try(rset.New(rset.Config{Entries: []rset.Entry{{Ranks: idset.Range(0, 3), Children: cores}}}))
	check(s.Acquire(pool.Acquire{Resources: nodes, Change: pool.Change{Up: nodes.Ranks()}}))

	l := try(loop.New(m, loop.Config{
		Store:     store,
		Scheduler: s,
		Executor:  new(exec.Executor),
		Commands:  obey,
		Recovered: left,
		Effects:   func(*joblife.Manager, *joblife.Ready) {},
		Refused:   func(_ joblife.Input, err error) { log.Println(err) },
	}))
	go func() { check(l.Run(context.Background())) }()
	go func() {
		for rank := uint32(0); ; rank++ {
			check(l.Hear(func(x *exec.Executor) error {
				try(x.Hello(rank%4, tasks(rank%4)))
				return nil
			}))
			time.Sleep(20 * time.Millisecond)
		}
	}()
	for _, script := range os.Args[1:] {
		id++
		job := try(jobspec.New(jobspec.Job{Nodes: 1, Exclusive: true, Command: []string{script}}))
		try(l.Call(context.Background(), joblife.Submit{ID: id, Spec: job, Urgency: jobstate.UrgencyDefault}))
	}
	try(l.Call(context.Background(), joblife.WaitEmpty{States: jobstate.StateNew | jobstate.StateActive}))
}

var began = make(map[string]bool)

func obey(commands []exec.Command) {
	for _, c := range commands {
		for rank := range c.Ranks.All() {
			folder := fmt.Sprintf("node-%d/job-%d.%d", rank, c.Task.Job, c.Task.Attempt)
			switch {
			case c.Start != nil && !began[folder]:
				began[folder] = true
				run(folder, try(jobspec.Parse(c.Start.Jobspec)).Command())
			case c.Launch != nil:
				run(folder, c.Launch.Command)
			case c.Kind == exec.CommandForget:
				status, _ := os.ReadFile(folder + "/status")
				fmt.Printf("forget %s: status %s\n", folder, status)
				check(os.RemoveAll(folder))
			}
		}
	}
}

func run(folder string, script []string) {
	shell := osexec.Command("sh", "-c", `mkdir "$0" 2>&- || exit; (eval "$1"); printf $? >"$0/new"; mv "$0/new" "$0/status"`, folder, script[0])
	shell.Stdout, shell.Stderr, shell.SysProcAttr = os.Stdout, os.Stderr, &syscall.SysProcAttr{Setpgid: true}
	check(shell.Start())
	go shell.Wait()
}

func tasks(rank uint32) (list []exec.TaskStatus) {
	node := fmt.Sprintf("node-%d/", rank)
	check(os.MkdirAll(node, 0o777))
	for _, folder := range try(os.ReadDir(node)) {
		st := exec.TaskStatus{State: exec.TaskRunning}
		try(fmt.Sscanf(folder.Name(), "job-%d.%d", &st.Task.Job, &st.Task.Attempt))
		if st.Task.Attempt > 0 {
			st.Task.Action = jobstate.ActionKey{Kind: jobstate.ActionEpilog, Description: epilog}
		}
		if text, err := os.ReadFile(node + folder.Name() + "/status"); err == nil {
			try(fmt.Sscan(string(text), &st.Status))
			st.State, st.Status = exec.TaskReleased, st.Status<<8 // a wait status
		}
		list = append(list, st)
	}
	return list
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
