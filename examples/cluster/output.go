//go:build unix

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/joblife/joblife/examples/cluster/client"
	"github.com/joblife/joblife/examples/cluster/wire"
)

func output(p *program) func(context.Context) error {
	follow := p.Bool("f", false, "wait for the job to start, and go on until it has ended; without -timeout, for ever")
	label := p.Bool("l", false, "begin each line with the rank of its node")
	asks := p.asks(30*time.Second, func(ctx context.Context, c *client.Client) error {
		id, err := p.id()
		if err == nil && *follow {
			_, err = c.Started(ctx, id)
		}
		if err != nil {
			return err
		}
		j, err := jobOf(ctx, c, id)
		if err == nil && j.Ranks == nil {
			err = fmt.Errorf("job %v has no nodes, or it is not known which", id)
		}
		if err != nil {
			return err
		}
		return p.outputs(ctx, c, j, *follow, *label)
	})
	return func(ctx context.Context) error {
		timed := false
		p.Visit(func(f *flag.Flag) { timed = timed || f.Name == "timeout" })
		if *follow && !timed {
			_ = p.Set("timeout", "0")
		}
		return asks(ctx)
	}
}

// outputs prints the output of a job from all its nodes. To follow it is to wait for its end, also
// on a node that is lost.
func (p *program) outputs(ctx context.Context, c *client.Client, info wire.JobInfo, follow, label bool) error {
	var over context.Context
	if follow {
		var end func()
		over, end = context.WithCancel(ctx)
		defer end()
		go func() {
			_, _ = c.Ask(over, "wait", wire.Request{ID: info.ID}) // a job that is purged is over
			end()
		}()
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	var errs []error
	for rank := range info.Ranks.All() {
		all.Go(func() {
			w := &labeled{mu: &mu, json: p.json, rank: rank}
			if label {
				w.label = fmt.Sprint(rank, ": ")
			}
			err := c.Output(ctx, info.ID, rank, over, w)
			err = cmp.Or(err, w.end())
			mu.Lock()
			errs = append(errs, err)
			mu.Unlock()
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// printed is a line of output with -json, or a part of one that is long or the last.
type printed struct {
	Rank uint32 `json:"rank"`
	Data string `json:"data"`
}

// maxLine is how long a line may be before its begin is printed.
const maxLine = 64 << 10

// A labeled prints whole lines, each with a label or as JSON, and long lines in parts.
type labeled struct {
	mu    *sync.Mutex
	label string
	json  bool
	rank  uint32
	rest  []byte
	part  bool // the begin of the line is printed
}

func (w *labeled) Write(b []byte) (n int, err error) {
	i := bytes.LastIndexByte(b, '\n') + 1
	w.rest = append(w.rest, b[:i]...)
	if i > 0 {
		err = w.end()
	}
	if w.rest = append(w.rest, b[i:]...); len(w.rest) > maxLine {
		err = cmp.Or(err, w.end())
	}
	return len(b), err
}

// end prints what waits.
func (w *labeled) end() error {
	var out []byte
	for line := range bytes.Lines(w.rest) {
		if w.json {
			text, err := json.Marshal(printed{w.rank, string(line)})
			if err != nil {
				return err
			}
			out = append(append(out, text...), '\n')
			continue
		}
		if !w.part {
			out = append(out, w.label...)
		}
		out = append(out, line...)
		w.part = line[len(line)-1] != '\n'
	}
	w.rest = w.rest[:0]
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := os.Stdout.Write(out)
	return err
}
