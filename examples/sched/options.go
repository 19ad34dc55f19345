package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joblife/joblife/examples/internal/flux"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

// defaultDepth is how many jobs of the queue a pass of easy looks at.
const defaultDepth = 64

// options is what the command line says.
type options struct {
	lines.Options
	policy string
	limit  int // of requests that wait; 0: none
	depth  int // of backfill; 0: all
	fit    pool.Fit
	period time.Duration // of forecasts; 0: none
	level  int           // of what goes to the log of a broker
	whole  bool          // a job is told with all that it got, also with what it gave back

	patience time.Duration // with a hello, and with a peer that does not read
}

// policies are the policies, by name.
var policies = map[string]func(o options) sched.Policy{
	"fifo": func(options) sched.Policy { return sched.FIFO{} },
	"easy": func(o options) sched.Policy { return sched.EASY{Depth: o.depth} },
}

// fits are the orders in which nodes are taken, by name.
var fits = map[string]pool.Fit{"best": pool.FitBest, "worst": pool.FitWorst}

// program returns the program with these options, which its flags set.
func (o *options) program() *lines.Program {
	*o = options{policy: "fifo", depth: defaultDepth, period: time.Second, level: flux.LogInfo, patience: 5 * time.Minute}
	f := flag.NewFlagSet("sched", flag.ContinueOnError)
	f.Func("policy", "fifo or easy (default fifo)", func(s string) error {
		if policies[s] == nil {
			return errors.New("want fifo or easy")
		}
		o.policy = s
		return nil
	})
	f.Func("fit", "best takes fuller nodes first, worst emptier ones, as flux-core does (default best)", func(s string) error {
		if o.fit = fits[s]; o.fit == 0 {
			return errors.New("want best or worst")
		}
		return nil
	})
	f.Func("queue-depth", "accept at most `N` outstanding requests, or unlimited (default unlimited)", o.depthOf)
	f.Func("backfill-depth", fmt.Sprintf("policy easy considers the first `N` waiting jobs (default %d)", defaultDepth), lines.Number(&o.depth, 1, math.MaxInt32))
	f.Func("forecast-period", "policy fifo tells the first 8 jobs their start, at most once in `SECONDS`; 0: never (default 1)", func(s string) error {
		t, err := strconv.ParseFloat(s, 64)
		if err != nil || !(t >= 0) || math.IsInf(t, 0) {
			return errors.New("want seconds, such as 60, or 0")
		}
		o.period = time.Duration(min(t, 1e9) * float64(time.Second))
		return nil
	})
	f.Func("mode", "unlimited, or limited=`N`: another name of -queue-depth", func(s string) error {
		n, limited := strings.CutPrefix(s, "limited=")
		if !limited && s != "unlimited" {
			return errors.New("want unlimited, or limited=N")
		}
		return o.depthOf(n)
	})
	f.Func("log-level", "with -flux, log what is at least so urgent: `LEVEL` is one of\n"+strings.Join(levels, ", ")+" (default info)", func(s string) error {
		if o.level = slices.Index(levels, s); o.level < 0 {
			return errors.New("want one of " + strings.Join(levels, ", "))
		}
		return nil
	})
	f.BoolVar(&o.whole, "test-hello-nopartial", false, "with -flux, do not take over jobs in part")
	program := &lines.Program{
		Name: "sched", About: about, Later: "t_submit only", Flags: f, Options: &o.Options,
		Sample: sample, Serve: o.serve, Accept: o.accept,
		Begin: func(out, stderr io.Writer) (lines.Peer, error) {
			s := newSession(*o, out, stderr)
			return s, s.hello()
		},
	}
	program.Attaches("attach to a running Flux as its scheduler", o.attach)
	return program
}

// levels are the levels of a log, by number.
var levels = []string{"emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"}

// depthOf sets the limit of requests.
func (o *options) depthOf(s string) error {
	if s == "unlimited" {
		o.limit = 0
		return nil
	}
	return lines.Number(&o.limit, 1, math.MaxInt32)(s)
}

// flags returns arguments as flags: those of sched-simple, as flux module load has them, begin
// without a dash.
func flags(args []string) []string {
	args = slices.Clone(args)
	for i, a := range args {
		switch key, _, _ := strings.Cut(a, "="); key {
		case "queue-depth", "mode", "log-level", "test-hello-nopartial":
			args[i] = "-" + a
		}
	}
	return args
}

// about tells how to use the command, with the beginning of a conversation.
const about = `A scheduler that speaks RFC 27 and 28, one JSON object on each line, on standard input
and output. It ends when its input does. For example, with < what it writes and
> what it reads:

  < {"topic":"job-manager.sched-hello","payload":{"partial-ok":true}}
  > {"topic":"resource.acquire","payload":{"resources":{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0-7"}}]}},"up":"0-3"}}
  > {"topic":"job-manager.sched-hello","errnum":61}
  < {"topic":"job-manager.sched-ready","payload":{"mode":"unlimited"}}
`

//go:embed testdata/sample.txt
var sample string
