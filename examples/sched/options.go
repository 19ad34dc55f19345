package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/rset/pool"
)

// defaultDepth is how many jobs of the queue a pass of easy looks at.
const defaultDepth = 64

// options is what the command line says.
type options struct {
	policy  string
	limit   int // of requests that wait; 0: none
	depth   int // of backfill
	fit     pool.Fit
	period  eventlog.Timestamp // of forecasts, in seconds; 0: none
	socket  string             // path; "": standard input and output
	now     eventlog.Timestamp // 0: the time of the day
	sample  bool
	verbose bool
}

// newPolicies makes the policies, by name.
var newPolicies = map[string]func(o options) policy{
	"fifo": func(o options) policy { return &forecasting{policy: fifo{}, period: o.period} },
	"easy": func(o options) policy { return &easy{depth: o.depth} },
}

// fits are the orders in which nodes are taken, by name.
var fits = map[string]pool.Fit{"best": pool.FitBest, "worst": pool.FitWorst}

// errPolicy names the policies.
var errPolicy = errors.New("want fifo or easy")

// flags returns the flags that set o.
func (o *options) flags() *flag.FlagSet {
	*o = options{policy: "fifo", depth: defaultDepth, period: 1}
	f := flag.NewFlagSet("sched", flag.ContinueOnError)
	f.Func("policy", "fifo or easy (default fifo)", func(s string) error {
		if newPolicies[s] == nil {
			return errPolicy
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
	f.Func("queue-depth", "accept at most `N` outstanding requests (default: any number)", number(&o.limit))
	f.Func("backfill-depth", fmt.Sprintf("policy easy considers the first `N` waiting jobs (default %d)", defaultDepth), number(&o.depth))
	f.Func("forecast-period", fmt.Sprintf("policy fifo tells the first %d jobs their start, at most once in `SECONDS`; 0: never (default 1)", maxTold), func(s string) error {
		t, err := strconv.ParseFloat(s, 64)
		if err != nil || !(t >= 0) || math.IsInf(t, 0) {
			return errors.New("want seconds, such as 60, or 0")
		}
		o.period = eventlog.Timestamp(t)
		return nil
	})
	f.Func("listen", "serve on a socket, `unix:PATH`, instead of standard input and output", func(s string) error {
		path, ok := strings.CutPrefix(s, "unix:")
		if !ok || path == "" {
			return errors.New("want unix:PATH, such as unix:/tmp/sched.sock")
		}
		o.socket = path
		return nil
	})
	f.Func("now", "begin at `SECONDS` since 1970 and take later times from t_submit only (default: the clock)", func(s string) error {
		t, err := strconv.ParseFloat(s, 64)
		if err != nil || !(t > 0) || math.IsInf(t, 0) {
			return errors.New("want seconds since 1970, such as 1700000000 or 1700000000.5")
		}
		o.now = eventlog.Timestamp(t)
		return nil
	})
	f.BoolVar(&o.sample, "sample", false, "play a recorded conversation, without input; combines with other flags")
	f.BoolVar(&o.verbose, "v", false, "print on standard error what happens to each job")
	return f
}

// number returns what sets n, a number of 1 or more.
func number(n *int) func(string) error {
	return func(s string) error {
		v, err := strconv.ParseInt(s, 10, 32)
		if err != nil || v < 1 {
			return fmt.Errorf("want a number from 1 to %d", math.MaxInt32)
		}
		*n = int(v)
		return nil
	}
}

// parse reads the command line. If there is nothing to do it returns the exit
// status and false.
func (o *options) parse(args []string, stdout, stderr io.Writer) (int, bool) {
	f := o.flags()
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		usage(stdout)
		return exitOK, false
	case err == nil && f.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q: requests come on standard input, as in: sched < %[1]s", f.Arg(0))
	case err == nil && o.sample && o.socket != "":
		err = errors.New("give either -sample or -listen, not both")
	}
	if err != nil {
		fmt.Fprintf(stderr, "sched: %v\nRun sched -h for the flags.\n", err)
		return exitUsage, false
	}
	return exitOK, true
}

// usage prints how to use the command, with the beginning of a conversation.
func usage(w io.Writer) {
	fmt.Fprint(w, `usage: sched [flags]

A scheduler that speaks RFC 27 and 28, one JSON object on each line, on standard input
and output. It ends when its input does. For example, with < what it writes and
> what it reads:

  < {"topic":"job-manager.sched-hello","payload":{"partial-ok":true}}
  > {"topic":"resource.acquire","payload":{"resources":{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0-7"}}]}},"up":"0-3"}}
  > {"topic":"job-manager.sched-hello","errnum":61}
  < {"topic":"job-manager.sched-ready","payload":{"mode":"unlimited"}}

Play a whole one with:  sched -sample
Put one in with:        sched < FILE

`)
	var o options
	f := o.flags()
	f.SetOutput(w)
	f.PrintDefaults()
}
