// Command purge shows how finished jobs go, and what remains of them. It makes
// up jobs that ended in the last two weeks, shows them in a table, and tells
// which of them a purge would remove, and why. Like "flux job purge" it removes
// nothing unless it is told -force.
//
//	purge                              what would go by an age limit of 7 days
//	purge -force                       it goes; what remains; every refusal by id
//	purge -num-limit 9995 -batch 2     the oldest go until 9995 are left
//	purge -force ID…                   these go, whatever the limits say
//	purge -step 30d                    a clock that steps removes nothing
//	purge -jobs 1000000 -force         with a bar on the terminal
//	purge -dir PATH                    jobs in files, which the next run finds again
//	purge -i                           commands on standard input; try help
//
// Jobs, ids and the clock are made up of -seed, so that the same flags give the
// same output; only the times and bytes on standard error are measured. The ids
// in the output can be given on the next command line.
//
// What is worth a look is how an embedder uses the library:
//
//   - purge.Recover makes the index of what a store has, in any order.
//   - Index.Plan is the dry run. It is the very plan that a purge would go by,
//     so that what is announced and what goes can not differ.
//   - Index.Pin keeps a job, and says who wants it: here the housekeeping of a
//     node, somebody who waits for the result, and a job that depends on it. A
//     pinned job stays however old it is, and does not hold up younger ones.
//   - purge.Runner does a batch a heartbeat: it plans, has the store put the
//     watermark and the tombstones and then unlink the jobs, and only then takes
//     them out of the index. The bar moves between batches; a daemon would do
//     other work there.
//   - With -dir the jobs are in a purge/dirstore, with a log each. A run begins
//     with what a restart does: jobstate folds the logs, and the tombstones and
//     the watermark are read back. The clock is made up there, too, so that this is
//     no tool for the directories of others.
//   - A tombstone answers who depends on a job that is gone.
//   - The caller passes the time. One that is before the last, or far beyond it,
//     is an error: by a clock that is a year ahead every job is old.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// Exit statuses.
const (
	exitOK    = 0
	exitFault = 1 // a job that was named did not go, or the output could not be written
	exitUsage = 2
)

const (
	defaultJobs  = 10_000
	defaultFiled = 100       // in a directory, where each costs some fsyncs
	maxJobs      = 5_000_000 // 1.5 GB, most of it for dry runs of them all
	maxFiled     = 10_000
	maxPins      = 1000
	maxIDs       = 100 // on a command line, or in one command
)

// defaultAge is the age limit where no limit is given.
const defaultAge = "7d"

// options is what the command line says.
type options struct {
	jobs, pin   int
	seed        uint64
	limits      purge.Limits
	force       bool
	interactive bool
	step        time.Duration // 0: the clock is right
	dir         string        // "": in memory
	ids         []jobid.ID
}

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is the command, without the process around it.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "purge: %v\npurge -h tells what there is\n", err)
		return exitUsage
	}
	out := bufio.NewWriter(stdout)
	s, err := newSession(o, out, stderr)
	if err == nil {
		if o.interactive {
			err = s.interact(stdin, isTerminal(stdin) && isTerminal(stdout))
		} else {
			err = s.demonstrate(o)
		}
		err = errors.Join(err, s.close())
	}
	if err = errors.Join(err, out.Flush()); err != nil {
		fmt.Fprintln(stderr, "purge:", strings.TrimPrefix(err.Error(), "purge: "))
		return exitFault
	}
	return exitOK
}

// parse reads the command line; -h is told on stdout.
func parse(args []string, stdout io.Writer) (options, error) {
	o := options{jobs: -1, seed: 1, pin: 3}
	var minAge time.Duration
	table := map[string]any{} // as a configuration has the limits
	f := flag.NewFlagSet("purge", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	f.Func("jobs", fmt.Sprintf("make up `N` inactive jobs, 0 to %d (default %d, with -dir %d)", maxJobs, defaultJobs, defaultFiled),
		number(&o.jobs, 0, maxJobs))
	f.Uint64Var(&o.seed, "seed", o.seed, "the `NUMBER` that the jobs are drawn with")
	f.Func("age-limit", "jobs older than `FSD` go, as 12h or 7d; infinity is no limit (default "+defaultAge+" without -num-limit)",
		func(s string) error { return setAge(table, s) })
	f.Func("num-limit", "the oldest of more than `N` jobs go; -1 is no limit (default -1)",
		func(s string) error { return setNumber(table, s) })
	f.Func("min-age", "no job younger than `FSD` goes, whatever the other limits say (default 0)", duration(&minAge))
	f.Func("batch", fmt.Sprintf("at most `N` jobs go at a time, 1 to %d (default %d)", purge.MaxBatch, purge.DefaultBatch),
		number(&o.limits.Batch, 1, purge.MaxBatch))
	f.BoolVar(&o.force, "force", false, "purge; without it there is a dry run")
	f.Func("pin", fmt.Sprintf("pin the `N` oldest jobs, 0 to %d (default %d)", maxPins, o.pin), number(&o.pin, 0, maxPins))
	f.Func("step", "show what happens if the clock steps by `FSD`, as 30d or -1h", signed(&o.step))
	f.StringVar(&o.dir, "dir", "", "keep the jobs in the directory `PATH`; if it has some, use those and make up none")
	f.BoolVar(&o.interactive, "i", false, "read commands from standard input; help tells which")
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, "usage: purge [flags] [ID…]\n\nMakes up inactive jobs and tells which of them a purge would remove: by the limits, or\n"+
			"those with the IDs. With -force they go. An FSD is a number of seconds or as 90s, 12h, 7d.\n\n")
		f.SetOutput(stdout)
		f.PrintDefaults()
		return o, err
	case err != nil:
		return o, err
	case o.interactive && (f.NArg() > 0 || o.force || o.step != 0):
		return o, errors.New("-i takes no ID, no -force and no -step: give them as commands")
	case o.dir != "" && o.jobs > maxFiled:
		return o, fmt.Errorf("-jobs %d is too much for a directory: at most %d", o.jobs, maxFiled)
	case f.NArg() > maxIDs:
		return o, fmt.Errorf("%d IDs, at most %d are allowed: give them in several runs", f.NArg(), maxIDs)
	case f.NArg() > 0 && len(table) > 0:
		return o, errors.New("IDs go whatever the limits say: leave out the limits or the IDs")
	}
	if o.jobs < 0 {
		o.jobs = defaultJobs
		if o.dir != "" {
			o.jobs = defaultFiled
		}
	}
	if o.ids, err = parseIDs(f.Args()); err != nil {
		return o, err
	}
	if len(table) == 0 {
		table[ageKey] = defaultAge
	}
	limits, err := purge.ParseLimits(table)
	if err != nil {
		return o, err
	}
	limits.Batch = o.limits.Batch
	if minAge > 0 {
		limits.MinAge = purge.To(minAge)
	}
	o.limits = limits
	return o, nil
}

// The keys of a Flux configuration that the flags stand for.
const (
	ageKey    = "inactive-age-limit"
	numberKey = "inactive-num-limit"
)

// setAge puts an age limit into a configuration; infinity is none.
func setAge(table map[string]any, s string) error {
	if _, err := fsd.Parse(s); err != nil {
		return errDuration
	}
	table[ageKey] = s
	return nil
}

// setNumber puts a number limit into a configuration; -1 is none.
func setNumber(table map[string]any, s string) error {
	var n int
	if err := number(&n, -1, maxJobs)(s); err != nil {
		return err
	}
	table[numberKey] = n
	return nil
}

var errDuration = errors.New("want a duration, as 90s, 12h or 7d")

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

// duration returns what sets d.
func duration(d *time.Duration) func(string) error {
	return func(s string) error {
		v, err := fsd.ParseDuration(s)
		if err != nil {
			return errDuration
		}
		*d = v
		return nil
	}
}

// signed returns what sets d, which may begin with a minus.
func signed(d *time.Duration) func(string) error {
	return func(s string) error {
		rest, back := strings.CutPrefix(s, "-")
		if err := duration(d)(rest); err != nil || *d > maxStep {
			return fmt.Errorf("want a duration of at most %v, as 30d or -1h", fsd.Duration(maxStep.Seconds()))
		}
		if back {
			*d = -*d
		}
		return nil
	}
}

// maxStep is the greatest step of the clock: ids count 34 years from the epoch.
const maxStep = 20 * 365 * 24 * time.Hour

// parseIDs reads job ids in any form. One that is there twice counts once.
func parseIDs(texts []string) ([]jobid.ID, error) {
	ids := make([]jobid.ID, 0, len(texts))
	for _, text := range texts {
		id, err := jobid.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%w: want an id as the list shows it, or a number", err)
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
