package jobid

import (
	"fmt"
	"time"

	"github.com/joblife/joblife/internal/guard"
)

// A Generator makes ids. The ids of one generator grow strictly in the order of
// the calls. Two generators with different ids never make the same id. The zero
// Generator is not valid: Next returns an error.
//
// One goroutine at a time may use it. It must not be copied: the copy would make the same ids.
type Generator struct {
	_ guard.NoCopy

	epoch time.Time // without monotonic reading, so that differences are of wall clocks
	id    uint16
	last  ID // greatest id made or told to After; 0 if none
}

// NewGenerator returns the generator with the given id, at most 16383. Its ids count
// milliseconds from epoch, which must be the same for all generators of an instance, and
// after a restart. An id that is too large and the zero time are errors.
func NewGenerator(id uint16, epoch time.Time) (*Generator, error) {
	if id > maxGenerator {
		return nil, fmt.Errorf("%w: generator %d, at most %d", errRange, id, maxGenerator)
	}
	if epoch.IsZero() {
		return nil, fmt.Errorf("%w: zero epoch", errRange)
	}
	return &Generator{id: id, epoch: epoch.Round(0)}, nil
}

// After makes every later id of g greater than id, which may come from any generator. Call
// it with the watermark after a restart, and store the watermark durably before you remove the
// record that proves an id used: so ids never come back. If the time of id is in the future,
// [Generator.Next] returns an error until that time.
func (g *Generator) After(id ID) { g.last = max(g.last, id) }

// Last returns the watermark to store: the greatest id that g made or After got; 0 if none.
func (g *Generator) Last() ID { return g.last }

// Next returns a new id for the time now, greater than all before it. Only the wall clock
// of now counts, truncated to the millisecond. The id 0 is never made.
//
// After an error g is unchanged. It is an error if no id of this millisecond is left, or if
// now is before the epoch, before the last id's millisecond, or 2^40 milliseconds after the
// epoch or later. Next takes constant time and allocates only for an error.
func (g *Generator) Next(now time.Time) (ID, error) {
	since := now.Sub(g.epoch) // cut at 292 years, which is outside the range either way
	ms := uint64(since / time.Millisecond)
	switch {
	case since < 0:
		return 0, g.refuse(since, errClock)
	case ms > maxTimestamp:
		return 0, g.refuse(since, errRange)
	case ms < g.last.millis():
		return 0, g.refuse(since, errClock)
	}
	id := ID(ms<<timestampShift | uint64(g.id)<<generatorShift)
	if id <= g.last {
		// It is the millisecond of the last id. The sequence goes on if that id is
		// ours. After another generator's id, ours would be the smaller one.
		if g.last.generator() != g.id || g.last.sequence() == maxSequence {
			return 0, g.refuse(since, errExhausted)
		}
		id = g.last + 1
	}
	g.last = id
	return id, nil
}

func (g *Generator) refuse(since time.Duration, category error) error {
	return fmt.Errorf("%w: generator %d at %d ms, its last id is of %d ms",
		category, g.id, since.Milliseconds(), g.last.millis())
}
