package dirstore

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/jobstate/jobid"
)

// Stored is everything that is stored of a job.
type Stored struct {
	ID jobid.ID
	// Eventlog is the complete lines of the eventlog, each a valid event.
	Eventlog []byte
	// Jobspec and R are the bytes that were stored; nil if there are none.
	Jobspec, R []byte
	// Torn is the number of bytes after the last complete line: a write that a
	// crash interrupted. [Store.Append] cuts them off.
	Torn int
}

// Add stores a new job whole, or not at all. It ignores Torn. The error is fs.ErrExist if
// there is such a job, damaged or not, logfile.ErrBatch if Eventlog is not whole lines of
// events, or that a file has more than 64 MiB. If only the last step fails, which makes the
// job durable, the job may be stored.
func (s *Store) Add(j Stored) error {
	if err := s.check("add"); err != nil {
		return err
	}
	name := j.ID.KVSPath()
	return fail("add", name, s.add(name, j))
}

func (s *Store) add(name string, j Stored) error {
	if err := s.checkNew(j); err != nil {
		return err
	}
	if _, err := s.fs.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return cmp.Or(err, fs.ErrExist)
	}
	staged := filepath.Join(newName, name)
	err := s.stage(staged, j)
	if err == nil {
		err = s.fs.Rename(staged, name)
	}
	if err != nil {
		if removeJob(s.fs, staged) != nil {
			s.left = append(s.left, staged) // the next Unlink removes it
		}
		return err
	}
	return s.fs.SyncDir(".")
}

// checkNew returns an error if the job could not be read back.
func (s *Store) checkNew(j Stored) error {
	if n := int64(max(len(j.Eventlog), len(j.Jobspec), len(j.R))); n > s.max {
		return errTooLarge(n, s.max)
	}
	if err := checkLines(j.Eventlog); err != nil {
		return fmt.Errorf("%w: %w", logfile.ErrBatch, err)
	}
	return nil
}

func checkLines(log []byte) error {
	for _, err := range eventlog.Entries(log) {
		if err != nil {
			return err
		}
	}
	return nil
}

// stage makes the directory of a job where it does not count as one.
func (s *Store) stage(dir string, j Stored) error {
	if err := removeJob(s.fs, dir); err != nil { // an Add that failed left it
		return err
	}
	err := s.fs.Mkdir(dir, dirMode)
	if errors.Is(err, fs.ErrExist) {
		return errInTheWay
	}
	var c sums
	c.append(j.Eventlog)
	if err == nil {
		err = writeNew(s.fs, filepath.Join(dir, eventlogKey), j.Eventlog)
	}
	if err == nil && j.Jobspec != nil {
		c.jobspec = sumOf(j.Jobspec)
		err = writeNew(s.fs, filepath.Join(dir, jobspecKey), j.Jobspec)
	}
	if err == nil && j.R != nil {
		c.r = sumOf(j.R)
		err = writeNew(s.fs, filepath.Join(dir, rKey), j.R)
	}
	if err == nil {
		err = c.write(s.fs, dir, false)
	}
	if err == nil {
		err = s.fs.SyncDir(dir)
	}
	return err
}

// PutR replaces the R of a job. The error is fs.ErrNotExist if there is no such job. After
// an error or a crash the job has the old one or the new one, whole.
func (s *Store) PutR(id jobid.ID, data []byte) error {
	return s.change("put", id, rKey, func(dir string) error { return s.putR(dir, data) })
}

// change changes a file of a job.
func (s *Store) change(op string, id jobid.ID, key string, do func(dir string) error) error {
	if err := s.check(op); err != nil {
		return err
	}
	dir := id.KVSPath()
	if err := s.isDir(dir); err != nil {
		return fail(op, dir, err)
	}
	s.note(dir)
	return fail(op, filepath.Join(dir, key), do(dir))
}

func (s *Store) putR(dir string, data []byte) error {
	if n := int64(len(data)); n > s.max {
		return errTooLarge(n, s.max)
	}
	c, err := readSums(s.fs, dir)
	if err == nil && (c.bad || c.r != sumNone) {
		c.r = sumDropped
		err = c.write(s.fs, dir, true)
	}
	if err == nil {
		err = replace(s.fs, dir, rKey, data)
	}
	if err != nil {
		return err
	}
	c.r = sumOf(data)
	_ = c.write(s.fs, dir, false) // or there are none
	return nil
}

func (s *Store) isDir(name string) error {
	info, err := s.fs.Lstat(name)
	if err == nil && !info.IsDir() {
		err = errNotDirectory
	}
	return err
}

// Append appends lines to the eventlog of a job, durably. It opens and reads the log each
// time, and repairs a torn last line. The error is fs.ErrNotExist if there is no such job,
// [ErrDamaged], logfile.ErrLocked, or logfile.ErrBatch if the lines are not events. A log that
// would have more than 64 MiB is an error too. After an error the log is as before, or has all
// of the lines.
func (s *Store) Append(id jobid.ID, batch []byte) error {
	return s.change("append", id, eventlogKey, func(dir string) error { return s.append(dir, batch) })
}

func (s *Store) append(dir string, batch []byte) error {
	log, c, err := s.openLog(dir)
	if err != nil {
		return err
	}
	if n := log.Size() + int64(len(batch)); n > s.max {
		err = errTooLarge(n, s.max)
	} else {
		err = log.Append(batch)
	}
	if err = cmp.Or(err, log.Close()); err != nil {
		return err
	}
	c.append(batch)
	_ = c.write(s.fs, dir, false) // or those of before stay
	return nil
}

// openLog opens an eventlog after verifying and repairing it, with the check digits of all
// that is in it.
func (s *Store) openLog(dir string) (*logfile.Log, sums, error) {
	name := filepath.Join(dir, eventlogKey)
	text, err := readFile(s.fs, name, s.max)
	if errors.Is(err, fs.ErrNotExist) {
		err = errNoEventlog
	}
	var c sums
	if err == nil {
		c, err = readSums(s.fs, dir)
	}
	if err == nil {
		err = c.verifyLog(text)
	}
	var log *logfile.Log
	if err == nil { // it cuts off nothing that is covered
		_, err = logfile.Repair(name, logfile.RepairOptions{FS: s.fs})
	}
	if err == nil {
		log, err = logfile.Open(name, logfile.Options{FS: s.fs})
	}
	if errors.Is(err, logfile.ErrDamaged) {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err != nil {
		return nil, sums{}, err
	}
	if n := log.Size(); c.size < n && n <= int64(len(text)) {
		c.append(text[c.size:n])
		_ = c.write(s.fs, dir, false) // or those of before stay
	}
	return log, c, nil
}

// Read returns what is stored of a job. The error is a *[JobError]: fs.ErrNotExist if there
// is no such job, [ErrDamaged], or that a file has more than 64 MiB; or fs.ErrClosed. With a
// *JobError come those of Eventlog, Jobspec and R that are whole: the job may still hold its
// R. The slices belong to the caller.
func (s *Store) Read(id jobid.ID) (Stored, error) {
	if err := s.check("read"); err != nil {
		return Stored{}, err
	}
	j, err := s.read(id)
	if err != nil {
		err = &JobError{ID: id, Err: cause(err)}
	}
	return j, err
}

// read reads a job, and before it its check digits.
func (s *Store) read(id jobid.ID) (j Stored, err error) {
	j.ID = id
	if err := s.isDir(id.KVSPath()); err != nil {
		return j, err
	}
	dir, err := s.fs.Sub(id.KVSPath())
	if err != nil {
		return j, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	c, err := readSums(dir, ".")
	get := func(key string) []byte {
		data, fault := readFile(dir, key, s.max)
		if fault != nil && !errors.Is(fault, fs.ErrNotExist) && err == nil {
			err = fmt.Errorf("%s: %w", key, cause(fault))
		}
		return data
	}
	log := get(eventlogKey)
	j.Jobspec, j.R = get(jobspecKey), get(rKey)
	if log == nil && err == nil {
		err = errNoEventlog
	}
	whole := bytes.LastIndexByte(log, '\n') + 1
	j.Torn = len(log) - whole
	j.Eventlog = log[:whole:whole]
	fault := checkLines(j.Eventlog)
	if fault != nil {
		fault = fmt.Errorf("%w: %w", ErrDamaged, fault)
	}
	if fault = cmp.Or(fault, c.verifyLog(log)); fault != nil {
		j.Eventlog, j.Torn = nil, 0
	}
	err = cmp.Or(err, fault, c.jobspec.verify(jobspecKey, &j.Jobspec), c.r.verify(rKey, &j.R))
	return j, err
}

// Jobs yields what Read returns of all jobs, by id, and continues after a *[JobError]. If
// the store itself cannot be read, Jobs yields one error and ends. Jobs that are unlinked or
// added meanwhile may be yielded or not. One job at a time is in memory, and the ids of all.
func (s *Store) Jobs() iter.Seq2[Stored, error] {
	return func(yield func(Stored, error) bool) {
		if err := s.check("list"); err != nil {
			yield(Stored{}, err)
			return
		}
		list, err := s.fs.ReadDir(".")
		if err != nil {
			yield(Stored{}, fail("list", ".", err))
			return
		}
		ids := make([]jobid.ID, 0, len(list))
		for _, e := range list {
			if isJob(e.Name(), false) && e.IsDir() {
				id, _ := jobid.Parse(e.Name())
				ids = append(ids, id)
			}
		}
		list = nil
		slices.Sort(ids)
		for _, id := range ids {
			j, err := s.Read(id)
			if errors.Is(err, fs.ErrNotExist) && s.gone(id.KVSPath()) {
				continue
			}
			if !yield(j, err) || errors.Is(err, fs.ErrClosed) {
				return
			}
		}
	}
}

func (s *Store) gone(name string) bool {
	_, err := s.fs.Lstat(name)
	return errors.Is(err, fs.ErrNotExist)
}
