// Package boltstore keeps jobs in one bbolt file: their logs, jobspecs and
// resource sets, the tombstones of those that were purged, and the id watermark.
// It implements purge.Store. Each call is one transaction, durable when it
// returns.
//
//	s, err := boltstore.Open("jobs.db")
//	evidence, damaged, err := s.Evidence()
//	index, err := purge.Recover(cfg, evidence)
//	runner, err := purge.NewRunner(index, s, limits)
//
// Use it for daily work. A job with a jobspec of 1 KB takes 2.5 KB. Use purge/dirstore
// where people and tools read plain files: there the same job takes 16.5 KB and four
// inodes, and listing, or purging a batch of 100, takes more than ten times as long
// (BenchmarkLongStores).
//
// A second file, the ballast of 1 MiB, keeps room for a purge on a full disk.
//
// bbolt locks the file: a second Open returns logfile.ErrLocked until the first store
// is closed or its process ends. On Linux the error names that process. One goroutine
// at a time may use a Store.
package boltstore

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// MaxObject is how many bytes a batch of events, a jobspec or an R has at most.
const MaxObject = 64 << 20

// The buckets. A key of jobs is the id, a kind, and for events a number that
// counts up, all big-endian: so a job's keys are neighbors, in order.
var (
	bucketJobs  = []byte("jobs")
	bucketTombs = []byte("tombstones")
	bucketMeta  = []byte("meta")
	keyMark     = []byte("watermark")
)

// The kinds of keys.
const (
	kindEvents  = 'e'
	kindJobspec = 'j'
	kindR       = 'r'
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
	ballast string // the name of its file
}

var _ purge.Store = (*Store)(nil)

// Open opens a store, and creates it if the file does not exist.
func Open(path string) (*Store, error) {
	s, err := open(path, &bolt.Options{Timeout: time.Millisecond, FreelistType: bolt.FreelistMapType})
	if err != nil {
		return nil, err
	}
	err = s.db.Update(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{bucketJobs, bucketTombs, bucketMeta} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.fillBallast()
	return s, nil
}

// OpenReadOnly opens a store that exists. Changes fail. Any number of processes
// may have it open so, but not beside one that used Open.
func OpenReadOnly(path string) (*Store, error) {
	return open(path, &bolt.Options{Timeout: time.Millisecond, ReadOnly: true})
}

func open(path string, o *bolt.Options) (*Store, error) {
	db, err := bolt.Open(path, 0o600, o)
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("boltstore: %s: %w", path, inUse(path))
	}
	if err != nil {
		return nil, fmt.Errorf("boltstore: %w", err)
	}
	return &Store{db: db, ballast: path + ".ballast"}, nil
}

// inUse returns the error of a file that is locked, as its own attempt to lock it
// tells: that names the process. If the file is free by now, it is still ErrLocked.
func inUse(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return logfile.ErrLocked
	}
	return errors.Join(cmp.Or(logfile.Lock(f), logfile.ErrLocked), f.Close())
}

// Close closes the store.
func (s *Store) Close() error { return s.db.Close() }

// jobKey returns a key of jobs.
func jobKey(id jobid.ID, kind byte, n uint32) []byte {
	key := binary.BigEndian.AppendUint64(make([]byte, 0, 13), uint64(id))
	key = append(key, kind)
	if kind == kindEvents {
		key = binary.BigEndian.AppendUint32(key, n)
	}
	return key
}

// keyID returns the id in a key.
func keyID(key []byte) jobid.ID { return jobid.ID(binary.BigEndian.Uint64(key)) }

// hasJob reports whether anything is stored of a job.
func hasJob(b *bolt.Bucket, id jobid.ID) bool {
	key, _ := b.Cursor().Seek(jobKey(id, 0, 0))
	return key != nil && keyID(key) == id
}

// checkEvents returns an error unless a text is whole lines of events.
func checkEvents(text []byte) error {
	if len(text) > MaxObject {
		return fmt.Errorf("%d bytes, the limit is %d", len(text), MaxObject)
	}
	for _, err := range eventlog.Entries(text) {
		if err != nil {
			return err
		}
	}
	return nil
}

// Add stores new jobs, all or none. A job that is there is fs.ErrExist.
func (s *Store) Add(jobs ...Job) error {
	return s.db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketJobs)
		b.FillPercent = 0.9 // ids grow
		for _, j := range jobs {
			if hasJob(b, j.ID) {
				return fmt.Errorf("boltstore: %v: %w", j.ID, fs.ErrExist)
			}
			if err := add(b, j); err != nil {
				return fmt.Errorf("boltstore: %v: %w", j.ID, err)
			}
		}
		return nil
	})
}

// add stores a job.
func add(b *bolt.Bucket, j Job) error {
	if n := max(len(j.Jobspec), len(j.R)); n > MaxObject {
		return fmt.Errorf("%d bytes, the limit is %d", n, MaxObject)
	}
	if err := checkEvents(j.Eventlog); err != nil {
		return err
	}
	if err := b.Put(jobKey(j.ID, kindEvents, 0), j.Eventlog); err != nil {
		return err
	}
	if j.Jobspec != nil {
		if err := b.Put(jobKey(j.ID, kindJobspec, 0), j.Jobspec); err != nil {
			return err
		}
	}
	if j.R != nil {
		return b.Put(jobKey(j.ID, kindR, 0), j.R)
	}
	return nil
}

// Append appends lines to a job's eventlog. A job that is not there is
// fs.ErrNotExist.
func (s *Store) Append(id jobid.ID, lines []byte) error {
	return s.db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketJobs)
		if !hasJob(b, id) {
			return fmt.Errorf("boltstore: %v: %w", id, fs.ErrNotExist)
		}
		if err := checkEvents(lines); err != nil {
			return fmt.Errorf("boltstore: %v: %w", id, err)
		}
		c := b.Cursor()
		key, _ := c.Seek(jobKey(id, kindEvents+1, 0)) // the first key behind the events
		if key == nil {
			key, _ = c.Last()
		} else {
			key, _ = c.Prev()
		}
		last := binary.BigEndian.Uint32(key[9:]) // each job has events
		return b.Put(jobKey(id, kindEvents, last+1), lines)
	})
}

// Read returns what is stored of a job. A job that is not there is fs.ErrNotExist.
func (s *Store) Read(id jobid.ID) (j Job, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		c := tx.Bucket(bucketJobs).Cursor()
		key, value := c.Seek(jobKey(id, 0, 0))
		if key == nil || keyID(key) != id {
			return fmt.Errorf("boltstore: %v: %w", id, fs.ErrNotExist)
		}
		j, _, _ = read(c, key, value)
		return nil
	})
	return j, err
}

// read returns the job whose first key is at hand, and the key behind it.
func read(c *bolt.Cursor, key, value []byte) (j Job, next, nextValue []byte) {
	j.ID = keyID(key)
	for ; key != nil && keyID(key) == j.ID; key, value = c.Next() {
		switch key[8] {
		case kindEvents:
			j.Eventlog = append(j.Eventlog, value...)
		case kindJobspec:
			j.Jobspec = bytes.Clone(value)
		case kindR:
			j.R = bytes.Clone(value)
		}
	}
	return j, key, value
}

// jobsAtOnce is how many jobs Jobs reads in one transaction. None is open while
// the caller has a job, so the caller may change the store.
const jobsAtOnce = 100

// Jobs yields all jobs by id. The caller may change the store meanwhile.
func (s *Store) Jobs() iter.Seq2[Job, error] {
	return func(yield func(Job, error) bool) {
		from := jobKey(0, 0, 0)
		for from != nil {
			var jobs []Job
			err := s.db.View(func(tx *bolt.Tx) error {
				c := tx.Bucket(bucketJobs).Cursor()
				key, value := c.Seek(from)
				for key != nil && len(jobs) < jobsAtOnce {
					var j Job
					j, key, value = read(c, key, value)
					jobs = append(jobs, j)
				}
				from = bytes.Clone(key)
				return nil
			})
			if err != nil {
				yield(Job{}, err)
				return
			}
			for _, j := range jobs {
				if !yield(j, nil) {
					return
				}
			}
		}
	}
}
