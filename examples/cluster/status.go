//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/joblife/joblife/examples/cluster/client"
	"github.com/joblife/joblife/examples/cluster/wire"
)

func status(p *program) func(context.Context) error {
	return p.once("status", nothing, func(answer wire.Answer) error {
		if p.json {
			return json.NewEncoder(os.Stdout).Encode(answer.Status)
		}
		printStatus(answer.Status)
		return nil
	})
}

func printStatus(s *wire.Status) {
	fmt.Printf("active     %s, epoch %d\n", s.Holder, s.Epoch)
	for _, other := range s.Standbys {
		fmt.Printf("standby    %s, %d messages behind\n", other.Name, max(s.Seq, other.Seq)-other.Seq)
	}
	fmt.Printf("nodes      %d up, %d down, %d drained\ncommits    %d, with %d inputs\njobs      ", s.Up, s.Down, s.Drained, s.Commits, s.Inputs)
	for _, state := range []string{"DEPEND", "PRIORITY", "SCHED", "RUN", "CLEANUP", "INACTIVE"} {
		fmt.Printf(" %d %s", s.Jobs[state], state)
	}
	fmt.Println()
}

func top(p *program) func(context.Context) error {
	every := p.Duration("d", 2*time.Second, "the time between two looks")
	return p.asks(0, func(ctx context.Context, c *client.Client) error {
		if *every <= 0 {
			return p.wrong("-d %v: want a time, such as 2s", *every)
		}
		for {
			answer, err := c.Ask(ctx, "status", wire.Request{})
			var list wire.Answer
			if err == nil {
				list, err = c.Ask(ctx, "jobs", wire.Request{})
			}
			if err != nil {
				return err
			}
			if p.json {
				err = json.NewEncoder(os.Stdout).Encode(wire.Answer{Status: answer.Status, Jobs: list.Jobs})
			} else {
				err = picture(answer.Status, list.Jobs)
			}
			if err != nil {
				return err
			}
			if wire.Pause(ctx, *every) != nil {
				return nil
			}
		}
	})
}

// picture prints what there is, on a terminal in place of what was there.
func picture(s *wire.Status, jobs []wire.JobInfo) error {
	if onTerminal() {
		fmt.Print("\x1b[H\x1b[2J")
	}
	printStatus(s)
	return printJobs(jobs[:min(len(jobs), 30)])
}
