package fsd

import (
	"math"
	"strconv"
	"strings"
)

// Seconds of the units.
const (
	minute = 60.0
	hour   = 60 * minute
	day    = 24 * hour
)

// parse reads a text. The seconds are those of the reference, to the bit, but 0 for -0: the
// number, correctly rounded, times the length of the unit, which for ms is 0.001. decimal is
// the number if the unit is a second.
func parse(s string) (seconds float64, decimal string, err error) {
	start := len(s) - len(strings.TrimLeft(s, " \t\n\v\f\r")) // what C's isspace holds for
	digits := start
	if digits < len(s) && (s[digits] == '+' || s[digits] == '-') {
		digits++
	}
	negative := digits > start && s[start] == '-'

	if n := infinityLen(s[digits:]); n > 0 {
		switch {
		case digits+n < len(s):
			return 0, "", refuse(syntaxError, s, digits+n, "text after infinity")
		case negative:
			return 0, "", refuse(outOfRange, s, start, "a negative number")
		}
		return math.Inf(1), "", nil
	}

	end, err := numberEnd(s, digits)
	if err != nil {
		return 0, "", err
	}
	unit, ok := unitLength(s[end:])
	if !ok {
		return 0, "", refuse(syntaxError, s, end, "neither a digit nor a unit at the end")
	}
	n, rangeErr := strconv.ParseFloat(s[digits:end], 64)
	if negative && n != 0 {
		return 0, "", refuse(outOfRange, s, start, "a negative number")
	}
	v := n * unit
	if rangeErr != nil || math.IsInf(v, 1) {
		return 0, "", refuse(outOfRange, s, digits, "number too large")
	}
	if unit == 1 {
		decimal = s[digits:end]
	}
	return v, decimal, nil
}

// nanoseconds returns a decimal number of seconds in nanoseconds; false if it is empty, has an
// exponent, or more than ten digits before the point or nine behind it.
func nanoseconds(decimal string) (uint64, bool) {
	whole, fraction, _ := strings.Cut(decimal, ".")
	if decimal == "" || len(whole) > 10 || len(fraction) > 9 {
		return 0, false
	}
	n := uint64(0)
	for _, part := range [...]string{whole, fraction, "000000000"[len(fraction):]} {
		for i := range len(part) {
			if !isDigit(part[i]) {
				return 0, false
			}
			n = n*10 + uint64(part[i]-'0')
		}
	}
	return n, true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// infinityLen returns the length of the word for infinity that s begins with, 0 if it does not.
func infinityLen(s string) int {
	for _, word := range [...]string{"infinity", "inf"} {
		if len(s) >= len(word) && strings.EqualFold(s[:len(word)], word) {
			return len(word)
		}
	}
	return 0
}

// numberEnd returns where the decimal number that begins at s[i], without a sign, ends.
func numberEnd(s string, i int) (int, error) {
	whole := i
	i = digitsEnd(s, i)
	n := i - whole
	if i < len(s) && s[i] == '.' {
		fraction := i + 1
		i = digitsEnd(s, fraction)
		n += i - fraction
	}
	if n == 0 {
		return 0, refuse(syntaxError, s, i, "no digit")
	}
	// An e without digits behind it is no exponent, and no unit either.
	if i < len(s) && s[i]|0x20 == 'e' {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		if end := digitsEnd(s, j); end > j {
			i = end
		}
	}
	return i, nil
}

func digitsEnd(s string, i int) int {
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return i
}

// unitLength returns the seconds of a unit, and false if there is no such unit.
func unitLength(unit string) (float64, bool) {
	switch unit {
	case "", "s":
		return 1, true
	case "ms":
		return 0.001, true
	case "m":
		return minute, true
	case "h":
		return hour, true
	case "d":
		return day, true
	}
	return 0, false
}
