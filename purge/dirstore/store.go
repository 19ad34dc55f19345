package dirstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/internal/syncdir"
)

// The names in a store, beside the directories of jobs.
const (
	lockName  = "lock"  // what makes a directory a store
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

// maxFile is the maximum number of bytes in an eventlog, a jobspec or an R.
const maxFile = 64 << 20

// A Store is an open store. The zero Store behaves as a closed one.
type Store struct {
	_       guard.NoCopy
	fs      folder // nil if closed
	dir     string
	max     int64 // maxFile; less in tests
	lock    logfile.File
	left    []string           // jobs in trash and new that are to be removed
	ballast [ballastFiles]bool // which of its files are there
}

// Create makes a durable store and opens it. It makes the directory if that does not exist;
// the parent must exist. A directory that exists must be empty, or be left from an earlier
// Create that did not finish. The error is fs.ErrExist if there is a store already.
func Create(dir string) (*Store, error) { return create(dir, openFolder) }

func create(dir string, open func(dir string) (folder, error)) (*Store, error) {
	if err := os.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fail("create", dir, err)
	}
	s, err := start(dir, open)
	if err != nil {
		return nil, fail("create", dir, err)
	}
	if err := s.fill(); err != nil {
		return nil, errors.Join(fail("create", dir, err), s.end())
	}
	return s, nil
}

// Open opens a store, and removes jobs that were being added or removed when a crash came:
// the next Unlink tries again what cannot be removed. It works on a full disk, and reads
// the names of all jobs, but no job.
//
// The error is [ErrNotStore] if the directory is not a store, fs.ErrNotExist if there is
// none, logfile.ErrLocked if the store is open elsewhere.
func Open(dir string) (*Store, error) { return open(dir, openFolder) }

func open(dir string, open func(dir string) (folder, error)) (*Store, error) {
	s, err := start(dir, open)
	if err != nil {
		return nil, fail("open", dir, err)
	}
	err = s.lockDir(0)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: it has no lock", ErrNotStore)
	}
	if err == nil {
		err = errors.Join(s.look(), s.settle())
	}
	if err != nil {
		return nil, errors.Join(fail("open", dir, err), s.end())
	}
	s.clean()
	s.fillBallast()
	return s, nil
}

func start(dir string, open func(dir string) (folder, error)) (*Store, error) {
	root, err := open(dir)
	if err != nil {
		return nil, err
	}
	return &Store{fs: root, dir: dir, max: maxFile}, nil
}

// lockDir locks the store until it is closed. The file stays when the store is
// closed: to remove it would let two processes lock two files of one name.
func (s *Store) lockDir(flag int) error {
	f, err := s.fs.OpenFile(lockName, os.O_RDWR|os.O_APPEND|flag, fileMode)
	if err != nil {
		return err
	}
	if err := s.fs.Lock(f); err != nil {
		return errors.Join(err, f.Close())
	}
	s.lock = f
	return nil
}

// note notes which job is about to change, for settle. A crash may take it: then it is not
// needed. If it fails, a crash soon after a restart may take what the restart found.
func (s *Store) note(job string) {
	if s.lock.Truncate(0) == nil {
		_, _ = s.lock.Write([]byte(job))
	}
}

// settle makes durable what a process that was killed may have left in the operating system's
// memory: names of jobs, and a part of the one that it changed last. Otherwise a crash could
// take what is read, or bring back a job from the trash without what clean removes.
func (s *Store) settle() error {
	err := s.fs.SyncDir(".")
	noted, _ := readFile(s.fs, lockName, int64(nameLen))
	job := string(noted)
	if err != nil || !isJob(job, false) || s.isDir(job) != nil {
		return err
	}
	if err = s.fs.SyncDir(job); err != nil {
		return err
	}
	name := filepath.Join(job, eventlogKey)
	info, err := s.fs.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil // the job is damaged
	}
	var log logfile.File
	if err == nil {
		log, err = s.fs.OpenFile(name, os.O_RDWR, 0)
	}
	if err == nil {
		err = errors.Join(log.Sync(), log.Close())
	}
	return err
}

// fill fills an empty directory. The lock comes last: it makes a directory a store.
func (s *Store) fill() error {
	list, err := s.fs.ReadDir(".")
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(e fs.DirEntry) bool { return e.Name() == lockName }) {
		return fs.ErrExist
	}
	for _, e := range list {
		switch name := e.Name(); {
		case isNumbered(name, ballastPrefix):
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
	abs, err := filepath.Abs(s.dir)
	if err == nil {
		err = syncdir.Sync(os.Open, filepath.Dir(abs))
	}
	if err != nil {
		return err
	}
	s.fillBallast()
	if err := s.fs.SyncDir("."); err != nil {
		return err
	}
	if err := s.lockDir(os.O_CREATE | os.O_EXCL); err != nil {
		return err
	}
	return s.fs.SyncDir(".")
}

// look reads the names in the store. A missing trash or new is made again: a backup may
// drop empty directories.
func (s *Store) look() error {
	for _, dir := range []string{".", trashName, newName} {
		info, err := s.fs.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) && dir != "." {
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
			if dir == "." {
				for n := range s.ballast {
					s.ballast[n] = s.ballast[n] || e.Name() == ballastName(n)
				}
				continue
			}
			if isJob(e.Name(), dir == trashName) && e.IsDir() {
				s.left = append(s.left, filepath.Join(dir, e.Name()))
			}
		}
	}
	slices.Sort(s.left)
	return nil
}

// Close closes the store and releases its lock. Closing a closed store is fs.ErrClosed.
func (s *Store) Close() error {
	if s.fs == nil {
		return fail("close", s.dir, fs.ErrClosed)
	}
	return fail("close", s.dir, s.end())
}

func (s *Store) end() error {
	var err error
	if s.lock != nil {
		err = s.lock.Close()
	}
	err = errors.Join(err, s.fs.Close())
	s.fs, s.lock = nil, nil
	return err
}

func (s *Store) check(op string) error {
	if s.fs == nil {
		return fail(op, s.dir, fs.ErrClosed)
	}
	return nil
}
