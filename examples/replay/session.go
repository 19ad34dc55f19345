package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/joblife/joblife/examples/internal/bar"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/examples/internal/unpack"
)

// A printer prints jobs. render is called by many goroutines at once, the
// others by one, print in the order of the input.
type printer interface {
	render(*job) rendered
	print(rendered) error
	close() error // ends the output
}

// session reads all inputs and hands each job to the printer. One goroutine
// reads and cuts inputs into pieces, others replay the jobs in them, and the
// caller's goroutine prints in the order of the input.
type session struct {
	printer  printer
	stderr   io.Writer
	progress *bar.Line
	any      bool            // prints what is not a job, too, for lack of a submit
	only     func(*job) bool // leaves out other jobs; nil: none
	jobs     int
	faults   int   // jobs and inputs that could not be read
	failed   error // of the output

	batch []work           // of the goroutine that reads
	size  int              // bytes in it
	order chan chan result // of each piece, to the printer; bounds what is in memory
	stop  chan struct{}    // closed when there is no output
}

// Work on one job or more adds to a result.
type work func(*result)

// A piece of the input is handed out with so many jobs, or bytes of them: one job by itself
// is less work than handing it out.
const (
	pieceJobs  = 64
	pieceBytes = 512 << 10
)

// A result is what came of a job, or of a piece.
type result struct {
	faults []fault
	jobs   []rendered
}

// A fault is what could not be read.
type fault struct {
	src  *source // of a line that is no job; nil: something else
	line int
	err  error
}

func newSession(p printer, stderr io.Writer) *session {
	s := &session{
		printer: p, stderr: stderr,
		order: make(chan chan result, 4*runtime.GOMAXPROCS(0)),
		stop:  make(chan struct{}),
	}
	s.progress = bar.New(stderr, func(passed time.Duration) string {
		return fmt.Sprintf("replay: %d jobs, %.0f jobs/s", s.jobs, float64(s.jobs)/passed.Seconds())
	})
	return s
}

// readAll reads the named files, or what stands in for them.
func (s *session) readAll(names []string, stdin io.Reader) {
	go func() {
		s.produce(names, stdin)
		s.flush()
		close(s.order)
	}()
	for c := range s.order {
		s.take(<-c)
	}
	s.progress.Clear()
}

func (s *session) produce(names []string, stdin io.Reader) {
	if len(names) == 0 && !lines.Piped(stdin) {
		fmt.Fprintln(s.stderr, "replay: no FILE: this is a recorded sample (replay -h for help)")
		s.read("sample", "", bytes.NewReader(sample))
		return
	}
	if len(names) == 0 {
		names = []string{"-"}
	}
	for _, name := range names {
		if name == "-" {
			s.read("standard input", "", stdin)
		} else {
			s.readFile(name)
		}
	}
}

// readFolder reads the files below a folder that have the name of a log, of JSON
// lines or of an archive, in the order of their names. It follows no link to a folder, which
// may be one above, but root may be one: the separator at its end says so.
func (s *session) readFolder(root string) {
	found := false
	err := filepath.WalkDir(root+string(filepath.Separator), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			s.fault("%v", err)
		case s.stopped():
			return fs.SkipAll
		case d.IsDir() && d.Name() == "guest":
			return fs.SkipDir // the execution eventlog, and the job's own keys
		case !d.IsDir() && readable(d.Name()):
			found = true
			if err := regular(path); err != nil {
				s.fault("%v", err)
				return nil
			}
			s.readFile(path)
		}
		return nil
	})
	if err == nil && !found {
		s.fault("%s: no eventlog, JSON lines or dump archive in it", root)
	}
}

// readable reports whether a file in a folder has a name of what this program
// reads.
func readable(name string) bool {
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".bz2")
	if name == "eventlog" {
		return true
	}
	switch filepath.Ext(name) {
	case ".eventlog", ".log", ".jsonl", ".tar":
		return true
	}
	return false
}

// regular returns an error unless a file of a folder can be read to its end: opening a FIFO
// would wait.
func regular(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file", path)
	}
	return err
}

func (s *session) readFile(path string) {
	f, err := os.Open(path)
	if err != nil {
		s.fault("%v", err)
		return
	}
	defer func() { _ = f.Close() }() // it was only read
	if info, err := f.Stat(); err == nil && info.IsDir() {
		s.readFolder(path)
		return
	}
	s.read(path, path, f)
}

// read reads one input; path is "" if it is not a file.
func (s *session) read(name, path string, r io.Reader) {
	file := unpack.New(r)
	if err := s.unpack(&source{name: name, path: path, file: file}, file, 0); err != nil {
		s.fault("%w", unpack.InFile(name, err))
	}
}

// submit adds the work on a job of so many bytes. It reports false if nobody
// wants it any more.
func (s *session) submit(size int, work work) bool {
	s.batch = append(s.batch, work)
	s.size += size
	return len(s.batch) < pieceJobs && s.size < pieceBytes || s.flush()
}

func (s *session) flush() bool {
	piece := s.batch
	s.batch, s.size = nil, 0
	if len(piece) == 0 {
		return true
	}
	c := make(chan result, 1)
	select {
	case s.order <- c:
	case <-s.stop:
		return false
	}
	go func() {
		var r result
		for _, work := range piece {
			work(&r)
		}
		c <- r
	}()
	return true
}

func (s *session) stopped() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

func (s *session) fault(format string, args ...any) {
	s.submit(0, func(out *result) { out.fault(format, args...) })
}

func (r *result) fault(format string, args ...any) {
	r.faults = append(r.faults, fault{err: fmt.Errorf(format, args...)})
}

// replay adds the result of one job. It keeps nothing of the input.
func (s *session) replay(name string, in input, out *result) {
	j, errs := newJob(in)
	for _, err := range errs {
		out.fault("%s: %w", name, err)
	}
	if !j.Submitted() && !s.any || s.only != nil && !s.only(j) {
		return
	}
	line := s.printer.render(j)
	if line.err != nil {
		out.fault("%s: job %s: %w", name, j.name(), line.err)
		return
	}
	out.jobs = append(out.jobs, line)
}

func (s *session) take(r result) {
	for _, f := range r.faults {
		if f.src != nil {
			if f.src.bad++; f.src.bad > maxBad {
				if f.src.over.Swap(true) { // its reader stops soon
					continue
				}
				f.err = errBad
			}
			f.err = fmt.Errorf("%s: line %d: %w", f.src.name, f.line, f.err)
		}
		s.faults++
		s.progress.Clear()
		fmt.Fprintf(s.stderr, "replay: %s\n", lines.Escape(f.err.Error()))
	}
	for _, j := range r.jobs {
		if s.jobs++; s.jobs%64 == 0 {
			s.progress.Show()
		}
		if s.failed != nil {
			continue
		}
		if s.failed = s.printer.print(j); s.failed != nil {
			close(s.stop)
		}
	}
}

var (
	errNotKnown = errors.New("not an eventlog, JSON lines or a dump archive")
	errStopped  = errors.New("no output")
	errBad      = fmt.Errorf("has more than %d lines that are no jobs", maxBad)
	errNoJob    = errors.New("has neither an id nor an eventlog")
	errLine     = fmt.Errorf("has a line longer than %d MiB", maxLine>>20)
)
