package purge

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
)

const (
	// DefaultBatch is the maximum number of jobs in a plan if Limits.Batch is
	// 0.
	DefaultBatch = 100
	// MaxBatch is the greatest Limits.Batch.
	MaxBatch = 1000
	// NoBatch, as Limits.Batch, puts every job that the limits select into one
	// plan. Use it for dry runs only: such a plan would keep a store busy for a
	// long time.
	NoBatch = -1
)

// Limits say which inactive jobs may stay. A job is purged if it is older than
// MaxAge, or if it is the oldest of more than MaxCount jobs; in both cases only if
// it is at least MinAge old. If neither MaxAge nor MaxCount is set, no job is
// purged. A limit of 0 is not the same as an unset limit.
type Limits struct {
	// MaxAge purges jobs that are strictly older.
	MaxAge jobstate.Optional[time.Duration]
	// MinAge keeps jobs that are younger, whatever the other limits say.
	MinAge jobstate.Optional[time.Duration]
	// MaxCount is how many jobs may stay. A pinned job counts but is not
	// purged; the next younger job is purged instead.
	MaxCount jobstate.Optional[int]
	// Batch is the maximum number of jobs in a plan: 1 to MaxBatch, 0 for
	// DefaultBatch, or NoBatch.
	Batch int
}

// PurgeAll returns limits that purge every job that has no pin.
func PurgeAll() Limits { return Limits{MaxCount: jobstate.Some(0)} }

// check returns an error of category ErrLimits if a limit makes no sense.
func (l Limits) check() error {
	const negative = "must be 0 or more"
	switch {
	case l.MaxAge.Value < 0:
		return limitError("MaxAge", negative)
	case l.MinAge.Value < 0:
		return limitError("MinAge", negative)
	case l.MaxCount.Value < 0:
		return limitError("MaxCount", negative)
	case l.Batch < NoBatch || l.Batch > MaxBatch:
		return limitError("Batch", "must be 1 to "+strconv.Itoa(MaxBatch))
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
	keyPrefix = "inactive-"
	keyAge    = "inactive-age-limit"
	keyCount  = "inactive-num-limit"
)

// ParseLimits reads the limits from the table job-manager of a Flux
// configuration, as a reader of TOML or JSON made it:
//
//	inactive-age-limit  a string, a duration of RFC 23; "infinity" is no limit
//	inactive-num-limit  an integer, 0 or more
//
// Both may be absent. Keys that do not begin with "inactive-" are ignored. The
// error has category ErrLimits and names the key; an unknown key that begins
// with "inactive-" is an error. The table is not kept.
func ParseLimits(table map[string]any) (Limits, error) {
	var l Limits
	for _, key := range slices.Sorted(maps.Keys(table)) {
		switch v := table[key]; {
		case key == keyAge:
			text, ok := v.(string)
			if !ok {
				return Limits{}, limitError(key, "must be a string")
			}
			age, err := fsd.Parse(text)
			if err != nil {
				return Limits{}, fmt.Errorf("%w: %w", limitError(key, "must be a duration of RFC 23"), err)
			}
			if age != fsd.Forever { // which is no limit
				l.MaxAge = jobstate.Some(time.Duration(age))
			}
		case key == keyCount:
			n, ok := integer(v)
			if !ok || n < 0 || n > math.MaxInt32 {
				return Limits{}, limitError(key, "must be an integer from 0 to 2147483647")
			}
			l.MaxCount = jobstate.Some(int(n))
		case strings.HasPrefix(key, keyPrefix):
			return Limits{}, limitError(guard.Quote(key), "unknown key")
		}
	}
	return l, nil
}

// integer returns the integer that v is, in any of the types that readers of
// TOML and JSON use.
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
