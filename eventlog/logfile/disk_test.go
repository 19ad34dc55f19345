package logfile_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/joblife/joblife/eventlog/logfile"
)

// A disk is a file system that fails when told to, and of which a crash leaves
// what was synced and, of the rest, any part.
type disk struct {
	names  map[string]*node // as processes see them
	stable map[string]*node // as the disk has them
	faults map[string][]fault
	calls  []string
	epoch  int         // of the machine: handles of an earlier one are dead
	down   bool        // until the crash: nothing is done any more
	space  int         // bytes left; less than 0 is no limit
	coin   func() bool // decides what a crash leaves of what was not synced
	nodes  int
	onRead func() // called before each read, unless nil
	locked map[*node]bool
}

// A node is a file.
type node struct {
	id      int
	mode    fs.FileMode
	cache   []byte // as processes see it
	stable  []byte // as the disk has it
	pending []change
}

// A change is a write or a truncation that was not synced.
type change struct {
	at    int
	data  []byte
	trunc bool
}

// A fault is what happens to one call.
type fault struct {
	n    int // bytes that a write still writes, or a read reads
	lie  int // added to the count that is returned
	err  error
	then func() // runs after the fault
}

func newDisk() *disk {
	return &disk{
		names: map[string]*node{}, stable: map[string]*node{}, faults: map[string][]fault{},
		locked: map[*node]bool{}, space: -1, coin: func() bool { return false },
	}
}

// with returns a disk with one file that is durable.
func with(name, content string) *disk {
	d := newDisk()
	d.put(name, content)
	return d
}

// put makes a durable file, a new one even if there was one of that name.
func (d *disk) put(name, content string) {
	d.nodes++
	n := &node{id: d.nodes, mode: 0o600, cache: []byte(content), stable: []byte(content)}
	d.names[name], d.stable[name] = n, n
}

// fail lets the next call of an operation that is not spoken for have a fault.
func (d *disk) fail(op string, f fault) { d.faults[op] = append(d.faults[op], f) }

// read returns what processes see.
func (d *disk) read(name string) string {
	if d.names[name] == nil {
		return "no such file"
	}
	return string(d.names[name].cache)
}

// count returns how many calls of an operation there were.
func (d *disk) count(op string) (n int) {
	for _, c := range d.calls {
		if c == op {
			n++
		}
	}
	return n
}

// call notes a call and returns its fault.
func (d *disk) call(op string) (fault, bool) {
	d.calls = append(d.calls, op)
	if d.down {
		return fault{err: errDown}, true
	}
	q := d.faults[op]
	if len(q) == 0 {
		return fault{}, false
	}
	d.faults[op] = q[1:]
	if q[0].then != nil {
		defer q[0].then()
	}
	return q[0], true
}

var errDown = errors.New("the machine is down")

// crash stops the machine and starts it again.
func (d *disk) crash() {
	d.epoch++
	d.down = false
	clear(d.locked)
	d.space = -1
	clear(d.faults)
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		if n := d.names[name]; d.stable[name] != n && d.coin() {
			d.stable[name] = n
		}
	}
	d.names = maps.Clone(d.stable)
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		n := d.names[name]
		for _, c := range n.pending {
			n.surface(c, d.coin)
		}
		n.pending = nil
		n.cache = slices.Clone(n.stable)
	}
}

// sector is how many bytes reach the disk together.
const sector = 8

// surface lets those parts of a change reach the disk that the coin says.
func (n *node) surface(c change, coin func() bool) {
	if c.trunc {
		if coin() {
			n.stable = resize(n.stable, c.at)
		}
		return
	}
	for len(c.data) > 0 {
		piece := c.data[:min(len(c.data), sector-c.at%sector)]
		if coin() {
			n.stable = resize(n.stable, max(len(n.stable), c.at+len(piece)))
			copy(n.stable[c.at:], piece)
		}
		c.at, c.data = c.at+len(piece), c.data[len(piece):]
	}
}

// resize cuts b or fills it with zeros.
func resize(b []byte, size int) []byte {
	if size <= len(b) {
		return b[:size:size]
	}
	return append(b, make([]byte, size-len(b))...)
}

func (d *disk) OpenFile(name string, flag int, perm fs.FileMode) (logfile.File, error) {
	if f, ok := d.call("open"); ok && f.err != nil {
		return nil, f.err
	}
	n := d.names[name]
	switch {
	case n == nil && flag&os.O_CREATE == 0:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case n != nil && flag&os.O_EXCL != 0:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrExist}
	case n == nil:
		d.nodes++
		n = &node{id: d.nodes, mode: perm}
		d.names[name] = n
	}
	return &handle{d: d, n: n, flag: flag, epoch: d.epoch}, nil
}

func (d *disk) Stat(name string) (fs.FileInfo, error) {
	if f, ok := d.call("statname"); ok && f.err != nil {
		return nil, f.err
	}
	n := d.names[name]
	if n == nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return info{n.id, int64(len(n.cache)), n.mode}, nil
}

func (d *disk) SameFile(a, b fs.FileInfo) bool { return a.(info).id == b.(info).id }

func (d *disk) SyncDir(dir string) error {
	if f, ok := d.call("syncdir"); ok && f.err != nil {
		return f.err
	}
	maps.DeleteFunc(d.stable, func(name string, _ *node) bool { return filepath.Dir(name) == dir && d.names[name] == nil })
	for name, n := range d.names {
		if filepath.Dir(name) == dir {
			d.stable[name] = n
		}
	}
	return nil
}

func (d *disk) Lock(f logfile.File) error {
	h := f.(*handle)
	if d.locked[h.n] {
		return logfile.ErrLocked
	}
	d.locked[h.n], h.locks = true, true
	return nil
}

func (d *disk) Remove(name string) error {
	if f, ok := d.call("remove"); ok && f.err != nil {
		return f.err
	}
	delete(d.names, name)
	return nil
}

// A handle is an open file.
type handle struct {
	d      *disk
	n      *node
	flag   int
	epoch  int
	closed bool
	locks  bool
}

// dead returns why a handle cannot be used.
func (h *handle) dead() error {
	switch {
	case h.closed:
		return fs.ErrClosed
	case h.epoch != h.d.epoch:
		return errDown
	}
	return nil
}

func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	if err := h.dead(); err != nil {
		return 0, err
	}
	if h.d.onRead != nil {
		h.d.onRead()
	}
	if f, ok := h.d.call("read"); ok {
		n := 0
		if off < int64(len(h.n.cache)) {
			n = copy(p[:min(f.n, len(p))], h.n.cache[off:])
		}
		return n + f.lie, f.err
	}
	if off >= int64(len(h.n.cache)) {
		return 0, io.EOF
	}
	n := copy(p, h.n.cache[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (h *handle) Write(p []byte) (int, error) {
	if err := h.dead(); err != nil {
		return 0, err
	}
	if h.flag&os.O_APPEND == 0 {
		panic("a write that is no append")
	}
	f, faulty := h.d.call("write")
	n := len(p)
	if faulty {
		n = min(n, f.n)
	}
	var err error
	if h.d.space >= 0 && n > h.d.space {
		n, err = h.d.space, syscall.ENOSPC
	}
	if h.d.space >= 0 {
		h.d.space -= n
	}
	h.n.pending = append(h.n.pending, change{at: len(h.n.cache), data: slices.Clone(p[:n])})
	h.n.cache = append(h.n.cache, p[:n]...)
	if faulty {
		return n + f.lie, f.err
	}
	return n, err
}

// Sync that fails forgets: some of what was written is on the disk, the rest is
// not and never will be, and whoever reads still sees all of it. The size of a
// file is the file system's own business: a truncation is not forgotten.
func (h *handle) Sync() error {
	if err := h.dead(); err != nil {
		return err
	}
	f, faulty := h.d.call("sync")
	if h.d.down {
		return errDown
	}
	faulty = faulty && f.err != nil
	var kept []change
	for _, c := range h.n.pending {
		switch {
		case !faulty:
			h.n.surface(c, func() bool { return true })
		case c.trunc:
			kept = append(kept, c)
		default:
			h.n.surface(c, h.d.coin)
		}
	}
	h.n.pending = kept
	return f.err
}

func (h *handle) Truncate(size int64) error {
	if err := h.dead(); err != nil {
		return err
	}
	if f, ok := h.d.call("truncate"); ok && f.err != nil {
		return f.err
	}
	if size > int64(len(h.n.cache)) {
		panic("a truncation that makes a file grow")
	}
	h.n.pending = append(h.n.pending, change{at: int(size), trunc: true})
	h.n.cache = h.n.cache[:size:size]
	return nil
}

func (h *handle) Stat() (fs.FileInfo, error) {
	if err := h.dead(); err != nil {
		return nil, err
	}
	if f, ok := h.d.call("stat"); ok && f.err != nil {
		return nil, f.err
	}
	return info{h.n.id, int64(len(h.n.cache)), h.n.mode}, nil
}

func (h *handle) Close() error {
	if h.closed {
		return fs.ErrClosed
	}
	h.closed = true
	if h.locks && h.epoch == h.d.epoch {
		delete(h.d.locked, h.n)
	}
	f, _ := h.d.call("close")
	return f.err
}

// info is what a disk says of a file.
type info struct {
	id   int
	size int64
	mode fs.FileMode
}

func (i info) Name() string       { return fmt.Sprint(i.id) }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }
