package dirstore_test

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/purge/dirstore"
)

// A disk is a file system in memory that fails at the call it is told to, and of
// which a crash leaves what was synced and, of the rest, any part. Renaming is
// atomic.
type disk struct {
	root    *node
	pending []op        // changes of directories that were not synced
	calls   []string    // that were made, "rename job.…"
	failAt  int         // the number of the call that fails, from 1
	down    bool        // whether every call after that fails too
	coin    func() bool // what a crash leaves of what was not synced
	epoch   int         // of the machine: handles of an earlier one are dead
	blocks  int         // how many blocks of 4 KiB there are; 0: no limit
	inodes  int         // how many files and directories; 0: no limit
	noRoom  bool        // nothing can be created or grow
	stuck   string      // cannot be renamed
	tight   string      // cannot be renamed before some file is removed: the disk is full
}

// A node is a file or a directory. The bytes of a file are never changed in place: its
// cache, its disk and copies of it share them.
type node struct {
	dir     bool
	mode    fs.FileMode
	names   map[string]*node // as processes see them
	kept    map[string]*node // as the disk has them
	cache   []byte           // as processes see it
	stable  []byte           // as the disk has it
	pending int              // the least size since the last sync, plus 1; 0 is none
	patched bool             // it was overwritten in place since the last sync
}

// An op is a change of one or two directories.
type op struct {
	from, to         *node // nil if there is none
	fromName, toName string
	what             *node
}

// used returns how many blocks and inodes are taken. A directory takes a block for
// each 64 names, as on ext4.
func (n *node) used() (blocks, inodes int) {
	blocks, inodes = (len(n.cache)+4095)/4096+(len(n.names)+63)/64, 1
	for _, below := range n.names {
		b, i := below.used()
		blocks, inodes = blocks+b, inodes+i
	}
	return blocks, inodes
}

// full returns ENOSPC if a change has made the disk too full, after undoing it.
func (d *disk) full(grows bool, undo func()) error {
	if d.noRoom && grows {
		undo()
		return syscall.ENOSPC
	}
	if d.blocks == 0 && d.inodes == 0 {
		return nil
	}
	blocks, inodes := d.root.used()
	if d.blocks > 0 && blocks > d.blocks || d.inodes > 0 && inodes > d.inodes {
		undo()
		return syscall.ENOSPC
	}
	return nil
}

// clone returns a copy of a file or directory as it is after a crash.
func (n *node) clone() *node {
	c := *n
	c.cache, c.stable = slices.Clip(n.cache), slices.Clip(n.stable) // both may append
	if n.dir {
		c.names = map[string]*node{}
		for name, below := range n.names {
			c.names[name] = below.clone()
		}
		c.kept = maps.Clone(c.names)
	}
	return &c
}

// A key is a name in a directory; the zero key is none.
type key struct {
	dir  *node
	name string
}

func (o op) source() key { return key{o.from, o.fromName} }
func (o op) target() key { return key{o.to, o.toName} }

var errDown = errors.New("the machine is down")

func newDir() *node {
	return &node{dir: true, mode: fs.ModeDir | 0o700, names: map[string]*node{}, kept: map[string]*node{}}
}

func newDisk() *disk { return &disk{root: newDir(), coin: func() bool { return true }} }

// options makes a Store use the disk. The directory that it is given is not used.
func (d *disk) options() dirstore.Options {
	return dirstore.Wrap(func(os dirstore.FS) dirstore.FS {
		_ = os.Close()
		return d
	})
}

// create returns a new store on the disk.
func (d *disk) create(t testing.TB) *dirstore.Store {
	s, err := dirstore.Create(".", d.options())
	require.NoError(t, err)
	return s
}

// open opens the store on the disk.
func (d *disk) open(t testing.TB) *dirstore.Store {
	s, err := dirstore.Open(".", d.options())
	require.NoError(t, err)
	return s
}

// call notes a call and returns its fault.
func (d *disk) call(what, name string) error {
	d.calls = append(d.calls, what+" "+name)
	if n := len(d.calls); d.failAt > 0 && (n == d.failAt || d.down && n > d.failAt) {
		if d.down {
			return errDown
		}
		return syscall.EIO
	}
	return nil
}

// find returns the directory that a name is in, its last element, and its node.
func (d *disk) find(name string) (dir *node, base string, n *node) {
	n = d.root
	if name == "." {
		return nil, ".", n
	}
	for _, base = range strings.Split(filepath.ToSlash(name), "/") {
		if dir = n; dir == nil || !dir.dir {
			return nil, base, nil
		}
		n = dir.names[base]
	}
	return dir, base, n
}

func perr(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

// apply makes a change in one of the maps of directories.
func (o op) apply(names func(*node) map[string]*node) {
	if o.from != nil {
		delete(names(o.from), o.fromName)
	}
	if o.to != nil {
		names(o.to)[o.toName] = o.what
	}
}

func (d *disk) change(o op) {
	o.apply(func(n *node) map[string]*node { return n.names })
	d.pending = append(d.pending, o)
}

func kept(n *node) map[string]*node { return n.kept }

func (d *disk) SyncDir(name string) error {
	_, _, n := d.find(name)
	if n == nil {
		return perr("open", name, fs.ErrNotExist)
	}
	if err := d.call("syncdir", name); err != nil {
		return err
	}
	// With a change, those before it of the same names: they reach the disk in
	// their order.
	done, touched := make([]bool, len(d.pending)), map[key]bool{}
	for i, o := range slices.Backward(d.pending) {
		if o.from == n || o.to == n || touched[o.source()] || touched[o.target()] {
			done[i], touched[o.source()], touched[o.target()] = true, true, true
			delete(touched, key{})
		}
	}
	var left []op
	for i, o := range d.pending {
		if done[i] {
			o.apply(kept)
		} else {
			left = append(left, o)
		}
	}
	d.pending = left
	return nil
}

// crash stops the machine and starts it again.
func (d *disk) crash() {
	d.epoch++
	d.failAt, d.calls = 0, nil
	lost := map[key]bool{}
	for _, o := range d.pending {
		if !lost[o.source()] && !lost[o.target()] && d.coin() {
			o.apply(kept)
			continue
		}
		lost[o.source()], lost[o.target()] = true, true
		delete(lost, key{})
	}
	d.pending = nil
	d.root.crash(d.coin)
}

func (n *node) crash(coin func() bool) {
	if n.dir {
		n.names = maps.Clone(n.kept)
		for _, name := range slices.Sorted(maps.Keys(n.names)) {
			n.names[name].crash(coin)
		}
		return
	}
	// Of what was appended since the last sync, a part is there; what was cut
	// off may be there again.
	if n.pending > 0 && coin() {
		least := min(n.pending-1, len(n.stable))
		size := least
		for size < len(n.cache) && coin() {
			size = min(size+16, len(n.cache))
		}
		n.stable = n.cache[:size:size]
	}
	// Of what was overwritten, any part is there.
	if n.patched {
		n.stable = slices.Clone(n.stable)
	}
	for i := 0; n.patched && i < min(len(n.stable), len(n.cache)); i += 16 {
		if coin() {
			copy(n.stable[i:min(i+16, len(n.stable))], n.cache[i:])
		}
	}
	n.pending, n.patched = 0, false
	n.cache = slices.Clip(n.stable)
}

// flip changes a bit of what processes see of a file.
func (n *node) flip(bit int) {
	n.cache = slices.Clone(n.cache)
	n.cache[bit/8] ^= 1 << (bit % 8)
}

func (d *disk) OpenFile(name string, flag int, perm fs.FileMode) (logfile.File, error) {
	if err := d.call("open", name); err != nil {
		return nil, err
	}
	dir, base, n := d.find(name)
	switch {
	case dir == nil, n == nil && flag&os.O_CREATE == 0:
		return nil, perr("open", name, fs.ErrNotExist)
	case n != nil && flag&os.O_EXCL != 0:
		return nil, perr("open", name, fs.ErrExist)
	case n == nil:
		n = &node{mode: perm}
		d.change(op{to: dir, toName: base, what: n})
		if err := d.full(true, func() { d.change(op{from: dir, fromName: base}) }); err != nil {
			return nil, perr("open", name, err)
		}
	}
	return &handle{d: d, n: n, name: name, epoch: d.epoch, inPlace: flag&os.O_APPEND == 0}, nil
}

func (d *disk) Lstat(name string) (fs.FileInfo, error) {
	if err := d.call("lstat", name); err != nil {
		return nil, err
	}
	_, base, n := d.find(name)
	if n == nil {
		return nil, perr("lstat", name, fs.ErrNotExist)
	}
	return info{n, base}, nil
}

func (d *disk) Chmod(name string, mode fs.FileMode) error {
	if err := d.call("chmod", name); err != nil {
		return err
	}
	_, _, n := d.find(name)
	n.mode = mode
	return nil
}

func (d *disk) Sub(name string) (dirstore.FS, error) {
	if err := d.call("sub", name); err != nil {
		return nil, err
	}
	if _, _, n := d.find(name); n == nil || !n.dir {
		return nil, perr("open", name, fs.ErrNotExist)
	}
	return below{d, name}, nil
}

// below is a directory of a disk.
type below struct {
	*disk
	dir string
}

func (b below) in(name string) string {
	if name == "." {
		return b.dir
	}
	return b.dir + "/" + name
}

func (b below) OpenFile(name string, flag int, perm fs.FileMode) (logfile.File, error) {
	return b.disk.OpenFile(b.in(name), flag, perm)
}
func (b below) Lstat(name string) (fs.FileInfo, error)     { return b.disk.Lstat(b.in(name)) }
func (b below) ReadDir(name string) ([]fs.DirEntry, error) { return b.disk.ReadDir(b.in(name)) }
func (b below) Sub(name string) (dirstore.FS, error)       { return b.disk.Sub(b.in(name)) }
func (b below) Remove(name string) error                   { return b.disk.Remove(b.in(name)) }

// Lock locks nothing: a store on a disk is left without a word when the machine
// crashes.
func (d *disk) Lock(logfile.File) error { return nil }

func (d *disk) Stat(name string) (fs.FileInfo, error) { return d.Lstat(name) }
func (d *disk) SameFile(a, b fs.FileInfo) bool        { return a.(info).n == b.(info).n }
func (d *disk) Close() error                          { return nil }

func (d *disk) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := d.call("readdir", name); err != nil {
		return nil, err
	}
	_, _, n := d.find(name)
	if n == nil || !n.dir {
		return nil, perr("open", name, fs.ErrNotExist)
	}
	var list []fs.DirEntry
	for _, base := range slices.Sorted(maps.Keys(n.names)) {
		list = append(list, fs.FileInfoToDirEntry(info{n.names[base], base}))
	}
	return list, nil
}

func (d *disk) Mkdir(name string, _ fs.FileMode) error {
	if err := d.call("mkdir", name); err != nil {
		return err
	}
	dir, base, n := d.find(name)
	switch {
	case dir == nil:
		return perr("mkdir", name, fs.ErrNotExist)
	case n != nil:
		return perr("mkdir", name, fs.ErrExist)
	}
	d.change(op{to: dir, toName: base, what: newDir()})
	return d.full(true, func() { d.change(op{from: dir, fromName: base}) })
}

func (d *disk) Rename(oldName, newName string) error {
	if err := d.call("rename", oldName); err != nil {
		return err
	}
	from, fromName, n := d.find(oldName)
	to, toName, there := d.find(newName)
	if d.stuck != "" && oldName == d.stuck {
		return perr("rename", oldName, syscall.EIO)
	}
	if d.tight != "" && oldName == d.tight {
		return perr("rename", oldName, syscall.ENOSPC)
	}
	if n == nil || to == nil {
		return perr("rename", oldName, fs.ErrNotExist)
	}
	if there != nil && there.dir {
		return perr("rename", oldName, fs.ErrExist)
	}
	d.change(op{from, to, fromName, toName, n})
	return d.full(false, func() { d.change(op{to, from, toName, fromName, n}) })
}

func (d *disk) Remove(name string) error {
	if err := d.call("remove", name); err != nil {
		return err
	}
	dir, base, n := d.find(name)
	switch {
	case n == nil:
		return perr("remove", name, fs.ErrNotExist)
	case len(n.names) > 0:
		return perr("remove", name, syscall.ENOTEMPTY)
	}
	d.change(op{from: dir, fromName: base})
	d.tight = ""
	return nil
}

// A handle is an open file.
type handle struct {
	d     *disk
	n     *node
	name  string
	epoch int

	inPlace bool // it was opened without os.O_APPEND
	at      int  // where the next write goes, then
}

func (h *handle) call(what string) error {
	if h.epoch != h.d.epoch {
		return errDown
	}
	return h.d.call(what, h.name)
}

func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	if err := h.call("read"); err != nil {
		return 0, err
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

// Write that fails has written a half.
func (h *handle) Write(p []byte) (int, error) {
	err := h.call("write")
	n := len(p)
	if err != nil {
		n /= 2
	}
	if h.inPlace && h.at+n <= len(h.n.cache) {
		h.n.cache = slices.Clone(h.n.cache)
		copy(h.n.cache[h.at:], p[:n])
		h.at += n
		h.n.patched = true
		return n, err
	}
	if h.n.pending == 0 {
		h.n.pending = len(h.n.cache) + 1
	}
	before := len(h.n.cache)
	h.n.cache = append(h.n.cache, p[:n]...)
	if full := h.d.full(true, func() { h.n.cache = h.n.cache[:before:before] }); full != nil {
		return 0, full
	}
	return n, err
}

func (h *handle) Truncate(size int64) error {
	if err := h.call("truncate"); err != nil {
		return err
	}
	h.n.cache = h.n.cache[:size:size]
	if h.n.pending == 0 || h.n.pending > int(size)+1 {
		h.n.pending = int(size) + 1
	}
	return nil
}

func (h *handle) Sync() error {
	if err := h.call("sync"); err != nil {
		return err
	}
	h.n.stable, h.n.pending, h.n.patched = h.n.cache, 0, false
	return nil
}

func (h *handle) Stat() (fs.FileInfo, error) {
	if err := h.call("stat"); err != nil {
		return nil, err
	}
	return info{h.n, filepath.Base(h.name)}, nil
}

// Close does not sync, and closes whatever it says.
func (h *handle) Close() error { return h.call("close") }

// An info is what Stat says.
type info struct {
	n    *node
	name string
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return int64(len(i.n.cache)) }
func (i info) Mode() fs.FileMode  { return i.n.mode }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.n.dir }
func (i info) Sys() any           { return nil }
