package jsonscan

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// Bool returns the value of the token true or false; ok is false for any
// other raw.
func Bool(raw []byte) (value, ok bool) {
	value = string(raw) == "true"
	return value, value || string(raw) == "false"
}

// IsInteger reports whether raw is a number token without fraction and exponent,
// however large.
func IsInteger(raw []byte) bool {
	if len(raw) > 1 && raw[0] == '-' {
		raw = raw[1:]
	}
	return len(raw) > 0 && digits(raw, 0) == len(raw) && (raw[0] != '0' || len(raw) == 1)
}

// Int64 returns the value of an integer token: a number without fraction and
// exponent. ok is false for any other raw and out of range. -0 is 0.
func Int64(raw []byte) (value int64, ok bool) {
	negative := len(raw) > 0 && raw[0] == '-'
	if !IsInteger(raw) {
		return 0, false
	}
	if negative {
		u, ok := parseDigits(raw[1:])
		return -int64(u), ok && u <= 1<<63
	}
	u, ok := parseDigits(raw)
	return int64(u), ok && u <= math.MaxInt64
}

// Uint64 returns the value of an integer token as Int64 does. -0 is 0, any
// other negative number is out of range. Numbers above the largest int64 are
// read, though no text that Check accepts holds one.
func Uint64(raw []byte) (value uint64, ok bool) {
	if string(raw) == "-0" {
		return 0, true
	}
	if len(raw) > 0 && raw[0] == '-' || !IsInteger(raw) {
		return 0, false
	}
	return parseDigits(raw)
}

// parseDigits returns the value of at least one digit, false above the largest
// uint64.
func parseDigits(b []byte) (uint64, bool) {
	if len(b) > 20 {
		return 0, false
	}
	var u uint64
	for i, c := range b {
		d := uint64(c - '0')
		if i == 19 && (u > math.MaxUint64/10 || u == math.MaxUint64/10 && d > math.MaxUint64%10) {
			return 0, false
		}
		u = u*10 + d
	}
	return u, true
}

// Float64 returns the float64 nearest to a number token, ties to even; ok is
// false for any other raw and for a number that is not finite as a float64. A
// number too small is 0. It allocates for a token of more than 32 bytes.
func Float64(raw []byte) (value float64, ok bool) {
	if len(raw) == 0 || raw[0] != '-' && raw[0]-'0' > 9 {
		return 0, false
	}
	if end, f := scanNumber(raw, 0); end != len(raw) || f != noFault {
		if f != faultRange || !IsInteger(raw) {
			return 0, false
		}
	}
	value, err := strconv.ParseFloat(string(raw), 64)
	return value, err == nil
}

// String returns the content of a string token; ok is false for any other raw.
// It allocates the string.
func String(raw []byte) (value string, ok bool) {
	end, flags, f := scanWhole(raw)
	if !end || f != noFault {
		return "", false
	}
	if flags&flagEscape == 0 {
		return string(raw[1 : len(raw)-1]), true
	}
	b, ok := AppendUnescaped(nil, raw)
	return string(b), ok
}

// scanWhole scans raw, which is wanted to be a string token and nothing else.
func scanWhole(raw []byte) (whole bool, flags strFlags, f fault) {
	if len(raw) == 0 || raw[0] != '"' {
		return false, 0, faultByte
	}
	end, flags, f := scanString(raw, 0)
	return end == len(raw), flags, f
}

// AppendUnescaped appends the content of a string token. For any other raw it
// returns dst as it was and false. It allocates only to grow dst, to at most
// the length of raw beyond its content.
func AppendUnescaped(dst, raw []byte) (content []byte, ok bool) {
	whole, flags, f := scanWhole(raw)
	if !whole || f != noFault {
		return dst, false
	}
	raw = raw[1 : len(raw)-1]
	if flags&flagEscape == 0 {
		return append(dst, raw...), true
	}
	for i := 0; i < len(raw); {
		plain := i
		for i < len(raw) && raw[i] != '\\' {
			i++
		}
		dst = append(dst, raw[plain:i]...)
		if i < len(raw) {
			dst, i = appendEscape(dst, raw, i)
		}
	}
	return dst, true
}

// appendEscape appends the character that the escape at b[i], which was scanned
// before, stands for, and returns the offset after the escape.
func appendEscape(dst, b []byte, i int) ([]byte, int) {
	switch c := b[i+1]; c {
	case 'b':
		return append(dst, '\b'), i + 2
	case 'f':
		return append(dst, '\f'), i + 2
	case 'n':
		return append(dst, '\n'), i + 2
	case 'r':
		return append(dst, '\r'), i + 2
	case 't':
		return append(dst, '\t'), i + 2
	case 'u':
	default:
		return append(dst, c), i + 2
	}
	r := hex4(b, i+2)
	if r < 0xD800 || r > 0xDFFF {
		return utf8.AppendRune(dst, r), i + 6
	}
	low := lowSurrogate(b, i+6)
	return utf8.AppendRune(dst, (r-0xD800)<<10|(low-0xDC00)+0x10000), i + 12
}
