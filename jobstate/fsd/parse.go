package fsd

import (
	"math"
	"strconv"
)

// Parse returns the duration that s tells: a decimal number with an optional fraction and
// exponent, as C's strtod reads it, and one of the units ms, s, m, h, d
// directly behind it, or none for seconds; or "infinity" or "inf" in either case
// of letters. White space and a sign may come first.
//
// The result equals the reference's to the bit: the number, correctly rounded, times the
// length of the unit, which for ms is 0.001. -0 is 0.
//
// An error is a [*ParseError] of category ErrSyntax, an empty s included, or ErrRange for a
// negative number and for one too great for a float64. Parse takes time linear in
// s and does not allocate but for an error.
func Parse(s string) (Duration, error) {
	start := 0
	for start < len(s) && isSpace(s[start]) {
		start++
	}
	digits := start
	if digits < len(s) && (s[digits] == '+' || s[digits] == '-') {
		digits++
	}
	negative := digits > start && s[start] == '-'

	if n := infinityLen(s[digits:]); n > 0 {
		switch {
		case digits+n < len(s):
			return 0, newParseError(s, digits+n, "text after infinity", ErrSyntax)
		case negative:
			return 0, newParseError(s, start, "a negative number", ErrRange)
		}
		return Infinity(), nil
	}

	end, err := numberEnd(s, digits)
	if err != nil {
		return 0, err
	}
	unit, ok := unitLength(s[end:])
	if !ok {
		return 0, newParseError(s, end, "neither a digit nor a unit at the end", ErrSyntax)
	}
	n, rangeErr := strconv.ParseFloat(s[digits:end], 64)
	if negative && n != 0 {
		return 0, newParseError(s, start, "a negative number", ErrRange)
	}
	v := n * unit
	if rangeErr != nil || math.IsInf(v, 1) {
		return 0, newParseError(s, digits, "a number too great", ErrRange)
	}
	return Duration(v), nil
}

// isSpace reports whether C's isspace holds for c in the C locale.
func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// infinityLen returns the length of the word for infinity that s begins with, 0 if
// it does not.
func infinityLen(s string) int {
	const word = "infinity"
	n := 0
	for n < len(s) && n < len(word) && s[n]|0x20 == word[n] {
		n++
	}
	switch {
	case n == len(word):
		return n
	case n >= len("inf"):
		return len("inf")
	}
	return 0
}

// numberEnd returns where the decimal number that begins at s[i], without a sign, ends.
func numberEnd(s string, i int) (int, *ParseError) {
	if i+1 < len(s) && s[i] == '0' && s[i+1]|0x20 == 'x' {
		return 0, newParseError(s, i+1, "a hexadecimal number", ErrSyntax)
	}
	whole := i
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	n := i - whole
	if i < len(s) && s[i] == '.' {
		i++
		fraction := i
		for i < len(s) && isDigit(s[i]) {
			i++
		}
		n += i - fraction
	}
	if n == 0 {
		return 0, newParseError(s, i, "no digit", ErrSyntax)
	}
	// An e without digits behind it is no exponent, and no unit either.
	if i < len(s) && s[i]|0x20 == 'e' {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		for ; j < len(s) && isDigit(s[j]); j++ {
			i = j + 1
		}
	}
	return i, nil
}

// unitLength returns the seconds of a unit, and false if there is no such unit.
func unitLength(unit string) (float64, bool) {
	switch unit {
	case "", "s":
		return 1, true
	case "ms":
		return 0.001, true
	case "m":
		return 60, true
	case "h":
		return 60 * 60, true
	case "d":
		return 24 * 60 * 60, true
	}
	return 0, false
}

// UnmarshalText sets d to what text tells, as [Parse] does. It copies what it
// needs. After an error d is unchanged.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := Parse(string(text))
	if err != nil {
		return err
	}
	*d = v
	return nil
}
