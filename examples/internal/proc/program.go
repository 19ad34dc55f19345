//go:build unix

package proc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	ossignal "os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset/pool"
)

// A Program is a resource manager for nodes of this machine.
type Program struct {
	Name         string
	Dir          string // keeps the jobs, and has a folder for each node
	Nodes, Cores int    // how many nodes there are, and cores in each: 1 to 1024
	Manager      joblife.Config
	Scheduler    Scheduler                    // gets the nodes
	Journal      func([]joblife.JournalEntry) // is called with events when they are durable; New sets one that does nothing
}

// A Scheduler is such as that of package sched.
type Scheduler interface {
	loop.Scheduler
	Acquire(pool.Acquire) error
	Pool() *pool.Pool
}

// New returns a program of this user whose Manager makes ids, and defines its flags. It does
// not return if this process is a shim.
func New(name string) *Program {
	Shim()
	p := &Program{Name: name, Journal: func([]joblife.JournalEntry) {}}
	p.Manager.Owner, p.Manager.Epoch = uint32(os.Getuid()), time.Unix(1_700_000_000, 0)
	actions := &p.Manager.Actions
	flag.StringVar(&p.Dir, "dir", filepath.Join(os.TempDir(), "joblife-"+name), "the `folder` that keeps the jobs")
	flag.IntVar(&p.Nodes, "nodes", 8, "how many nodes there are, at most 1024")
	flag.IntVar(&p.Cores, "cores", 2, "how many cores each node has, at most 1024")
	flag.Func("prolog", "a shell `command` to run on each node before a job", shell(&actions.Prologs))
	flag.Func("epilog", "a shell `command` to run on each node after a job", shell(&actions.Epilogs))
	flag.Func("actions", "prologs, epilogs and housekeeping: a perilog.Config in `JSON`", func(text string) error {
		return ParseActions(text, actions)
	})
	return p
}

// User says who asks: the user of the program, who owns the jobs. The zero Cred would be root.
func (p *Program) User() joblife.Cred { return joblife.Cred{UserID: p.Manager.Owner} }

// ParseActions reads the value of -actions, in which no key is unknown. What it names replaces
// what actions has of it; null and an empty tolerate name nothing. After an error actions is as
// before.
func ParseActions(text string, actions *perilog.Config) error {
	next := perilog.Config{WholeJob: actions.WholeJob} // without the rest, whose fields would be kept
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	err := cmp.Or(d.Decode(&next), json.Unmarshal([]byte(text), &next)) // which takes no more than one value
	switch kind := (*json.UnmarshalTypeError)(nil); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("the JSON ends too early")
	case errors.As(err, &kind):
		err = fmt.Errorf("%s must not be a JSON %s", cmp.Or(kind.Field, "it"), kind.Value)
	}
	if err = cmp.Or(err, next.Check()); err != nil {
		return errors.New(strings.TrimPrefix(strings.TrimPrefix(err.Error(), "json: "), "perilog: invalid configuration: "))
	}
	if next.Prologs == nil {
		next.Prologs = actions.Prologs
	}
	if next.Epilogs == nil {
		next.Epilogs = actions.Epilogs
	}
	next.Housekeeping = cmp.Or(next.Housekeeping, actions.Housekeeping)
	next.Tolerate = cmp.Or(next.Tolerate, actions.Tolerate)
	*actions = next
	return nil
}

// Parse reads the command line. It does not return if that is wrong, or asks for help. Args are
// the arguments beside flags, as the help has them; "" allows none.
func (p *Program) Parse(args string) {
	f := flag.CommandLine
	f.Init(p.Name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	err := f.Parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Printf("usage: %s [flags] %s\n", p.Name, args)
		f.SetOutput(os.Stdout)
		f.PrintDefaults()
		os.Exit(0)
	case err != nil:
	case f.NArg() > 0 && args == "":
		err = fmt.Errorf("unexpected argument %q: give flags only", f.Arg(0))
	case min(p.Nodes, p.Cores) < 1 || max(p.Nodes, p.Cores) > 1024:
		err = fmt.Errorf("-nodes %d and -cores %d: want numbers from 1 to 1024", p.Nodes, p.Cores)
	}
	p.Exit(2, err)
}

// shell is a flag that sets actions: a command that runs on each node.
func shell(actions *[]perilog.ActionConfig) func(string) error {
	return func(command string) error {
		*actions = []perilog.ActionConfig{{Command: []string{"sh", "-c", command}, PerRank: true}}
		return nil
	}
}

// Exit ends the program if there is an error: 2 is one of the command line.
func (p *Program) Exit(status int, err error) {
	if err == nil {
		return
	}
	p.warn(err)
	if status == 2 {
		fmt.Fprintf(os.Stderr, "Run %s -h for the flags.\n", p.Name)
	}
	os.Exit(status)
}

func (p *Program) warn(err error) { fmt.Fprintf(os.Stderr, "%s: %v\n", p.Name, err) }

// Run restores the manager, and runs it until serve returns. It calls serve when the nodes have
// said what they run, and what the manager did not ask for is killed. The context of serve ends
// when a signal asks the program to end, and when the Loop ends. Run returns why the Loop or
// serve failed; the end of a context is not a failure.
func (p *Program) Run(serve func(context.Context, *Cluster) error) error {
	c, err := p.open()
	if err != nil {
		return err
	}
	defer c.close()
	c.Loop, err = loop.New(c.manager, loop.Config{
		Store:     c.Store,     // durably, before anything else
		Scheduler: p.Scheduler, // serves jobs in the order of their priority
		Executor:  &c.executor, // runs jobs, prologs and epilogs
		Commands:  c.commands,  // on nodes, which answer in c.Hear
		Recovered: c.left,      // of joblife.Restore
		Effects:   c.effects,   // what became of jobs, for users
		Refused:   c.refused,   // nothing has changed
	})
	if err == nil {
		err = c.openNodes()
	}
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(context.Background())
	defer end(nil) // the Loop may end first
	go func() {
		asked, stop := ossignal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		context.AfterFunc(asked, stop) // the next signal ends the program at once
		err := c.connect()
		if err == nil {
			err = serve(asked, c)
		}
		end(err)
	}()
	if err := c.Loop.Run(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
