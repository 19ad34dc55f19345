//go:build unix

package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/cluster/client"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
)

// asks has f ask, for at most -timeout, by default limit.
func (p *program) asks(limit time.Duration, f func(context.Context, *client.Client) error) func(context.Context) error {
	timeout := p.Duration("timeout", limit, "how long to try; 0: for ever")
	return func(ctx context.Context) error {
		c, err := p.client()
		if err != nil {
			return err
		}
		defer c.Close()
		if *timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, *timeout)
			defer cancel()
		}
		err = f(ctx, c)
		switch {
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
			err = fmt.Errorf("not done within -timeout %v", *timeout)
		case errors.Is(err, context.Canceled) && ctx.Err() != nil:
			err = exitCode(128 + int(syscall.SIGINT)) // who interrupts it knows why
		}
		return err
	}
}

// specFlags defines what a job asks for.
func (p *program) specFlags() func() (wire.Request, error) {
	nodes := p.Int64("N", 0, "nodes; 0: any")
	slots := p.Int64("n", 0, "tasks, or with -N tasks on each node; 0: whole nodes with -N, else one task")
	cores := p.Int64("c", 1, "cores of each task")
	gpus := p.Int64("g", 0, "gpus of each task")
	limit := p.Duration("t", 0, "the time limit; 0: none")
	name := p.String("name", "", "the name of the job")
	level := p.Int("urgency", jobstate.UrgencyDefault, "0 (hold) to 31")
	key := p.String("key", "", "a repeated submission with this key finds its job; empty: a new one")
	file := p.String("jobspec", "", "a `file` with a jobspec of RFC 25, in place of a command; - is the standard input")
	return func() (wire.Request, error) {
		r := wire.Request{Urgency: level, Key: *key}
		if *file != "" {
			if p.NArg() > 0 {
				return r, p.wrong("want -jobspec or a command, not both")
			}
			in := os.Stdin
			if *file != "-" {
				f, err := os.Open(*file)
				if err != nil {
					return r, err
				}
				defer f.Close()
				in = f
			}
			text, err := io.ReadAll(in)
			var wrong *json.SyntaxError
			if err == nil && errors.As(json.Unmarshal(text, &r.Jobspec), &wrong) {
				err = fmt.Errorf("-jobspec %s: it is no JSON: after %d bytes: %w", *file, wrong.Offset, wrong)
			}
			return r, err
		}
		if p.NArg() == 0 {
			return r, p.wrong("name the command of the job")
		}
		if min(*nodes, *slots, *cores, *gpus) < 0 {
			return r, p.wrong("-N, -n, -c and -g: want numbers of 0 or more")
		}
		cwd, _ := os.Getwd()
		spec, err := jobspec.New(jobspec.Job{Nodes: *nodes, Slots: *slots, Cores: *cores, GPUs: *gpus, Exclusive: *nodes > 0 && *slots == 0,
			Duration: *limit, Command: p.Args(), Name: *name, Cwd: cwd})
		if err != nil {
			return r, p.wrong("%s", strings.TrimPrefix(err.Error(), "jobspec: "))
		}
		r.Jobspec, err = spec.MarshalJSON()
		return r, err
	}
}

// once has one request made, and its answer printed.
func (p *program) once(verb string, request func() (wire.Request, error), print func(wire.Answer) error) func(context.Context) error {
	return p.asks(30*time.Second, func(ctx context.Context, c *client.Client) error {
		r, err := request()
		if err != nil {
			return err
		}
		answer, err := c.Ask(ctx, verb, r)
		if err != nil {
			return err
		}
		return print(answer)
	})
}

func submit(p *program) func(context.Context) error {
	return p.once("submit", p.specFlags(), func(a wire.Answer) error { return p.print(a.ID, a.ID.String()) })
}

// nothing is a request that needs no more than its verb.
func nothing() (wire.Request, error) { return wire.Request{}, nil }

// print prints v as JSON with -json, else the text.
func (p *program) print(v any, text string) error {
	if p.json {
		return json.NewEncoder(os.Stdout).Encode(v)
	}
	_, err := fmt.Println(text)
	return err
}

func run(p *program) func(context.Context) error {
	request := p.specFlags()
	label := p.Bool("l", false, "begin each line of output with the rank of its node")
	return p.asks(0, func(ctx context.Context, c *client.Client) error {
		r, err := request()
		if err != nil {
			return err
		}
		answer, err := c.Ask(ctx, "submit", r)
		if err != nil {
			return err
		}
		id := answer.ID
		interrupted := ctx
		ctx = context.WithoutCancel(ctx) // the job is canceled, and its end awaited
		defer context.AfterFunc(interrupted, func() {
			for err := context.DeadlineExceeded; errors.Is(err, context.DeadlineExceeded); { // nobody says whether it counts
				_, err = c.Ask(ctx, "cancel", wire.Request{ID: id, Note: "interrupted by its user"})
			}
		})()
		info, err := c.Started(ctx, id)
		if err == nil && info.Started && info.Ranks == nil {
			info = whole(ctx, c, info)
		}
		if err != nil {
			return err
		}
		code := 0
		if info.Started {
			code = exit(p.outputs(ctx, c, info, true, *label))
		}
		if _, err := ended(ctx, c, id); err != nil || code == 0 {
			return err
		}
		return exitCode(code)
	})
}

// ended waits for the end of a job, and exits as it did.
func ended(ctx context.Context, c *client.Client, id jobid.ID) (wire.JobInfo, error) {
	info, err := c.Wait(ctx, id)
	if err != nil || info.Result == "COMPLETED" {
		return info, err
	}
	if info.Status == nil && info.Started {
		info = whole(ctx, c, info)
	}
	code := 1
	if info.Status != nil {
		if ws := syscall.WaitStatus(*info.Status); ws.Signaled() {
			code = 128 + int(ws.Signal())
		} else if ws.ExitStatus() > 0 {
			code = ws.ExitStatus()
		}
	}
	fmt.Fprintf(os.Stderr, "cluster: job %v: %s: cluster job %v says why\n", id, info.Result, id)
	return info, exitCode(code)
}

func wait(p *program) func(context.Context) error {
	return p.asks(0, func(ctx context.Context, c *client.Client) error {
		id, err := p.id()
		if err != nil {
			return err
		}
		info, err := ended(ctx, c, id)
		if p.json && info.ID != 0 {
			err = cmp.Or(json.NewEncoder(os.Stdout).Encode(info), err)
		}
		return err
	})
}

// id is the id of a job that the command names.
func (p *program) id() (jobid.ID, error) {
	if p.NArg() != 1 {
		return 0, p.wrong("name one job")
	}
	return p.idOf(p.Arg(0))
}

func (p *program) idOf(text string) (jobid.ID, error) {
	id, err := jobid.Parse(text)
	if err != nil {
		err = p.wrong("%q is no id of a job: want one such as ƒuZZybuNNy", text)
	}
	return id, err
}

func printJobs(list []wire.JobInfo) error {
	rows := [][]string{{"JOBID", "USER", "NAME", "ST", "NNODES", "TIME", "INFO"}}
	for _, j := range list {
		info := j.Waiting
		if j.Ranks != nil {
			info = "rank " + j.Ranks.String()
		}
		rows = append(rows, []string{j.ID.String(), fmt.Sprint(j.UserID), j.Name, short(j), dash(j.NNodes), took(j), info})
	}
	return printTable(os.Stdout, onTerminal(), rows)
}

// short is the state or result of a job, as flux jobs has them.
func short(j wire.JobInfo) string {
	if j.Result != "" && j.Inactive > 0 {
		for short, result := range results {
			if result == j.Result {
				return short
			}
		}
	}
	return j.State[:min(1, len(j.State))]
}

func dash(n uint64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// took is how long a job has run.
func took(j wire.JobInfo) string {
	if j.Run == 0 {
		return "-"
	}
	end := time.Now()
	if j.Cleanup > 0 {
		end = j.Cleanup.Time()
	}
	return end.Sub(j.Run.Time()).Round(time.Second / 10).String()
}

// printTable prints aligned columns, perhaps with a bold head. Nothing in a cell controls a terminal.
func printTable(out io.Writer, bold bool, rows [][]string) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleDefault)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.Style().Box = table.BoxStyle{PaddingRight: "  "}
	t.SuppressTrailingSpaces()
	for n, row := range rows {
		cells := make(table.Row, len(row))
		for i, cell := range row {
			if cells[i] = wire.Printable(cell); bold && n == 0 {
				cells[i] = text.Bold.Sprint(cells[i])
			}
		}
		t.AppendRow(cells)
	}
	_, err := fmt.Fprintln(out, t.Render())
	return err
}

func onTerminal() bool { return term.IsTerminal(int(os.Stdout.Fd())) }

func job(p *program) func(context.Context) error {
	return p.asks(30*time.Second, func(ctx context.Context, c *client.Client) error {
		id, err := p.id()
		if err != nil {
			return err
		}
		j, err := jobOf(ctx, c, id)
		if err != nil {
			return err
		}
		if p.json {
			return json.NewEncoder(os.Stdout).Encode(j)
		}
		rows := [][]string{{"id", j.ID.String()}, {"user", fmt.Sprint(j.UserID)}, {"name", j.Name}, {"state", j.State}, {"result", j.Result}, {"waits for", j.Waiting}}
		if j.Ranks != nil {
			rows = append(rows, []string{"ranks", j.Ranks.String()})
		}
		for _, h := range j.Holders {
			rows = append(rows, []string{"held by", fmt.Sprintf("%s on rank %v since %s", h.What, h.Ranks, ago(h.Since))})
		}
		for _, row := range rows {
			if row[1] != "" {
				fmt.Printf("%-10s %s\n", row[0], row[1])
			}
		}
		return timeline(j.Eventlog)
	})
}

func ago(t eventlog.Timestamp) string {
	return fmt.Sprintf("%s (%s ago)", t.Time().Local().Format("15:04:05"), time.Since(t.Time()).Round(time.Second))
}

// timeline prints the events of a job with the seconds since the first.
func timeline(log string) error {
	var first eventlog.Timestamp
	for e, err := range eventlog.Entries([]byte(log)) {
		if err != nil {
			return err
		}
		if first == 0 {
			first = e.Timestamp
			fmt.Println(first.Time().Local().Format(time.DateTime))
		}
		fmt.Printf("%10.3f  %-18s %s\n", float64(e.Timestamp-first), wire.Printable(e.Name), wire.Printable(string(e.Context)))
	}
	return nil
}

// A watched is an event of a job, as JSON.
type watched struct {
	ID    jobid.ID        `json:"id"`
	Event json.RawMessage `json:"event"`
}

func watch(p *program) func(context.Context) error {
	return p.asks(0, func(ctx context.Context, c *client.Client) (err error) {
		var id jobid.ID
		if p.NArg() > 0 {
			if id, err = p.id(); err != nil {
				return err
			}
		}
		out := bufio.NewWriter(os.Stdout)
		err = c.Watch(ctx, id, func(id jobid.ID, line []byte) {
			if p.json {
				_ = json.NewEncoder(out).Encode(watched{id, line}) // of a line that is none, nothing
			} else if e, err := eventlog.Parse(line); err != nil {
				fmt.Fprintf(out, "%v %q\n", id, line)
			} else {
				fmt.Fprintf(out, "%s %v %s %s\n", e.Timestamp.Time().Local().Format("15:04:05.000"), id, wire.Printable(e.Name), wire.Printable(string(e.Context)))
			}
			_ = out.Flush()
		})
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	})
}

func cancel(p *program) func(context.Context) error {
	note := p.String("m", "", "why, for the log")
	return p.asks(30*time.Second, func(ctx context.Context, c *client.Client) (err error) {
		if p.NArg() == 0 {
			return p.wrong("name the jobs")
		}
		for _, text := range p.Args() {
			id, idErr := p.idOf(text)
			if idErr == nil {
				_, idErr = c.Ask(ctx, "cancel", wire.Request{ID: id, Note: *note})
			}
			err = errors.Join(err, idErr)
		}
		return err
	})
}

func urgency(p *program) func(context.Context) error {
	return p.once("urgency", func() (r wire.Request, err error) {
		if p.NArg() != 2 {
			return r, p.wrong("name a job and its urgency, 0 to 31")
		}
		if r.ID, err = p.idOf(p.Arg(0)); err != nil {
			return r, err
		}
		n, err := strconv.Atoi(p.Arg(1))
		if err != nil {
			return r, p.wrong("urgency %q: want a number from 0 to 31", p.Arg(1))
		}
		r.Urgency = &n
		return r, nil
	}, func(a wire.Answer) error { return p.print(a.Old, fmt.Sprint("it was ", a.Old)) })
}

func listNodes(p *program) func(context.Context) error {
	return p.once("nodes", nothing, func(answer wire.Answer) error {
		if p.json {
			return json.NewEncoder(os.Stdout).Encode(answer.Nodes)
		}
		rows := [][]string{{"RANK", "HOST", "STATE", "HELD BY"}}
		for _, n := range answer.Nodes {
			var held []string
			for _, h := range n.Holders {
				held = append(held, fmt.Sprintf("%v %s since %s", h.ID, h.What, ago(h.Since)))
			}
			rows = append(rows, []string{fmt.Sprint(n.Rank), n.Host, stateOf(n), strings.Join(held, ", ")})
		}
		return printTable(os.Stdout, onTerminal(), rows)
	})
}

func stateOf(n wire.Node) (state string) {
	state = "down"
	if n.Up {
		state = "up"
	}
	if n.Drained != "" {
		state += fmt.Sprintf(", drained since %s: %s", ago(eventlog.FromTime(n.Since)), n.Drained)
	}
	return state
}

// ranks are the ranks that the command names.
func (p *program) ranks() (*idset.Set, error) {
	if p.NArg() != 1 {
		return nil, p.wrong("name the ranks, such as 0-3,7")
	}
	set := new(idset.Set)
	if set.UnmarshalText([]byte(p.Arg(0))) != nil || set.IsEmpty() {
		return nil, p.wrong("%q are no ranks: want some such as 0-3,7", p.Arg(0))
	}
	return set, nil
}

// onRanks is a command for the ranks that it names, by a verb.
func onRanks(verb, why string) func(*program) func(context.Context) error {
	return func(p *program) func(context.Context) error {
		note := new(string)
		if why != "" {
			note = p.String("reason", "", why)
		}
		return p.once(verb, func() (wire.Request, error) {
			set, err := p.ranks()
			return wire.Request{Ranks: set, Note: *note}, err
		}, func(wire.Answer) error { return nil })
	}
}

func purgeJobs(p *program) func(context.Context) error {
	var age fsd.Duration
	r := wire.Request{}
	p.TextVar(&age, "age", fsd.Duration(0), "purge what ended longer ago, such as 7d")
	count := p.Int("keep", -1, "keep so many of those that ended last; -1: any number")
	p.BoolVar(&r.All, "all", false, "purge all that are over, whatever their age and number: not with -age and -keep")
	dry := p.Bool("dry-run", false, "only count")
	return p.once("purge", func() (wire.Request, error) {
		if *count < -1 {
			return r, p.wrong("-keep %d: want 0 or more, or -1 for any number", *count)
		}
		r.Force = !*dry
		if age > 0 {
			r.MaxAge = &age
		}
		if *count >= 0 {
			r.MaxCount = count
		}
		if !r.All && r.MaxAge == nil && r.MaxCount == nil {
			return r, p.wrong("say what to purge: -age, -keep or -all")
		}
		return r, nil
	}, func(a wire.Answer) error { return p.print(a.Count, fmt.Sprintf("%d jobs", a.Count)) })
}

func takeover(p *program) func(context.Context) error {
	return p.asks(30*time.Second, func(ctx context.Context, c *client.Client) error {
		before, err := c.Ask(ctx, "status", wire.Request{})
		if err != nil {
			return err
		}
		began := time.Now()
		if _, err := c.Ask(ctx, "takeover", wire.Request{}); err != nil {
			return err
		}
		for {
			now, err := c.Ask(ctx, "status", wire.Request{})
			if err != nil {
				return err
			}
			if now.Status.Epoch > before.Status.Epoch {
				return p.print(now.Status, fmt.Sprintf("%s is active after %v", now.Status.Holder, time.Since(began).Round(time.Millisecond)))
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}
