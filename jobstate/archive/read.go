package archive

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate/jobid"
)

// Read reads a dump archive of a Flux instance to its end: a tar archive, plain
// or compressed with bzip2 or gzip, which Read detects. It never returns a nil
// Archive. A job or key that cannot be used is in Failures of the Archive, and
// is not an error.
//
// An error names the entry and its position in uncompressed bytes: the input is no
// archive, ends before its end mark or exceeds a limit, or the reader failed, whose error
// is wrapped. The Archive then has what was read before. The job that was being read is a
// Failure. Read assumes that the jobs before it are complete, since Flux
// writes the keys of a job together. If another program wrote the archive, jobs
// may be incomplete after an error.
func Read(r io.Reader, l Limits) (*Archive, error) {
	b := newBuilder(l)
	err := b.read(r)
	return b.finish(), err
}

func newBuilder(l Limits) *builder {
	return &builder{
		limits: l.withDefaults(),
		jobs:   map[jobid.ID]*draft{},
		broken: map[string]*Failure{},
		others: map[string][]byte{},
	}
}

// builder is an archive that is being read.
type builder struct {
	limits Limits
	jobs   map[jobid.ID]*draft
	broken map[string]*Failure // by the whole path
	others map[string][]byte
	held   int64
	src    *input
	in     *draft // whose key was last, nil if no job's
	path   string // of the last entry
	walk
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
		d.failure = &Failure{ID: d.ID, Path: jobPath(d.ID), Line: line, Err: cause}
	}
}

// jobPath returns the directory of a job.
func jobPath(id jobid.ID) string {
	return jobRoot + strings.ReplaceAll(id.Format(jobid.FormatDotHex), ".", "/")
}

// read reads all entries.
func (b *builder) read(r io.Reader) error {
	src := &input{r: r}
	b.src = src
	m := &meter{src: src, limits: &b.limits}
	err := b.readAll(src, m)
	if err == nil || b.stop != nil {
		return b.stop
	}
	if b.in != nil {
		b.in.fail(0, errIncomplete)
	}
	category := errFormat
	switch {
	case m.exceeded, err == errHeld, err == errEntries:
		category = errLimit
	case src.err != nil:
		category, err = src.err, nil
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), err == errNoEnd:
		category = errTruncated
	}
	at := fmt.Sprintf("offset %d", m.offset)
	if b.path != "" {
		at = guard.Quote(b.path) + ": " + at
	}
	return fmt.Errorf("archive: %s: %w", at, because(category, err))
}

// readAll reads all entries and what is behind them.
func (b *builder) readAll(src *input, m *meter) (err error) {
	if m.r, err = decompress(src); err != nil {
		return err
	}
	t := tar.NewReader(m)
	for {
		h, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return err
		}
		b.path = h.Name
		if err := b.entry(h, t); err != nil {
			return err
		}
	}
	// The end of the input alone is an end to package tar.
	if m.zeros < endMark {
		return errNoEnd
	}
	b.path = ""
	if err := b.leave(); err != nil {
		return err
	}
	return drain(m)
}

// endMark is how many zeros end an archive at least: half of what the format
// says, for which others settle too.
const endMark = 512

// drain reads what is behind the end mark, which is zeros.
func drain(m *meter) error {
	buf := make([]byte, 4096)
	for {
		n, err := m.Read(buf)
		if len(bytes.TrimRight(buf[:n], "\x00")) > 0 {
			return errTrailing
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// entry takes in one entry.
func (b *builder) entry(h *tar.Header, t *tar.Reader) error {
	isDir := h.Typeflag == tar.TypeDir
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	p := locate(h.Name, isDir)
	if b.in == nil || p.dir == "" || p.err != nil || p.id != b.in.ID {
		if err := b.leave(); err != nil {
			return err
		}
	}
	switch {
	case p.dir == "":
		return b.other(p.key, h, t)
	case p.err != nil:
		return b.reject(p.dir, &Failure{Err: because(errBadID, p.err)})
	case b.comesBack(p, isDir):
		return nil
	}
	d := b.jobs[p.id]
	if d == nil {
		if err := b.room(0); err != nil {
			return err
		}
		d = &draft{Job: Job{ID: p.id}, held: heldEntry}
		b.jobs[p.id] = d
	}
	b.in = d
	v := d.value(p.key)
	switch {
	case v == nil && (isDir || p.key != ""):
		return nil
	case v == nil, !plainFile(h):
		d.fail(0, errNotFile)
		return nil
	case h.Size > b.limits.FileBytes:
		d.fail(0, errFile)
		return nil
	}
	got, err := b.value(h, t)
	if err != nil {
		return err
	}
	if *v != nil && !bytes.Equal(*v, got) {
		d.fail(0, errDuplicate)
	}
	*v = got
	d.held += h.Size
	return nil
}

// plainFile reports whether an entry has a value.
func plainFile(h *tar.Header) bool {
	return h.Typeflag == tar.TypeReg || h.Typeflag == tar.TypeGNUSparse
}

// other takes in a key that is not a job's. Directories are not keys.
func (b *builder) other(path string, h *tar.Header, t *tar.Reader) error {
	switch {
	case !plainFile(h):
		return nil
	case h.Size > b.limits.FileBytes:
		return b.reject(path, &Failure{Err: errFile})
	}
	old, found := b.others[path]
	if !found {
		if err := b.room(len(path)); err != nil {
			return err
		}
	}
	got, err := b.value(h, t)
	if err != nil {
		return err
	}
	if found && !bytes.Equal(old, got) {
		return b.reject(path, &Failure{Err: errDuplicate})
	}
	b.others[path] = got
	return nil
}

// reject notes a failure of a path that is not a job's, unless there was one
// before.
func (b *builder) reject(path string, f *Failure) error {
	if b.broken[path] != nil {
		return nil
	}
	if err := b.room(len(path)); err != nil {
		return err
	}
	f.Path = guard.Clip(path)
	b.broken[path] = f
	return nil
}

// room returns an error unless there is room for one more job, failure or other
// key, with so many bytes of its own.
func (b *builder) room(n int) error {
	if len(b.jobs)+len(b.rising)+len(b.back)+len(b.broken)+len(b.others) >= b.limits.Entries {
		return errEntries
	}
	return cmp.Or(b.hold(int64(n)+heldEntry), b.backed(0))
}

// heldEntry is what a job, a failure or another key takes beside its bytes.
const heldEntry = 256

// hold counts bytes that are held.
func (b *builder) hold(n int64) error {
	if n > b.limits.HeldBytes-b.held {
		return errHeld
	}
	b.held += n
	return nil
}

// backed returns an error if more is held than the input is long enough for. Some of it
// is still to be read.
func (b *builder) backed(ahead int64) error {
	if b.held-ahead > freeBytes+b.limits.backed(b.src.count)/2 {
		return errHeld
	}
	return nil
}

// firstRead is how much memory a header may claim before the value is there.
const firstRead = 64 << 10

// value reads the value of an entry.
func (b *builder) value(h *tar.Header, t *tar.Reader) ([]byte, error) {
	if err := b.hold(h.Size); err != nil {
		return nil, err
	}
	v := make([]byte, 0, min(h.Size, firstRead))
	for int64(len(v)) < h.Size {
		if len(v) == cap(v) {
			v = slices.Grow(v, int(min(h.Size-int64(len(v)), int64(len(v)))))
		}
		end := min(int64(cap(v)), h.Size)
		if _, err := io.ReadFull(t, v[len(v):end]); err != nil {
			return nil, err
		}
		v = v[:end]
		if err := b.backed(h.Size - end); err != nil {
			return nil, err
		}
	}
	return v, nil
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

// finish sorts the jobs into good ones and failures.
func (b *builder) finish() *Archive {
	a := &Archive{others: b.others, Failures: b.failures}
	if n := len(b.rising); n > 0 {
		a.note(b.rising[n-1])
	}
	for id, d := range b.jobs {
		a.note(id)
		d.check()
		if d.failure != nil {
			a.Failures = append(a.Failures, d.failure)
		} else {
			a.Jobs = append(a.Jobs, d.Job)
		}
	}
	for path, f := range b.broken {
		a.Failures = append(a.Failures, f)
		delete(a.others, path)
	}
	a.readCheckpoint()
	slices.SortFunc(a.Jobs, func(x, y Job) int { return cmp.Compare(x.ID, y.ID) })
	slices.SortFunc(a.Failures, func(x, y *Failure) int {
		return cmp.Or(strings.Compare(x.Path, y.Path), strings.Compare(x.detail(), y.detail()))
	})
	return a
}
