package fsd

import "math"

// Duration is a length of time in seconds, 0 or more, perhaps infinite: the type
// of a configuration's field that holds a text of RFC 23. The zero value is no
// time. Go code that passes durations uses time.Duration: see [ParseDuration].
//
// Durations compare as numbers do. A conversion can make a Duration that is not
// valid (negative, or NaN): it prints as "Duration(-1)" and does not marshal.
// [FromSeconds] checks.
type Duration float64

// Units of RFC 23.
const (
	Millisecond Duration = 0.001
	Second      Duration = 1
	Minute      Duration = 60
	Hour        Duration = 60 * Minute
	Day         Duration = 24 * Hour
)

// Infinity returns the duration that never ends.
func Infinity() Duration { return Duration(math.Inf(1)) }

// FromSeconds returns the duration of that many seconds, infinity included. The
// error wraps [ErrRange] if seconds is negative or NaN. -0 becomes 0.
func FromSeconds(seconds float64) (Duration, error) {
	d := Duration(seconds)
	if !d.IsValid() {
		return 0, errInvalid(d)
	}
	return d.abs(), nil
}

// Seconds returns d as a number of seconds.
func (d Duration) Seconds() float64 { return float64(d) }

// IsInfinite reports whether d never ends.
func (d Duration) IsInfinite() bool { return math.IsInf(float64(d), 1) }

// IsValid reports whether d is 0 or more, infinite included.
func (d Duration) IsValid() bool { return d >= 0 }

// abs returns a valid d with 0 in place of -0.
func (d Duration) abs() Duration { return Duration(math.Abs(float64(d))) }
