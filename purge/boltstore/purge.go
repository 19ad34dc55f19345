package boltstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	bolt "go.etcd.io/bbolt"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// bbolt writes each change to new pages, so a purge needs room before it frees any. When the
// disk is full the ballast is removed, and it is written again after a purge.
const ballastSize = 1 << 20

// fillBallast writes the ballast if it is not there, or not all of it, and there is room.
func (s *Store) fillBallast() {
	if info, err := os.Stat(s.ballast); err == nil && info.Size() >= ballastSize {
		return
	}
	f, err := os.OpenFile(s.ballast, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return // the disk is full
	}
	_, err = f.Write(guard.Noise(ballastSize))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(s.ballast)
	}
}

// update does a change of a purge, for which there is room on a full disk.
func (s *Store) update(do func(*bolt.Tx) error) error {
	err := s.commit(do)
	if logfile.IsFull(err) && os.Remove(s.ballast) == nil {
		err = s.commit(do)
	}
	return err
}

// Prepare stores what is to remain of a plan, as [purge.Store] says.
func (s *Store) Prepare(ctx context.Context, p purge.Plan) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	records := []joblife.Record{{Kind: joblife.RecordWatermark, Data: purge.AppendWatermark(nil, p.Watermark)}}
	for _, r := range p.Tombstones {
		text, err := r.MarshalText()
		if err != nil {
			return err
		}
		records = append(records, joblife.Record{Job: r.ID, Kind: joblife.RecordTombstone, Data: text})
	}
	for _, id := range p.Expired {
		records = append(records, joblife.Record{Job: id, Kind: joblife.RecordTombstone})
	}
	return s.Append(records)
}

func raise(tx *bolt.Tx, id jobid.ID) error {
	if mark, ok, err := watermark(tx); ok && mark >= id || err != nil {
		return err
	}
	return putValue(tx.Bucket(bucketMeta), keyMark, idKey(id))
}

func watermark(tx *bolt.Tx) (id jobid.ID, ok bool, err error) {
	value := tx.Bucket(bucketMeta).Get(keyMark)
	if value == nil {
		return 0, false, nil
	}
	data, err := unseal(keyMark, value)
	if err == nil && len(data) != 8 {
		err = damaged("a watermark of %d bytes", len(data))
	}
	if err != nil {
		return 0, false, err
	}
	return keyID(data), true, nil
}

// Unlink removes jobs as [purge.Store] says. All go or none: failed is always nil. On a
// full disk it removes them in several transactions: a small one needs less room, which the
// one before it has freed.
func (s *Store) Unlink(ctx context.Context, ids []jobid.ID) (failed map[jobid.ID]error, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = s.update(func(tx *bolt.Tx) error {
		for _, id := range ids {
			if err := removeJob(tx.Bucket(bucketJobs), id, func([]byte, []byte) error { return nil }); err != nil {
				return err
			}
		}
		return nil
	})
	if n := len(ids) / 2; n > 0 && logfile.IsFull(err) {
		if _, err = s.Unlink(ctx, ids[:n]); err == nil {
			_, err = s.Unlink(ctx, ids[n:])
		}
	}
	s.fillBallast()
	return nil, err
}

// removeJob removes what is stored of a job, after do was called with each part.
func removeJob(b *bolt.Bucket, id jobid.ID, do func(key, value []byte) error) error {
	var keys [][]byte // a cursor does not see its bucket change
	c := b.Cursor()
	for key, value := c.Seek(jobKey(id, 0, 0)); key != nil && keyID(key) == id; key, value = c.Next() {
		if err := do(key, value); err != nil {
			return err
		}
		keys = append(keys, bytes.Clone(key))
	}
	for _, key := range keys {
		if err := b.Delete(key); err != nil {
			return err
		}
	}
	return nil
}

// Snapshot returns what purge.Recover needs: it folds each job's log. Damaged has
// the jobs that cannot be read or folded; they are among the active ones, so that
// they stay, as are those whose housekeeping holds nodes. The caller sets Snapshot.Now.
func (s *Store) Snapshot() (ev purge.Snapshot, damaged []error, err error) {
	list, err := s.instance()
	for _, r := range list {
		var tomb jobstate.Summary
		switch {
		case err != nil:
		case r.Kind == joblife.RecordWatermark:
			ev.Watermark, err = purge.ParseWatermark(r.Data)
		case r.Kind == joblife.RecordTombstone:
			if err = tomb.UnmarshalText(r.Data); err != nil {
				err = fmt.Errorf("boltstore: tombstone %v: %w", r.Job, err)
			}
			ev.Tombstones = append(ev.Tombstones, tomb)
		}
	}
	if err != nil {
		return purge.Snapshot{}, nil, err
	}
	err = s.all(func(stored stored) bool {
		j, err := jobstate.Replay(stored.ID, stored.Eventlog)
		if err != nil {
			err = fmt.Errorf("boltstore: %v: %w", stored.ID, err)
		}
		if stored.err != nil {
			err = stored.err
		}
		if err != nil {
			damaged = append(damaged, err)
		}
		r, over := j.Summary()
		if err != nil || !over || !stored.free() {
			ev.Active = append(ev.Active, stored.ID)
		} else {
			ev.Jobs = append(ev.Jobs, r)
		}
		return true
	})
	if err != nil {
		return purge.Snapshot{}, nil, err
	}
	return ev, damaged, nil
}

// free reports whether the housekeeping of an inactive job, if it has any, holds no node.
func (j stored) free() bool {
	if len(j.housekeeping) == 0 {
		return true
	}
	var f joblife.Follower // which has a short record of a job that is over
	for _, r := range j.records(nil) {
		if f.Add(r) != nil {
			return false
		}
	}
	for r := range f.Snapshot() {
		if r.Kind == joblife.RecordInactive {
			return true
		}
	}
	return false
}
