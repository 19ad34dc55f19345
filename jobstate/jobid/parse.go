package jobid

import (
	"encoding/json"
	"math/bits"
	"strconv"
	"strings"
)

// maxBase58 is the number of base 58 digits, leading zeros included, beyond which
// the reference refuses a text. Eleven are enough for every id.
const maxBase58 = 12

// Parse returns the id that s names, in any form of RFC 19 except words and emoji. It ignores
// white space before and after it. These rules of the RFC, in this order, select the form:
//
//   - with a ".": four groups of one to four hexadecimal digits of either case
//   - with a "-": words
//   - after ƒ or f: base 58, at most 12 digits
//   - after the bytes F0 9F: emoji
//   - after 0x: hexadecimal digits of either case
//   - otherwise decimal digits
//
// Parse skips a "job." before any of these, as flux-core does. Leading zeros are ignored. An
// empty s is an error, and a number of 2^64 or more. Errors name the offset. Time is linear in s.
func Parse(s string) (ID, error) {
	first, last := 0, len(s)
	for first < last && isSpace(s[first]) {
		first++
	}
	for last > first && isSpace(s[last-1]) {
		last--
	}
	if strings.HasPrefix(s[first:last], prefixKVS) {
		first += len(prefixKVS)
	}
	p := parser{all: s, end: last}
	return p.id(first)
}

// isSpace reports whether C's isspace holds for c in the C locale.
func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// A parser reads all[:end]. Its methods take an offset into it.
type parser struct {
	all string
	end int
}

func (p *parser) syntax(offset int, reason string) error {
	return refuse(errSyntax, p.all, offset, reason)
}

func (p *parser) id(i int) (ID, error) {
	text := p.all[i:p.end]
	digits, f58 := strings.CutPrefix(text, prefixF58)
	if !f58 {
		digits, f58 = strings.CutPrefix(text, prefixPlain)
	}
	if f58 {
		if v, ok := base58Value(digits); ok { // the main form; what it reads has no other
			return ID(v), nil
		}
	}
	switch {
	case strings.Contains(text, "."):
		return p.dotHex(i)
	case strings.Contains(text, "-"):
		return 0, p.words(i)
	case f58:
		return p.base58(p.end - len(digits))
	case strings.HasPrefix(text, "\xf0\x9f"):
		return 0, refuse(errUnsupported, p.all, i, "an id as emoji")
	case strings.HasPrefix(text, prefixHex):
		return p.number(i+len(prefixHex), 16)
	}
	return p.number(i, 10)
}

// words tells an id in words, with any bytes between them, from a number with a sign.
func (p *parser) words(i int) error {
	for j := i; j < p.end; j++ {
		if c := p.all[j] | 0x20; 'a' <= c && c <= 'z' {
			return refuse(errUnsupported, p.all, i, "an id in words")
		}
	}
	return p.syntax(i+strings.IndexByte(p.all[i:p.end], '-'), "a dash without words")
}

func (p *parser) dotHex(i int) (ID, error) {
	v, dots, digits := uint64(0), 0, 0
	group := uint64(0)
	for ; i < p.end; i++ {
		c := p.all[i]
		d, ok := hexDigit(c)
		switch {
		case ok && digits == 4:
			return 0, p.syntax(i, "more than four digits in a group")
		case ok:
			group = group<<4 | d
			digits++
		case c != '.':
			return 0, p.syntax(i, "neither a hexadecimal digit nor a dot")
		case digits == 0:
			return 0, p.syntax(i, "a group without digits")
		case dots == 3:
			return 0, p.syntax(i, "more than four groups")
		default:
			v = v<<16 | group
			group, digits = 0, 0
			dots++
		}
	}
	if dots < 3 || digits == 0 {
		return 0, p.syntax(i, "fewer than four groups")
	}
	return ID(v<<16 | group), nil
}

// base58 tells what is wrong with the digits from i on, which base58Value does not read.
func (p *parser) base58(i int) (ID, error) {
	if i == p.end {
		return 0, p.syntax(i, "no digits")
	}
	for j := i; j < p.end; j++ {
		if base58Digits[p.all[j]] == 0 {
			return 0, p.syntax(j, "not a base 58 digit")
		}
		if j-i == maxBase58 {
			return 0, p.syntax(j, "more than 12 base 58 digits")
		}
	}
	return 0, p.tooLarge(i)
}

// number reads the digits of a base, 10 or 16.
func (p *parser) number(i, base int) (ID, error) {
	if i == p.end {
		return 0, p.syntax(i, "no digits")
	}
	for j := i; j < p.end; j++ {
		if d, ok := hexDigit(p.all[j]); !ok || d >= uint64(base) {
			return 0, p.syntax(j, "not a digit of base "+strconv.Itoa(base))
		}
	}
	v, err := strconv.ParseUint(p.all[i:p.end], base, 64)
	if err != nil {
		return 0, p.tooLarge(i)
	}
	return ID(v), nil
}

func (p *parser) tooLarge(i int) error {
	return refuse(errRange, p.all, i, "a number beyond 64 bits")
}

// hexDigit returns the value of a hexadecimal digit of either case.
func hexDigit(c byte) (uint64, bool) {
	switch {
	case '0' <= c && c <= '9':
		return uint64(c - '0'), true
	case 'a' <= c && c <= 'f':
		return uint64(c-'a') + 10, true
	case 'A' <= c && c <= 'F':
		return uint64(c-'A') + 10, true
	}
	return 0, false
}

// base58Digits has one more than the place of each digit in the alphabet, and 0 for other
// bytes. Comparisons would cost several times as much: nobody can predict the next digit.
var base58Digits = [256]uint8{
	'1': 1, '2': 2, '3': 3, '4': 4, '5': 5, '6': 6, '7': 7, '8': 8, '9': 9,
	'A': 10, 'B': 11, 'C': 12, 'D': 13, 'E': 14, 'F': 15, 'G': 16, 'H': 17,
	'J': 18, 'K': 19, 'L': 20, 'M': 21, 'N': 22,
	'P': 23, 'Q': 24, 'R': 25, 'S': 26, 'T': 27, 'U': 28, 'V': 29, 'W': 30, 'X': 31, 'Y': 32, 'Z': 33,
	'a': 34, 'b': 35, 'c': 36, 'd': 37, 'e': 38, 'f': 39, 'g': 40, 'h': 41, 'i': 42, 'j': 43, 'k': 44,
	'm': 45, 'n': 46, 'o': 47, 'p': 48, 'q': 49, 'r': 50, 's': 51, 't': 52, 'u': 53, 'v': 54, 'w': 55,
	'x': 56, 'y': 57, 'z': 58,
}

// base58Value returns the number of a text in base 58, or false if anything is wrong with it.
func base58Value(text string) (uint64, bool) {
	if text == "" || len(text) > maxBase58 {
		return 0, false
	}
	const safe = 10 // 58^10 < 2^64
	v := uint64(0)
	for i := range min(len(text), safe) {
		d := uint64(base58Digits[text[i]])
		if d == 0 {
			return 0, false
		}
		v = v*58 + d - 1
	}
	for i := safe; i < len(text); i++ {
		d := uint64(base58Digits[text[i]])
		hi, lo := bits.Mul64(v, 58)
		sum, carry := bits.Add64(lo, d-1, 0)
		if d == 0 || hi != 0 || carry != 0 {
			return 0, false
		}
		v = sum
	}
	return v, true
}

// UnmarshalText sets id to what [Parse] reads. After an error id is unchanged.
func (id *ID) UnmarshalText(text []byte) error {
	v, err := Parse(string(text))
	if err == nil {
		*id = v
	}
	return err
}

// UnmarshalJSON reads a JSON number of digits alone, without sign, fraction or exponent, as
// Flux writes ids. A string is read as [Parse] reads it; package encoding/json passes the
// keys of a map this way. Null is refused: an id is never optional on the wire.
//
// After an error id is unchanged. Offsets count from the start of the number, or of the
// string without its quotes and escapes.
func (id *ID) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return refuse(errSyntax, string(b), 0, "not a JSON string")
		}
		return id.UnmarshalText([]byte(s))
	}
	p := parser{all: string(b), end: len(b)}
	if len(b) > 1 && b[0] == '0' {
		return p.syntax(1, "more digits after a zero")
	}
	v, err := p.number(0, 10)
	if err == nil {
		*id = v
	}
	return err
}
