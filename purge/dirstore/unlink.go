package dirstore

import (
	"context"
	"errors"
	"io/fs"
	"strconv"

	"github.com/joblife/joblife/jobstate/jobid"
)

// Unlink removes jobs as [purge.Store] says. First it raises the watermark, if a
// job's id is beyond it. Then it moves the jobs into the trash, and makes that
// durable: from there on they are gone, whole, also after a crash. Then it
// removes their files.
//
// A file in the directory of a job that the store did not make is not removed:
// it stays in the trash, as does what has the name of a job and is no directory,
// and [Store.Foreign] tells. Symbolic links are not followed.
//
// A job that cannot be moved is in failed and stops no other. The next Unlink and the next Open remove what was
// left in the trash. Unlink makes three fsyncs at most, and no file of the jobs
// may be open where the system does not move open files, as Windows.
func (s *Store) Unlink(ctx context.Context, ids []jobid.ID) (failed map[jobid.ID]error, err error) {
	const op = "unlink"
	if err := s.ready(ctx, op); err != nil {
		return nil, err
	}
	refuse := func(id jobid.ID, err error) {
		if failed == nil {
			failed = make(map[jobid.ID]error)
		}
		failed[id] = fail(op, id.KVSPath(), err)
	}
	var there []jobid.ID
	var greatest jobid.ID
	for _, id := range ids {
		_, err := s.fs.Lstat(id.KVSPath())
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			refuse(id, err)
			continue
		}
		there = append(there, id)
		greatest = max(greatest, id)
	}
	s.high = max(s.high, greatest)
	if greatest > s.mark {
		// Whoever put the job there, its directory is the last evidence of it.
		if err := s.keepHigh(); err != nil {
			return nil, fail(op, markName, err)
		}
	}
	for _, id := range there {
		if err := s.moveAside(id.KVSPath()); err != nil {
			refuse(id, err)
		}
	}
	// Also if nothing was there: an earlier call may have failed here, and a job
	// that is not seen any more is not yet one that is gone for good.
	if err := s.fs.SyncDir("."); err != nil {
		return nil, fail(op, ".", err)
	}
	// What cannot be removed from the trash is no job any more: the next Unlink
	// tries again.
	_ = s.clean()
	return failed, nil
}

// clean removes the jobs that are on their way in or out, if there may be any.
func (s *Store) clean() error {
	if !s.dirty {
		return nil
	}
	err := errors.Join(s.sweep(trashName), s.sweep(newName))
	s.dirty = err != nil
	return err
}

// moveAside moves the directory of a job into the trash. What is in it plays no
// role.
func (s *Store) moveAside(name string) error {
	to := join(trashName, name)
	for n := 1; ; n++ {
		// Rename would replace an empty directory, or a file.
		if _, err := s.fs.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return err
		}
		if n >= maxAgain {
			return errNoName
		}
		to = join(trashName, name+againMark+strconv.Itoa(n))
	}
	s.dirty = true
	if err := s.fs.Rename(name, to); err != nil {
		if _, gone := s.fs.Lstat(name); errors.Is(gone, fs.ErrNotExist) {
			return nil // it was named twice
		}
		return err
	}
	return nil
}

// sweep removes the jobs in a directory that are on their way in or out, but for
// what is not the store's. It goes on after an error.
func (s *Store) sweep(dir string) error {
	list, err := s.fs.ReadDir(dir)
	if err != nil {
		return fail("unlink", dir, err)
	}
	var errs []error
	for _, e := range list {
		// Not e.IsDir alone: a directory may be a foreign one.
		if _, ok := parseName(e.Name(), dir == trashName); !ok || !e.IsDir() {
			continue
		}
		if err := s.removeJob(join(dir, e.Name())); err != nil {
			errs = append(errs, fail("unlink", join(dir, e.Name()), err))
		}
	}
	return errors.Join(errs...)
}

// removeJob removes the files of a job, and its directory if it has no others.
// It does not look into directories, and so follows no link.
func (s *Store) removeJob(dir string) error {
	list, err := s.fs.ReadDir(dir)
	if err != nil {
		return err
	}
	left := 0
	for _, e := range list {
		if !isJobFile(e.Name()) || !e.Type().IsRegular() {
			left++
			continue
		}
		if err := remove(s.fs, join(dir, e.Name())); err != nil {
			return err
		}
	}
	if left > 0 {
		return nil
	}
	return remove(s.fs, dir)
}
