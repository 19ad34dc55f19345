// Package boltstore keeps jobs in one bbolt file: their logs, jobspecs and resource sets,
// the tombstones of those that were purged, and the id watermark. It is a module of its own,
// so that others do without bbolt. Each call is one transaction, durable when it returns.
//
//	store, err := boltstore.Open("jobs.db")
//	m, left, err := joblife.Restore(now, cfg, store.Records()) // none in a new file
//	l, err := loop.New(m, loop.Config{Store: store, Effects: effects, Refused: refused})
//	job, err := store.Read(id) // meanwhile, such as the log of an inactive job
//
// A program that only purges takes [Store.Snapshot], and purge.CarryOut takes the Store.
//
// Use it for daily work, and purge/dirstore where people and tools read plain files: its
// documentation compares the two.
//
// A second file, the ballast of 1 MiB, keeps room for a purge on a full disk.
//
// # Damage
//
// Each value has check digits (CRC-32C), also of its key, that are verified when it is
// read. A job with a damaged value is told, and stops no other. Open reads the whole file,
// and returns ErrDamaged if a page is missing, wrong or out of place, or if one of the two
// meta pages is damaged: bbolt would crash, or forget the last transaction. Then restore a
// copy of the file. Open writes nothing to a file that is damaged, and refuses one of before
// there were check digits.
//
// A power cut amid a change leaves all of it or nothing, as long as the disk writes sectors of 512
// bytes whole: if it tears a meta page, that is damage.
//
// If the file was removed, replaced or cut, the error of a call is logfile.ErrChanged.
//
// Not covered are pages that change while the store is open, apart from the values in
// them, and a whole file that is older than it should be.
//
// A second Open returns logfile.ErrLocked until the first store is closed or its process
// ends. A child that the process was just starting may hold the lock for some milliseconds
// longer: after a restart, try again for a moment. Any goroutine may use a Store; changes
// happen one after the other.
package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/internal/syncdir"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// The buckets. A key of jobs is the id, a kind, and for lines a number that counts up, all
// big-endian: so a job's keys are neighbors, in order.
var (
	bucketJobs   = []byte("jobs")
	bucketTombs  = []byte("tombstones")
	bucketMeta   = []byte("meta")
	bucketAside  = []byte("lost+found") // keys as those of jobs
	bucketQueues = []byte("queues")     // by name

	// The keys of meta.
	keyFormat = []byte("format")
	keyMark   = []byte("watermark")
)

const format = "1"

// kindNames are for people.
var kindNames = map[byte]string{kindEvents: "log", kindHousekeeping: "housekeeping", kindJobspec: "jobspec", kindR: "R"}

// The kinds of keys.
const (
	kindEvents       = 'e'
	kindHousekeeping = 'h' // only a Manager has some
	kindJobspec      = 'j'
	kindR            = 'r'
)

// A Job is what is stored of a job.
type Job struct {
	ID       jobid.ID
	Eventlog []byte // whole lines
	Jobspec  []byte // nil if there is none
	R        []byte // nil if there is none
}

// A Store is an open store.
type Store struct {
	db      *bolt.DB
	path    string
	ballast string // the name of its file
	info    fs.FileInfo
	size    atomic.Int64 // the file has at least so much
}

var _ purge.Store = (*Store)(nil)

// Open opens a store, and creates it if the file does not exist. An empty file is damaged.
func Open(path string) (*Store, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := create(path); err != nil {
			return nil, inFile(path, err)
		}
	}
	s, err := open(path, &bolt.Options{FreelistType: bolt.FreelistMapType})
	if err != nil {
		return nil, err
	}
	// A process that was killed may have left its last commit, and the name, in the operating
	// system's memory: this makes both durable.
	if err = s.commit(checkMeta); err == nil {
		err = syncdir.Sync(os.Open, filepath.Dir(path))
	}
	if err != nil {
		return nil, errors.Join(inFile(path, err), s.Close())
	}
	s.fillBallast()
	return s, nil
}

// create makes a new store, under another name first: a crash leaves no part of one.
func create(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // what is left of it does no harm
	if err := f.Close(); err != nil {
		return err
	}
	db, err := bolt.Open(f.Name(), 0o600, nil)
	if err != nil {
		return err
	}
	err = errors.Join(db.Update(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{bucketJobs, bucketTombs, bucketMeta} {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return putValue(tx.Bucket(bucketMeta), keyFormat, []byte(format))
	}), db.Close())
	if err == nil {
		err = os.Link(f.Name(), path) // which replaces no file, as a rename would
	}
	if errors.Is(err, fs.ErrExist) {
		err = nil // another process was faster
	}
	return err
}

// OpenReadOnly opens a store that exists. Changes fail. Any number of processes
// may have it open so, but not beside one that used Open.
func OpenReadOnly(path string) (*Store, error) {
	s, err := open(path, &bolt.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	if err := s.view(checkMeta); err != nil {
		return nil, errors.Join(inFile(path, err), s.Close())
	}
	return s, nil
}

// inFile returns an error with the path of the store, once.
func inFile(path string, err error) error {
	if bare := (*fs.PathError)(nil); errors.As(err, &bare) {
		err = bare.Err
	}
	return fmt.Errorf("boltstore: %s: %w", path, err)
}

func open(path string, o *bolt.Options) (*Store, error) {
	s := &Store{path: path, ballast: path + ".ballast"}
	o.Timeout, o.OpenFile = time.Millisecond, s.openFile
	var err error
	if s.db, err = bolt.Open(path, 0o600, o); errors.Is(err, bolterrors.ErrTimeout) {
		err = fmt.Errorf("%w: end the process that has it open", logfile.ErrLocked)
	}
	if err != nil {
		return nil, inFile(path, err)
	}
	return s, nil
}

func (s *Store) openFile(name string, flag int, mode fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(name, flag&^os.O_CREATE, mode) // only create makes a file, and a whole one
	if err != nil {
		return nil, err
	}
	writes := flag&os.O_RDWR != 0
	if !writes {
		err = s.check(f)
	}
	if writes || errors.Is(err, ErrDamaged) { // perhaps a process is writing it
		if err = logfile.Lock(f); err == nil {
			err = s.check(f)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (s *Store) check(f *os.File) (err error) {
	if s.info, err = f.Stat(); err != nil {
		return err
	}
	s.size.Store(s.info.Size())
	return check(f, s.info.Size())
}

func checkMeta(tx *bolt.Tx) error {
	b := tx.Bucket(bucketMeta)
	if b == nil || b.Get(keyFormat) == nil {
		return damaged("no format: perhaps a version before check digits wrote it")
	}
	return b.ForEach(func(key, value []byte) error {
		text, err := unseal(key, value)
		if err == nil && string(key) == string(keyFormat) && string(text) != format {
			err = fmt.Errorf("its format is %q: a later version wrote it", text)
		}
		return err
	})
}

// Close closes the store.
func (s *Store) Close() error { return s.db.Close() }

// changed returns an error if the file is not there any more.
func (s *Store) changed() error {
	least := s.size.Load() // before the look: it grows
	info, err := os.Stat(s.path)
	what := ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		what = "it was removed"
	case err != nil:
		return fmt.Errorf("boltstore: %w", err)
	case !os.SameFile(s.info, info):
		what = "it was replaced"
	case info.Size() < least:
		what = "it was cut"
	default:
		s.size.Store(info.Size())
		return nil
	}
	return fmt.Errorf("boltstore: %s: %w: %s", s.path, logfile.ErrChanged, what)
}

func (s *Store) view(do func(*bolt.Tx) error) error {
	if err := s.changed(); err != nil {
		return err
	}
	return s.db.View(do)
}

func (s *Store) commit(do func(*bolt.Tx) error) error {
	if err := s.changed(); err != nil {
		return err
	}
	if err := s.db.Update(do); err != nil {
		return err
	}
	return s.changed()
}

func putValue(b *bolt.Bucket, key, data []byte) error { return b.Put(key, seal(key, data)) }

func jobKey(id jobid.ID, kind byte, n uint32) []byte {
	key := append(idKey(id), kind)
	if kind == kindEvents || kind == kindHousekeeping {
		key = binary.BigEndian.AppendUint32(key, n)
	}
	return key
}

func idKey(id jobid.ID) []byte { return binary.BigEndian.AppendUint64(make([]byte, 0, 13), uint64(id)) }

func keyID(key []byte) jobid.ID { return jobid.ID(binary.BigEndian.Uint64(key)) }

func hasJob(b *bolt.Bucket, id jobid.ID) bool {
	key, _ := b.Cursor().Seek(jobKey(id, 0, 0))
	return key != nil && keyID(key) == id
}

func notThere(id jobid.ID) error { return fmt.Errorf("boltstore: %v: %w", id, fs.ErrNotExist) }

// Read returns what is stored of a job. A job that is not there is fs.ErrNotExist.
func (s *Store) Read(id jobid.ID) (j Job, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		c := tx.Bucket(bucketJobs).Cursor()
		key, value := c.Seek(jobKey(id, 0, 0))
		if key == nil || keyID(key) != id {
			return notThere(id)
		}
		all, _, _ := read(c, key, value)
		if j = all.Job; all.err != nil {
			j = Job{ID: id}
		}
		return all.err
	})
	return j, err
}

// stored is all that is stored of a job.
type stored struct {
	Job
	housekeeping []byte
	err          error // what is damaged, and left out
}

// read returns the job whose first key is at hand, and the key behind it.
func read(c *bolt.Cursor, key, value []byte) (j stored, next, nextValue []byte) {
	j.ID = keyID(key)
	for ; key != nil && keyID(key) == j.ID; key, value = c.Next() {
		data, err := unseal(key, value)
		if err != nil {
			if name := kindNames[key[8]]; !errors.Is(err, errKey) && name != "" {
				err = damaged("the check digits of its %s do not match", name)
			}
			if !errors.Is(j.err, errKey) { // another job may miss that part
				j.err = fmt.Errorf("boltstore: %v: %w", j.ID, err)
			}
			continue
		}
		switch key[8] {
		case kindEvents:
			j.Eventlog = append(j.Eventlog, data...)
		case kindHousekeeping:
			j.housekeeping = append(j.housekeeping, data...)
		case kindJobspec:
			j.Jobspec = bytes.Clone(data)
		case kindR:
			j.R = bytes.Clone(data)
		}
	}
	return j, key, value
}

// jobsAtOnce is how many jobs all reads in one transaction. None is open while
// the caller has a job, so the caller may change the store.
const jobsAtOnce = 100

// all yields all jobs by id. The error is about all others.
func (s *Store) all(yield func(stored) bool) error {
	from := jobKey(0, 0, 0)
	for from != nil {
		var jobs []stored
		err := s.view(func(tx *bolt.Tx) error {
			c := tx.Bucket(bucketJobs).Cursor()
			key, value := c.Seek(from)
			for key != nil && len(jobs) < jobsAtOnce {
				var j stored
				if j, key, value = read(c, key, value); errors.Is(j.err, errKey) {
					return j.err
				}
				jobs = append(jobs, j)
			}
			from = bytes.Clone(key)
			return nil
		})
		if err != nil {
			return err
		}
		for _, j := range jobs {
			if !yield(j) {
				return nil
			}
		}
	}
	return nil
}
