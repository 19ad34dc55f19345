package dirstore

import (
	"bytes"
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
	// maxRecord is how many tombstones, put and dropped, a line has at most.
	maxRecord = 1000
	// minCompact is the size below which the log is never compacted.
	minCompact = 1 << 20
	// maxReads is how often a log is read again that a writer replaced meanwhile.
	maxReads = 10
)

// tombs are the tombstones and their log.
type tombs struct {
	live      map[jobid.ID]purge.Record // nil until the log was read
	time      eventlog.Timestamp        // the greatest time of a tombstone
	log       *logfile.Log              // nil until it is needed
	compactAt int64                     // the size of the log that is too large
}

// A record is a line of the log of tombstones. It is one change: a crash leaves all
// of it or a torn line, which is cut off.
type record struct {
	put  []purge.Record
	drop []jobid.ID
}

// sumKey begins the check digits, which end a record's context.
const sumKey = `,"crc32c":"`

// appendRecord appends the line of a record at a time.
func appendRecord(dst []byte, at eventlog.Timestamp, r record) ([]byte, error) {
	context := make([]byte, 0, 32+96*len(r.put)+24*len(r.drop))
	context = append(context, `{"put":[`...)
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
	context = append(context, ']')
	context = fmt.Appendf(context, sumKey+`%08x"}`, sum(context))
	return eventlog.AppendEntry(dst, eventlog.Entry{Timestamp: at, Name: tombsEvent, Context: context})
}

// parseRecord reads an entry that appendRecord wrote.
func parseRecord(e eventlog.Entry) (record, error) {
	n := len(e.Context) - len(sumKey+`00000000"}`)
	if e.Name != tombsEvent || n < 0 || !bytes.HasPrefix(e.Context[n:], []byte(sumKey)) {
		return record{}, errRecord
	}
	if string(e.Context[n:]) != fmt.Sprintf(sumKey+`%08x"}`, sum(e.Context[:n])) {
		return record{}, errSum
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
	return r, nil
}

// apply makes the change of a record. What was dropped is evidence too.
func (s *Store) apply(r record, at eventlog.Timestamp) {
	s.tombs.time = max(s.tombs.time, at)
	for _, j := range r.put {
		s.high = max(s.high, j.ID)
		s.tombs.live[j.ID] = j
	}
	for _, id := range r.drop {
		delete(s.tombs.live, id)
	}
}

// openTombs opens the log of tombstones for appending, after repairing it, unless it
// is open. One that does not exist is made. After a failure it is read once more.
func (s *Store) openTombs() (done logfile.Repaired, err error) {
	if s.tombs.log != nil {
		return done, nil
	}
	if s.tombs.live == nil {
		if err := s.readTombs(); err != nil {
			return done, err
		}
	}
	err = s.withRoom(func() (err error) {
		s.tombs.log, done, err = openRepaired(s.fs, tombsName, logfile.SyncAlways)
		if errors.Is(err, fs.ErrNotExist) {
			s.tombs.log, err = logfile.Create(tombsName, logfile.Options{FS: s.fs, Mode: fileMode})
		}
		return err
	})
	return done, err
}

// readTombs reads the log of tombstones, as far as it is complete. A log that a writer
// puts in its place meanwhile is read instead.
func (s *Store) readTombs() error {
	err := s.readLog()
	for again := 0; s.readOnly && again < maxReads && errors.Is(err, logfile.ErrChanged); again++ {
		err = s.readLog()
	}
	return err
}

// readLog is one attempt of readTombs.
func (s *Store) readLog() (err error) {
	s.tombs.live, s.tombs.compactAt = make(map[jobid.ID]purge.Record), minCompact
	info, err := s.fs.Lstat(tombsName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	defer func() {
		if err != nil {
			s.tombs.live = nil
		}
	}()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		return err
	}
	r, err := logfile.OpenReader(tombsName, logfile.ReaderOptions{FS: s.fs})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		e, err := r.Next()
		switch {
		case err == logfile.ErrEndOfHistory:
			size := int64(0)
			for _, j := range s.tombs.live {
				size += int64(len(j.String())) + 3 // quotes and a comma
			}
			s.tombs.compactAt = max(minCompact, 2*size)
			return nil
		case errors.Is(err, logfile.ErrDamaged):
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		case err != nil:
			return err
		}
		rec, err := parseRecord(e)
		if err != nil {
			return fmt.Errorf("%w in the line before offset %d", err, r.Offset())
		}
		s.apply(rec, e.Timestamp)
	}
}

// closeTombs closes the log of tombstones.
func (s *Store) closeTombs() (err error) {
	if s.tombs.log != nil {
		err = s.tombs.log.Close()
		s.tombs.log = nil
	}
	return err
}

// PutTombstones adds and drops tombstones as [purge.Store] says. It appends a line
// to a log, or several if there are more than a thousand; after a crash a line is
// whole or absent. When the log is at least a mebibyte and twice as large as the
// tombstones in it, the store rewrites it.
//
// The error has category purge.ErrRecord if a record cannot be a tombstone; then
// nothing was changed. On a full disk it works for some batches.
func (s *Store) PutTombstones(ctx context.Context, put []purge.Record, drop []jobid.ID) error {
	const op = "put tombstones"
	if err := s.writable(ctx, op); err != nil {
		return err
	}
	if err := s.putTombstones(put, drop); err != nil {
		_ = s.closeTombs()
		s.tombs.live = nil // what the log holds is not known
		return fail(op, tombsName, err)
	}
	return nil
}

// putTombstones appends the lines, each durable before the next, so that only the
// last can be torn.
func (s *Store) putTombstones(put []purge.Record, drop []jobid.ID) error {
	at := s.tombs.time
	for _, j := range put {
		if _, err := j.MarshalText(); err != nil {
			return err
		}
		at = max(at, j.Inactive)
	}
	if _, err := s.openTombs(); err != nil {
		return err
	}
	if s.tombs.log.Size() == 0 && len(put) == 0 {
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
		if err := s.withRoom(func() error { return s.tombs.log.Append(line) }); err != nil {
			return err
		}
		s.apply(rec, at)
	}
	s.compact()
	return nil
}

// cut returns the first elements of list, at most n, and the others.
func cut[T any](list []T, n int) (head, tail []T) {
	n = min(n, len(list))
	return list[:n], list[n:]
}

// compact writes the log anew when it is large. If that fails the old log stays, and the
// next attempt is a mebibyte later.
func (s *Store) compact() {
	size := s.tombs.log.Size()
	if size >= s.tombs.compactAt && s.rewrite() != nil {
		s.tombs.compactAt = size + minCompact
	}
}

// rewrite puts a log of the tombstones that are live in the place of the old one. A crash
// leaves one of both.
func (s *Store) rewrite() error {
	t, temp := &s.tombs, tombsName+tempSuffix
	if err := remove(s.fs, temp); err != nil {
		return err
	}
	log, err := logfile.Create(temp, logfile.Options{FS: s.fs, Policy: logfile.SyncGroup, Mode: fileMode})
	if err != nil {
		return err
	}
	for rest, rec := byID(t.live), (record{}); err == nil && len(rest) > 0; {
		var line []byte
		rec.put, rest = cut(rest, maxRecord)
		if line, err = appendRecord(nil, t.time, rec); err == nil {
			err = log.Append(line)
		}
	}
	size := log.Size()
	err = errors.Join(err, log.Close()) // it syncs
	if err == nil {
		err = s.keepHigh() // what was dropped was evidence
	}
	if err == nil && t.log != nil {
		_ = t.log.Close() // all of it is durable
		t.log = nil       // after a failure the next call opens it
	}
	if err == nil {
		err = s.fs.Rename(temp, tombsName)
	}
	if err != nil {
		_ = s.fs.Remove(temp) // Open does it otherwise
		return err
	}
	// Opening makes the name durable, before anything is appended.
	t.log, err = logfile.Open(tombsName, logfile.Options{FS: s.fs})
	t.compactAt = max(minCompact, 2*size)
	return err
}

// Tombstones yields the tombstones by id. If they cannot be read, it yields one
// error and ends. The store may change meanwhile.
func (s *Store) Tombstones() iter.Seq2[purge.Record, error] {
	return func(yield func(purge.Record, error) bool) {
		const op = "tombstones"
		if err := s.ready(context.Background(), op); err != nil {
			yield(purge.Record{}, err)
			return
		}
		if s.tombs.live == nil {
			if err := s.readTombs(); err != nil {
				yield(purge.Record{}, fail(op, tombsName, err))
				return
			}
		}
		for _, j := range byID(s.tombs.live) {
			if !yield(j, nil) {
				return
			}
		}
	}
}

// byID returns tombstones in the order of their ids.
func byID(live map[jobid.ID]purge.Record) []purge.Record {
	records := make([]purge.Record, 0, len(live))
	for _, id := range slices.Sorted(maps.Keys(live)) {
		records = append(records, live[id])
	}
	return records
}
