package dirstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"github.com/joblife/joblife/jobstate/jobid"
)

// Unlink removes jobs as purge.Store says: the caller has stored a watermark that covers
// their ids. It moves the jobs into the trash and makes that durable with one fsync: from
// then on they are gone, also after a crash. Then it removes their files.
//
// A job that cannot be moved is in failed. A file that the store did not make stays in the
// folder trash, and no symbolic link is followed. What cannot be removed from there is no
// error: the next Unlink and the next Open try again. Unlink works on a full disk. On Windows
// no file of the jobs may be open.
func (s *Store) Unlink(ctx context.Context, ids []jobid.ID) (failed map[jobid.ID]error, err error) {
	const op = "unlink"
	if err := s.check(op); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fail(op, s.dir, err)
	}
	for _, id := range ids {
		info, err := s.fs.Lstat(id.KVSPath())
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
			continue
		}
		if err == nil {
			err = s.withRoom(func() error { return s.moveAside(id.KVSPath()) })
		}
		if err != nil {
			if failed == nil {
				failed = make(map[jobid.ID]error)
			}
			failed[id] = fmt.Errorf("%s: %w", id.KVSPath(), cause(err))
		}
	}
	// Also if nothing was there: an earlier call may have failed here, and a job
	// that is not seen any more is not yet gone for good.
	if err := s.fs.SyncDir("."); err != nil {
		return nil, fail(op, ".", err)
	}
	s.clean()
	s.fillBallast()
	return failed, nil
}

// moveAside moves the directory of a job into the trash, whatever is in it.
func (s *Store) moveAside(name string) error {
	to := filepath.Join(trashName, name)
	for n := 1; n <= maxAgain; n++ {
		err := s.fs.Rename(name, to)
		switch {
		case err == nil:
			s.left = append(s.left, to)
			return nil
		case s.gone(name):
			return nil // it was named twice
		}
		if _, none := s.fs.Lstat(to); none != nil {
			return err
		}
		to = filepath.Join(trashName, name+againMark+strconv.Itoa(n)) // what has the name is foreign
	}
	return errNoName
}

// clean removes the jobs on their way in or out. What it cannot remove is tried again at
// the next call.
func (s *Store) clean() {
	parents := make(map[string]folder, 2) // a name in an open directory is found faster
	kept := s.left[:0]
	for _, name := range s.left {
		dir, base := filepath.Split(name)
		parent, err := parents[dir], error(nil)
		if parent == nil {
			if parent, err = s.fs.Sub(filepath.Clean(dir)); err == nil {
				parents[dir] = parent
			}
		}
		if err == nil {
			err = removeJob(parent, base)
		}
		if err != nil {
			kept = append(kept, name)
		}
	}
	for _, parent := range parents {
		_ = parent.Close() // nothing was written
	}
	clear(s.left[len(kept):])
	s.left = kept
}

// removeJob removes the files of a job, and its directory unless it has some that the store did
// not make.
func removeJob(parent folder, name string) error {
	dir, err := parent.Sub(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	list, err := dir.ReadDir(".")
	foreign := false
	for _, e := range list {
		if !isJobFile(e.Name()) || !e.Type().IsRegular() {
			foreign = true
		} else if err == nil {
			err = remove(dir, e.Name())
		}
	}
	if err = errors.Join(err, dir.Close()); err != nil || foreign {
		return err
	}
	return remove(parent, name)
}
