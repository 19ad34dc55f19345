package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/fsd"
)

// options are what the command line says.
type options struct {
	swf, log, html, svg, csv, json, swfOut string

	policy                                                                  string
	depth, reservations, jobs, nodes, cores, gpus, maxSize, restarts, seeds int
	seed                                                                    uint64
	share, sweep                                                            bool

	gpuJobs, load, trim, estimate, fail, straggle float64

	arrival, runtime, maxRuntime, prolog, epilog, straggler, mtbf, repair seconds

	set map[string]bool // flags that were given
}

const (
	maxNodes = 1 << 16
	maxSeeds = 1000
)

// parse reads the command line. It prints the help to stdout.
func parse(args []string, stdout io.Writer) (*options, error) {
	o := &options{
		policy: "easy", jobs: 5000, nodes: 128, cores: 48, gpuJobs: 0.5, load: 0.8, trim: 0.1, estimate: 2, fail: 0.02, straggle: 0.005,
		arrival: 60, runtime: 1200, maxRuntime: 86400, prolog: 10, epilog: 30, straggler: 1800, repair: 4 * 3600,
		seeds: 5, seed: 1, html: "simulate.html", set: make(map[string]bool),
	}
	f := flags{flag.NewFlagSet("simulate", flag.ContinueOnError)}
	f.StringVar(&o.swf, "swf", "", "the workload in the `file`, in the Standard Workload Format; gzip too")
	f.StringVar(&o.policy, "policy", o.policy, policyNames+": `which` job starts next")
	f.number("depth", "the policy considers `N` jobs, easy so many behind the first; default all, of conservative 30, of hybrid 32, of fair 100", &o.depth, 1, maxJobs)
	f.number("reservations", "with -policy hybrid the first `N` jobs that have to wait get reservations; default 8. It is Fluxion's reservation-depth, 64 there, and -depth its queue-depth", &o.reservations, 1, maxJobs)
	f.number("jobs", "make up `N` jobs; of a trace, take the first N", &o.jobs, 1, maxJobs)
	f.number("nodes", "`N` nodes; default 128, or what the trace says", &o.nodes, 1, maxNodes)
	f.number("cores", "`N` cores on each node; with -swf, as many as the processors of the trace need", &o.cores, 1, 1<<16)
	f.BoolVar(&o.share, "share", false, "jobs share nodes: one that does not fill nodes takes cores; figures of nodes are by cores then")
	f.number("gpus", "with -share, `N` gpus on each node, at most as many as it has cores; SWF has none", &o.gpus, 0, 1<<16)
	f.float("gpu-jobs", "the share `P` of made-up jobs that take gpus: one with each 2N-th part of the cores of a node", &o.gpuJobs, 0, 1)
	f.number("max-size", "no made-up job has more than `N` nodes; default half of them, at most 256", &o.maxSize, 1, maxNodes)
	f.float("load", "move the arrivals so that the offered load is `X`, of gpus if theirs is more; 0: as they are", &o.load, 0, 100)
	f.float("trim", "leave the first and the last share `P` of the time, by when jobs come, out of the means", &o.trim, 0, 0.45)
	f.float("estimate", "jobs ask for `X` times their runtime, on average or where a trace does not say", &o.estimate, 1, 1000)
	f.float("fail", "the share `P` of made-up jobs that fail", &o.fail, 0, 1)
	f.float("straggle", "the share `P` of nodes whose epilog is slow", &o.straggle, 0, 1)
	f.duration("arrival", "a made-up job each `FSD`, with -load 0", &o.arrival, 1)
	f.duration("runtime", "the median runtime `FSD` of made-up jobs", &o.runtime, 1)
	f.duration("max-runtime", "no made-up job runs longer than `FSD`", &o.maxRuntime, 1)
	f.duration("prolog", "a prolog takes about `FSD`; 0: there is none", &o.prolog, 0)
	f.duration("epilog", "an epilog takes about `FSD`; 0: there is none", &o.epilog, 0)
	f.duration("straggler", "how much longer, `FSD` on average, a slow epilog takes", &o.straggler, 0)
	f.duration("mtbf", "a node fails each `FSD` on average; 0: never", &o.mtbf, 0)
	f.duration("repair", "it takes `FSD` to repair a node", &o.repair, 1)
	f.BoolVar(&o.sweep, "sweep", false, "simulate other shares of slow epilogs too: 0, 0.1, 0.5, 1 and 5 %")
	f.number("restarts", "end the manager and the scheduler `N` times, and restart them from the log", &o.restarts, 0, 1000)
	f.number("seeds", "simulate with `N` seeds", &o.seeds, 1, maxSeeds)
	f.Uint64Var(&o.seed, "seed", o.seed, "the first `seed`")
	f.StringVar(&o.log, "log", "", "write the jobs of the first seed into the `folder`, as JSON lines (id, eventlog, R, jobspec) in whole.jsonl and partial.jsonl")
	f.StringVar(&o.html, "html", o.html, `write plots to the `+"`file`"+`; "": none`)
	f.StringVar(&o.svg, "svg", "", "write each plot as an image into the `folder`")
	f.StringVar(&o.csv, "csv", "", "write a row for each job of all runs to the `file`")
	f.StringVar(&o.json, "json", "", "write these rows as JSON to the `file`")
	f.StringVar(&o.swfOut, "swf-out", "", "write what became of the jobs of the first seed into the `folder`, as whole.swf and partial.swf")
	err := lines.ParseFlags(f.FlagSet, args, stdout, usage)
	f.Visit(func(g *flag.Flag) { o.set[g.Name] = true })
	switch {
	case err != nil:
		return nil, err
	case f.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q: a trace is given with -swf", f.Arg(0))
	case policies[o.policy].of == nil:
		return nil, fmt.Errorf("-policy %q: want %s", o.policy, policyNames)
	case o.policy == "fifo" && o.depth > 0:
		return nil, errors.New("-depth is not for -policy fifo: leave it out, or give another policy")
	case o.reservations > 0 && policies[o.policy].reservations == 0:
		return nil, fmt.Errorf("-reservations is not for -policy %s: leave it out, or give hybrid", o.policy)
	case o.gpus > 0 && (!o.share || o.swf != ""):
		return nil, errors.New("-gpus is for made-up jobs that share nodes: give -share, and no -swf")
	case o.set["gpu-jobs"] && o.gpus == 0:
		return nil, errors.New("-gpu-jobs needs -gpus: give how many each node has")
	case o.gpus > o.cores:
		return nil, fmt.Errorf("-gpus %d is more than -cores %d", o.gpus, o.cores)
	case o.maxRuntime < o.runtime:
		return nil, fmt.Errorf("-max-runtime %s is below -runtime %s: give more, or a shorter -runtime", short(float64(o.maxRuntime)), short(float64(o.runtime)))
	}
	o.depth, o.reservations = cmp.Or(o.depth, policies[o.policy].depth), cmp.Or(o.reservations, policies[o.policy].reservations)
	if o.maxSize == 0 {
		o.maxSize = min(max(1, o.nodes/2), 256)
	}
	if o.maxSize > o.nodes {
		return nil, fmt.Errorf("-max-size %d is more than -nodes %d", o.maxSize, o.nodes)
	}
	return o, o.combined()
}

// combined returns which flags have no effect beside others, write to one file, or write to
// that of -swf.
func (o *options) combined() error {
	if o.swf != "" {
		for _, name := range []string{"max-size", "arrival", "runtime", "max-runtime", "fail"} {
			if o.set[name] {
				return fmt.Errorf("-%s is for made-up jobs, and those of -swf are as they are: leave one out", name)
			}
		}
	}
	switch {
	case o.set["arrival"] && o.load > 0:
		return fmt.Errorf("-arrival has no effect, for -load %g moves the arrivals: give -load 0", o.load)
	case o.sweep && o.epilog == 0:
		return errors.New("-sweep is over slow epilogs, and with -epilog 0 there is none: leave one out")
	}
	trace, err := filepath.Abs(o.swf)
	if err != nil {
		return err
	}
	var written []string
	for _, file := range o.files() {
		name, err := filepath.Abs(file)
		switch {
		case err != nil:
			return err
		case o.swf != "" && sameFile(name, trace):
			return fmt.Errorf("an output would be written over the trace %s: give it a name of its own", file)
		case slices.ContainsFunc(written, func(other string) bool { return sameFile(name, other) }):
			return fmt.Errorf("two outputs would be written to %s: give each a name of its own", file)
		}
		written = append(written, name)
	}
	return nil
}

// sameFile reports whether two names are equal, or of one regular file.
func sameFile(a, b string) bool {
	if a == b {
		return true
	}
	one, err := os.Stat(a)
	other, fail := os.Stat(b)
	return err == nil && fail == nil && one.Mode().IsRegular() && os.SameFile(one, other)
}

// files returns the names of all files that may be written.
func (o *options) files() (names []string) {
	for _, f := range (&study{o: o}).outputs() {
		names = append(names, f.name)
	}
	if o.log != "" {
		for _, w := range []way{wholeJob, partialRelease} {
			names = append(names, filepath.Join(o.log, w.file()+".jsonl"))
		}
	}
	if o.svg != "" {
		for _, name := range figureNames {
			if name != "slow" || o.sweep {
				names = append(names, filepath.Join(o.svg, name+".svg"))
			}
		}
	}
	return names
}

// units returns how many parts a node has of which jobs take a number: as many as it has cores
// where jobs share nodes, else 1, the node.
func (o *options) units() int {
	if o.share {
		return o.cores
	}
	return 1
}

// perGPU returns how many cores a job takes with each gpu: half of the cores that a node has for one.
func (o *options) perGPU() int { return max(1, o.cores/max(1, 2*o.gpus)) }

// kinds returns the resources of a node.
func (o *options) kinds() map[string]*idset.Set {
	kinds := map[string]*idset.Set{"core": idset.Range(0, uint32(o.cores-1))}
	if o.gpus > 0 {
		kinds["gpu"] = idset.Range(0, uint32(o.gpus-1))
	}
	return kinds
}

// unit names the parts.
func (o *options) unit() string {
	if o.share {
		return "cores"
	}
	return "nodes"
}

// flags are the flags, with some that check their values.
type flags struct{ *flag.FlagSet }

func (f flags) number(name, text string, to *int, lo, hi int) {
	if *to != 0 {
		text += fmt.Sprintf(" (default %d)", *to)
	}
	f.Func(name, text, lines.Number(to, lo, hi))
}

func (f flags) float(name, text string, to *float64, lo, hi float64) {
	f.Func(name, fmt.Sprintf("%s (default %g)", text, *to), func(s string) error {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(x) || x < lo || x > hi {
			return fmt.Errorf("want a number from %g to %g", lo, hi)
		}
		*to = x
		return nil
	})
}

func (f flags) duration(name, text string, to *seconds, lo seconds) {
	if *to != 0 {
		text += " (default " + short(float64(*to)) + ")"
	}
	f.Func(name, text, func(s string) error {
		d, err := fsd.Parse(s)
		if err != nil {
			return errors.New("want a duration, such as 90s, 12h or 7d")
		}
		t := seconds(time.Duration(d).Round(time.Second) / time.Second)
		if d == fsd.Forever || t < lo || t > maxSeconds {
			return fmt.Errorf("want a duration from %ds to 100 years", lo)
		}
		*to = t
		return nil
	})
}
