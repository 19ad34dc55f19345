package eventlog

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/internal/jsonobj"
)

// Timestamp is a time as RFC 18 writes it: seconds since the Unix epoch, UTC.
// The timestamp of an event is finite and greater than zero. Zero means no time.
// Near the present the resolution is 0.24 µs.
//
// Its text is what the JSON library of Flux prints: C's %.17g, and ".0" after an integral number.
type Timestamp float64

// maxSeconds is as far from the epoch as Time goes.
const maxSeconds = 1 << 53

// FromTime returns the Timestamp nearest to t.
func FromTime(t time.Time) Timestamp {
	return Timestamp(float64(t.Unix()) + float64(t.Nanosecond())/1e9)
}

// Time returns the time in UTC, rounded to a nanosecond. [FromTime] of the result is t
// again for any t from 1970-04-08 (2^23 seconds) on. A Timestamp more than 2^53 seconds
// from the epoch gives the time at that distance; NaN gives the zero time.Time.
func (t Timestamp) Time() time.Time {
	if math.IsNaN(float64(t)) {
		return time.Time{}
	}
	sec, frac := math.Modf(max(-maxSeconds, min(float64(t), maxSeconds)))
	return time.Unix(int64(sec), int64(math.Round(frac*1e9))).UTC()
}

// check returns why t cannot be the time of an event.
func (t Timestamp) check() error {
	switch {
	case guard.IsTime(t):
		return nil
	case math.IsInf(float64(t), 0) || math.IsNaN(float64(t)):
		return errNotFinite
	}
	return errNotPositive
}

// AppendText appends the text of t. If t is infinite or not a number, the error
// wraps [ErrEntry] and dst is as it was. It allocates only to grow dst.
func (t Timestamp) AppendText(dst []byte) ([]byte, error) {
	if math.IsInf(float64(t), 0) || math.IsNaN(float64(t)) {
		return dst, refuse(ErrEntry, "timestamp", errNotFinite)
	}
	return jsonobj.AppendFloat(dst, float64(t)), nil
}

// String returns the text of t, or "NaN", "+Inf" or "-Inf".
func (t Timestamp) String() string {
	b, err := t.AppendText(nil)
	if err != nil {
		return strconv.FormatFloat(float64(t), 'g', -1, 64)
	}
	return string(b)
}

// MarshalText returns the text of t, with the error of AppendText.
func (t Timestamp) MarshalText() ([]byte, error) { return t.AppendText(nil) }

// UnmarshalText sets t to a number: any finite JSON number, with nothing around
// it. The error is a *[SyntaxError]; t is unchanged then.
func (t *Timestamp) UnmarshalText(text []byte) error {
	f, ok := jsonobj.Float64(text)
	if !ok {
		return syntaxError(ErrEntry, 0, fmt.Errorf("timestamp: %w", errNotNumber))
	}
	*t = Timestamp(f)
	return nil
}

// MarshalJSON returns the text of t, a JSON number, with the error of AppendText.
func (t Timestamp) MarshalJSON() ([]byte, error) { return t.AppendText(nil) }

// UnmarshalJSON sets t as UnmarshalText does. null leaves t as it is.
func (t *Timestamp) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	return t.UnmarshalText(text)
}
