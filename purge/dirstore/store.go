package dirstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// The names in a store, beside those of jobs.
const (
	markName  = "watermark"
	tombsName = "tombstones"
	trashName = "trash" // jobs on their way out
	newName   = "new"   // jobs on their way in

	tempSuffix = ".new" // of a file that is written to replace another
	sideSuffix = ".torn-"
)

// The permissions of what is created, before umask.
const (
	dirMode  fs.FileMode = 0o700
	fileMode fs.FileMode = 0o600
)

// The limits where nothing else is said.
const (
	// DefaultMaxEventlog is how many bytes the eventlog of a job has at most.
	DefaultMaxEventlog = 64 << 20
	// DefaultMaxObject is how many bytes a jobspec or an R has at most.
	DefaultMaxObject = 64 << 20
)

// Options say how a store is kept. The zero value is the default.
type Options struct {
	// MaxEventlog is how many bytes the eventlog of a job may have. 0 and less
	// mean DefaultMaxEventlog.
	MaxEventlog int64
	// MaxObject is how many bytes a jobspec or an R may have. 0 and less mean
	// DefaultMaxObject.
	MaxObject int64
	// Wrap, if it is not nil, is called with the file system of the store, and
	// what it returns is used instead: for tests that let it fail. If it
	// returns another one, it is that one that Close closes.
	Wrap func(FS) FS
}

// A Store is an open store. One goroutine at a time may use it, and no other
// Store of the same directory may be open, in this process or another. The zero
// Store is not valid: it is a closed one.
type Store struct {
	_    noCopy
	fs   FS // nil if closed
	dir  string
	opts Options
	mark jobid.ID // the watermark that is durable
	high jobid.ID // the greatest id that was ever seen, at least mark
	// try is what PutWatermark was last called for, at least mark: after a
	// failure it may be in the file.
	try       jobid.ID
	tombs     *logfile.Log       // nil until it is needed
	tombsTime eventlog.Timestamp // the greatest time of a tombstone
	compactAt int64              // the size of the log of tombstones that is too large
	dirty     bool               // the trash is to be emptied
}

var _ purge.Store = (*Store)(nil)

// noCopy makes go vet report copies of a type that has it as a field.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// Create makes a store, durably, and opens it. The directory is created if it is
// not there; its parent must be. If it is there it must be empty, or be what an
// earlier Create left that did not finish. The error is an *[Error]: fs.ErrExist
// if there is a store, [ErrForeign] if there is something else.
func Create(dir string, o Options) (*Store, error) {
	if err := os.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fail("create", dir, err)
	}
	s, err := start(dir, o)
	if err != nil {
		return nil, fail("create", dir, err)
	}
	if err := s.create(); err != nil {
		_ = s.fs.Close()
		return nil, fail("create", dir, err)
	}
	return s, nil
}

// Open opens a store and puts right what a crash left: it cuts off a batch of
// tombstones that is there in part, raises the watermark to the greatest id of
// which there is any trace, and then removes the jobs that were on their way in
// or out. The error is an *[Error]: [ErrNotStore] if the directory is no store,
// fs.ErrNotExist if there is none, or one without its directories new and trash,
// as a backup may drop empty ones: make them again; [ErrDamaged] if the watermark
// or a tombstone can not be read; then nothing was changed but what logfile.Repair
// does.
//
// Open reads the names of all jobs and all tombstones, but no job.
func Open(dir string, o Options) (*Store, error) {
	s, err := start(dir, o)
	if err != nil {
		return nil, fail("open", dir, err)
	}
	if err := s.recover(); err != nil {
		_ = s.closeTombs() // nothing was appended
		_ = s.fs.Close()
		if e, ok := err.(*Error); ok {
			e.Op = "open"
			return nil, e
		}
		return nil, fail("open", dir, err)
	}
	return s, nil
}

// start opens the directory of a store.
func start(dir string, o Options) (*Store, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	if o.MaxEventlog <= 0 {
		o.MaxEventlog = DefaultMaxEventlog
	}
	if o.MaxObject <= 0 {
		o.MaxObject = DefaultMaxObject
	}
	s := &Store{fs: osFS{root}, dir: dir, opts: o}
	if o.Wrap != nil {
		s.fs = o.Wrap(s.fs)
	}
	return s, nil
}

// create fills an empty directory. The watermark comes last: it is what makes a
// directory a store.
func (s *Store) create() error {
	list, err := s.fs.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range list {
		switch name := e.Name(); {
		case name == markName:
			return fs.ErrExist
		case name == markName+tempSuffix:
		case (name == trashName || name == newName) && e.IsDir():
			if inside, err := s.fs.ReadDir(name); err != nil || len(inside) > 0 {
				return errors.Join(err, errNotEmpty)
			}
		default:
			return errNotEmpty
		}
	}
	for _, name := range []string{trashName, newName} {
		if err := s.fs.Mkdir(name, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := s.fs.SyncDir("."); err != nil {
		return err
	}
	if err := syncParent(s.dir); err != nil {
		return err
	}
	s.compactAt = minCompact
	return s.writeMark(0)
}

// syncParent makes durable that a directory has its name.
func syncParent(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // a directory can not be synced there
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	parent, err := os.Open(filepath.Dir(abs))
	if err != nil {
		return err
	}
	return errors.Join(parent.Sync(), parent.Close())
}

// recover finds out what a directory holds. Nothing is removed before the
// watermark is durable that what is removed is evidence of.
func (s *Store) recover() error {
	text, err := readFile(s.fs, markName, 1<<10)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: it has no watermark", ErrNotStore)
	case err != nil:
		return fail("", markName, err)
	}
	if s.mark, err = parseMark(text); err != nil {
		return fail("", markName, fmt.Errorf("%w: %w", ErrDamaged, err))
	}
	s.try, s.high = s.mark, s.mark
	for _, dir := range []string{".", trashName, newName} {
		if info, err := s.fs.Lstat(dir); err != nil {
			return fail("", dir, err)
		} else if !info.IsDir() {
			return fail("", dir, errInTheWay)
		}
		list, err := s.fs.ReadDir(dir)
		if err != nil {
			return fail("", dir, err)
		}
		for _, e := range list {
			if id, ok := parseName(e.Name(), dir == trashName); ok {
				s.high = max(s.high, id)
			}
		}
	}
	if err := s.openTombs(); err != nil {
		return fail("", tombsName, err)
	}
	if err := s.keepHigh(); err != nil {
		return fail("", markName, err)
	}
	for _, name := range []string{markName, tombsName} {
		if err := remove(s.fs, name+tempSuffix); err != nil {
			return fail("", name+tempSuffix, err)
		}
	}
	// What can not be removed is no reason to keep the store closed: it is not a
	// job any more, and the next Unlink tries again and says what is wrong.
	s.dirty = true
	_ = s.clean()
	return nil
}

// Close closes the store. What its methods changed is durable already. Closing a
// closed store is fs.ErrClosed.
func (s *Store) Close() error {
	if s.fs == nil {
		return fail("close", s.dir, fs.ErrClosed)
	}
	err := errors.Join(s.closeTombs(), s.fs.Close())
	s.fs = nil
	if err != nil {
		return fail("close", s.dir, err)
	}
	return nil
}

// ready returns an error if the store is closed or ctx is done.
func (s *Store) ready(ctx context.Context, op string) error {
	if s.fs == nil {
		return fail(op, s.dir, fs.ErrClosed)
	}
	if err := ctx.Err(); err != nil {
		return fail(op, s.dir, err)
	}
	return nil
}

// Watermark returns the greatest id of which there is or was any trace: what
// PutWatermark kept, and every job and tombstone since, damaged ones included.
// It is never less than before, in this process or an earlier one. 0 means that
// there was none. It reads nothing.
func (s *Store) Watermark() jobid.ID { return s.high }

// PutWatermark keeps id as [purge.Store] says. The error is an *[Error]; then
// what was kept before is kept, or id. An id that is not greater than what is
// kept costs nothing.
func (s *Store) PutWatermark(ctx context.Context, id jobid.ID) error {
	const op = "put watermark"
	if err := s.ready(ctx, op); err != nil {
		return err
	}
	if id <= s.mark {
		return nil
	}
	if err := s.writeMark(id); err != nil {
		return fail(op, markName, err)
	}
	return nil
}

// keepHigh makes the watermark as great as all that was seen, durably.
func (s *Store) keepHigh() error {
	if s.high <= s.mark {
		return nil
	}
	return s.writeMark(s.high)
}

// writeMark replaces the watermark. If an earlier call failed, its id may be in
// the file already, and is kept if it is greater.
func (s *Store) writeMark(id jobid.ID) error {
	s.try = max(s.try, id)
	text := append(purge.AppendWatermark(nil, s.try), '\n')
	if err := replace(s.fs, ".", markName, text); err != nil {
		return err
	}
	s.mark, s.high = s.try, max(s.high, s.try)
	return nil
}

// parseMark reads what writeMark writes, and nothing else.
func parseMark(text []byte) (jobid.ID, error) {
	line, ok := strings.CutSuffix(string(text), "\n")
	if !ok {
		return 0, errors.New("it does not end with a newline")
	}
	return purge.ParseWatermark([]byte(line))
}

// Foreign returns the names in the store that it did not make, and what it
// found in a job that was unlinked and left in the trash: sorted, with slashes.
// They do no harm, and are never removed. The error is an *[Error].
func (s *Store) Foreign() ([]string, error) {
	if err := s.ready(context.Background(), "list"); err != nil {
		return nil, err
	}
	var out []string
	for _, dir := range []string{newName, trashName, "."} {
		list, err := s.fs.ReadDir(dir)
		if err != nil {
			return nil, fail("list", dir, err)
		}
		for _, e := range list {
			if dir != "." || !isStoreName(e.Name()) {
				out = append(out, strings.ReplaceAll(join(dir, e.Name()), string(filepath.Separator), "/"))
			}
		}
	}
	return sorted(out), nil
}
