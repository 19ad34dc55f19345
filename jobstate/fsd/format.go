package fsd

import (
	"bytes"
	"math"
	"strconv"
)

// Numbers of significant digits.
const (
	defaultDigits = 6  // what flux-core prints
	maxDigits     = 17 // enough to distinguish any two float64
)

// maxText is the longest text: a sign, 17 digits, a point, an exponent of four bytes, a unit.
const maxText = 1 + 17 + 1 + 4 + 2

// appendFormat appends a number of seconds, 0 or more, as the reference prints it: in the
// greatest unit of which it has one at least, but in milliseconds only below 0.1 s.
func appendFormat(dst []byte, seconds float64, digits int) []byte {
	count, unit := seconds, "s"
	switch {
	case math.IsInf(seconds, 1):
		return append(dst, "infinity"...)
	case seconds >= day:
		count, unit = seconds/day, "d"
	case seconds >= hour:
		count, unit = seconds/hour, "h"
	case seconds >= minute:
		count, unit = seconds/minute, "m"
	case seconds < 0.1 && seconds != 0:
		count, unit = seconds*1000, "ms"
	}
	dst = strconv.AppendFloat(dst, count, 'g', min(max(digits, 1), maxDigits), 64)
	return append(dst, unit...)
}

// appendNanoseconds appends nanoseconds as a decimal number of seconds.
func appendNanoseconds(dst []byte, n uint64) []byte {
	const second = 1_000_000_000
	dst = strconv.AppendUint(dst, n/second, 10)
	if n %= second; n != 0 {
		point := len(dst)
		dst = strconv.AppendUint(dst, second+n, 10)
		dst[point] = '.' // in place of the 1
		dst = bytes.TrimRight(dst, "0")
	}
	return append(dst, 's')
}
