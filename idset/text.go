package idset

import (
	"fmt"
	"strconv"
)

// A Format is a way to print a set. The zero Format is invalid.
type Format uint8

// The formats.
const (
	FormatRanges   Format = iota + 1 // "0-3,7": the canonical text
	FormatList                       // "0,1,2,3,7": each id by itself
	FormatBrackets                   // "[0-3,7]": the canonical text, in brackets if there is more than one id
)

// String returns the canonical text, "0-3,7": consecutive ids as ranges, no
// brackets. Equal sets have equal texts. The empty set is "".
func (s *Set) String() string {
	var room [128]byte
	return string(s.AppendFormat(room[:0], FormatRanges))
}

// AppendText appends what String returns. The error is always nil. If dst has
// room, it does not allocate.
func (s *Set) AppendText(dst []byte) ([]byte, error) {
	return s.AppendFormat(dst, FormatRanges), nil
}

// MarshalText returns what String returns. The error is always nil.
func (s *Set) MarshalText() ([]byte, error) {
	return s.AppendFormat([]byte{}, FormatRanges), nil
}

// AppendFormat appends the set in a format. [Parse] accepts all formats. The empty
// set is "" in each. FormatRanges and FormatBrackets take time for each range.
// FormatList takes time and memory for each id, up to 22 GB: check [Set.Len] first
// if the set comes from outside. If dst has room, AppendFormat does not allocate.
// Panics if f is not a format.
func (s *Set) AppendFormat(dst []byte, f Format) []byte {
	switch f {
	case FormatRanges:
		return s.appendRanges(dst)
	case FormatList:
		return s.appendList(dst)
	case FormatBrackets:
		first, _ := s.Min()
		if last, _ := s.Max(); first == last {
			return s.appendRanges(dst)
		}
		return append(s.appendRanges(append(dst, '[')), ']')
	}
	panic(fmt.Sprintf("idset: no such format: %d", f))
}

func (s *Set) appendRanges(dst []byte) []byte {
	if bits := s.bits(); bits != nil {
		sep := false
		for first, end := range bits.Ranges() {
			dst = appendRun(dst, run{first, uint32(end - 1)}, sep)
			sep = true
		}
		return dst
	}
	for i, r := range s.list() {
		dst = appendRun(dst, r, i > 0)
	}
	return dst
}

func appendRun(dst []byte, r run, sep bool) []byte {
	if sep {
		dst = append(dst, ',')
	}
	dst = strconv.AppendUint(dst, uint64(r.first), 10)
	if r.first < r.last {
		dst = append(dst, '-')
		dst = strconv.AppendUint(dst, uint64(r.last), 10)
	}
	return dst
}

func (s *Set) appendList(dst []byte) []byte {
	sep := false
	for id := range s.All() {
		if sep {
			dst = append(dst, ',')
		}
		dst = strconv.AppendUint(dst, uint64(id), 10)
		sep = true
	}
	return dst
}

// Slice returns the ids in ascending order. If there are more than most ids,
// the error wraps [ErrLimit]. For the empty set it returns nil. It allocates
// once.
func (s *Set) Slice(most int) ([]uint32, error) {
	n := s.Len()
	switch {
	case n == 0:
		return nil, nil
	case n > most:
		return nil, tooMany(n, "ids", most)
	}
	ids := make([]uint32, 0, n)
	for id := range s.All() {
		ids = append(ids, id)
	}
	return ids, nil
}
