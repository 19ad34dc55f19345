package disk

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/joblife/joblife/eventlog/logfile"
)

// A Disk is a file system. Its methods do what those of the operating system's do. "." is
// its root.
type Disk struct {
	// Coin says, for each part of what was not synced, whether a crash leaves it. New has
	// it leave nothing.
	Coin func() bool
	// Sector is how many bytes reach the disk together; 0 is 8.
	Sector int
	// Ordered has a crash leave no later part of what was appended to a file, and of how it
	// was cut, than the first that is lost. Otherwise zeros can take the place of a part.
	Ordered bool
	// Blocks and Inodes are how many blocks of 4 KiB there are, and how many files and
	// directories; 0 is no limit. A directory takes a block for each 64 names, as on ext4.
	Blocks, Inodes int
	// Calls are the calls that were made, as "rename jobs/1".
	Calls []string
	// Before, unless nil, is asked before each call; its error is that of the call.
	Before func(op, name string) error

	root   *node
	moves  []move // that were not synced
	faults map[string][]Fault
	failAt int  // the number of the call that fails, from 1
	stops  bool // every call after that one fails too
	epoch  int  // of the machine: handles of an earlier one are dead
	locked map[*node]bool
}

// A Fault is what happens to one call.
type Fault struct {
	N    int // how many bytes a write still writes, or a read reads
	Lie  int // is added to the count that is returned
	Err  error
	Then func() // runs after the fault
}

// ErrDown is the error of each call after the machine has stopped.
var ErrDown = errors.New("the machine is down")

// A node is a file or a directory. Its bytes are never changed in place: copies share them.
type node struct {
	mode    fs.FileMode
	names   map[string]*node // of a directory, as processes see it
	kept    map[string]*node // and as the disk has it
	cache   []byte           // of a file, as processes see it
	stable  []byte           // and as the disk has it
	pending []change         // of a file, that were not synced
}

// A change is a write, or a truncation if it has no data.
type change struct {
	at    int
	data  []byte
	patch bool // it was written over other bytes
}

// A move is a change of one or two directories.
type move struct {
	from, to         *node // nil if there is none
	fromName, toName string
	what             *node
}

// A place is a name in a directory. The zero place is none.
type place struct {
	dir  *node
	name string
}

func newDir() *node {
	return &node{mode: fs.ModeDir | 0o700, names: map[string]*node{}, kept: map[string]*node{}}
}

// New returns an empty disk.
func New() *Disk {
	return &Disk{root: newDir(), faults: map[string][]Fault{}, locked: map[*node]bool{}, Coin: func() bool { return false }}
}

// Clone returns a disk in the same state, without faults. No file of it is open.
func (d *Disk) Clone() *Disk {
	c, copies := New(), make(map[*node]*node)
	c.root, c.Coin, c.Ordered, c.Sector = d.root.clone(copies), d.Coin, d.Ordered, d.Sector
	for _, m := range d.moves {
		m.from, m.to, m.what = m.from.clone(copies), m.to.clone(copies), m.what.clone(copies)
		c.moves = append(c.moves, m)
	}
	return c
}

func (n *node) clone(copies map[*node]*node) *node {
	if n == nil || copies[n] != nil {
		return copies[n]
	}
	c := *n
	copies[n], c.pending = &c, slices.Clone(n.pending)
	for _, names := range []*map[string]*node{&c.names, &c.kept} {
		*names = maps.Clone(*names)
		for name, below := range *names {
			(*names)[name] = below.clone(copies)
		}
	}
	return &c
}

// Fail lets the next call of an operation that has no fault yet have one.
func (d *Disk) Fail(op string, f Fault) { d.faults[op] = append(d.faults[op], f) }

// FailAt lets the k-th call from now on fail. Of a write it leaves a half.
func (d *Disk) FailAt(k int) { d.Calls, d.failAt, d.stops = nil, k, false }

// StopAt lets the machine stop at the k-th call from now on, until the crash.
func (d *Disk) StopAt(k int) { d.Calls, d.failAt, d.stops = nil, k, true }

// Stopped reports whether the call of FailAt or StopAt was made.
func (d *Disk) Stopped() bool { return d.failAt > 0 && len(d.Calls) >= d.failAt }

// Heal ends all faults.
func (d *Disk) Heal() {
	d.failAt = 0
	clear(d.faults)
}

// call notes a call and returns its fault.
func (d *Disk) call(op, name string) (f Fault, faulty bool) {
	d.Calls = append(d.Calls, op+" "+name)
	if n := len(d.Calls); d.failAt > 0 && n >= d.failAt {
		switch {
		case d.stops:
			return Fault{Err: ErrDown, N: -1}, true
		case n == d.failAt:
			return Fault{Err: syscall.EIO, N: -1}, true
		}
	}
	if d.Before != nil {
		if err := d.Before(op, name); err != nil {
			return Fault{Err: err}, true
		}
	}
	q := d.faults[op]
	if len(q) == 0 {
		return Fault{}, false
	}
	d.faults[op] = q[1:]
	if q[0].Then != nil {
		defer q[0].Then()
	}
	return q[0], true
}

// look notes a call about a name, of which nothing is done if it fails, and finds the name.
func (d *Disk) look(op, name string) (dir *node, base string, n *node, err error) {
	if f, _ := d.call(op, name); f.Err != nil {
		return nil, "", nil, f.Err
	}
	dir, base, n = d.find(name)
	return dir, base, n, nil
}

// lookDir is look for a directory, which must be there.
func (d *Disk) lookDir(op, name string) (*node, error) {
	_, _, n, err := d.look(op, name)
	if err == nil && (n == nil || !n.mode.IsDir()) {
		err = notThere("open", name)
	}
	return n, err
}

func notThere(op, name string) error { return pathError(op, name, fs.ErrNotExist) }

// Count returns how many calls of an operation there were.
func (d *Disk) Count(op string) (n int) {
	for _, c := range d.Calls {
		if strings.HasPrefix(c, op+" ") {
			n++
		}
	}
	return n
}

// full returns ENOSPC if a change has made the disk too full, after undoing it.
func (d *Disk) full(undo func()) error {
	if d.Blocks == 0 && d.Inodes == 0 {
		return nil
	}
	if blocks, inodes := d.root.used(); d.Blocks > 0 && blocks > d.Blocks || d.Inodes > 0 && inodes > d.Inodes {
		undo()
		return syscall.ENOSPC
	}
	return nil
}

// Used returns how many blocks are taken.
func (d *Disk) Used() int {
	blocks, _ := d.root.used()
	return blocks
}

func (n *node) used() (blocks, inodes int) {
	blocks, inodes = (len(n.cache)+4095)/4096+(len(n.names)+63)/64, 1
	for _, below := range n.names {
		b, i := below.used()
		blocks, inodes = blocks+b, inodes+i
	}
	return blocks, inodes
}

// Kill ends the process: its locks are free. What it wrote is still there.
func (d *Disk) Kill() { clear(d.locked) }

// Crash stops the machine and starts it again. All faults end.
func (d *Disk) Crash() {
	d.epoch++
	d.Calls = nil
	d.Heal()
	d.Kill()
	lost := map[place]bool{}
	for _, m := range d.moves {
		if !lost[m.source()] && !lost[m.target()] && d.Coin() {
			m.apply(kept)
			continue
		}
		lost[m.source()], lost[m.target()] = true, true
		delete(lost, place{})
	}
	d.moves = nil
	d.root.crash(d)
}

func (n *node) crash(d *Disk) {
	if n.mode.IsDir() {
		n.names = maps.Clone(n.kept)
		for _, name := range slices.Sorted(maps.Keys(n.names)) {
			n.names[name].crash(d)
		}
		return
	}
	lost := false
	for _, c := range n.pending {
		n.surface(c, cmp.Or(d.Sector, 8), func() bool {
			kept := (!lost || c.patch) && d.Coin()
			lost = lost || d.Ordered && !kept
			return kept
		})
	}
	if !d.Ordered && len(n.stable) < len(n.cache) && d.Coin() {
		n.stable = resize(n.stable, len(n.cache)) // the size is there, and the bytes are not
	}
	n.cache, n.pending = n.stable, nil
}

// Coins returns a coin of which a seed says how often it falls which way, and how often it
// falls as it did before: so a crash leaves sectors, pages or whole writes.
func Coins(seed uint64) func() bool {
	random := rand.New(rand.NewPCG(seed, 8))
	odds := []float64{0, 0.1, 0.5, 0.5, 0.9, 1}[random.IntN(6)]
	changes := []float64{1, 1, 1. / 8, 1. / 64, 1. / 512}[random.IntN(5)]
	side := random.Float64() < odds
	return func() bool {
		if random.Float64() < changes {
			side = random.Float64() < odds
		}
		return side
	}
}

// surface lets those sectors of a change reach the disk that the coin says.
func (n *node) surface(c change, sector int, coin func() bool) {
	if c.data == nil {
		if coin() {
			n.stable = resize(n.stable, c.at)
		}
		return
	}
	n.stable = slices.Clone(n.stable)
	for len(c.data) > 0 {
		piece := c.data[:min(len(c.data), sector-c.at%sector)]
		if coin() {
			n.stable = append(n.stable, make([]byte, max(0, c.at+len(piece)-len(n.stable)))...)
			copy(n.stable[c.at:], piece)
		}
		c.at, c.data = c.at+len(piece), c.data[len(piece):]
	}
}

func resize(b []byte, size int) []byte {
	out := make([]byte, size)
	copy(out, b)
	return out
}

func (m move) apply(names func(*node) map[string]*node) {
	if m.from != nil {
		delete(names(m.from), m.fromName)
	}
	if m.to != nil {
		names(m.to)[m.toName] = m.what
	}
}

func (m move) source() place { return place{m.from, m.fromName} }
func (m move) target() place { return place{m.to, m.toName} }

func seen(n *node) map[string]*node { return n.names }
func kept(n *node) map[string]*node { return n.kept }

// move makes a move that is not durable.
func (d *Disk) move(m move) {
	m.apply(seen)
	d.moves = append(d.moves, m)
}

// SyncDir makes the names in a directory durable, and the moves of the same names before that.
func (d *Disk) SyncDir(name string) error {
	n, err := d.lookDir("syncdir", name)
	if err != nil {
		return err
	}
	done, touched, dirs := make([]bool, len(d.moves)), map[place]bool{}, map[*node]bool{n: true}
	for i := len(d.moves) - 1; i >= 0; i-- {
		m := &d.moves[i]
		if !dirs[m.from] && !dirs[m.to] { // most, and a name takes longer to look up
			continue
		}
		if m.from == n || m.to == n || touched[m.source()] || touched[m.target()] {
			done[i], touched[m.source()], touched[m.target()], dirs[m.from], dirs[m.to] = true, true, true, true, true
			delete(touched, place{})
			delete(dirs, nil)
		}
	}
	left := 0
	for i := range d.moves {
		if m := &d.moves[i]; done[i] {
			m.apply(kept)
		} else {
			d.moves[left] = *m
			left++
		}
	}
	d.moves = slices.Delete(d.moves, left, len(d.moves))
	return nil
}

// find returns the directory that a name is in, its last element, and its node.
func (d *Disk) find(name string) (dir *node, base string, n *node) {
	n = d.root
	name = filepath.ToSlash(name)
	if name == "." {
		return nil, ".", n
	}
	for base = range strings.SplitSeq(name, "/") {
		if dir = n; dir == nil || !dir.mode.IsDir() {
			return nil, base, nil
		}
		n = dir.names[base]
	}
	return dir, base, n
}

func pathError(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

// OpenFile opens or creates a file.
func (d *Disk) OpenFile(name string, flag int, perm fs.FileMode) (logfile.File, error) {
	dir, base, n, err := d.look("open", name)
	switch {
	case err != nil:
		return nil, err
	case dir == nil, n == nil && flag&os.O_CREATE == 0:
		return nil, notThere("open", name)
	case n != nil && flag&os.O_EXCL != 0:
		return nil, pathError("open", name, fs.ErrExist)
	case n == nil:
		n = &node{mode: perm}
		d.move(move{to: dir, toName: base, what: n})
		if err := d.full(func() { d.move(move{from: dir, fromName: base}) }); err != nil {
			return nil, pathError("open", name, err)
		}
	}
	return &handle{d: d, n: n, name: name, epoch: d.epoch, inPlace: flag&os.O_APPEND == 0}, nil
}

// Stat describes a file or directory.
func (d *Disk) Stat(name string) (fs.FileInfo, error) { return d.stat("statname", name) }

// Lstat is Stat: there are no links.
func (d *Disk) Lstat(name string) (fs.FileInfo, error) { return d.stat("lstat", name) }

func (d *Disk) stat(op, name string) (fs.FileInfo, error) {
	_, base, n, err := d.look(op, name)
	if err == nil && n == nil {
		err = notThere(op, name)
	}
	if err != nil {
		return nil, err
	}
	return n.info(base), nil
}

// SameFile reports whether two descriptions are of one file.
func (d *Disk) SameFile(a, b fs.FileInfo) bool { return a.(info).n == b.(info).n }

// OpenDir returns an error unless the name is the name of a directory.
func (d *Disk) OpenDir(name string) error {
	_, err := d.lookDir("opendir", name)
	return err
}

// ReadDir returns what a directory has.
func (d *Disk) ReadDir(name string) (list []fs.DirEntry, err error) {
	n, err := d.lookDir("readdir", name)
	if err != nil {
		return nil, err
	}
	for _, base := range slices.Sorted(maps.Keys(n.names)) {
		list = append(list, fs.FileInfoToDirEntry(n.names[base].info(base)))
	}
	return list, nil
}

// Mkdir makes a directory.
func (d *Disk) Mkdir(name string, _ fs.FileMode) error {
	dir, base, n, err := d.look("mkdir", name)
	switch {
	case err != nil:
		return err
	case dir == nil:
		return notThere("mkdir", name)
	case n != nil:
		return pathError("mkdir", name, fs.ErrExist)
	}
	d.move(move{to: dir, toName: base, what: newDir()})
	return d.full(func() { d.move(move{from: dir, fromName: base}) })
}

// Rename is atomic.
func (d *Disk) Rename(oldName, newName string) error {
	from, fromName, n, err := d.look("rename", oldName)
	to, toName, there := d.find(newName)
	switch {
	case err != nil:
		return err
	case n == nil || to == nil:
		return notThere("rename", oldName)
	case there != nil && there.mode.IsDir():
		return pathError("rename", oldName, fs.ErrExist)
	}
	d.move(move{from, to, fromName, toName, n})
	return d.full(func() { d.move(move{to, from, toName, fromName, n}) })
}

// Remove removes a file or an empty directory.
func (d *Disk) Remove(name string) error {
	dir, base, n, err := d.look("remove", name)
	switch {
	case err != nil:
		return err
	case n == nil:
		return notThere("remove", name)
	case len(n.names) > 0:
		return pathError("remove", name, syscall.ENOTEMPTY)
	}
	d.move(move{from: dir, fromName: base})
	return nil
}

// Chmod changes permissions.
func (d *Disk) Chmod(name string, mode fs.FileMode) error {
	_, _, n, err := d.look("chmod", name)
	if err == nil {
		n.mode = mode
	}
	return err
}

// Lock locks a file until it is closed, or Kill.
func (d *Disk) Lock(f logfile.File) error {
	h := f.(*handle)
	if d.locked[h.n] {
		return logfile.ErrLocked
	}
	d.locked[h.n], h.locks = true, true
	return nil
}

// The rest notes no call, and a crash undoes none of it but what Write wrote.

// Put makes a new file, and the directory that it is in. One of that name is replaced.
func (d *Disk) Put(name, text string) {
	if parent := path.Dir(name); parent != "." {
		if _, _, n := d.find(parent); n == nil {
			d.PutDir(parent)
		}
	}
	d.put(name, &node{mode: 0o600, cache: []byte(text), stable: []byte(text)})
}

// PutDir makes a directory.
func (d *Disk) PutDir(name string) { d.put(name, newDir()) }

func (d *Disk) put(name string, n *node) {
	dir, base, _ := d.find(name)
	dir.names[base], dir.kept[base] = n, n
}

// Delete removes a file.
func (d *Disk) Delete(name string) {
	dir, base, _ := d.find(name)
	delete(dir.names, base)
	delete(dir.kept, base)
}

// Set replaces what a file has.
func (d *Disk) Set(name, text string) {
	_, _, n := d.find(name)
	n.cache, n.stable, n.pending = []byte(text), []byte(text), nil
}

// Write writes to a file at an offset as a process does that does not sync.
func (d *Disk) Write(name string, at int, text string) {
	_, _, n := d.find(name)
	n.write(at, []byte(text))
}

// Read returns what processes see of a file.
func (d *Disk) Read(name string) string {
	if _, _, n := d.find(name); n != nil {
		return string(n.cache)
	}
	return "no such file"
}

// Stable returns what the disk has of a file.
func (d *Disk) Stable(name string) string {
	_, _, n := d.find(name)
	return string(n.stable)
}

// Mode returns the permissions of a file.
func (d *Disk) Mode(name string) fs.FileMode {
	_, _, n := d.find(name)
	return n.mode
}

// Files returns the names of all files.
func (d *Disk) Files() []string { return d.root.files("", nil) }

func (n *node) files(name string, out []string) []string {
	if !n.mode.IsDir() {
		return append(out, name)
	}
	for _, base := range slices.Sorted(maps.Keys(n.names)) {
		out = n.names[base].files(path.Join(name, base), out)
	}
	return out
}

// An info is what a file was when somebody looked.
type info struct {
	n    *node
	name string
	size int64
	mode fs.FileMode
}

func (n *node) info(name string) info { return info{n, name, int64(len(n.cache)), n.mode} }

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }
