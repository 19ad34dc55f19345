package fsd

import (
	"math"
	"time"
)

// Duration is a length of time in seconds, 0 or more, perhaps infinite. The zero value
// is no time at all.
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
// error is a [*ValueError] of category ErrRange if seconds is negative or NaN.
// A negative zero becomes zero.
func FromSeconds(seconds float64) (Duration, error) {
	d := Duration(seconds)
	if !d.IsValid() {
		return 0, errInvalid(d)
	}
	return d.abs(), nil
}

// FromStd returns d in seconds. The error is a [*ValueError] of category ErrRange
// if d is negative.
//
// Up to 48 days [Duration.Std] gives d back; a longer one can differ from it by half a
// float64's step, which is a microsecond at 292 years.
func FromStd(d time.Duration) (Duration, error) { return FromSeconds(d.Seconds()) }

// Seconds returns d as a number of seconds.
func (d Duration) Seconds() float64 { return float64(d) }

// IsInfinite reports whether d never ends.
func (d Duration) IsInfinite() bool { return math.IsInf(float64(d), 1) }

// IsValid reports whether d is 0 or more, infinite included.
func (d Duration) IsValid() bool { return d >= 0 }

// abs returns a valid d with 0 in the place of -0.
func (d Duration) abs() Duration { return Duration(math.Abs(float64(d))) }

// Std returns d rounded to the nearest nanosecond. What is below half a nanosecond
// becomes 0.
//
// The error is a [*ValueError] of category ErrRange. With it comes the nearest
// time.Duration, as strconv does it: the greatest, 292 years, if d is
// infinite or longer than that, and 0 if d is not valid. So who wants
// "as long as possible" can ignore the error of a valid d.
func (d Duration) Std() (time.Duration, error) {
	if !d.IsValid() {
		return 0, errInvalid(d)
	}
	const longest = math.MaxInt64 // nanoseconds
	if d < longest/1_000_000_000+1 {
		// Apart, both parts are exact; together they need more than 53 bits.
		whole, part := math.Modf(float64(d))
		ns := uint64(whole)*1_000_000_000 + uint64(math.Round(part*1e9))
		if ns <= longest {
			return time.Duration(ns), nil
		}
	}
	return longest, &ValueError{Value: d, Reason: "longer than a time.Duration can be", Err: ErrRange}
}
