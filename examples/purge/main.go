// Command purge shows how finished jobs go, and what remains of them. It makes up
// jobs that ended in the last two weeks, shows them in a table, and tells which of
// them a purge would remove, and why. Like "flux job purge" it removes nothing
// without -force.
//
//	purge                              what would go by an age limit of 7 days
//	purge -force                       it goes
//	purge -num-limit 9995 -batch 2     the oldest go until 9995 are left
//	purge -force -id ƒ2d -id ƒ3f       these go, whatever the limits say
//	purge -step 30d                    a clock that steps removes nothing
//	purge -store jobs.db               jobs in a bbolt file that the next run reads
//	purge -dir jobs                    jobs in a directory of plain files
//
// Jobs, ids and the clock are made up of -seed: the same flags print the same. What
// an embedder does with the library is in session.go.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

const (
	defaultAge   = "7d"
	defaultJobs  = 10_000
	defaultFiled = 100 // in a directory, where each job needs some fsyncs
	maxJobs      = 100_000
	maxPins      = 1000
)

// options is what the command line says.
type options struct {
	jobs, pin  int
	seed       uint64
	limits     purge.Limits
	force      bool
	step       time.Duration
	store, dir string
	ids        []jobid.ID
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the command, without the process around it. It returns the exit status: 1
// if a job that was named did not go or something failed, 2 for a wrong command
// line.
func run(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "purge: %v\npurge -h tells what there is\n", err)
		return 2
	}
	out := bufio.NewWriter(stdout)
	err = show(o, out, stderr)
	if err = errors.Join(err, out.Flush()); err != nil {
		fmt.Fprintln(stderr, "purge:", strings.TrimPrefix(err.Error(), "purge: "))
		return 1
	}
	return 0
}

// parse reads the command line; -h prints on stdout.
func parse(args []string, stdout io.Writer) (options, error) {
	o := options{jobs: -1, seed: 1, pin: 3}
	table := map[string]any{} // the limits, as a Flux configuration has them
	f := flag.NewFlagSet("purge", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	f.Func("jobs", fmt.Sprintf("make up `N` inactive jobs, 0 to %d (default %d, with -dir %d)", maxJobs, defaultJobs, defaultFiled),
		number(&o.jobs, 0, maxJobs))
	f.Uint64Var(&o.seed, "seed", o.seed, "the `NUMBER` that the jobs are drawn with")
	f.Func("age-limit", "purge jobs older than `FSD`, as 12h or 7d (default "+defaultAge+" without -num-limit)",
		func(s string) error { table["inactive-age-limit"] = s; return nil })
	f.Func("num-limit", "purge the oldest of more than `N` jobs",
		func(s string) error { table["inactive-num-limit"] = integer(s); return nil })
	f.Func("min-age", "purge no job younger than `FSD`", func(s string) error {
		d, err := duration(s)
		o.limits.MinAge = jobstate.Some(d)
		return err
	})
	f.Func("batch", fmt.Sprintf("purge at most `N` jobs at a time, 1 to %d (default %d)", purge.MaxBatch, purge.DefaultBatch),
		number(&o.limits.Batch, 1, purge.MaxBatch))
	f.BoolVar(&o.force, "force", false, "purge; without it this is a dry run")
	f.Func("id", "purge the job with the `ID`, whatever the limits say; may be repeated", func(s string) error {
		id, err := jobid.Parse(s)
		o.ids = append(o.ids, id)
		return err
	})
	f.Func("pin", fmt.Sprintf("pin the `N` oldest jobs, 0 to %d (default %d)", maxPins, o.pin), number(&o.pin, 0, maxPins))
	f.Func("step", "show what happens if the clock steps by `FSD`, as 30d or -1h", func(s string) (err error) {
		rest, back := strings.CutPrefix(s, "-")
		o.step, err = duration(rest)
		if back {
			o.step = -o.step
		}
		return err
	})
	f.StringVar(&o.store, "store", "", "keep the jobs in the bbolt `FILE`; if it has some, use those")
	f.StringVar(&o.dir, "dir", "", "keep the jobs in the directory `PATH`; if it has some, use those")
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, "usage: purge [flags]\n\nMakes up inactive jobs and tells which of them a purge would remove. With -force they go.\n"+
			"An FSD is a number of seconds, or like 90s, 12h, 7d.\n\n")
		f.SetOutput(stdout)
		f.PrintDefaults()
		return o, err
	case err != nil:
		return o, err
	case f.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q: job ids go with -id", f.Arg(0))
	case len(o.ids) > 0 && len(table) > 0:
		return o, errors.New("-id ignores the limits: leave out one of them")
	case o.store != "" && o.dir != "":
		return o, errors.New("-store and -dir exclude each other")
	}
	if o.jobs < 0 {
		o.jobs = defaultJobs
		if o.dir != "" {
			o.jobs = defaultFiled
		}
	}
	if len(table) == 0 {
		table["inactive-age-limit"] = defaultAge
	}
	limits, err := purge.ParseLimits(table)
	limits.MinAge, limits.Batch = o.limits.MinAge, o.limits.Batch
	o.limits = limits
	return o, err
}

// number returns what sets n, which is to be from least to most.
func number(n *int, least, most int) func(string) error {
	return func(s string) error {
		v, err := strconv.Atoi(s)
		if err != nil || v < least || v > most {
			return fmt.Errorf("want a number from %d to %d", least, most)
		}
		*n = v
		return nil
	}
}

// integer returns the number in a text, or the text for ParseLimits to refuse.
func integer(s string) any {
	if v, err := strconv.Atoi(s); err == nil {
		return v
	}
	return s
}

// duration reads a duration of at most 20 years: ids count 34 years from the epoch.
func duration(s string) (time.Duration, error) {
	d, err := fsd.Parse(s)
	if err == nil && time.Duration(d) > 20*365*24*time.Hour {
		err = errors.New("want at most 20 years")
	}
	return time.Duration(d), err
}
