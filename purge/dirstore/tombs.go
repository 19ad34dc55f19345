package dirstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strconv"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

const (
	// tombsEvent is the name of the one event in the log of tombstones.
	tombsEvent = "tombstones"
	// maxRecord is how many tombstones, put and dropped, a line has at most: it
	// stays far below the longest line.
	maxRecord = 1000
	// minCompact is the size below which the log is never compacted.
	minCompact = 1 << 20
)

// A record is a line of the log of tombstones. It is one change: what a crash
// leaves of the last line is cut off, and the change has not been made.
type record struct {
	put  []purge.Record
	drop []jobid.ID
}

// appendRecord appends the line of a record at a time.
func appendRecord(dst []byte, at eventlog.Timestamp, r record) ([]byte, error) {
	context := []byte(`{"put":[`)
	var err error
	for i, j := range r.put {
		if i > 0 {
			context = append(context, ',')
		}
		context = append(context, '"')
		if context, err = j.AppendText(context); err != nil {
			return dst, err
		}
		context = append(context, '"')
	}
	context = append(context, `],"drop":[`...)
	for i, id := range r.drop {
		if i > 0 {
			context = append(context, ',')
		}
		// Not a number: those of a log have 63 bits and a sign.
		context = append(context, '"')
		context = strconv.AppendUint(context, uint64(id), 10)
		context = append(context, '"')
	}
	context = append(context, "]}"...)
	return eventlog.AppendEntry(dst, eventlog.Entry{Timestamp: at, Name: tombsEvent, Context: context})
}

// parseRecord reads an entry that appendRecord wrote, and nothing else.
func parseRecord(e eventlog.Entry) (record, error) {
	if e.Name != tombsEvent {
		return record{}, errNotCanonical
	}
	var texts struct {
		Put  []purge.Record `json:"put"`
		Drop []string       `json:"drop"`
	}
	if err := json.Unmarshal(e.Context, &texts); err != nil {
		return record{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	r := record{put: texts.Put}
	for _, text := range texts.Drop {
		id, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return record{}, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		r.drop = append(r.drop, jobid.ID(id))
	}
	// A reader of JSON takes more than what was written: other cases of the
	// keys, other keys, null.
	again, err := appendRecord(nil, e.Timestamp, r)
	if err != nil {
		return record{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	own, err := eventlog.AppendEntry(nil, e)
	if err != nil || string(own) != string(again) {
		return record{}, errors.Join(errNotCanonical, err)
	}
	return r, nil
}

// openTombs opens the log of tombstones, if it is not open, and creates it if
// there is none. It reads all of it.
func (s *Store) openTombs() error {
	if s.tombs != nil {
		return nil
	}
	o := logfile.Options{FS: s.fs, Mode: fileMode}
	info, err := s.fs.Lstat(tombsName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.tombs, err = logfile.Create(tombsName, o)
		s.compactAt = minCompact
		return err
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errNotRegular
	}
	log, err := openRepaired(s.fs, tombsName, o.Policy)
	if err != nil {
		return err
	}
	live, size, err := s.scan(log.Size())
	if err != nil {
		return errors.Join(err, log.Close())
	}
	for id := range live {
		s.high = max(s.high, id)
	}
	s.tombs = log
	s.compactAt = max(minCompact, 2*size)
	return nil
}

// closeTombs closes the log of tombstones.
func (s *Store) closeTombs() error {
	if s.tombs == nil {
		return nil
	}
	err := s.tombs.Close()
	s.tombs = nil
	return err
}

// scan reads the first bytes of the log of tombstones. It returns those that
// stand, and about how many bytes they take. Those that were dropped count as
// evidence, too.
func (s *Store) scan(size int64) (live map[jobid.ID]purge.Record, bytes int64, err error) {
	live = map[jobid.ID]purge.Record{}
	r, err := logfile.OpenReader(tombsName, logfile.ReaderOptions{FS: s.fs, Limit: func() int64 { return size }})
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		e, err := r.Next()
		if err == logfile.ErrEndOfHistory {
			break
		}
		if err != nil {
			return nil, 0, err
		}
		rec, err := parseRecord(e)
		if err != nil {
			return nil, 0, err
		}
		s.tombsTime = max(s.tombsTime, e.Timestamp)
		for _, j := range rec.put {
			s.high = max(s.high, j.ID)
			live[j.ID] = j
		}
		for _, id := range rec.drop {
			delete(live, id)
		}
	}
	var text [128]byte
	for _, j := range live {
		line, _ := j.AppendText(text[:0])
		bytes += int64(len(line)) + 3 // quotes and a comma
	}
	return live, bytes, nil
}

// PutTombstones keeps and drops tombstones as [purge.Store] says. They are a
// line of a log, or several where there are more than a thousand; a line is
// there whole or not at all. The log is written anew without what was dropped
// when it is twice as large as what stood in it, and a mebibyte at least.
//
// The error is an *[Error], with category purge.ErrRecord if a job can not be a
// tombstone; then nothing was changed.
func (s *Store) PutTombstones(ctx context.Context, put []purge.Record, drop []jobid.ID) error {
	const op = "put tombstones"
	if err := s.ready(ctx, op); err != nil {
		return err
	}
	if err := s.putTombstones(put, drop); err != nil {
		// A log that failed has to be opened again; one that did not, may.
		_ = s.closeTombs()
		return fail(op, tombsName, err)
	}
	return nil
}

// putTombstones appends the lines, each durable before the next, so that what is
// torn is never but the last.
func (s *Store) putTombstones(put []purge.Record, drop []jobid.ID) error {
	at := s.tombsTime
	for _, j := range put {
		if _, err := j.MarshalText(); err != nil {
			return err
		}
		at = max(at, j.Inactive)
	}
	if err := s.openTombs(); err != nil {
		return err
	}
	if s.tombs.Size() >= s.compactAt {
		if err := s.compact(); err != nil {
			return err
		}
	}
	if s.tombs.Size() == 0 && len(put) == 0 {
		return nil // nothing is to be dropped
	}
	for len(put)+len(drop) > 0 {
		var rec record
		rec.put, put = cut(put, maxRecord)
		rec.drop, drop = cut(drop, maxRecord-len(rec.put))
		line, err := appendRecord(nil, at, rec)
		if err != nil {
			return err
		}
		if err := s.tombs.Append(line); err != nil {
			return err
		}
		s.tombsTime = at
		for _, j := range rec.put {
			s.high = max(s.high, j.ID)
		}
	}
	return nil
}

// cut returns the first elements of list, at most n, and the others.
func cut[T any](list []T, n int) (head, tail []T) {
	n = min(n, len(list))
	return list[:n], list[n:]
}

// compact writes the log of tombstones anew: those that stand, by id. A crash
// leaves the old log or the new one.
func (s *Store) compact() error {
	live, size, err := s.scan(s.tombs.Size())
	if err != nil {
		return err
	}
	// What was dropped was evidence.
	if err := s.keepHigh(); err != nil {
		return err
	}
	if err := s.closeTombs(); err != nil {
		return err
	}
	temp := tombsName + tempSuffix
	if err := remove(s.fs, temp); err != nil {
		return err
	}
	if err := s.writeTombs(temp, live); err != nil {
		_ = s.fs.Remove(temp) // Open does it otherwise
		return err
	}
	if err := s.fs.Rename(temp, tombsName); err != nil {
		_ = s.fs.Remove(temp)
		return err
	}
	// Open makes the new name durable, before anything is appended to it.
	if s.tombs, err = logfile.Open(tombsName, logfile.Options{FS: s.fs}); err != nil {
		return err
	}
	s.compactAt = max(minCompact, 2*size)
	return nil
}

// writeTombs writes a log of tombstones.
func (s *Store) writeTombs(name string, live map[jobid.ID]purge.Record) (err error) {
	log, err := logfile.Create(name, logfile.Options{FS: s.fs, Policy: logfile.SyncGroup, Mode: fileMode})
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := log.Close(); err == nil {
			err = closeErr // it syncs
		}
	}()
	jobs := byID(live)
	var line []byte
	for len(jobs) > 0 {
		var rec record
		rec.put, jobs = cut(jobs, maxRecord)
		if line, err = appendRecord(line[:0], s.tombsTime, rec); err != nil {
			return err
		}
		if err := log.Append(line); err != nil {
			return err
		}
	}
	return nil
}

// byID returns tombstones in the order of their ids.
func byID(live map[jobid.ID]purge.Record) []purge.Record {
	jobs := make([]purge.Record, 0, len(live))
	for _, id := range slices.Sorted(maps.Keys(live)) {
		jobs = append(jobs, live[id])
	}
	return jobs
}

// Tombstones returns an iterator over the tombstones that stand, by id. If they
// can not be read it yields one *[Error] and ends. It reads the log of all and
// holds them in memory; the store may be changed meanwhile.
func (s *Store) Tombstones() iter.Seq2[purge.Record, error] {
	return func(yield func(purge.Record, error) bool) {
		const op = "tombstones"
		if err := s.ready(context.Background(), op); err != nil {
			yield(purge.Record{}, err)
			return
		}
		if err := s.openTombs(); err != nil {
			yield(purge.Record{}, fail(op, tombsName, err))
			return
		}
		live, _, err := s.scan(s.tombs.Size())
		if err != nil {
			yield(purge.Record{}, fail(op, tombsName, err))
			return
		}
		for _, j := range byID(live) {
			if !yield(j, nil) {
				return
			}
		}
	}
}
