package archive

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"io"
	"math"
	"slices"

	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/jobstate/jobid"
)

// readAll reads all entries and what is behind them.
func (w *walker) readAll(m *meter) (err error) {
	if m.r, err = decompress(w.src); err != nil {
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
		w.path = h.Name
		if err := w.entry(h, t); err != nil {
			return err
		}
	}
	// The end of the input alone is an end to package tar. The format says twice as many zeros.
	if m.zeros < 512 {
		return errNoEnd
	}
	w.path = ""
	if err := w.leave(); err != nil {
		return err
	}
	return drain(m)
}

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

func (w *walker) entry(h *tar.Header, t *tar.Reader) error {
	isDir := h.Typeflag == tar.TypeDir
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	p := locate(h.Name, isDir)
	inJob := p.dir != "" && p.err == nil
	if w.job != nil && (!inJob || p.id != w.job.ID) {
		if err := w.leave(); err != nil {
			return err
		}
	}
	switch {
	case p.err != nil:
		return w.reject(p.dir, because(errBadID, p.err))
	case !inJob && p.key == checkpointKey && plainFile(h):
		return w.checkpoint(h, t)
	case !inJob:
		return nil
	case w.job == nil:
		if err := w.enter(p, isDir); err != nil || w.job == nil {
			return err
		}
	}
	d := w.job
	v := d.value(p.key)
	switch {
	case v == nil && (isDir || p.key != ""):
		return nil
	case v == nil, !plainFile(h):
		d.fail(0, errNotFile)
		return nil
	case h.Size > w.limits.FileBytes:
		d.fail(0, errFile)
		return nil
	}
	got, err := w.value(h, t)
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

// checkpointKey is where the job manager stores what is in no job's log.
const checkpointKey = "checkpoint/job-manager"

// checkpoint takes a checkpoint into account for MaxID.
func (w *walker) checkpoint(h *tar.Header, t *tar.Reader) error {
	if h.Size > w.limits.FileBytes {
		return w.reject(checkpointKey, errFile)
	}
	text, err := w.value(h, t) // it stays among what is held: that bounds the time that many take
	if err != nil {
		return err
	}
	id := int64(0)
	d := jsonobj.NewDoc(text)
	o := d.Object()
	for o.Next() {
		if string(o.Key()) == "max_jobid" {
			id = o.Int(0, math.MaxInt64) // as far as Flux can store it
		}
	}
	o.Require("max_jobid")
	if err := d.Err(); err != nil {
		return w.reject(checkpointKey, because(errCheckpoint, err))
	}
	w.note(jobid.ID(id))
	return nil
}

// room returns an error unless there is room for one more job, or path that names none.
func (w *walker) room(n int) error {
	if len(w.rising)+len(w.back)+len(w.broken) >= w.limits.Entries {
		return errEntries
	}
	return w.keep(n)
}

// keep holds a job or a failure, and n bytes of it.
func (w *walker) keep(n int) error { return cmp.Or(w.hold(int64(n)+heldEntry), w.backed(0)) }

// heldEntry is what a job or a failure takes beside its bytes.
const heldEntry = 256

func (w *walker) hold(n int64) error {
	if n > w.limits.HeldBytes-w.held {
		return errHeld
	}
	w.held += n
	return nil
}

// backed returns an error if more is held than the input, but for what is ahead, stands for.
func (w *walker) backed(ahead int64) error {
	if w.held-ahead > freeBytes+w.limits.backed(w.src.count)/2 {
		return errHeld
	}
	return nil
}

// value reads a value. Its header may claim little memory before the value is there.
func (w *walker) value(h *tar.Header, t *tar.Reader) ([]byte, error) {
	if err := w.hold(h.Size); err != nil {
		return nil, err
	}
	v := make([]byte, 0, min(h.Size, 64<<10))
	for int64(len(v)) < h.Size {
		if len(v) == cap(v) {
			v = slices.Grow(v, int(min(h.Size-int64(len(v)), int64(len(v)))))
		}
		end := min(int64(cap(v)), h.Size)
		if _, err := io.ReadFull(t, v[len(v):end]); err != nil {
			return nil, err
		}
		v = v[:end]
		if err := w.backed(h.Size - end); err != nil {
			return nil, err
		}
	}
	return v, nil
}
