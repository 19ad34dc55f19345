package jobspec

import (
	"slices"
	"strconv"
	"strings"

	"github.com/joblife/joblife/internal/jsonobj"
)

// MaxCount is the largest count of a job, and the largest that a Flux peer reads exactly.
const MaxCount = 1<<31 - 1

// operator computes the next acceptable count of a range (RFC 14).
type operator byte

const (
	add      operator = '+' // n + operand
	multiply operator = '*' // n * operand
	power    operator = '^' // n to the power of operand
)

// span is a run of consecutive counts, both ends included.
type span struct{ first, last int64 }

// Count is how many of a resource are acceptable (RFC 14): one number, a range with
// an operator, or a set. The zero Count accepts nothing; in a [Vertex] it asks for
// nothing. [Fixed] and [ParseCount] make others. A Count is immutable.
type Count struct {
	min, max int32 // at most MaxCount; max 0: no upper bound
	operand  int32
	operator operator // 0: one number or a set
	set      []span   // two or more, ascending, with numbers missing between them; or nil
}

// Fixed returns the Count that accepts only n. Panics unless n is from 1 to MaxCount.
func Fixed(n int64) Count {
	if n < 1 || n > MaxCount {
		panic("jobspec: Fixed: " + strconv.FormatInt(n, 10) + " is out of range")
	}
	return Count{min: int32(n), max: int32(n)}
}

// ParseCount reads a Count as people write it and as RFC 14 allows in a string:
//
//	4        exactly 4
//	2-8      2 to 8
//	1,4-6    any of 1, 4, 5, 6 (an idset of RFC 22)
//	2+       2 or more
//	2-8:3    2, 5, 8
//	2-8:2:*  2, 4, 8
//	2+:2:^   2, 4, 16, 256, …
//
// in brackets or not. No number exceeds [MaxCount].
func ParseCount(s string) (Count, error) {
	c, fault := parseCount(s)
	return c, refuse(fault)
}

func parseCount(s string) (Count, *jsonobj.Fault) {
	body := s
	if len(s) >= 2 && s[0] == '[' && s[len(s)-1] == ']' {
		body = s[1 : len(s)-1]
	}
	p := countParser{s: body, base: (len(s) - len(body)) / 2}
	if strings.IndexByte(body, ',') >= 0 {
		return p.list()
	}
	return p.one()
}

type countParser struct {
	s    string
	i    int
	base int // offset of s in what the caller gave
}

func (p *countParser) fail(at int, cause error) *jsonobj.Fault {
	return &jsonobj.Fault{Offset: p.base + at, Err: cause}
}

// next takes c if it comes next.
func (p *countParser) next(c byte) bool {
	if p.i < len(p.s) && p.s[p.i] == c {
		p.i++
		return true
	}
	return false
}

// number reads a decimal of 1 to MaxCount, without sign or leading zeros.
func (p *countParser) number() (int64, *jsonobj.Fault) {
	start := p.i
	for p.i < len(p.s) && '0' <= p.s[p.i] && p.s[p.i] <= '9' {
		p.i++
	}
	digits := p.s[start:p.i]
	if digits == "" || digits[0] == '0' {
		return 0, p.fail(start, errCount)
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > MaxCount {
		return 0, p.fail(start, errHuge)
	}
	return n, nil
}

// list reads a comma-separated list of numbers and of runs of numbers.
func (p *countParser) list() (Count, *jsonobj.Fault) {
	var set []span
	for {
		start := p.i
		first, err := p.number()
		if err != nil {
			return Count{}, err
		}
		last := first
		if p.next('-') {
			if last, err = p.number(); err != nil {
				return Count{}, err
			}
			if last <= first {
				return Count{}, p.fail(start, errCount)
			}
		}
		switch n := len(set); {
		case n > 0 && first <= set[n-1].last:
			return Count{}, p.fail(start, errCount)
		case n > 0 && first == set[n-1].last+1:
			set[n-1].last = last
		default:
			set = append(set, span{first, last})
		}
		if !p.next(',') {
			break
		}
	}
	if p.i < len(p.s) {
		return Count{}, p.fail(p.i, errCount)
	}
	if len(set) == 1 {
		c, _ := newRange(set[0].first, set[0].last, add, 1) // which may be
		return c, nil
	}
	return Count{min: int32(set[0].first), max: int32(set[len(set)-1].last), set: slices.Clip(set)}, nil
}

// one reads a number or a range with its operand and operator.
func (p *countParser) one() (Count, *jsonobj.Fault) {
	lo, err := p.number()
	if err != nil {
		return Count{}, err
	}
	var hi int64
	switch {
	case p.i == len(p.s):
		return Fixed(lo), nil
	case p.next('+'):
	case p.next('-'):
		if hi, err = p.number(); err != nil {
			return Count{}, err
		}
	default:
		return Count{}, p.fail(p.i, errCount)
	}
	op, operand := add, int64(1)
	if p.next(':') {
		if operand, err = p.number(); err != nil {
			return Count{}, err
		}
		if p.next(':') {
			if p.i == len(p.s) {
				return Count{}, p.fail(p.i, errOperator)
			}
			op = operator(p.s[p.i])
			p.i++
		}
	}
	if p.i < len(p.s) {
		return Count{}, p.fail(p.i, errCount)
	}
	c, cause := newRange(lo, hi, op, operand)
	if cause != nil {
		return Count{}, p.fail(0, cause)
	}
	return c, nil
}

// newRange returns the Count of a range of numbers of at least 1, or what is wrong with it;
// hi 0 is no bound.
func newRange(lo, hi int64, op operator, operand int64) (Count, error) {
	switch {
	case op != add && op != multiply && op != power:
		return Count{}, errOperator
	case hi != 0 && hi < lo:
		return Count{}, errMax
	case op != add && operand < 2:
		return Count{}, errOperand
	case op == power && lo < 2:
		return Count{}, errMin
	case lo == hi:
		return Fixed(lo), nil
	}
	return Count{min: int32(lo), max: int32(hi), operator: op, operand: int32(operand)}, nil
}

// Min returns the smallest acceptable count, 0 for the zero Count.
func (c Count) Min() int64 { return int64(c.min) }

// Fixed returns the number, and true, if the Count is one number.
func (c Count) Fixed() (int64, bool) { return int64(c.min), c.min != 0 && c.min == c.max }

// IsZero reports whether the Count is the zero Count, which accepts nothing.
func (c Count) IsZero() bool { return c.min == 0 }

// Floor returns the largest acceptable count of at most n and at most [MaxCount], which a
// scheduler that has n grants; false if there is none. It takes O(1) for the operator +,
// O(log n) for the others, O(log m) for a set of m runs.
func (c Count) Floor(n int64) (int64, bool) {
	least := int64(c.min)
	if least == 0 || n < least {
		return 0, false
	}
	n = min(n, MaxCount)
	if c.max != 0 {
		n = min(n, int64(c.max))
	}
	switch {
	case c.set != nil:
		i, _ := slices.BinarySearchFunc(c.set, n, func(s span, n int64) int {
			if s.first <= n {
				return -1
			}
			return 1
		})
		return min(n, c.set[i-1].last), true
	case c.operator == 0:
		return least, true
	case c.operator == add:
		return n - (n-least)%int64(c.operand), true
	}
	at := least
	for next := c.step(at); next <= n; next = c.step(at) {
		at = next
	}
	return at, true
}

// step returns the count after n for * and ^, something beyond MaxCount if there is none.
func (c Count) step(n int64) int64 {
	if c.operator == multiply {
		return n * int64(c.operand)
	}
	result := n
	for i := int32(1); i < c.operand && result <= MaxCount; i++ {
		result *= n
	}
	return result
}

// String returns the canonical text, the shortest that ParseCount reads as this Count: "4",
// "2-8", "1,4-6", "2+", "2-8:3", "2-8:2:*". It is empty for the zero Count.
func (c Count) String() string {
	var dst []byte
	if c.set != nil {
		for i, s := range c.set {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst = strconv.AppendInt(dst, s.first, 10); s.last > s.first {
				dst = strconv.AppendInt(append(dst, '-'), s.last, 10)
			}
		}
		return string(dst)
	}
	if c.min == 0 {
		return ""
	}
	dst = strconv.AppendInt(dst, int64(c.min), 10)
	if c.operator == 0 {
		return string(dst)
	}
	if c.max == 0 {
		dst = append(dst, '+')
	} else {
		dst = strconv.AppendInt(append(dst, '-'), int64(c.max), 10)
	}
	if c.operand != 1 || c.operator != add {
		dst = strconv.AppendInt(append(dst, ':'), int64(c.operand), 10)
	}
	if c.operator != add {
		dst = append(dst, ':', byte(c.operator))
	}
	return string(dst)
}

// countOf reads the count of a resource vertex: the zero Count from 0.
func countOf(v jsonobj.Value) Count {
	switch v.Kind() {
	case jsonobj.KindNumber:
		if string(v.Raw()) == "0" || string(v.Raw()) == "-0" {
			return Count{}
		}
		if n := count(v); n > 0 {
			return Fixed(n)
		}
	case jsonobj.KindString:
		c, fault := parseCount(v.Text())
		if fault == nil {
			return c
		}
		v.Fail(fault.Err)
	case jsonobj.KindObject:
		return rangeOf(v)
	default:
		v.Fail(errCount)
	}
	return Count{}
}

// rangeOf reads a count that is an object. What is absent leaves the range plain and open.
func rangeOf(v jsonobj.Value) Count {
	var lo, hi int64
	op, operand := add, int64(1)
	o := v.Object()
	for o.Next() {
		switch m := o.Value(); string(o.Key()) {
		case "min":
			lo = count(m)
		case "max":
			hi = count(m)
		case "operand":
			operand = count(m)
		case "operator":
			if s := m.TextBytes(); len(s) == 1 {
				op = operator(s[0])
			} else {
				m.Fail(errOperator)
			}
		default:
			m.Fail(errUnknown)
		}
	}
	if o.Require("min"); v.Failed() {
		return Count{}
	}
	c, cause := newRange(lo, hi, op, operand)
	if cause != nil {
		v.Fail(cause)
	}
	return c
}
