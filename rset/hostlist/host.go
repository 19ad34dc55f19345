package hostlist

import (
	"math"
	"strconv"
	"strings"
)

// maxDigits is how many trailing digits of a name can be its id, not its prefix.
const maxDigits = 18

// split returns the item of a name. The prefix is a substring of it.
func split(name string) item {
	i := len(name)
	for i > 0 && len(name)-i < maxDigits && isDigit(name[i-1]) {
		i--
	}
	id := number(name[i:])
	return item{prefix: name[:i], first: id, last: id, width: uint8(len(name) - i)}
}

// number returns the value of up to 18 digits.
func number(digits string) uint64 {
	n := uint64(0)
	for i := range len(digits) {
		n = n*10 + uint64(digits[i]-'0')
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// pow10 returns 10 to the n, which is at most 18.
func pow10(n uint8) uint64 {
	p := uint64(1)
	for range n {
		p *= 10
	}
	return p
}

// digits returns the number of digits of an id without zeros on the left.
func digits(id uint64) uint8 {
	n := uint8(1)
	for p := uint64(10); id >= p && n < maxDigits; p *= 10 {
		n++
	}
	return n
}

// appendHost appends a name, with zeros up to width digits.
func appendHost(dst []byte, prefix string, id uint64, width uint8) []byte {
	dst = append(dst, prefix...)
	if width == 0 {
		return dst
	}
	return appendID(dst, id, width)
}

func appendID(dst []byte, id uint64, width uint8) []byte {
	for n := digits(id); n < width; n++ {
		dst = append(dst, '0')
	}
	return strconv.AppendUint(dst, id, 10)
}

// An item is the hosts of one prefix whose ids are consecutive, with zeros up to width digits.
// Items are canonical: width is the length of the first id, and the prefix ends in a digit only
// if width is maxDigits. A name without an id is an item of width 0 and ids 0.
type item struct {
	prefix      string
	first, last uint64
	start       uint64 // the index of its first host in the list
	width       uint8
}

func (r *item) len() uint64 { return r.last - r.first + 1 }

// find returns where the one host of an item is among those of r, or false.
func (r *item) find(h item) (uint64, bool) {
	if h.first < r.first || h.first > r.last || h.width != r.length(h.first) || h.prefix != r.prefix {
		return 0, false
	}
	return h.first - r.first, true
}

// length returns with how many digits the item prints an id.
func (r *item) length(id uint64) uint8 {
	if r.width == 0 {
		return 0
	}
	return max(r.width, digits(id))
}

// joins reports whether the hosts of next go on where those of r end.
func (r *item) joins(next *item) bool {
	return r.width > 0 && next.width > 0 && r.last+1 == next.first &&
		r.length(next.first) == next.width && r.prefix == next.prefix
}

// push appends an item, and joins it to the last one if it goes on there.
func push(items []item, next item) []item {
	if n := len(items); n > 0 && items[n-1].joins(&next) {
		items[n-1].last = next.last
		return items
	}
	next.start = count(items)
	return append(items, next)
}

// pushRange is push of an item whose prefix may end in digits. width is the length of first.
func pushRange(items []item, prefix string, first, last uint64, width uint8) []item {
	if prefix == "" || !isDigit(prefix[len(prefix)-1]) {
		return push(items, item{prefix: prefix, first: first, last: last, width: width})
	}
	// The prefix's digits are part of the id, and as many digits follow them as
	// the range's id has: a step for each length.
	for length := width; ; length++ {
		high := min(last, pow10(length)-1)
		cut := len(prefix)
		for cut > 0 && len(prefix)-cut < int(maxDigits-length) && isDigit(prefix[cut-1]) {
			cut--
		}
		base := number(prefix[cut:]) * pow10(length)
		items = push(items, item{
			prefix: prefix[:cut], first: base + first, last: base + high,
			width: uint8(len(prefix)-cut) + length,
		})
		if high == last {
			return items
		}
		first = high + 1
	}
}

func checkName(name string) error {
	if name == "" {
		return syntaxError(0, "empty name", name)
	}
	for i := range len(name) {
		if !isName(name[i]) {
			return syntaxError(i, "unexpected byte", name)
		}
	}
	if len(name) > maxName {
		return limitError(0, "bytes of a name", len(name), maxName)
	}
	return nil
}

func isName(c byte) bool {
	return '!' <= c && c <= '~' && c != ',' && c != '[' && c != ']'
}

// owned returns the item of a name for a list to keep: the prefix is the last item's or a copy.
func owned(items []item, name string) item {
	r := split(name)
	if n := len(items); n > 0 && items[n-1].prefix == r.prefix {
		r.prefix = items[n-1].prefix
	} else {
		r.prefix = strings.Clone(r.prefix)
	}
	return r
}

// saturate returns n, or the largest int where int has 32 bits.
func saturate(n uint64) int { return int(min(n, math.MaxInt)) }
