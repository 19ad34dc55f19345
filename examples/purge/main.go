// Command purge shows how inactive jobs are purged, and what remains of them. It makes
// up jobs that ended in the last two weeks, and prints which of them a purge would
// remove, and why. Like "flux job purge" it removes nothing without -force.
//
//	purge                              what an age limit of 7 days would purge
//	purge -force                       purge these
//	purge -num-limit 9995 -batch 2     the oldest jobs beyond 9995, two at a time
//	purge -force -id ƒ48759GdCJB       this job, whatever the limits say
//	purge -store jobs.db               jobs in a bbolt file that the next run reads
//
// Jobs, ids and the clock follow from -seed: the same flags print the same.
// session.go shows how an embedder uses the library.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

const (
	defaultAge = 7 * 24 * time.Hour
	maxJobs    = 100_000
)

// options is what the command line says.
type options struct {
	jobs, pin int
	seed      uint64
	limits    purge.Limits
	force     bool
	store     string
	ids       []jobid.ID
}

const usage = `Usage: purge [flags]

Makes up inactive jobs and prints which of them a purge would remove. With -force it purges them.
An FSD is a number of seconds, or a number with a unit, such as 90s, 12h or 7d.
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the command without the process around it. It returns the exit status: 1
// if a job of -id was not purged or something failed, 2 for bad flags.
func run(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout)
	if err != nil {
		return lines.Refuse(stderr, "purge", err)
	}
	out := bufio.NewWriter(stdout)
	err = show(o, out, stderr)
	if err = errors.Join(err, out.Flush()); err != nil {
		fmt.Fprintln(stderr, "purge:", strings.TrimPrefix(strings.TrimPrefix(err.Error(), "purge: "), "boltstore: "))
		return 1
	}
	return 0
}

// parse reads the command line. It prints the help to stdout.
func parse(args []string, stdout io.Writer) (options, error) {
	o := options{jobs: 10_000, pin: 3}
	maxCount := -1
	f := flag.NewFlagSet("purge", flag.ContinueOnError)
	f.Func("jobs", fmt.Sprintf("make up `N` inactive jobs, 0 to %d (default %d)", maxJobs, o.jobs), lines.Number(&o.jobs, 0, maxJobs))
	f.Uint64Var(&o.seed, "seed", 1, "the `number` that seeds the random jobs")
	f.Func("age-limit", "purge jobs older than `FSD` (default 7d without -num-limit)", duration(&o.limits.MaxAge))
	f.Func("num-limit", "purge the oldest of more than `N` jobs", lines.Number(&maxCount, 0, maxJobs))
	f.Func("min-age", "purge no job younger than `FSD`", duration(&o.limits.MinAge))
	f.Func("batch", fmt.Sprintf("purge at most `N` jobs at a time, 1 to %d (default %d)", purge.MaxBatch, purge.DefaultBatch),
		lines.Number(&o.limits.Batch, 1, purge.MaxBatch))
	f.BoolVar(&o.force, "force", false, "purge; without it this is a dry run")
	f.Func("id", "purge the job with the `ID`, whatever the limits say; may be repeated", func(s string) error {
		id, err := jobid.Parse(s)
		if err != nil {
			return errors.New("want the id of a job, such as ƒ48759GdCJB")
		}
		o.ids = append(o.ids, id)
		return nil
	})
	f.Func("pin", fmt.Sprintf("pin the `N` oldest jobs, 0 to 1000 (default %d)", o.pin), lines.Number(&o.pin, 0, 1000))
	f.StringVar(&o.store, "store", "", "keep the jobs in the bbolt `file`; if it has jobs already, use those")
	err := lines.ParseFlags(f, args, stdout, usage)
	if maxCount >= 0 {
		o.limits.MaxCount = jobstate.Some(maxCount)
	}
	switch {
	case err != nil:
	case f.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q: give job ids with -id", f.Arg(0))
	case len(o.ids) > 0 && (o.limits.MaxAge.Set || o.limits.MaxCount.Set):
		err = errors.New("-id ignores the limits: give either -id or limits")
	case !o.limits.MaxAge.Set && !o.limits.MaxCount.Set:
		o.limits.MaxAge = jobstate.Some(defaultAge)
	}
	return o, err
}

// duration returns a function that sets a limit.
func duration(l *jobstate.Optional[time.Duration]) func(string) error {
	return func(s string) error {
		d, err := fsd.Parse(s)
		if err != nil {
			return errors.New("want a duration, such as 90s, 12h or 7d")
		}
		*l = jobstate.Some(time.Duration(d))
		return nil
	}
}
