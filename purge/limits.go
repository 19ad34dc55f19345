package purge

import (
	"cmp"
	"math"
	"strconv"
	"time"

	"github.com/joblife/joblife/jobstate"
)

const (
	// DefaultBatch is the maximum number of jobs in a plan if Limits.Batch is 0.
	DefaultBatch = 100
	// MaxBatch is the greatest Limits.Batch.
	MaxBatch = 1000
	// NoBatch, as Limits.Batch, puts every job that the limits select into one plan, of a
	// dry run: a store would be busy for a long time.
	NoBatch = -1
)

// Limits say which inactive jobs may stay. A job is purged if it is older than MaxAge, or
// if it is the oldest of more than MaxCount jobs. If neither is set, no job is purged. A
// limit of 0 is not the same as an unset limit.
type Limits struct {
	// MaxAge purges jobs that are strictly older.
	MaxAge jobstate.Optional[time.Duration]
	// MinAge keeps jobs that are younger, whatever the other limits say.
	MinAge jobstate.Optional[time.Duration]
	// MaxCount is how many jobs may stay. A pinned job counts but is not
	// purged; the next younger job is purged instead.
	MaxCount jobstate.Optional[int]
	// Batch is the maximum number of jobs in a plan: 1 to MaxBatch, 0 for DefaultBatch, or NoBatch.
	Batch int
}

// PurgeAll returns limits that purge every job that has no pin.
func PurgeAll() Limits { return Limits{MaxCount: jobstate.Some(0)} }

// Check returns an error if a limit makes no sense for a batch; NoBatch does not. The
// text names the limit.
func (l Limits) Check() error {
	if l.Batch == NoBatch {
		return limitError("Batch", "must not be NoBatch")
	}
	return l.check()
}

// check is Check for a dry run.
func (l Limits) check() error {
	if l.Batch < NoBatch || l.Batch > MaxBatch {
		return limitError("Batch", "must be 1 to "+strconv.Itoa(MaxBatch))
	}
	return cmp.Or(notNegative("MaxAge", l.MaxAge.Value), notNegative("MinAge", l.MinAge.Value), notNegative("MaxCount", l.MaxCount.Value))
}

func notNegative[N int | time.Duration](key string, n N) error {
	if n < 0 {
		return limitError(key, "must be 0 or more")
	}
	return nil
}

func (l Limits) batch() int {
	switch l.Batch {
	case 0:
		return DefaultBatch
	case NoBatch:
		return math.MaxInt
	}
	return l.Batch
}
