package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/perilog"
)

// The nodes, with one core each, as R (RFC 20).
const (
	size  = 8
	nodes = `{"version":1,"execution":{"R_lite":[{"rank":"0-7","children":{"core":"0"}}]}}`
)

// warn prints an error, and reports whether there is one.
func warn(err error) bool {
	if err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
	}
	return err != nil
}

// submissions are the inputs that submit shell commands as jobs.
func submissions(n int64, commands []string) (jobs []joblife.Input, err error) {
	if n < 1 || n > size {
		return nil, fmt.Errorf("-n must be 1 to %d", size)
	}
	for _, command := range commands {
		spec, err := jobspec.New(jobspec.Job{Nodes: n, Exclusive: true, Command: []string{"sh", "-c", command}})
		var text []byte
		if err == nil {
			text, err = spec.MarshalJSON()
		}
		if err != nil {
			return nil, fmt.Errorf("job %q: %w", command, err)
		}
		jobs = append(jobs, joblife.Submit{Jobspec: text, Urgency: jobstate.UrgencyDefault})
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
func cancelOnInterrupt(ctx context.Context, l *loop.Loop) {
	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt, syscall.SIGTERM)
	for range interrupt {
		var cancel []joblife.Input
		warn(l.View(ctx, func(m *joblife.Manager) {
			for v := range m.Jobs(jobstate.StateNew | jobstate.StateActive) {
				cancel = append(cancel, joblife.Raise{ID: v.ID(), Type: "cancel"})
			}
		}))
		warn(l.Put(cancel...))
	}
}

// show prints events and faults.
func show(rd *joblife.Ready) {
	for _, d := range rd.Drain {
		warn(fmt.Errorf("out of service: rank %v: %s", d.Ranks, d.Reason))
	}
	for _, f := range rd.Faults {
		warn(f)
	}
	for _, e := range rd.Journal {
		fmt.Println(strings.TrimSpace(fmt.Sprintf("%v %s %s", e.Job, e.Entry.Name, e.Entry.Context)))
	}
}
