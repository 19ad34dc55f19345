package jsonobj

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// A scan returns the offset after what it scanned, or, with a defect, the offset of that.

// skipSpace returns the offset of the first byte from i on that is not white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// strFlags says what a string holds that its bytes alone do not tell.
type strFlags uint8

const (
	flagEscape strFlags = 1 << iota // at least one escape
	flagNUL                         // the escape of U+0000
)

// Eight bytes at once: the lowest byte whose high bit is set in what stopAt
// returns is the first of them that ends a run of plain characters. Bytes above
// it may be marked though plain, for the subtractions borrow upwards.
const (
	each  = 0x0101010101010101
	highs = 0x80 * each
)

// stopAt marks the bytes of w that are a quote, a backslash, a control character or no ASCII.
func stopAt(w uint64) uint64 {
	quote := w ^ '"'*each
	slash := w ^ '\\'*each
	return ((quote-each)&^quote | (slash-each)&^slash | (w-' '*each)&^w | w) & highs
}

// scanString scans the string whose opening quote is at b[i].
func scanString(b []byte, i int) (int, strFlags, defect) {
	var flags strFlags
	for i++; ; {
		if len(b)-i >= 8 {
			m := stopAt(binary.LittleEndian.Uint64(b[i:]))
			if m == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(m) >> 3
		} else if i == len(b) {
			return i, flags, defectEnd
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, flags, noDefect
		case c == '\\':
			end, f, bad := scanEscape(b, i)
			if bad != noDefect {
				return end, flags, bad
			}
			i, flags = end, flags|f
		case c < ' ':
			return i, flags, defectControl
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && size == 1 {
				return i, flags, defectUTF8
			}
			i += size
		default: // only among the last seven bytes of b
			i++
		}
	}
}

// scanEscape scans the escape, or the pair of surrogates, whose backslash is at b[i].
func scanEscape(b []byte, i int) (int, strFlags, defect) {
	if i+1 == len(b) {
		return len(b), 0, defectEnd
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2, flagEscape, noDefect
	case 'u':
	default:
		return i, 0, defectEscape
	}
	r := hex4(b, i+2)
	switch {
	case r < 0:
		if len(b) < i+6 {
			return len(b), 0, defectEnd
		}
		return i, 0, defectEscape
	case r == 0:
		return i + 6, flagEscape | flagNUL, noDefect
	case r < 0xD800 || r > 0xDFFF:
		return i + 6, flagEscape, noDefect
	case r > 0xDBFF || lowSurrogate(b, i+6) < 0:
		return i, 0, defectSurrogate
	}
	return i + 12, flagEscape, noDefect
}

// lowSurrogate returns the second half of a pair whose escape begins at b[i], or -1.
func lowSurrogate(b []byte, i int) rune {
	if i+6 > len(b) || b[i] != '\\' || b[i+1] != 'u' {
		return -1
	}
	if r := hex4(b, i+2); 0xDC00 <= r && r <= 0xDFFF {
		return r
	}
	return -1
}

// hex4 returns the value of the four hexadecimal digits from b[i] on, or -1.
func hex4(b []byte, i int) rune {
	if len(b)-i < 4 {
		return -1
	}
	var r rune
	for _, c := range b[i : i+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// stop returns the defect of finding b[i], or the end, where neither can stand.
func stop(b []byte, i int) (int, defect) {
	if i >= len(b) {
		return len(b), defectEnd
	}
	return i, defectByte
}

// scanLiteral scans the literal whose first byte, at b[i], was seen.
func scanLiteral(b []byte, i int, literal string) (int, defect) {
	for k := 1; k < len(literal); k++ {
		if i+k >= len(b) || b[i+k] != literal[k] {
			return stop(b, i+k)
		}
	}
	return i + len(literal), noDefect
}

// scanValue scans the value that begins at b[i]; depth is how many levels it may have,
// itself included, at least 1. It notes objects and arrays on t, unless that is nil.
func scanValue(b []byte, i, depth int, t *tape) (int, defect) {
	if i < len(b) && (b[i] == '{' || b[i] == '[') {
		return scanContainer(b, i, depth, t)
	}
	return scanToken(b, i)
}

// scanToken scans the value that begins at b[i] and is no object or array.
func scanToken(b []byte, i int) (int, defect) {
	if i >= len(b) {
		return len(b), defectEnd
	}
	switch b[i] {
	case '"':
		end, _, f := scanString(b, i)
		return end, f
	case 't':
		return scanLiteral(b, i, "true")
	case 'f':
		return scanLiteral(b, i, "false")
	case 'n':
		return scanLiteral(b, i, "null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return scanNumber(b, i)
	}
	return i, defectByte
}

// array stands for the keys of an array among those of objects.
const array = -1

// scanContainer scans the object or array that begins at b[i], without recursion: what a
// level needs to know of the levels around it is where their keys begin.
func scanContainer(b []byte, i, depth int, t *tape) (int, defect) {
	// What is open at one place mostly fits here, without an allocation.
	var keyBuf [16]key
	var outerBuf [8]int
	keys, outer := keyBuf[:0], outerBuf[:0]
	// Of the innermost level: its first key, its closing bracket, its place on t.
	base, end, place := array, byte(0), uint32(0)
open:
	for {
		// b[i] opens a level.
		outer = append(outer, base)
		if t != nil {
			place = t.open(place)
		}
		base, end = array, ']'
		if b[i] == '{' {
			base, end = len(keys), '}'
		}
		if i = skipSpace(b, i+1); i == len(b) {
			return i, defectEnd
		}
		empty := b[i] == end
		if !empty && len(outer) >= depth {
			return i, defectDepth
		}
		for {
			if !empty {
				var f defect
				if base != array {
					if keys, i, f = scanKey(b, i, keys, base); f != noDefect {
						return i, f
					}
				}
				if i < len(b) && (b[i] == '{' || b[i] == '[') {
					continue open
				}
				if i, f = scanToken(b, i); f != noDefect {
					return i, f
				}
			}
			empty = false
			// Close what ends here, up to a level that goes on.
			for i = skipSpace(b, i); i < len(b) && b[i] == end; i = skipSpace(b, i) {
				if base != array {
					if len(keys)-base > linearKeys {
						if dup := findDuplicate(b, keys[base:]); dup >= 0 {
							return dup, defectDuplicate
						}
					}
					keys = keys[:base]
				}
				i++
				if t != nil {
					place = t.close(place, i)
				}
				base = outer[len(outer)-1]
				if outer = outer[:len(outer)-1]; len(outer) == 0 {
					return i, noDefect
				}
				end = ']'
				if base != array {
					end = '}'
				}
			}
			if i == len(b) || b[i] != ',' {
				return stop(b, i)
			}
			i = skipSpace(b, i+1)
		}
	}
}
