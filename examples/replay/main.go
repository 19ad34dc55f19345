// Command replay reads logs that a Flux instance wrote and prints how each job
// ended.
//
//	replay [flags] [FILE…]
//
// A FILE is the log of one job, JSON lines of recorded jobs (id, eventlog, R,
// jobspec), a dump archive of an instance, or any of these compressed with gzip
// or bzip2. A folder means the files in it that have such names. - is standard
// input. Without FILE it reads standard input if that is a pipe or a file, else
// a recorded sample.
//
// The default is a table like a job listing, oldest job first. -failed leaves the jobs
// that did not complete: which failed, and why. -waits tells how long each job was in each
// state, and -at who held which node at a time. -follow prints the events of a job that
// runs. A terminal cuts what does not fit; a pipe
// or a file gets all of it.
//
// The exit status is
// 0 if all is well, 1 if a job could not be read or -validate found an error, and
// 2 for bad usage.
package main

import (
	"bufio"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/jobstate"
)

//go:embed testdata/sample.jsonl.gz
var sample []byte

// lookEvery is how often -follow looks for more.
const lookEvery = 100 * time.Millisecond

// gcPercent keeps a million jobs below 100 MB.
const gcPercent = 300

func main() {
	// What is alive is small, so that little memory buys a collector that seldom runs.
	debug.SetGCPercent(gcPercent)
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

const usage = `usage: replay [flags] [FILE…]

Prints how the jobs in logs of a Flux instance ended. A FILE is the eventlog of
a job, JSON lines of recorded jobs, a dump archive, one of these compressed with gzip or
bzip2, or a folder of them; - is standard input. Without FILE it reads standard input if
that is a pipe or a file, else a recorded sample.

`

// run is the command, without the process around it.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("replay", flag.ContinueOnError)
	asJSON := flags.Bool("json", false, "print one JSON object for each job, with the attribute names of RFC 43")
	asEvents := flags.Bool("events", false, "print a timeline of each job's events")
	asFindings := flags.Bool("validate", false, "print what is wrong with each log by RFC 18 and RFC 21, and how much could not be read")
	waits := flags.Bool("waits", false, "print how long each job was in each state")
	var at jobstate.Optional[eventlog.Timestamp]
	flags.Func("at", "print who held which node at the `time`: 2026-11-21 15:04 (UTC), RFC 3339, or seconds since 1970", func(s string) (err error) {
		at.Value, err = parseTime(s)
		at.Set = true
		return err
	})
	followed := ""
	flags.Func("follow", "print the events of the job whose eventlog is `FILE`, as they come, until it is inactive", func(s string) error {
		if followed = s; s == "" {
			return errors.New("want the name of a file")
		}
		return nil
	})
	failed := flags.Bool("failed", false, "leave out the jobs that are not over, or completed")
	refuse := func(why error) int { return lines.Refuse(stderr, "replay", why) }
	if err := lines.ParseFlags(flags, args, stdout, usage); err != nil {
		return refuse(err)
	}
	fail := func(why any) int {
		fmt.Fprintln(stderr, "replay:", why)
		return lines.ExitFault
	}
	modes := 0
	for _, on := range []bool{*asJSON, *asEvents, *asFindings, *waits, at.Set, followed != ""} {
		if on {
			modes++
		}
	}
	switch {
	case modes > 1:
		return refuse(errors.New("-json, -events, -validate, -waits, -at and -follow exclude each other: give one"))
	case followed != "" && *failed:
		return refuse(errors.New("-failed is not for -follow, which prints one job: leave it out"))
	case followed != "" && flags.NArg() > 0:
		return refuse(fmt.Errorf("-follow reads one file: leave out %q", flags.Arg(0)))
	case followed != "":
		if err := follow(followed, stdout, func() { time.Sleep(lookEvery) }); err != nil {
			return fail(lines.Escape(err.Error()))
		}
		return lines.ExitOK
	}

	out := bufio.NewWriter(stdout)
	t := &table{w: out, width: width(stdout), form: jobTable()}
	text := &plain{w: out, counts: *asFindings}
	var p printer = text
	switch {
	case *asJSON:
		text.make = renderListing
	case *asEvents:
		text.make = renderTimeline
	case *asFindings:
		text.make = renderFindings
	case *waits:
		t.form, p = waitsTable(), t
	case at.Set:
		t.form, p = holdersTable(at.Value), t
	default:
		p = t
	}
	s := newSession(p, stderr)
	s.any = *asFindings
	if *failed {
		s.only = (*job).failed
	}
	s.readAll(flags.Args(), stdin)
	text.unreadable = s.faults
	if err := errors.Join(s.failed, p.close(), out.Flush()); err != nil {
		return fail(err)
	}
	if at.Set && t.columns == nil {
		fmt.Fprintf(stderr, "replay: no job held a node at %s UTC\n", at.Value.Time().UTC().Format(time.DateTime))
	}
	if s.faults > 0 || text.errors > 0 {
		return lines.ExitFault
	}
	return lines.ExitOK
}

// width returns the number of columns of a terminal, 0 if w is none.
func width(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			return columns
		}
	}
	return 0
}

// oneLine returns s without what a terminal would obey, since a note in a log can hold
// anything, and without newlines. It cuts s at n characters; 0 is all of them.
func oneLine(s string, n int) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) {
		s = lines.Escape(strings.Map(blank, s))
	}
	if n == 0 || utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// blank returns a space for white space.
func blank(r rune) rune {
	if unicode.IsSpace(r) {
		return ' '
	}
	return r
}
