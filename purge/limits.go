package purge

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/joblife/joblife/jobstate/fsd"
)

const (
	// DefaultBatch is how many jobs a plan has at most if Limits.Batch is 0.
	DefaultBatch = 100
	// MaxBatch is the greatest Limits.Batch.
	MaxBatch = 1000
	// NoBatch, as Limits.Batch, puts every job that may go into one plan. It is
	// for dry runs: a store would be busy with such a plan for long.
	NoBatch = -1
)

// A Limit is a value that may be unset. The zero Limit is; that is something
// else than a Limit to 0.
type Limit[T any] struct {
	value T
	set   bool
}

// To returns a Limit that is set to v.
func To[T any](v T) Limit[T] { return Limit[T]{v, true} }

// Value returns what the limit is set to, and whether it is set.
func (l Limit[T]) Value() (T, bool) { return l.value, l.set }

// String returns the value as package fmt prints it, or "unset".
func (l Limit[T]) String() string {
	if !l.set {
		return "unset"
	}
	return fmt.Sprint(l.value)
}

// Limits say which inactive jobs may stay. A job goes if its age is greater than
// MaxAge or if it is the oldest of more than MaxCount, unless its age is less
// than MinAge. Where neither MaxAge nor MaxCount is set, nothing goes.
type Limits struct {
	// MaxAge is the age that a job may reach. Of two jobs with this very age
	// and one beyond it, the one goes.
	MaxAge Limit[time.Duration]
	// MinAge is the age that a job reaches whatever the other limits say.
	MinAge Limit[time.Duration]
	// MaxCount is how many jobs may stay. Pinned ones count, but do not go:
	// younger ones go in their place.
	MaxCount Limit[int]
	// Batch is how many jobs a plan has at most: 1 to MaxBatch, or 0 for
	// DefaultBatch, or NoBatch.
	Batch int
}

// PurgeAll returns limits by which every job goes that is not pinned.
func PurgeAll() Limits { return Limits{MaxCount: To(0)} }

// check returns a *LimitsError if a limit makes no sense.
func (l Limits) check() error {
	if d, ok := l.MaxAge.Value(); ok && d < 0 {
		return &LimitsError{Key: "MaxAge", Reason: "must be 0 or more"}
	}
	if d, ok := l.MinAge.Value(); ok && d < 0 {
		return &LimitsError{Key: "MinAge", Reason: "must be 0 or more"}
	}
	if n, ok := l.MaxCount.Value(); ok && n < 0 {
		return &LimitsError{Key: "MaxCount", Reason: "must be 0 or more"}
	}
	if l.Batch < NoBatch || l.Batch > MaxBatch {
		return &LimitsError{Key: "Batch", Reason: "must be at least 1 and at most " + strconv.Itoa(MaxBatch)}
	}
	return nil
}

// batch returns how many jobs a plan has at most.
func (l Limits) batch() int {
	switch l.Batch {
	case 0:
		return DefaultBatch
	case NoBatch:
		return math.MaxInt
	}
	return l.Batch
}

// The keys of a configuration.
const (
	keyAge   = "inactive-age-limit"
	keyCount = "inactive-num-limit"
)

// ParseLimits reads the limits from the table job-manager of a Flux
// configuration, as a reader of TOML or JSON made it:
//
//	inactive-age-limit  a string, a duration of RFC 23; "infinity" never ends
//	inactive-num-limit  an integer, 0 or more; -1 is as good as absent, as in
//	                    the reference
//
// Both may be absent, and other keys are somebody else's. An age of more than
// 292 years becomes that. An error is a *LimitsError that names the key, and no
// limits are returned with it. The table is not kept.
func ParseLimits(table map[string]any) (Limits, error) {
	var l Limits
	if v, ok := table[keyAge]; ok {
		text, ok := v.(string)
		if !ok {
			return Limits{}, &LimitsError{Key: keyAge, Reason: "must be a string"}
		}
		age, err := fsd.ParseDuration(text)
		if err != nil {
			return Limits{}, &LimitsError{Key: keyAge, Reason: "must be a duration of RFC 23", Err: err}
		}
		l.MaxAge = To(age)
	}
	if v, ok := table[keyCount]; ok {
		n, ok := integer(v)
		if !ok {
			return Limits{}, &LimitsError{Key: keyCount, Reason: "must be an integer"}
		}
		if n < -1 || n > math.MaxInt32 {
			return Limits{}, &LimitsError{Key: keyCount, Reason: "must be 0 or more, and less than 2^31"}
		}
		if n >= 0 {
			l.MaxCount = To(int(n))
		}
	}
	return l, nil
}

// integer returns the integer that v is, in any of the types that readers of
// TOML and JSON make of one.
func integer(v any) (int64, bool) {
	switch v := v.(type) {
	case int:
		return int64(v), true
	case int64:
		return v, true
	case uint64:
		return int64(min(v, math.MaxInt64)), true
	case float64:
		if v != math.Trunc(v) || math.Abs(v) >= 1<<53 {
			return 0, false
		}
		return int64(v), true
	case json.Number:
		text := v.String()
		if strings.ContainsAny(text, ".eE+") {
			return 0, false
		}
		n, err := strconv.ParseInt(text, 10, 64)
		return n, err == nil
	}
	return 0, false
}
