package idset

import (
	"fmt"
	"slices"
	"strconv"
)

// A Format is a way to print a set.
type Format uint8

const (
	Ranges   Format = iota + 1 // "0-3,7": the canonical text
	List                       // "0,1,2,3,7": every id by itself
	Brackets                   // "[0-3,7]": the canonical text, in brackets if there is more than one id
)

// String returns "Ranges", "List" or "Brackets", and "Format(9)" for what is
// none of them.
func (f Format) String() string {
	switch f {
	case Ranges:
		return "Ranges"
	case List:
		return "List"
	case Brackets:
		return "Brackets"
	}
	return "Format(" + strconv.Itoa(int(f)) + ")"
}

// String returns the canonical text, "0-3,7": consecutive ids as ranges, no
// brackets. Equal sets have equal texts. The empty set is "".
func (s *Set) String() string {
	var room [128]byte
	return string(s.AppendFormat(room[:0], Ranges))
}

// AppendText appends what String returns. The error is always nil. With room in
// dst it does not allocate.
func (s *Set) AppendText(dst []byte) ([]byte, error) {
	return s.AppendFormat(dst, Ranges), nil
}

// MarshalText returns what String returns. The error is always nil.
func (s *Set) MarshalText() ([]byte, error) {
	return s.AppendFormat([]byte{}, Ranges), nil
}

// AppendFormat appends the set in a format. Parse accepts each of them. The
// empty set is "" in all. Ranges and Brackets cost by ranges; List costs time
// and room by ids, up to 22 GB: look at Len first where the set comes from
// outside. With room in dst it does not allocate. Panics if f is none of the
// formats.
func (s *Set) AppendFormat(dst []byte, f Format) []byte {
	switch f {
	case Ranges:
		return s.appendRanges(dst)
	case List:
		return s.appendList(dst)
	case Brackets:
		first, _ := s.Min()
		if last, _ := s.Max(); first == last {
			return s.appendRanges(dst)
		}
		return append(s.appendRanges(append(dst, '[')), ']')
	}
	panic(fmt.Sprintf("idset: no such format: %v", f))
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

// Slice returns the ids in ascending order, or a *LimitError if there are more
// than most. The empty set is nil.
func (s *Set) Slice(most int) ([]uint32, error) {
	if s.IsEmpty() {
		return nil, nil
	}
	return s.AppendSlice(nil, most)
}

// AppendSlice appends the ids to dst in ascending order, or returns dst and a
// *LimitError if there are more than most. It allocates at most once.
func (s *Set) AppendSlice(dst []uint32, most int) ([]uint32, error) {
	n := s.Len()
	if n > most {
		return dst, &LimitError{What: "ids", Got: n, Limit: most}
	}
	dst = slices.Grow(dst, n)
	for id := range s.All() {
		dst = append(dst, id)
	}
	return dst, nil
}
