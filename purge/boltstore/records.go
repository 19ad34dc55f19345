package boltstore

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	bolt "go.etcd.io/bbolt"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// Append makes records durable, as package loop asks: all of them in one transaction, or
// none. On a full disk there is room for those of a purge only: what others need must not
// use it up.
func (s *Store) Append(records []joblife.Record) error {
	change := s.commit
	if slices.ContainsFunc(records, func(r joblife.Record) bool {
		return r.Kind == joblife.RecordWatermark || r.Kind == joblife.RecordTombstone
	}) {
		change = s.update
	}
	return change(func(tx *bolt.Tx) error {
		lines := make(map[string][]byte) // of logs, by the key of a job and a kind
		var order []string
		for _, r := range records {
			switch r.Kind {
			case joblife.RecordEvent, joblife.RecordHousekeeping:
				kind := byte(kindEvents)
				if r.Kind == joblife.RecordHousekeeping {
					kind = kindHousekeeping
				}
				key := string(append(idKey(r.Job), kind))
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
	return putValue(b, jobKey(id, kind, n), text)
}

// putRecord stores a record that replaces others.
func putRecord(tx *bolt.Tx, r joblife.Record) error {
	switch r.Kind {
	case joblife.RecordJobspec:
		return putValue(tx.Bucket(bucketJobs), jobKey(r.Job, kindJobspec, 0), r.Data)
	case joblife.RecordR:
		return putValue(tx.Bucket(bucketJobs), jobKey(r.Job, kindR, 0), r.Data)
	case joblife.RecordTombstone:
		if len(r.Data) == 0 {
			return tx.Bucket(bucketTombs).Delete(idKey(r.Job))
		}
		return putValue(tx.Bucket(bucketTombs), idKey(r.Job), r.Data)
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
		return putValue(b, []byte("q"+queue.Name), r.Data) // a key is not empty
	}
	return errors.New("no Ready has such a record")
}

// Records yields what Append has stored, as [joblife.Restore] needs it. A job that is damaged
// has a record of kind RecordInactive that says so, and which makes Restore quarantine it. No
// transaction is open while the caller has a record.
func (s *Store) Records() iter.Seq2[joblife.Record, error] {
	return func(yield func(joblife.Record, error) bool) {
		give := func(list []joblife.Record) bool {
			for _, r := range list {
				if !yield(r, nil) {
					return false
				}
			}
			return true
		}
		list, err := s.instance()
		if err == nil && give(list) {
			err = s.all(func(j stored) bool {
				list = j.records(list[:0])
				return give(list)
			})
		}
		if err != nil {
			yield(joblife.Record{}, err)
		}
	}
}

// instance returns the records that are of no job that is stored.
func (s *Store) instance() (list []joblife.Record, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		id, ok, err := watermark(tx)
		if ok {
			list = append(list, joblife.Record{Kind: joblife.RecordWatermark, Data: purge.AppendWatermark(nil, id)})
		}
		if b := tx.Bucket(bucketQueues); b != nil && err == nil {
			err = b.ForEach(func(key, value []byte) error {
				text, err := unseal(key, value)
				list = append(list, joblife.Record{Kind: joblife.RecordQueue, Data: bytes.Clone(text)})
				return err
			})
		}
		if err != nil {
			return err
		}
		jobs := tx.Bucket(bucketJobs)
		return tx.Bucket(bucketTombs).ForEach(func(key, value []byte) error {
			id := keyID(key)
			text, err := unseal(key, value)
			list = append(list, joblife.Record{Job: id, Kind: joblife.RecordTombstone, Data: bytes.Clone(text)})
			if !hasJob(jobs, id) {
				list = append(list, joblife.Record{Job: id, Kind: joblife.RecordUnlinked})
			}
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("boltstore: %w", err)
	}
	return list, nil
}

// records appends the records of a job. Those of housekeeping come before the event clean.
func (j stored) records(list []joblife.Record) []joblife.Record {
	add := func(kind joblife.RecordKind, data []byte) {
		list = append(list, joblife.Record{Job: j.ID, Kind: kind, Data: data})
	}
	if j.err != nil {
		add(joblife.RecordInactive, []byte(strings.TrimPrefix(j.err.Error(), fmt.Sprintf("boltstore: %v: ", j.ID))))
	}
	for line := range bytes.Lines(j.housekeeping) {
		add(joblife.RecordHousekeeping, line)
	}
	if j.Jobspec != nil {
		add(joblife.RecordJobspec, j.Jobspec)
	}
	if j.R != nil {
		add(joblife.RecordR, j.R)
	}
	for line := range bytes.Lines(j.Eventlog) {
		add(joblife.RecordEvent, line)
	}
	return list
}

// PutAside moves a job to the bucket lost+found: nothing lists it any more, and a restart does
// not know what it holds. So look after its nodes before. Its id does not come back. A job that
// is not there is fs.ErrNotExist.
func (s *Store) PutAside(id jobid.ID) error {
	return s.update(func(tx *bolt.Tx) error {
		if !hasJob(tx.Bucket(bucketJobs), id) {
			return notThere(id)
		}
		to, err := tx.CreateBucketIfNotExists(bucketAside)
		if err != nil {
			return err
		}
		if err := removeJob(tx.Bucket(bucketJobs), id, to.Put); err != nil {
			return err
		}
		return raise(tx, id)
	})
}
