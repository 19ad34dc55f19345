// Command replay reads logs that a Flux instance wrote and tells what became
// of each job.
//
//	replay [flags] [FILE…]
//
// A FILE is the log of one job, JSON lines of recorded jobs (id, eventlog, R,
// jobspec), a dump archive of an instance, or any of these compressed with
// gzip or bzip2; - is standard input, and so is no FILE where something is
// piped in. With nothing to read it shows a recorded sample.
//
// The default is a table like a job listing. The exit status is 0 if all is
// well, 1 if a job could not be read or -validate found an error, and 2 for
// wrong usage.
package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/joblife/joblife/jobstate"
)

//go:embed testdata/sample.jsonl.gz
var sample []byte

// Exit statuses.
const (
	exitOK    = 0
	exitFault = 1 // findings, or jobs that could not be read
	exitUsage = 2
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// diagramFlag is -diagram, -diagram=dot or -diagram=mermaid.
type diagramFlag struct{ format jobstate.DiagramFormat }

func (d *diagramFlag) String() string   { return "" }
func (d *diagramFlag) IsBoolFlag() bool { return true }
func (d *diagramFlag) Set(s string) error {
	switch s {
	case "true", "mermaid":
		d.format = jobstate.DiagramMermaid
	case "dot":
		d.format = jobstate.DiagramDOT
	case "false":
		d.format = 0
	default:
		return errors.New("want dot or mermaid")
	}
	return nil
}

// run is the command, without the process around it.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("replay", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, "usage: replay [flags] [FILE…]\n\n"+
			"Tells what became of the jobs in logs that a Flux instance wrote. A FILE is the log of\n"+
			"a job, JSON lines of recorded jobs, or a dump archive; gzip or bzip2 of these; - is\n"+
			"standard input. Without FILE: what is piped in, else a recorded sample.\n\n")
		flags.PrintDefaults()
	}
	asJSON := flags.Bool("json", false, "print one JSON object a job, with the attribute names of RFC 43")
	asEvents := flags.Bool("events", false, "print a timeline of each job's events")
	asFindings := flags.Bool("validate", false, "print what is wrong with each log by RFC 18 and RFC 21")
	var diagram diagramFlag
	flags.Var(&diagram, "diagram", "print the state diagram and read nothing; dot or mermaid (the default)")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitOK
		}
		return exitUsage
	}
	modes := 0
	for _, on := range []bool{*asJSON, *asEvents, *asFindings, diagram.format != 0} {
		if on {
			modes++
		}
	}
	if modes > 1 {
		fmt.Fprintln(stderr, "replay: -json, -events, -validate and -diagram exclude each other")
		return exitUsage
	}
	if diagram.format != 0 {
		if flags.NArg() > 0 {
			fmt.Fprintln(stderr, "replay: -diagram reads no file")
			return exitUsage
		}
		if err := jobstate.Diagram(stdout, diagram.format); err != nil {
			fmt.Fprintln(stderr, "replay:", err)
			return exitFault
		}
		return exitOK
	}

	out := bufio.NewWriter(stdout)
	var p printer = newTable(out)
	switch {
	case *asJSON:
		p = &jsonLines{out}
	case *asEvents:
		p = &timeline{out}
	case *asFindings:
		p = &findings{out: out}
	}
	s := session{printer: p, stderr: stderr, progress: newProgress(stderr)}
	s.readAll(flags.Args(), stdin)
	s.progress.done()
	if err := errors.Join(p.close(), out.Flush()); err != nil {
		fmt.Fprintln(stderr, "replay:", err)
		return exitFault
	}
	if s.faults > 0 || p.faults() {
		return exitFault
	}
	return exitOK
}

// printer is one of the four ways to tell of jobs.
type printer interface {
	job(*job) error
	takesAny() bool // also what is no job, for lack of a submit
	faults() bool   // whether it found errors
	close() error   // ends the output
}

// session reads all inputs and hands each job to the printer.
type session struct {
	printer  printer
	stderr   io.Writer
	progress *progress
	faults   int // jobs and inputs that could not be read
	failed   bool
}

// readAll reads the named files, or what stands in for them.
func (s *session) readAll(names []string, stdin io.Reader) {
	if len(names) == 0 {
		if !piped(stdin) {
			fmt.Fprintln(s.stderr, "replay: no FILE: this is a recorded sample (replay -h for help)")
			s.read("sample", bytes.NewReader(sample))
			return
		}
		names = []string{"-"}
	}
	for _, name := range names {
		if name == "-" {
			s.read("standard input", stdin)
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			s.fault("%v", err)
			continue
		}
		s.read(name, f)
		_ = f.Close() // it was only read
	}
}

// piped reports whether somebody feeds standard input: it is a pipe or a file,
// not a terminal, a device or nothing.
func piped(stdin io.Reader) bool {
	f, ok := stdin.(*os.File)
	if !ok {
		return stdin != nil
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice == 0
}

// fault says that something could not be read.
func (s *session) fault(format string, args ...any) {
	s.faults++
	s.progress.clear()
	fmt.Fprintf(s.stderr, "replay: "+format+"\n", args...)
}

// read reads one input.
func (s *session) read(name string, r io.Reader) {
	if err := s.readInput(name, s.progress.count(r)); err != nil {
		s.fault("%s: %v", name, err)
	}
}

// add replays a job and prints it.
func (s *session) add(source string, in input) {
	j, err := newJob(in)
	if err != nil {
		s.fault("%s: %v", source, err)
	}
	if s.failed || !j.Submitted() && !s.printer.takesAny() {
		return
	}
	s.progress.job()
	if err := s.printer.job(j); err != nil {
		s.failed = true // the output is gone; close reports it
	}
}

// oneLine cuts s at its first newline and at n characters, and takes out what
// a terminal would obey: a note in a log can hold anything.
func oneLine(s string, n int) string {
	s, _, _ = strings.Cut(s, "\n")
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
