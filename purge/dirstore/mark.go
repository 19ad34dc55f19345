package dirstore

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"strconv"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// The watermark is there twice, in two files that are overwritten in place, one after
// the other. That needs no space, where a file system writes in place. A crash damages
// at most the copy that is being written, and after each call both copies agree: so a
// copy that is damaged later takes nothing along.
//
// It is not stored ahead, to spare writes: ids carry the time, and after a restart a
// generator would wait until the time of such an id.

// copies is how many copies of the watermark there are.
const copies = 2

// A markCopy is a copy of the watermark.
type markCopy struct {
	id jobid.ID // 0 unless ok
	ok bool     // it can be read
}

// markName returns the name of the n-th copy, from 0.
func markName(n int) string { return markPrefix + strconv.Itoa(n+1) }

// Watermark returns the greatest id that the store ever had: from PutWatermark, and
// from every job and tombstone, damaged ones included. It never becomes less, in this
// process or a later one. 0 means that there was no id. It reads no file.
func (s *Store) Watermark() jobid.ID { return s.high }

// PutWatermark stores id as [purge.Store] says. After an error either the earlier
// watermark or id is stored. If id is not greater than the stored watermark,
// PutWatermark does nothing. It makes two fsyncs. It works on a full disk: the
// file system overwrites in place, or the store removes some ballast.
func (s *Store) PutWatermark(ctx context.Context, id jobid.ID) error {
	const op = "put watermark"
	if err := s.writable(ctx, op); err != nil {
		return err
	}
	if id <= s.mark {
		return nil
	}
	if err := s.withRoom(func() error { return s.writeMark(id) }); err != nil {
		return fail(op, markPrefix, err)
	}
	return nil
}

// keepHigh makes the watermark as great as all that was seen, durably, in both
// copies.
func (s *Store) keepHigh() error {
	if s.high <= s.mark && s.marks[0].ok && s.marks[1].ok {
		return nil
	}
	return s.writeMark(s.high)
}

// readMark reads the copies. It returns the name of one that is damaged while the other
// is not. The error is fs.ErrNotExist if there is none.
func (s *Store) readMark() (damaged string, err error) {
	var errs []error
	for n := range s.marks {
		text, err := readFile(s.fs, markName(n), 1<<10)
		if err == nil {
			s.marks[n].id, err = parseMark(text)
		}
		s.marks[n].ok = err == nil
		if err == nil {
			s.high = max(s.high, s.marks[n].id)
		} else if !errors.Is(err, fs.ErrNotExist) {
			damaged = markName(n)
			errs = append(errs, fmt.Errorf("%s: %w", damaged, cause(err)))
		}
	}
	if !s.marks[0].ok && !s.marks[1].ok {
		return "", append(errs, fs.ErrNotExist)[0]
	}
	// A process that was killed may have left the greater one before it was durable.
	s.mark = min(s.marks[0].id, s.marks[1].id)
	s.try = s.high
	return damaged, nil
}

// writeMark writes the watermark, first the copy that cannot be read, if there is one:
// the other one stays readable until then. After a failure the greater id may be in a
// copy already, and it is kept then.
func (s *Store) writeMark(id jobid.ID) error {
	s.try = max(s.try, id)
	first := 0
	if s.marks[0].ok && !s.marks[1].ok {
		first = 1
	}
	for _, n := range []int{first, 1 - first} {
		s.marks[n] = markCopy{}
		if err := s.writeCopy(n, appendMark(nil, s.try)); err != nil {
			return err
		}
		s.marks[n] = markCopy{s.try, true}
	}
	s.mark, s.high = s.try, max(s.high, s.try)
	return nil
}

// writeCopy writes a copy of the watermark: in place if the file is there and whole.
func (s *Store) writeCopy(n int, text []byte) error {
	name := markName(n)
	info, err := s.fs.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(text)) {
		return replace(s.fs, ".", name, text)
	}
	f, err := s.fs.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return finish(f, text, true)
}

// sum returns check digits, CRC-32C.
func sum(text []byte) uint32 { return crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)) }

// appendMark appends the line of a watermark: its text, a space, check digits.
func appendMark(dst []byte, id jobid.ID) []byte {
	text := purge.AppendWatermark(nil, id)
	return fmt.Appendf(dst, "%s %08x\n", text, sum(text))
}

// parseMark reads what appendMark writes, and nothing else.
func parseMark(line []byte) (jobid.ID, error) {
	id, err := purge.ParseWatermark(line[:max(0, len(line)-len(" 00000000\n"))])
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if string(appendMark(nil, id)) != string(line) {
		return 0, errSum
	}
	return id, nil
}
