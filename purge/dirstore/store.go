package dirstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate/jobid"
)

// The names in a store, beside the directories of jobs.
const (
	tombsName = "tombstones"
	lockName  = "lock"
	trashName = "trash" // jobs on their way out
	newName   = "new"   // jobs on their way in

	markPrefix = "watermark-" // of its copies
	tempSuffix = ".new"       // of a file that is written to replace another
	sideSuffix = ".torn-"
)

// The permissions of what is created, before umask.
const (
	dirMode  fs.FileMode = 0o700
	fileMode fs.FileMode = 0o600
)

// defaultMax is the default of Options.MaxEventlog and MaxObject.
const defaultMax = 64 << 20

// Options say how a store is kept. The zero value is the default.
type Options struct {
	// MaxEventlog is the maximum number of bytes in the eventlog of a job. 0 or
	// less means 64 MiB.
	MaxEventlog int64
	// MaxObject is the maximum number of bytes in a jobspec or an R. 0 or less
	// means 64 MiB.
	MaxObject int64

	// wrap returns what is used in the place of a file system: for tests that let it
	// fail. The Store closes what it returns.
	wrap func(folder) folder
}

// A Store is an open store. One goroutine at a time may use it. The zero Store
// behaves as a closed one.
type Store struct {
	_        guard.NoCopy
	fs       folder // nil if closed
	dir      string
	opts     Options
	readOnly bool
	lock     logfile.File
	mark     jobid.ID // the watermark that is durable
	high     jobid.ID // the greatest id that was ever seen, at least mark
	// try is what PutWatermark was last called for, at least mark: after a failure
	// it may be in a copy.
	try     jobid.ID
	marks   [copies]markCopy
	tombs   tombs
	trash   map[string]bool    // the names in the trash
	left    []string           // jobs in trash and new that are to be removed
	ballast [ballastFiles]bool // which of its files are there
}

// A Report says what Open repaired, and what it could not repair.
type Report struct {
	// Watermark is the name of the copy of the watermark that a crash damaged and
	// Open rewrote from the other copy; "" if both were good.
	Watermark string
	// Tombstones says what Open cut off from a torn log of tombstones.
	Tombstones logfile.Repaired
	// Problems are the errors of a full or failing disk: Open could not raise the
	// watermark, or could not empty the trash. The store works; the next Unlink
	// tries again.
	Problems []error
}

// problem notes an error.
func (r *Report) problem(err error) {
	if err != nil {
		r.Problems = append(r.Problems, err)
	}
}

// Create makes a durable store and opens it. It makes the directory if that does
// not exist; the parent must exist. A directory that exists must be empty, or be
// left from an earlier Create that did not finish. The error is fs.ErrExist if
// there is a store already, or logfile.ErrLocked.
func Create(dir string, o Options) (*Store, error) {
	if err := os.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fail("create", dir, err)
	}
	s, err := start(dir, o)
	if err != nil {
		return nil, fail("create", dir, err)
	}
	if err := s.create(); err != nil {
		return nil, errors.Join(fail("create", dir, err), s.end())
	}
	return s, nil
}

// Open opens a store and repairs what a crash left: it cuts off a torn line of
// tombstones, raises the watermark to the greatest id of which there is a trace,
// and removes jobs that were being added or removed. It works on a full disk. The
// Report says what it did and what it could not do.
//
// The error is [ErrNotStore] if the directory is not a store, fs.ErrNotExist if there is no
// directory, logfile.ErrLocked if the store is open elsewhere, [ErrDamaged] if the watermark or
// a tombstone cannot be read: then nothing was changed; call [Repair].
//
// Open reads the names of all jobs, and all tombstones, but no job.
func Open(dir string, o Options) (*Store, Report, error) {
	s, err := start(dir, o)
	if err != nil {
		return nil, Report{}, fail("open", dir, err)
	}
	var report Report
	if err = s.lockDir(false); err == nil {
		err = s.recover(&report)
	}
	if err != nil {
		return nil, report, errors.Join(fail("open", dir, err), s.end())
	}
	return s, report, nil
}

// OpenReadOnly opens a store for reading. It locks nothing and changes nothing, so it
// works on a read-only file system, and beside a process that has the store open; it
// may or may not see later changes of that process. Every call that would change the
// store returns [ErrReadOnly]. OpenReadOnly returns the errors of Open.
func OpenReadOnly(dir string, o Options) (*Store, error) {
	s, err := start(dir, o)
	if err != nil {
		return nil, fail("open", dir, err)
	}
	s.readOnly = true
	if err := s.recover(new(Report)); err != nil {
		return nil, errors.Join(fail("open", dir, err), s.end())
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
		o.MaxEventlog = defaultMax
	}
	if o.MaxObject <= 0 {
		o.MaxObject = defaultMax
	}
	s := &Store{fs: osFS{root}, dir: dir, opts: o, trash: make(map[string]bool)}
	if o.wrap != nil {
		s.fs = o.wrap(s.fs)
	}
	return s, nil
}

// lockDir locks the store until it is closed. The file stays when the store is
// closed: to remove it would let two processes lock two files of one name.
func (s *Store) lockDir(created bool) error {
	if !created && s.gone(markName(0)) && s.gone(markName(1)) {
		return fmt.Errorf("%w: it has no watermark", ErrNotStore) // and gets no lock
	}
	f, err := s.fs.OpenFile(lockName, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return err
	}
	if err := s.fs.Lock(f); err != nil {
		return errors.Join(err, f.Close())
	}
	s.lock = f
	return nil
}

// create fills an empty directory. The watermark comes last: it is what makes a
// directory a store.
func (s *Store) create() error {
	list, err := s.fs.ReadDir(".")
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(e fs.DirEntry) bool { return isMark(e.Name()) }) {
		return fs.ErrExist
	}
	for _, e := range list {
		switch name := e.Name(); {
		case isMark(strings.TrimSuffix(name, tempSuffix)) || name == lockName || name == tombsName || isNumbered(name, ballastPrefix):
		case (name == trashName || name == newName) && e.IsDir():
			if inside, err := s.fs.ReadDir(name); err != nil || len(inside) > 0 {
				return errors.Join(err, errNotEmpty)
			}
		default:
			return errNotEmpty
		}
	}
	if err := s.lockDir(true); err != nil {
		return err
	}
	for _, name := range []string{trashName, newName} {
		if err := s.fs.Mkdir(name, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := s.fs.SyncDir("."); err != nil {
		return err
	}
	abs, err := filepath.Abs(s.dir)
	if err == nil {
		err = syncDir(os.Open, filepath.Dir(abs))
	}
	if err != nil {
		return err
	}
	if _, err := s.openTombs(); err != nil {
		return err
	}
	s.fillBallast()
	return s.writeMark(0)
}

// recover finds out what a directory holds. Nothing is removed before the watermark
// is durable that what is removed is evidence of.
func (s *Store) recover(report *Report) error {
	damaged, err := s.readMark()
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: it has no watermark", ErrNotStore)
	}
	if err != nil {
		return err
	}
	if err := s.look(); err != nil {
		return err
	}
	if err := s.readTombs(); err != nil {
		return fmt.Errorf("%s: %w", tombsName, cause(err))
	}
	if s.readOnly {
		return nil
	}
	if err := s.withRoom(s.keepHigh); err != nil {
		report.problem(fail("open", markPrefix, err))
	} else {
		report.Watermark = damaged
	}
	if report.Tombstones, err = s.openTombs(); err != nil {
		if !logfile.IsFull(err) {
			return fmt.Errorf("%s: %w", tombsName, cause(err))
		}
		report.problem(fail("open", tombsName, err))
	}
	for _, name := range []string{markName(0), markName(1), tombsName} {
		if err := remove(s.fs, name+tempSuffix); err != nil {
			report.problem(fail("open", name+tempSuffix, err))
		}
	}
	report.problem(s.clean())
	s.fillBallast()
	return nil
}

// look reads the names in the store. A file is no job, whatever its name. A missing
// trash or new is made again: a backup may drop empty directories.
func (s *Store) look() error {
	for _, dir := range []string{".", trashName, newName} {
		info, err := s.fs.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) && dir != "." {
			if s.readOnly {
				continue
			}
			if err = s.withRoom(func() error { return s.fs.Mkdir(dir, dirMode) }); err == nil {
				info, err = s.fs.Lstat(dir)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", dir, cause(err))
		}
		if !info.IsDir() {
			return fmt.Errorf("%s: %w", dir, errInTheWay)
		}
		list, err := s.fs.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("%s: %w", dir, cause(err))
		}
		for _, e := range list {
			for n := range s.ballast {
				s.ballast[n] = s.ballast[n] || dir == "." && e.Name() == ballastName(n)
			}
			id, ok := parseName(e.Name(), dir == trashName)
			if dir == trashName {
				s.trash[e.Name()] = true
			}
			if !ok || !e.IsDir() {
				continue
			}
			s.high = max(s.high, id)
			if dir != "." {
				s.left = append(s.left, filepath.Join(dir, e.Name()))
			}
		}
	}
	slices.Sort(s.left)
	return nil
}

// Close closes the store and releases its lock. All earlier changes are already
// durable. Closing a closed store is fs.ErrClosed.
func (s *Store) Close() error {
	if s.fs == nil {
		return fail("close", s.dir, fs.ErrClosed)
	}
	if err := s.end(); err != nil {
		return fail("close", s.dir, err)
	}
	return nil
}

// end closes everything.
func (s *Store) end() error {
	err := s.closeTombs()
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	err = errors.Join(err, s.fs.Close())
	s.fs, s.lock = nil, nil
	return err
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

// writable returns an error if the store cannot be changed.
func (s *Store) writable(ctx context.Context, op string) error {
	if s.readOnly && s.fs != nil {
		return fail(op, s.dir, ErrReadOnly)
	}
	return s.ready(ctx, op)
}
