package idset

import "strconv"

// String returns the canonical text, "0-3,7": consecutive ids as ranges, no
// brackets. Equal sets have equal texts. The empty set is "".
func (s *Set) String() string {
	var room [128]byte
	return string(s.append(room[:0]))
}

// AppendText appends what String returns. The error is always nil. If dst has
// room, it does not allocate.
func (s *Set) AppendText(dst []byte) ([]byte, error) {
	return s.append(dst), nil
}

// MarshalText returns what String returns. The error is always nil.
func (s *Set) MarshalText() ([]byte, error) {
	return s.append([]byte{}), nil
}

// AppendBrackets appends the canonical text, in brackets if there is more than one id:
// "[0-3,7]". [Parse] reads it. If dst has room, it does not allocate.
func (s *Set) AppendBrackets(dst []byte) []byte {
	first, _ := s.Min()
	if last, _ := s.Max(); first == last {
		return s.append(dst)
	}
	return append(s.append(append(dst, '[')), ']')
}

func (s *Set) append(dst []byte) []byte {
	var p printer
	if bits := s.bits(); bits == nil {
		for _, r := range s.list() {
			dst = p.add(dst, r)
		}
	} else {
		for first, end := range bits.Ranges() {
			dst = p.add(dst, run{first, uint32(end - 1)})
		}
	}
	return p.end(dst)
}

// A printer prints runs into a block, and appends the block where it is full. Ids that
// follow one another nearly always have all but two digits in common.
type printer struct {
	block [blockBytes]byte
	n     int // of the block

	hundreds uint32 // of the last id
	head     [8]byte
	digits   int // of hundreds in head, none at first: ids ascend
}

const (
	blockBytes = 256
	runBytes   = len(",2147483646-2147483647") + 8
)

// add prints a run and a comma. It returns dst, to which it may have appended the block.
func (p *printer) add(dst []byte, r run) []byte {
	if p.n > blockBytes-runBytes {
		dst = append(dst, p.block[:p.n]...)
		p.n = 0
	}
	p.id(r.first)
	if r.first < r.last {
		p.block[p.n] = '-'
		p.n++
		p.id(r.last)
	}
	p.block[p.n] = ','
	p.n++
	return dst
}

func (p *printer) id(id uint32) {
	hundreds, rest := id/100, id%100
	if hundreds != p.hundreds {
		p.hundreds = hundreds
		p.digits = len(strconv.AppendUint(p.head[:0], uint64(hundreds), 10))
	}
	copy(p.block[p.n:p.n+len(p.head)], p.head[:])
	p.n += p.digits
	if id >= 10 {
		p.block[p.n] = pairs[2*rest]
		p.n++
	}
	p.block[p.n] = pairs[2*rest+1]
	p.n++
}

// pairs are the numbers of two digits.
const pairs = "00010203040506070809" + "10111213141516171819" + "20212223242526272829" + "30313233343536373839" +
	"40414243444546474849" + "50515253545556575859" + "60616263646566676869" + "70717273747576777879" +
	"80818283848586878889" + "90919293949596979899"

// end appends the rest of the block, without the last comma.
func (p *printer) end(dst []byte) []byte { return append(dst, p.block[:max(p.n-1, 0)]...) }

// Slice returns the ids in ascending order. If there are more than most ids, the error
// wraps [ErrLimit]. For the empty set it returns nil. It allocates once.
func (s *Set) Slice(most int) ([]uint32, error) {
	n := s.Len()
	switch {
	case n == 0:
		return nil, nil
	case n > most:
		return nil, tooMany(n, "ids", most)
	}
	ids := make([]uint32, 0, n)
	for first, last := range s.Ranges() {
		for id := first; id <= last; id++ {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
