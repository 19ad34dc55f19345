package idset

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/joblife/joblife/internal/guard"
)

const maxText = 4 << 20 // bytes

// Parse returns the set of an idset string of RFC 22: ids and ranges such as
// "0-3,7", ascending, each id once, without leading zeros, optionally in one
// pair of brackets. "" and "[]" are the empty set. Nothing else is accepted: no
// space, no sign, no empty element, no range of one id ("5-5").
//
// The error names the offset in bytes from 0. It wraps [ErrRange] for an id above
// [MaxID], and [ErrLimit] for a text of more than 4 MiB.
//
// Its time depends on the length of the text, and the set takes at most 128 bytes for each
// byte of it. A set of up to eight ranges is one allocation.
func Parse(s string) (*Set, error) { return ParseLimit(s, MaxID) }

// ParseLimit is [Parse] with a smaller largest id: an id above maxID is an
// ErrRange. A maxID above [MaxID] means MaxID.
func ParseLimit(s string, maxID uint32) (*Set, error) {
	out := new(Set)
	if err := out.parse(s, min(maxID, MaxID)); err != nil {
		return nil, err
	}
	return out, nil
}

// UnmarshalText replaces the set with what [Parse] returns. After an error the set
// is unchanged. It retains nothing of text.
func (s *Set) UnmarshalText(text []byte) error {
	few, n, big := s.few, s.n, s.big
	s.clear()
	err := s.parse(string(text), MaxID)
	if err != nil {
		s.few, s.n, s.big = few, n, big
	}
	return err
}

// parse reads a text into an empty set. After an error it is no set.
func (s *Set) parse(text string, maxID uint32) error {
	if len(text) > maxText {
		return tooMany(len(text), "bytes", maxText)
	}
	p := parser{text: text, end: len(text), maxID: maxID}
	if strings.HasPrefix(text, "[") {
		if !strings.HasSuffix(text, "]") {
			return p.fail(len(text), "bracket is not closed")
		}
		p.start, p.pos, p.end = 1, 1, len(text)-1
	}
	if p.pos == p.end {
		return nil
	}
	n := strings.Count(text, ",") + 1
	if n > maxShort {
		return p.many(s, n)
	}
	return p.list(s.builder(n), 0)
}

// list reads elements to the end, the ids of which are not below next.
func (p *parser) list(b listBuilder, next uint32) error {
	for {
		r, err := p.element(next)
		if err != nil {
			return err
		}
		b.add(r)
		if p.pos == p.end {
			b.done()
			return nil
		}
		p.pos++ // the comma
		next = r.last + 1
	}
}

// many reads n elements into words, and if there is an id beyond these, on into a list.
func (p *parser) many(s *Set, n int) error {
	var f flat
	ids, runs, next := 0, 1, uint32(0)
	for {
		at := p.pos
		r, err := p.element(next)
		if err != nil {
			return err
		}
		if r.last > containerMask {
			b := s.builder(n)
			b.addFlat(&f)
			p.pos = at
			return p.list(b, next)
		}
		setWords(f[:], r.first, r.last)
		ids += int(r.last-r.first) + 1
		if r.first > next && next > 0 {
			runs++
		}
		if p.pos == p.end {
			s.setFlat(&f, ids, runs)
			return nil
		}
		p.pos++ // the comma
		next = r.last + 1
	}
}

// maxDigits is how many digits an id has at most.
const maxDigits = len("2147483647")

// A parser has read text[start:pos] and will read text[pos:end]. Brackets lie outside.
type parser struct {
	text            string
	start, pos, end int
	maxID           uint32
}

// element reads an id or a range of ids not below next, up to the comma or the
// end that follows.
func (p *parser) element(next uint32) (run, error) {
	text, most := p.text[:p.end], uint64(p.maxID)
	first, end, ok := number(text, p.pos)
	if !ok || first > most || first < uint64(next) {
		return run{}, p.badNumber(p.pos, end, "not above the ids before it")
	}
	last := first
	if end < len(text) && text[end] == '-' {
		start := end + 1
		last, end, ok = number(text, start)
		if !ok || last > most || last <= first {
			return run{}, p.badNumber(start, end, "range does not ascend")
		}
	}
	if end < len(text) && text[end] != ',' {
		return run{}, p.fail(end, "unexpected byte")
	}
	p.pos = end
	return run{uint32(first), uint32(last)}, nil
}

// number reads an id, up to the first byte that is no digit.
func number(text string, i int) (id uint64, end int, ok bool) {
	start := i
	for i < len(text) {
		d := text[i] - '0'
		if d > 9 {
			break
		}
		id = id*10 + uint64(d)
		i++
	}
	n := i - start
	return id, i, 0 < n && n <= maxDigits && (n == 1 || text[start] != '0')
}

// badNumber returns why there is no id between two offsets, or the fault that it has as one.
func (p *parser) badNumber(start, end int, fault string) error {
	digits := p.text[start:end]
	switch n, _ := strconv.ParseUint(digits, 10, 64); {
	case digits == "" && (end == p.end || p.text[end] == ','):
		return p.fail(start, "empty element")
	case digits == "":
		return p.fail(start, "unexpected byte")
	case len(digits) > 1 && digits[0] == '0':
		return p.fail(start, "leading zero")
	case n > uint64(p.maxID): // the largest there is, for more digits
		return fmt.Errorf("%w: offset %d: %s is above %d", ErrRange, start, guard.Quote(digits), p.maxID)
	}
	return p.fail(start, fault)
}

// fail returns the error for an offset of the text, with the element it is in.
func (p *parser) fail(offset int, fault string) error {
	from := max(strings.LastIndexByte(p.text[:offset], ',')+1, p.start)
	token := p.text[from:p.end]
	if i := strings.IndexByte(token, ','); i >= 0 {
		token = token[:i]
	}
	return fmt.Errorf("idset: syntax error: offset %d: %s in %s", offset, fault, guard.Quote(token))
}
