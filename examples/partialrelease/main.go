// Command partialrelease shows what it is worth to give the nodes of a job back
// one by one. One job of 64 nodes ends, and its epilog runs on every node; on
// most it takes 20 seconds, on a few stragglers minutes. The same epilogs run
// twice, and what goes back to the scheduler is printed side by side: with
// partial release each node when its epilog has ended, with the release of the
// whole job all nodes when the last one has.
//
//	partialrelease                        three stragglers
//	partialrelease -hang 2                and two nodes whose epilog never ends
//	partialrelease -hang 2 -crash 100s    and the daemon dies and recovers
//	partialrelease -housekeeping          housekeeping in place of an epilog
//	partialrelease -nodes 16384 -json     a large job, an object a fragment
//
// Nodes, network and time are made up: durations come of -seed, and a virtual
// clock goes from one thing that happens to the next, so that the same flags
// give the same output at once. What decides is the library as an embedder uses
// it:
//
//   - perilog.Job turns the job's log into runs of the prolog and the epilog. It
//     says what to log, to launch, to signal and to drain, and what went back is
//     in the log as epilog-release. JobSpec.WholeJob is all the difference
//     between the two columns.
//   - jobstate.Job is the job by RFC 21: it says that each event is legal.
//   - rset.Ledger cuts R into the fragments of sched.free (RFC 27). Each node is
//     in one of them, and one of them, the last, is final.
//   - perilog.Housekeeping is the same after the job, with a log of its own. With
//     -release-after what is ready goes back together that long after the first
//     node, and each node after that by itself.
//
// A node that never ends is told to (SIGTERM) at the -timeout, given up a kill
// timeout of 60 s later, and drained. It goes back when the drain is confirmed:
// no other job gets it between. Time alone gives nothing back. So does a node
// that is slower than the timeout, sooner, because it obeys.
//
// With -crash the daemon dies and comes back 20 s later, with its log and nothing
// else. RecoverJob tells what had gone back. The processes on the nodes went on
// and check in; the end of a process that the log does not have is told again.
//
// A node is idle from when it is clean, or drained, to when it goes back. The
// difference between the two columns is what partial release saves.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/joblife/joblife/jobstate/fsd"
)

// Exit statuses.
const (
	exitOK    = 0
	exitFault = 1 // the output could not be written
	exitUsage = 2
)

// maxNodes is the largest job.
const maxNodes = 16384

// options is what the command line says.
type options struct {
	nodes, stragglers, hang int
	seed                    uint64
	epilog                  fsd.Duration // the typical one
	timeout                 fsd.Duration // 0: none
	housekeeping            bool
	releaseAfter            fsd.Duration
	json                    bool
	crash                   fsd.Duration // counted from the end of the job; negative: never
}

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is the command, without the process around it. It reads nothing.
func run(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "partialrelease: %v\npartialrelease -h tells what there is\n", err)
		return exitUsage
	}
	work := draw(o)
	partial, err := simulate(o, work, false)
	if err == nil {
		var whole *history
		whole, err = simulate(o, work, true)
		if err == nil {
			out := bufio.NewWriter(stdout)
			if o.json {
				err = printJSON(out, partial, whole)
			} else {
				printReport(out, o, partial, whole)
			}
			err = errors.Join(err, out.Flush())
		}
	}
	if err != nil {
		fmt.Fprintln(stderr, "partialrelease:", err)
		return exitFault
	}
	return exitOK
}

// parse reads the command line; -h is told on stdout.
func parse(args []string, stdout io.Writer) (options, error) {
	o := options{nodes: 64, stragglers: 3, seed: 1, epilog: 20, timeout: 300, releaseAfter: 30, crash: -1}
	f := flag.NewFlagSet("partialrelease", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	f.Func("nodes", fmt.Sprintf("the job has `N` nodes, 1 to %d (default 64)", maxNodes), number(&o.nodes, 1))
	f.Func("stragglers", "the epilog takes 4 to 12 times as long on `N` nodes (default 3, fewer in a small job)", number(&o.stragglers, 0))
	f.Func("hang", "the epilog never ends on `N` nodes (default 0)", number(&o.hang, 0))
	f.Uint64Var(&o.seed, "seed", o.seed, "the `NUMBER` that durations and nodes are drawn with")
	f.Func("epilog", "what the epilog takes on most nodes, a `DURATION` (default 20s)", duration(&o.epilog, 1, 86400))
	f.Func("timeout", "of the epilog, a `DURATION`; 0 is none (default 5m)", duration(&o.timeout, 0, 864000))
	f.BoolVar(&o.housekeeping, "housekeeping", false, "let housekeeping clean the nodes in place of an epilog")
	f.Func("release-after", "of -housekeeping, a `DURATION`; 0 gives each node back at once (default 30s)", duration(&o.releaseAfter, 0, 864000))
	f.BoolVar(&o.json, "json", false, "print one JSON object a fragment and no totals")
	f.Func("crash", "the daemon dies a `DURATION` after the end of the job, and recovers", duration(&o.crash, 0, 864000))
	err := f.Parse(args)
	set := map[string]bool{}
	f.Visit(func(f *flag.Flag) { set[f.Name] = true })
	if !set["stragglers"] {
		o.stragglers = max(0, min(o.stragglers, o.nodes-o.hang))
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, "usage: partialrelease [flags]\n\nShows what goes back when after a job of which some nodes are slow to clean, node\n"+
			"by node and as a whole. A DURATION is a number of seconds or as 500ms, 30s, 5m.\n\n")
		f.SetOutput(stdout)
		f.PrintDefaults()
	case err != nil:
	case f.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q: there are only flags", f.Arg(0))
	case o.stragglers+o.hang > o.nodes:
		err = fmt.Errorf("-stragglers %d and -hang %d are more than -nodes %d: lower one of them", o.stragglers, o.hang, o.nodes)
	case o.hang > 0 && o.timeout == 0:
		err = errors.New("-hang without a -timeout would never end: give a timeout")
	case set["release-after"] && !o.housekeeping:
		err = errors.New("-release-after is of housekeeping: add -housekeeping")
	}
	return o, err
}

// number returns what sets n, which is to be from least to maxNodes.
func number(n *int, least int) func(string) error {
	return func(s string) error {
		v, err := strconv.Atoi(s)
		if err != nil || v < least || v > maxNodes {
			return fmt.Errorf("want a number from %d to %d", least, maxNodes)
		}
		*n = v
		return nil
	}
}

// duration returns what sets d, which is to be from least to most.
func duration(d *fsd.Duration, least, most fsd.Duration) func(string) error {
	return func(s string) error {
		v, err := fsd.Parse(s)
		if err != nil || v < least || v > most {
			return fmt.Errorf("want a duration from %v to %v, as 90s or 1.5m", least, most)
		}
		*d = v
		return nil
	}
}
