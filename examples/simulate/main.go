// Command simulate shows what partial release is worth. It runs the same workload
// twice on a made-up cluster: once each job gives its nodes back as a whole, when the
// last epilog has ended, and once each node goes back when its own epilog has ended.
// It prints a table and writes plots to simulate.html.
//
//	simulate                                 a made-up workload
//	simulate -swf LOG.swf.gz -load 0.9       a log of the Parallel Workloads Archive
//	simulate -straggle 0 -restarts 3         what else happens in life
//	simulate -share                          jobs take cores, and share nodes
//	simulate -share -gpus 4                  half of them take gpus too
//	simulate -sweep                          for other shares of slow epilogs too
//	simulate -csv jobs.csv -svg DIR          files for pandas or R, plots for slides
//	simulate -policy fair                    a policy of one's own: see policy.go
//
// The manager and the scheduler are those of the library; only time and the nodes are
// made up. Everything follows from the flags: the same flags give the same output.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/joblife/joblife/examples/internal/bar"
	"github.com/joblife/joblife/examples/internal/lines"
)

// exitInterrupted is the exit status after a signal, beside those of package lines.
const exitInterrupted = 130

const usage = `Usage: simulate [flags]

Runs a workload twice, with whole-job release and with partial release, prints what
is different, and writes plots. An FSD is a number of seconds, or a number with a unit,
such as 90s, 12h or 7d.

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal kills
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the command, without the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout)
	if err != nil {
		return lines.Refuse(stderr, "simulate", err)
	}
	return newStudy(o, stderr).run(ctx, stdout, stderr)
}

// run simulates and prints. An interrupt ends the runs; what is complete is printed.
func (s *study) run(ctx context.Context, stdout, stderr io.Writer) int {
	err := s.open()
	if err == nil {
		err = s.play(ctx)
	}
	if err == nil || errors.Is(err, context.Canceled) && len(s.runs) > 0 {
		if failed := cmp.Or(s.save(), s.print(stdout)); failed != nil { // each is done, whatever becomes of the other
			err = failed
		} else if s.o.html != "" {
			fmt.Fprintf(stdout, "\nThe plots are in %s.\n", lines.Escape(s.o.html))
		}
	}
	switch {
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "simulate: interrupted")
		return exitInterrupted
	case err != nil:
		fmt.Fprintln(stderr, "simulate:", lines.Escape(err.Error()))
		return lines.ExitFault
	}
	return lines.ExitOK
}

// A study is a workload and the runs of it.
type study struct {
	o       *options
	stderr  io.Writer
	trace   *trace
	work    []arrival // of the trace
	offered float64   // load, of the first seed
	runs    []pair    // by seed
	shares  []point   // of -sweep

	bar func(jobs int) (step func(int), stop func())
}

func newStudy(o *options, stderr io.Writer) *study {
	return &study{o: o, stderr: stderr, bar: func(jobs int) (func(int), func()) { return bar.Start(stderr, "simulating", jobs) }}
}

// A pair is two runs that differ in the release alone: see [way].
type pair [2]*cluster

// shown is how many lines that are no jobs are named.
const shown = 10

// open reads the trace. That a file cannot be written is an error before the runs.
func (s *study) open() error {
	if err := s.read(); err != nil {
		return err
	}
	for _, dir := range []string{s.o.swfOut, s.o.svg, s.o.log} {
		if err := os.MkdirAll(cmp.Or(dir, "."), 0o777); err != nil {
			return err
		}
	}
	for _, name := range s.o.files() {
		if err := writable(name); err != nil {
			return err
		}
	}
	return nil
}

// read reads the trace, if there is one.
func (s *study) read() (err error) {
	o := s.o
	if o.swf == "" {
		return nil
	}
	if s.trace, err = openTrace(o.swf); err != nil {
		return err
	}
	if s.trace.nodes > 0 && !o.set["nodes"] {
		o.nodes = min(s.trace.nodes, maxNodes)
	}
	if !o.set["cores"] {
		o.cores = max(1, (s.trace.procs+o.nodes-1)/o.nodes) // else the widest job may not fit
		if o.cores > maxCores {
			return fmt.Errorf("%s: %d processors on %s are more than %d each: give more with -nodes, or fewer with -cores", o.swf, s.trace.procs, lines.Count(o.nodes, "node"), maxCores)
		}
	}
	if !o.set["load"] {
		o.load = 0
	}
	s.work = fromTrace(s.trace, o)
	if len(s.work) == 0 {
		return fmt.Errorf("%s: no job fits on %d nodes with %d cores: give more with -nodes or -cores", o.swf, o.nodes, o.cores)
	}
	if o.set["jobs"] {
		s.work = s.work[:min(o.jobs, len(s.work))]
	}
	if err := rescale(s.work, o); err != nil {
		return err
	}
	name := lines.Escape(o.swf)
	for _, line := range s.trace.skipped {
		fmt.Fprintf(s.stderr, "simulate: %s: %s\n", name, line)
	}
	if n := s.trace.bad; n > 0 {
		fmt.Fprintf(s.stderr, "simulate: %s: %d skipped, %s left\n", name, n, lines.Count(len(s.work), "job"))
	}
	if n := s.trace.raised; n > 0 {
		fmt.Fprintf(s.stderr, "simulate: %s: %s longer than asked for; the runtime is the limit\n", name, lines.Count(n, "job")+" ran")
	}
	return nil
}

// workload returns the jobs of a seed.
func (s *study) workload(seed uint64) ([]arrival, error) {
	if s.work != nil {
		return s.work, nil
	}
	work := draw(s.o, rand.New(rand.NewPCG(seed, 1)))
	return work, rescale(work, s.o)
}

// Garbage is collected later than it would be. Much later costs more: the caches hold less
// of the memory.
const (
	gcPercent = 200
	gcMemory  = 1 << 30 // bytes, from which on it is collected as often as it takes
)

// play runs the workload with all seeds, both ways, and then the sweep.
func (s *study) play(ctx context.Context) error {
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(gcMemory))
	first, err := s.workload(s.o.seed)
	if err != nil {
		return err
	}
	s.offered = loadOf(first, s.o)
	jobs := 2 * s.o.seeds * len(first)
	if s.o.sweep {
		jobs *= len(slowShares)
		if !slices.Contains(slowShares, s.o.straggle) {
			jobs += jobs / len(slowShares)
		}
	}
	step, stop := s.bar(jobs)
	defer stop()
	if err := s.simulate(ctx, step); err != nil || !s.o.sweep {
		return err
	}
	return s.sweep(ctx, step)
}

// simulate runs the workload with all seeds, both ways. If ctx is canceled, the pairs that
// are complete count.
func (s *study) simulate(ctx context.Context, step func(int)) error {
	o := s.o
	s.runs = make([]pair, o.seeds)
	work := make([]func() ([]arrival, error), o.seeds)
	for i := range work {
		work[i] = sync.OnceValues(func() ([]arrival, error) { return s.workload(o.seed + uint64(i)) })
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	live := func(i int64) error {
		jobs, err := work[i/2]()
		if err != nil {
			return err
		}
		c, err := newCluster(o, jobs, way(i%2), o.seed+uint64(i/2))
		if err != nil {
			return err
		}
		s.runs[i/2][i%2] = c
		return c.play(ctx, step)
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 2*o.seeds) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < 2*int64(o.seeds) && ctx.Err() == nil; i = next.Add(1) - 1 {
				if err := live(i); err != nil {
					cancel(err)
				}
			}
		})
	}
	workers.Wait()
	s.runs = slices.DeleteFunc(s.runs, func(p pair) bool {
		return slices.ContainsFunc(p[:], func(c *cluster) bool { return c == nil || c.left > 0 })
	})
	return context.Cause(ctx)
}
