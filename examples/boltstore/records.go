package boltstore

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	bolt "go.etcd.io/bbolt"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// What only a Manager has.
const kindHousekeeping = 'h'

var (
	bucketAside  = []byte("lost+found") // keys as those of jobs
	bucketQueues = []byte("queues")     // by name
)

// Commit stores the records of a Ready of a [joblife.Manager] as one transaction.
func (s *Store) Commit(records []joblife.Record) error {
	return s.update(func(tx *bolt.Tx) error {
		lines := make(map[string][]byte) // of logs, by the key of a job and a kind
		var order []string
		for _, r := range records {
			switch r.Kind {
			case joblife.RecordEvent, joblife.RecordHousekeeping:
				kind := byte(kindEvents)
				if r.Kind == joblife.RecordHousekeeping {
					kind = kindHousekeeping
				}
				key := string(logKey(r.Job, kind, 0)[:9])
				if lines[key] == nil {
					order = append(order, key)
				}
				lines[key] = append(lines[key], r.Data...)
			default:
				if err := putRecord(tx, r); err != nil {
					return fmt.Errorf("boltstore: %v record of %v: %w", r.Kind, r.Job, err)
				}
			}
		}
		b := tx.Bucket(bucketJobs)
		b.FillPercent = 0.9 // ids grow
		for _, key := range order {
			if err := appendLines(b, keyID([]byte(key)), key[8], lines[key]); err != nil {
				return fmt.Errorf("boltstore: %v: %w", keyID([]byte(key)), err)
			}
		}
		return nil
	})
}

// logKey returns the key of a part of a log.
func logKey(id jobid.ID, kind byte, n uint32) []byte {
	return binary.BigEndian.AppendUint32(jobKey(id, kind, 0)[:9], n)
}

// appendLines adds a part to a log of a job.
func appendLines(b *bolt.Bucket, id jobid.ID, kind byte, text []byte) error {
	c := b.Cursor()
	key, _ := c.Seek(jobKey(id, kind+1, 0)) // the first key behind the log
	if key == nil {
		key, _ = c.Last()
	} else {
		key, _ = c.Prev()
	}
	n := uint32(0)
	if len(key) == 13 && keyID(key) == id && key[8] == kind {
		n = binary.BigEndian.Uint32(key[9:]) + 1
	}
	return b.Put(logKey(id, kind, n), text)
}

// putRecord stores a record that replaces others.
func putRecord(tx *bolt.Tx, r joblife.Record) error {
	switch r.Kind {
	case joblife.RecordJobspec:
		return tx.Bucket(bucketJobs).Put(jobKey(r.Job, kindJobspec, 0), r.Data)
	case joblife.RecordR:
		return tx.Bucket(bucketJobs).Put(jobKey(r.Job, kindR, 0), r.Data)
	case joblife.RecordTombstone:
		if len(r.Data) == 0 {
			return tx.Bucket(bucketTombs).Delete(binary.BigEndian.AppendUint64(nil, uint64(r.Job)))
		}
		return tx.Bucket(bucketTombs).Put(binary.BigEndian.AppendUint64(nil, uint64(r.Job)), r.Data)
	case joblife.RecordUnlinked:
		return nil // Unlink has removed it
	case joblife.RecordWatermark:
		id, err := purge.ParseWatermark(r.Data)
		if err != nil {
			return err
		}
		return raise(tx, id)
	case joblife.RecordQueue:
		var queue struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal(r.Data, &queue); err != nil {
			return err
		}
		b, err := tx.CreateBucketIfNotExists(bucketQueues)
		if err != nil {
			return err
		}
		return b.Put([]byte("q"+queue.Name), r.Data) // a key is not empty
	}
	return errors.New("no Ready has such a record")
}

// Records yields what Commit has stored, as [joblife.Restore] needs it: the records of the
// instance, then those of each job. No transaction is open while the caller has a record.
func (s *Store) Records() iter.Seq2[joblife.Record, error] {
	return func(yield func(joblife.Record, error) bool) {
		list, err := s.instance()
		for _, r := range list {
			if err == nil && !yield(r, nil) {
				return
			}
		}
		next := jobKey(0, 0, 0)
		for err == nil && next != nil {
			list, next, err = s.jobRecords(next)
			for _, r := range list {
				if err == nil && !yield(r, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(joblife.Record{}, fmt.Errorf("boltstore: %w", err))
		}
	}
}

// instance returns the records that are of no job that is stored. The watermark is that
// of jobs that are gone.
func (s *Store) instance() (list []joblife.Record, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		if value := tx.Bucket(bucketMeta).Get(keyMark); len(value) == 8 {
			id := jobid.ID(binary.BigEndian.Uint64(value))
			list = append(list, joblife.Record{Kind: joblife.RecordWatermark, Data: purge.AppendWatermark(nil, id)})
		}
		if b := tx.Bucket(bucketQueues); b != nil {
			err := b.ForEach(func(_, value []byte) error {
				list = append(list, joblife.Record{Kind: joblife.RecordQueue, Data: bytes.Clone(value)})
				return nil
			})
			if err != nil {
				return err
			}
		}
		jobs := tx.Bucket(bucketJobs)
		return tx.Bucket(bucketTombs).ForEach(func(key, text []byte) error {
			id := keyID(key)
			list = append(list, joblife.Record{Job: id, Kind: joblife.RecordTombstone, Data: bytes.Clone(text)})
			if !hasJob(jobs, id) {
				list = append(list, joblife.Record{Job: id, Kind: joblife.RecordUnlinked})
			}
			return nil
		})
	})
	return list, err
}

// jobRecords returns the records of some jobs from a key on, and the key behind them.
func (s *Store) jobRecords(from []byte) (list []joblife.Record, next []byte, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		c := tx.Bucket(bucketJobs).Cursor()
		key, value := c.Seek(from)
		for jobs := 0; key != nil && jobs < jobsAtOnce; jobs++ {
			id := keyID(key)
			var events, others []joblife.Record // those of housekeeping come before the event clean
			for ; key != nil && keyID(key) == id; key, value = c.Next() {
				switch key[8] {
				case kindEvents:
					for line := range bytes.Lines(value) {
						events = append(events, joblife.Record{Job: id, Kind: joblife.RecordEvent, Data: bytes.Clone(line)})
					}
				case kindHousekeeping:
					for line := range bytes.Lines(value) {
						others = append(others, joblife.Record{Job: id, Kind: joblife.RecordHousekeeping, Data: bytes.Clone(line)})
					}
				case kindJobspec:
					others = append(others, joblife.Record{Job: id, Kind: joblife.RecordJobspec, Data: bytes.Clone(value)})
				case kindR:
					others = append(others, joblife.Record{Job: id, Kind: joblife.RecordR, Data: bytes.Clone(value)})
				}
			}
			list = append(append(list, others...), events...)
		}
		next = bytes.Clone(key)
		return nil
	})
	return list, next, err
}

// PutAside moves a job to the bucket lost+found: nothing lists it any more. Its id does not
// come back.
func (s *Store) PutAside(id jobid.ID) error {
	return s.update(func(tx *bolt.Tx) error {
		to, err := tx.CreateBucketIfNotExists(bucketAside)
		if err != nil {
			return err
		}
		b := tx.Bucket(bucketJobs)
		var keys [][]byte
		c := b.Cursor()
		for key, value := c.Seek(jobKey(id, 0, 0)); key != nil && keyID(key) == id; key, value = c.Next() {
			if err := to.Put(key, value); err != nil {
				return err
			}
			keys = append(keys, bytes.Clone(key))
		}
		for _, key := range keys {
			if err := b.Delete(key); err != nil {
				return err
			}
		}
		return raise(tx, id)
	})
}
