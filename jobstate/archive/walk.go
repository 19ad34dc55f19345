package archive

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate/jobid"
)

// Walk reads a dump archive of a Flux instance to its end: a tar archive, plain or compressed
// with bzip2 or gzip, which Walk detects. It passes each job that can be used to a function, in
// the order of the archive, and does not keep it. The keys of a job must be together, as Flux
// writes them: a job that was given and then has another key is a Failure too.
//
// An error of the function ends reading, and Walk returns it as it is. Any other error names the
// entry and its position in uncompressed bytes: the input is no archive, ends before its end mark
// or exceeds a limit, or the reader failed, whose error is wrapped. The job that was being read
// is then a Failure. Walk never returns a nil Archive: it has what was read before an error.
func Walk(r io.Reader, l Limits, give func(Job) error) (*Archive, error) {
	w := walker{
		Archive: new(Archive), limits: l.withDefaults(), give: give, src: &input{r: r},
		back: map[jobid.ID]bool{}, failed: map[jobid.ID]bool{}, broken: map[string]bool{},
	}
	err := w.read()
	slices.SortFunc(w.Failures, func(x, y *Failure) int {
		return cmp.Or(strings.Compare(x.Path, y.Path), strings.Compare(x.detail(), y.detail()))
	})
	return w.Archive, err
}

// walker is an archive that is being read.
type walker struct {
	*Archive
	limits Limits
	give   func(Job) error
	src    *input
	path   string // of the last entry
	held   int64

	job    *draft            // whose key was last, nil if no job's
	rising []jobid.ID        // jobs that were left, each above those before it: most
	back   map[jobid.ID]bool // those that were not above
	failed map[jobid.ID]bool // those in Failures
	broken map[string]bool   // paths in Failures that name no job
	stop   error             // of the function
}

// draft is a job of which keys may be missing.
type draft struct {
	Job
	held    int64
	failure *Failure
}

// value returns where a key of a job goes, nil for one that is not held.
func (d *draft) value(key string) *[]byte {
	switch key {
	case "eventlog":
		return &d.Eventlog
	case "jobspec":
		return &d.Jobspec
	case "R":
		return &d.R
	case "guest/exec/eventlog":
		return &d.ExecEventlog
	}
	return nil
}

// fail notes what is wrong with the job, unless something was before.
func (d *draft) fail(line int, cause error) {
	if d.failure == nil {
		path := jobRoot + strings.ReplaceAll(d.ID.Format(jobid.FormatDotHex), ".", "/")
		d.failure = &Failure{ID: d.ID, Path: path, Line: line, Err: cause}
	}
}

// check notes what is wrong with a job of which all keys are there.
func (d *draft) check() {
	switch {
	case d.failure != nil:
	case d.Eventlog == nil:
		d.fail(0, errNoEventlog)
	case d.Jobspec == nil:
		d.fail(0, errNoJobspec)
	default:
		if line, cause := checkLog(d.Eventlog); cause != nil {
			d.fail(line, cause)
		}
	}
}

func (w *walker) read() error {
	m := &meter{src: w.src, limits: &w.limits}
	err := w.readAll(m)
	if err == nil || w.stop != nil {
		return w.stop
	}
	if w.job != nil {
		w.job.fail(0, errIncomplete)
		_ = w.fail(w.job) // reading ends anyway
	}
	category := errFormat
	switch {
	case m.exceeded, err == errHeld, err == errEntries:
		category = errLimit
	case w.src.err != nil:
		category, err = w.src.err, nil
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), err == errNoEnd:
		category = errTruncated
	}
	at := fmt.Sprintf("offset %d", m.offset)
	if w.path != "" {
		at = guard.Quote(w.path) + ": " + at
	}
	return fmt.Errorf("archive: %s: %w", at, because(category, err))
}

// enter begins a job. One that was left before fails instead, if the key is one to keep.
func (w *walker) enter(p place, isDir bool) error {
	d := &draft{Job: Job{ID: p.id}, held: heldEntry}
	if _, left := slices.BinarySearch(w.rising, p.id); left || w.back[p.id] {
		if w.failed[p.id] || d.value(p.key) == nil && (p.key != "" || isDir) {
			return nil
		}
		d.fail(0, errApart)
		return w.fail(d)
	}
	if err := w.room(0); err != nil {
		return err
	}
	w.job = d
	w.note(p.id)
	return nil
}

// leave ends the job that is being read, if there is one.
func (w *walker) leave() error {
	d := w.job
	w.job = nil
	if d == nil {
		return nil
	}
	w.held -= d.held
	if n := len(w.rising); n == 0 || d.ID > w.rising[n-1] {
		w.rising = append(w.rising, d.ID)
	} else {
		w.back[d.ID] = true
	}
	if d.check(); d.failure != nil {
		return w.fail(d)
	}
	w.stop = w.give(d.Job)
	return w.stop
}

// fail adds the failure of a job, and returns an error if that is one more than there is room for.
func (w *walker) fail(d *draft) error {
	w.failed[d.ID] = true
	w.Failures = append(w.Failures, d.failure)
	return w.keep(len(d.failure.Path))
}

// reject adds the failure of a path that names no job, unless there was one before.
func (w *walker) reject(path string, cause error) error {
	if w.broken[path] {
		return nil
	}
	if err := w.room(len(path)); err != nil {
		return err
	}
	w.broken[path] = true
	w.Failures = append(w.Failures, &Failure{Path: guard.Clip(path), Err: cause})
	return nil
}
