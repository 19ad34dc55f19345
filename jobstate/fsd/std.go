package fsd

import (
	"math"
	"time"

	"github.com/joblife/joblife/internal/guard"
)

// Forever is the duration that never ends, "infinity" as a text: the longest
// time.Duration, 292 years. A limit that is not set is zero, not Forever.
const Forever time.Duration = math.MaxInt64

// ParseDuration returns the duration that s names: a decimal number with an
// optional fraction and exponent, as C's strtod reads it, and directly behind it
// one of the units ms, s, m, h and d, or none for seconds; or "infinity" or "inf"
// in letters of either case, which is [Forever]. White space and a sign may come
// first.
//
// The result is rounded to a nanosecond; what is longer than zero is at least
// one. Up to 48 days it is exact to the nanosecond, beyond to a microsecond. What
// is longer than Forever is Forever.
//
// The error tells the offset in bytes and wraps [ErrSyntax], for an empty s too,
// or [ErrRange] for a negative number and for one too large for a float64.
// ParseDuration takes time linear in s and allocates only for an error.
func ParseDuration(s string) (time.Duration, error) {
	d, err := Parse(s)
	if err != nil {
		return 0, err
	}
	return guard.Duration(d.Seconds()), nil
}

// FormatDuration returns the canonical text of d: what Flux prints, with six
// digits, if that reads as d, such as "1.5h"; otherwise the shortest number of
// seconds that does, such as "3601s". [Forever] is "infinity". [ParseDuration]
// reads the text as d, as exactly as it says. A negative d prints after a minus,
// which no peer reads.
func FormatDuration(d time.Duration) string {
	sign, v := signed(d)
	return sign + v.String()
}

// FormatDigits returns d rounded to that many significant digits, for people:
// what Flux prints for them. Digits below 1 count as 1, above 17 as 17. The unit
// is chosen before rounding, so that 59.9999999 seconds are "60s" and not "1m".
func FormatDigits(d time.Duration, digits int) string {
	sign, v := signed(d)
	return sign + v.Format(digits)
}

// signed returns the sign of d and its length.
func signed(d time.Duration) (sign string, length Duration) {
	if d < 0 {
		return "-", Duration(-d.Seconds())
	}
	if d == Forever {
		return "", Infinity()
	}
	return "", Duration(d.Seconds())
}
