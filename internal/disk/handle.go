package disk

import (
	"cmp"
	"io"
	"io/fs"
	"math"
	"path"
)

// A handle is an open file.
type handle struct {
	d     *Disk
	n     *node
	name  string
	epoch int

	inPlace bool // it was opened without os.O_APPEND
	at      int  // where the next write goes, then
	closed  bool
	locks   bool
}

// call notes a call, unless the handle cannot be used, which is a fault.
func (h *handle) call(op string) (f Fault, faulty bool) {
	switch {
	case h.closed:
		return Fault{Err: fs.ErrClosed}, true
	case h.epoch != h.d.epoch:
		return Fault{Err: ErrDown}, true
	}
	return h.d.call(op, h.name)
}

func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	f, faulty := h.call("read")
	text := h.n.cache[min(off, int64(len(h.n.cache))):]
	if faulty {
		return copy(p[:min(max(f.N, 0), len(p))], text) + f.Lie, f.Err
	}
	n := copy(p, text)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (h *handle) Write(p []byte) (int, error) {
	f, faulty := h.call("write")
	n := len(p)
	switch {
	case faulty && f.N < 0:
		n /= 2
	case faulty:
		n = min(n, f.N)
	}
	at, was := h.at, *h.n
	if !h.inPlace {
		at = len(h.n.cache)
	}
	h.n.write(at, p[:n])
	if err := h.d.full(func() { *h.n = was }); err != nil {
		return 0, err
	}
	h.at += n
	if faulty {
		return n + f.Lie, f.Err
	}
	return n, nil
}

func (n *node) write(at int, p []byte) {
	data := append([]byte{}, p...)
	n.pending = append(n.pending, change{at, data, at < len(n.cache)})
	n.cache = resize(n.cache, max(len(n.cache), at+len(data)))
	copy(n.cache[at:], data)
}

func (n *node) sync() {
	for _, c := range n.pending {
		n.surface(c, math.MaxInt, func() bool { return true })
	}
	n.pending = nil
}

// Sync that fails forgets: some of what was written is on the disk, the rest never will be,
// and readers still see all of it. A truncation is not forgotten.
func (h *handle) Sync() error {
	f, _ := h.call("sync")
	switch f.Err {
	case nil:
		h.n.sync()
		return nil
	case fs.ErrClosed, ErrDown:
		return f.Err
	}
	var left []change
	for _, c := range h.n.pending {
		if c.data == nil {
			left = append(left, c)
		} else {
			h.n.surface(c, cmp.Or(h.d.Sector, 8), h.d.Coin)
		}
	}
	h.n.pending = left
	return f.Err
}

func (h *handle) Truncate(size int64) error {
	if f, _ := h.call("truncate"); f.Err != nil {
		return f.Err
	}
	if size > int64(len(h.n.cache)) {
		panic("a truncation that makes a file grow")
	}
	h.n.truncate(int(size))
	return nil
}

func (n *node) truncate(size int) {
	n.pending = append(n.pending, change{at: size})
	n.cache = resize(n.cache, size)
}

func (h *handle) Stat() (fs.FileInfo, error) {
	if f, _ := h.call("stat"); f.Err != nil {
		return nil, f.Err
	}
	return h.n.info(path.Base(h.name)), nil
}

// Close closes the file whatever it says, and does not sync.
func (h *handle) Close() error {
	if h.closed {
		return fs.ErrClosed
	}
	h.closed = true
	if h.locks && h.epoch == h.d.epoch {
		delete(h.d.locked, h.n)
	}
	f, _ := h.d.call("close", h.name)
	return f.Err
}
