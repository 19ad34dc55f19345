package jsonobj

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
)

// digits returns the offset of the first byte from i on that is no digit.
func digits(b []byte, i int) int {
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i
}

// number is the form of a number token.
type number struct {
	digits    int  // how many stand before the point
	real, exp bool // whether it is no integer, and whether it has an exponent
}

// scanNumber scans the number that begins at b[i] and checks its range.
func scanNumber(b []byte, i int) (int, defect) {
	if b[i]-'1' < 9 { // a short integer, as most are
		end := digits(b, i+1)
		if end-i <= 18 && (end == len(b) || b[end] != '.' && b[end]|0x20 != 'e') {
			return end, noDefect
		}
	}
	end, form, f := scanNumberForm(b, i)
	if f != noDefect {
		return end, f
	}
	switch {
	case !form.real && form.digits > 18:
		if _, ok := Int64(b[i:end]); !ok {
			return i, defectRange
		}
	case form.exp || form.digits > 300: // no other real overflows
		if _, err := strconv.ParseFloat(string(b[i:end]), 64); err != nil {
			return i, defectRange
		}
	}
	return end, noDefect
}

// scanNumberForm scans the number that begins at b[i], whatever its range.
func scanNumberForm(b []byte, i int) (end int, form number, f defect) {
	if b[i] == '-' {
		i++
	}
	first := i
	i = digits(b, i)
	if form.digits = i - first; form.digits == 0 {
		i, f = stop(b, i)
		return i, form, f
	}
	if b[first] == '0' && form.digits > 1 {
		return first + 1, form, defectByte
	}
	if i < len(b) && b[i] == '.' {
		form.real = true
		if i = digits(b, i+1); b[i-1] == '.' {
			i, f = stop(b, i)
			return i, form, f
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		form.real, form.exp = true, true
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		from := i
		if i = digits(b, i); i == from {
			i, f = stop(b, i)
			return i, form, f
		}
	}
	return i, form, noDefect
}

// leadingDigits returns how many of the eight bytes of w, from the lowest, are
// digits before the first that is not one, and the number that they make.
func leadingDigits(w uint64) (value uint64, n int) {
	t := w ^ '0'*each // digits become 0 to 9
	other := (t + (0x80-10)*each | t) & highs
	if other != 0 {
		n = bits.TrailingZeros64(other) >> 3
		t <<= 64 - 8*n // the digits go last, zeros before them
	} else {
		n = 8
	}
	// Pairs of digits, then of pairs, then of those.
	t = t * (10<<8 + 1) >> 8 & 0x00FF00FF00FF00FF
	t = t * (100<<16 + 1) >> 16 & 0x0000FFFF0000FFFF
	return t * (10000<<32 + 1) >> 32, n
}

// powers of ten that a uint64 holds.
var uintPow10 = [...]uint64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
}

// readDigits continues the number u with the digits from b[i] on, as long as at least eight
// bytes are left to look at. ok is false if it stopped for want of them.
func readDigits(b []byte, i int, u uint64) (value uint64, end int, ok bool) {
	for len(b)-i >= 8 {
		v, n := leadingDigits(binary.LittleEndian.Uint64(b[i:]))
		u = u*uintPow10[n] + v
		i += n
		if n < 8 {
			return u, i, true
		}
	}
	return u, i, false
}

// FloatAt reads the number token that begins at b[i] and returns its value as Float64
// does, whether it is an integer, and the offset after it. ok is false where no finite
// number is. What follows the token is the caller's to check.
//
// It is fastest on times: up to nineteen digits, some after a point, and eight more bytes.
func FloatAt(b []byte, i int) (value float64, integer bool, end int, ok bool) {
	const maxExact = 19 // digits that a uint64 holds
	if i < len(b) && b[i]-'1' < 9 {
		whole, dot, ok := readDigits(b, i, 0)
		if ok && b[dot] == '.' {
			all, end, ok := readDigits(b, dot+1, whole)
			if frac := end - dot - 1; ok && frac > 0 && end-i-1 <= maxExact && b[end]|0x20 != 'e' {
				return quotient(all, frac), false, end, true
			}
		}
	}
	return floatAt(b, i)
}

// quotient returns the float64 nearest to u/10^k, ties to even, for k of at most 18.
func quotient(u uint64, k int) float64 {
	d := uintPow10[k]
	if u < 1<<53 {
		return float64(u) / float64(d) // both are exact: rounded once
	}
	// u/d is x/y times a power of two, where x and y have 64 bits, and the
	// quotient of x and y, at 2^63 times its value, at least 62 bits: so many
	// more than the 53 kept that the remainder matters only as being there.
	s, t := bits.LeadingZeros64(u), bits.LeadingZeros64(d)
	x, y := u<<s, d<<t
	q, r := bits.Div64(x>>1, x<<63, y)
	if r != 0 {
		q |= 1
	}
	return float64(q) * math.Float64frombits(uint64(1023+t-s-63)<<52)
}

// floatAt is FloatAt for any number.
func floatAt(b []byte, i int) (value float64, integer bool, end int, ok bool) {
	if i >= len(b) || b[i] != '-' && b[i]-'0' > 9 {
		return 0, false, i, false
	}
	end, form, f := scanNumberForm(b, i)
	if f != noDefect {
		return 0, false, end, false
	}
	value, err := strconv.ParseFloat(string(b[i:end]), 64)
	return value, !form.real, end, err == nil
}

// IsInteger reports whether raw is a number token without fraction and exponent, of any size.
func IsInteger(raw []byte) bool {
	if len(raw) > 1 && raw[0] == '-' {
		raw = raw[1:]
	}
	return len(raw) > 0 && digits(raw, 0) == len(raw) && (raw[0] != '0' || len(raw) == 1)
}

// Int64 returns the value of an integer token; ok is false for any other, or out of range.
func Int64(raw []byte) (value int64, ok bool) {
	if len(raw) > len("-9223372036854775808") || !IsInteger(raw) {
		return 0, false
	}
	if len(raw) <= 18 && raw[0] != '-' { // as most
		for _, c := range raw {
			value = 10*value + int64(c-'0')
		}
		return value, true
	}
	value, err := strconv.ParseInt(string(raw), 10, 64)
	return value, err == nil
}

// Float64 returns the float64 nearest to a number token, ties to even; ok is
// false for any other raw and for a number that is not finite as a float64. A
// number too small is 0. It allocates for a token of more than 32 bytes.
func Float64(raw []byte) (value float64, ok bool) {
	value, _, end, ok := FloatAt(raw, 0)
	if !ok || end != len(raw) {
		return 0, false
	}
	return value, true
}
