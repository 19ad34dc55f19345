package fsd

import (
	"fmt"
	"math"
	"time"

	"github.com/joblife/joblife/internal/guard"
)

// Duration is a time.Duration with the text of RFC 23. Use it for the fields of a
// configuration. Other Go code uses time.Duration(d).
type Duration time.Duration

// Forever is the infinite duration, "infinity" as a text. It is the longest
// Duration, 292 years. A limit that is not set is zero, not Forever.
const Forever Duration = math.MaxInt64

// Parse returns the duration that s names: a decimal number with an optional
// fraction and exponent, as C's strtod reads it, and directly after it one of the
// units ms, s, m, h and d, or none for seconds; or "infinity" or "inf" in letters of
// either case, which is [Forever]. White space and a sign may come first.
//
// The result is rounded to a nanosecond; a number that is above zero as a float64 gives at
// least one nanosecond. A number of seconds without an exponent and with at most nine
// decimals is exact; other numbers above 48 days are exact to a microsecond. What is longer
// than Forever gives Forever.
//
// An empty s, a negative number and one too large for a float64 are errors, which name the
// offset in bytes.
func Parse(s string) (Duration, error) {
	seconds, decimal, err := parse(s)
	if err != nil {
		return 0, err
	}
	if n, exact := nanoseconds(decimal); exact {
		return Duration(min(n, math.MaxInt64)), nil
	}
	return Duration(guard.Duration(seconds)), nil
}

// UnmarshalText sets d to what [Parse] reads. After an error d is unchanged.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := Parse(string(text))
	if err != nil {
		return err
	}
	*d = v
	return nil
}

// AppendText appends the canonical text of d, which [Parse] reads as d. It is the text that
// Flux prints, with six digits, if Parse reads that as d, such as "1.5h"; otherwise the
// number of seconds, such as "3601s", which Flux rounds to "1.00028h".
//
// A negative d is an error, and dst is as it was. With room for 25 bytes nothing is allocated.
func (d Duration) AppendText(dst []byte) ([]byte, error) {
	if d < 0 {
		return dst, fmt.Errorf("fsd: %s: %v is negative", outOfRange, d)
	}
	return d.appendText(dst), nil
}

// MarshalText is AppendText to a new slice. Inside JSON the text is a string, as RFC 23 has
// it; a jobspec has a number of seconds instead.
func (d Duration) MarshalText() ([]byte, error) { return d.AppendText(nil) }

// String returns the text of [Duration.AppendText]; of a negative d, with a minus.
func (d Duration) String() string { return string(d.appendText(make([]byte, 0, maxText))) }

// Format returns d rounded to that many significant digits, as Flux prints it for
// people. Digits below 1 count as 1 and above 17 as 17. The unit is chosen before
// rounding, so that 59.9999999 seconds are "60s" and not "1m".
func (d Duration) Format(digits int) string {
	dst := make([]byte, 0, maxText)
	if d < 0 {
		return string(appendFormat(append(dst, '-'), -time.Duration(d).Seconds(), digits))
	}
	return string(appendFormat(dst, d.seconds(), digits))
}

// seconds returns a d of 0 or more in seconds.
func (d Duration) seconds() float64 {
	if d == Forever {
		return math.Inf(1)
	}
	return time.Duration(d).Seconds()
}

func (d Duration) appendText(dst []byte) []byte {
	if d < 0 {
		return appendNanoseconds(append(dst, '-'), -uint64(d))
	}
	text := appendFormat(dst, d.seconds(), defaultDigits)
	if back, err := Parse(string(text[len(dst):])); err == nil && back == d {
		return text
	}
	return appendNanoseconds(dst, uint64(d))
}
