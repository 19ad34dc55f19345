// Command partialrelease shows how much it saves to give the nodes of a job back
// one by one. A job ends and its epilog runs on every node: for 20 seconds on most,
// for minutes on a few stragglers, for ever on nodes that hang. The same epilogs
// run twice. With partial release each node goes back to the scheduler when its
// epilog ends. With whole-job release the nodes go back when the last epilog ends.
//
//	partialrelease                        three stragglers
//	partialrelease -hang 2                and two nodes that hang
//	partialrelease -hang 2 -crash 100s    and the daemon dies and recovers from its log
//	partialrelease -housekeeping          housekeeping in place of the epilog
//	partialrelease -nodes 16384 -json     a large job, one JSON object a fragment
//
// An epilog that exceeds -timeout gets SIGTERM and its node is drained. The node goes
// back when the drain is confirmed. A node is idle from then, or from the end of its
// epilog, until it goes back.
//
// The file cluster.go is the loop around a [perilog.Job], which decides. Durations
// are drawn from -seed and a virtual clock jumps to what happens next, so the same
// flags print the same bytes. The exit status is 0, 1 for a fault, 2 for bad flags.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/jobstate/fsd"
)

const maxNodes = 16384

// options is what the command line says.
type options struct {
	nodes, stragglers, hang      int
	seed                         uint64
	timeout, releaseAfter, crash fsd.Duration // crash is Forever if the daemon lives
	housekeeping, json           bool
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the command without the process around it.
func run(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout)
	if err != nil {
		return lines.Refuse(stderr, "partialrelease", err)
	}
	if err := compare(o, bufio.NewWriter(stdout)); err != nil {
		fmt.Fprintln(stderr, "partialrelease:", err)
		return 1
	}
	return 0
}

// parse reads the command line. It prints the help to stdout.
func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("partialrelease", flag.ContinueOnError)
	f.IntVar(&o.nodes, "nodes", 64, "the `number` of nodes of the job")
	f.IntVar(&o.stragglers, "stragglers", 3, "the `number` of nodes where the epilog takes minutes")
	f.IntVar(&o.hang, "hang", 0, "the `number` of nodes where the epilog never ends")
	f.Uint64Var(&o.seed, "seed", 1, "the `number` that seeds the random durations")
	duration := func(d *fsd.Duration, name string, value fsd.Duration, text string) {
		*d = value
		f.Func(name, fmt.Sprintf("%s (default %v)", text, value), func(s string) error {
			v, err := fsd.Parse(s)
			if err != nil {
				return errors.New("want a duration, such as 500ms, 90s or 1.5m")
			}
			*d = v
			return nil
		})
	}
	duration(&o.timeout, "timeout", fsd.Duration(5*time.Minute), "the `duration` after which an epilog gets SIGTERM; 0 means never")
	duration(&o.crash, "crash", fsd.Forever, "the `duration` from the end of the job to a crash of the daemon")
	f.BoolVar(&o.housekeeping, "housekeeping", false, "run housekeeping instead of the epilog")
	duration(&o.releaseAfter, "release-after", fsd.Duration(30*time.Second), "the `duration` after which -housekeeping frees the nodes that are done")
	f.BoolVar(&o.json, "json", false, "print one JSON object for each fragment")
	err := lines.ParseFlags(f, args, stdout, "Usage: partialrelease [flags]\n\nA duration is a number of seconds, or a number with a unit, such as 500ms, 90s or 1.5m.\n")
	switch {
	case err != nil:
	case f.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q: give flags only", f.Arg(0))
	case o.nodes < 1 || o.nodes > maxNodes:
		err = fmt.Errorf("-nodes %d: give 1 to %d", o.nodes, maxNodes)
	case o.stragglers < 0 || o.hang < 0 || o.stragglers > o.nodes-o.hang:
		err = fmt.Errorf("-stragglers %d and -hang %d: give 0 or more, and at most -nodes %d together", o.stragglers, o.hang, o.nodes)
	case o.timeout > fsd.Duration(10*24*time.Hour):
		err = fmt.Errorf("-timeout %v: give at most 10d", o.timeout)
	case o.hang > 0 && o.timeout == 0:
		err = fmt.Errorf("-hang %d: these nodes would never go back: give a -timeout above 0", o.hang)
	}
	return o, err
}

// compare runs the same epilogs in both modes, and prints a table or the fragments.
// out keeps the first error.
func compare(o options, out *bufio.Writer) error {
	partial, err := simulate(o, false)
	if err != nil {
		return err
	}
	whole, err := simulate(o, true)
	if err != nil {
		return err
	}
	if !o.json {
		printTable(out, o, partial, whole)
		return out.Flush()
	}
	for _, f := range slices.Concat(partial.fragments, whole.fragments) {
		_ = json.NewEncoder(out).Encode(f)
	}
	return out.Flush()
}

func seconds(d fsd.Duration) float64 { return time.Duration(d).Seconds() }

func printTable(out io.Writer, o options, p, w *cluster) {
	what, end := "epilog", w.back[o.nodes-1]
	if o.housekeeping {
		what = "housekeeping"
	}
	fmt.Fprintf(out, "%s on %d nodes, of which %d are slow and %d hang; seed %d\n", what, o.nodes, o.stragglers, o.hang, o.seed)
	if seconds(o.crash) <= end {
		fmt.Fprintf(out, "the daemon dies after %v and is back %d s later\n", o.crash, restartTime)
	} else if o.crash != fsd.Forever {
		fmt.Fprintf(out, "the daemon does not die: all nodes are back before; give a -crash below %.1fs\n", end)
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "\n\tpartial release\twhole job\t   █ held  · saved\n")
	for _, percent := range []int{10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 100} {
		i := (percent*o.nodes+99)/100 - 1
		bar := func(seconds float64) int { return int(math.Round(30 * seconds / end)) }
		fmt.Fprintf(t, "%d %% of the nodes are back\t%.1f s\t%.1f s\t   %s%s\n", percent, p.back[i], w.back[i],
			strings.Repeat("█", bar(p.back[i])), strings.Repeat("·", bar(w.back[i])-bar(p.back[i])))
	}
	fmt.Fprintf(t, "node-seconds held after the job\t%.1f\t%.1f\t   %.1f saved\n", p.held, w.held, w.held-p.held)
	fmt.Fprintf(t, "of which idle\t%.1f\t%.1f\t\n", p.idle, w.idle)
	fmt.Fprintf(t, "fragments\t%d\t%d\t\n", len(p.fragments), len(w.fragments))
	fmt.Fprintf(t, "nodes drained\t%d\t%d\t\n", p.drained.Len(), w.drained.Len())
	t.Flush()
}
