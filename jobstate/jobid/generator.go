package jobid

import (
	"fmt"
	"time"
)

// A Generator makes ids. Those of one generator grow strictly in the order of
// the calls; those of two generators with different generator ids differ.
// NewGenerator makes one; every call of Next on the zero value is ErrRange.
//
// It holds no clock and never waits. One goroutine at a time may use it. It must
// not be copied: the copy would make the same ids again.
type Generator struct {
	_ noCopy

	epoch time.Time // without monotonic reading, so that differences are of wall clocks
	id    uint16
	last  ID // greatest id made or told to After; 0 if none
}

// noCopy makes vet complain about copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// NewGenerator returns the generator with the given id, at most MaxGenerator.
// Its ids count milliseconds from epoch, which has to be the same for all
// generators of an instance and over its restarts. The error has category
// ErrRange: the id is too great, or epoch is the zero time.
//
// After a restart, [Generator.After] has to be told the watermark before the
// first id is made.
func NewGenerator(id uint16, epoch time.Time) (*Generator, error) {
	if id > MaxGenerator {
		return nil, fmt.Errorf("jobid: generator id %d: %w: the greatest is %d", id, ErrRange, MaxGenerator)
	}
	if epoch.IsZero() {
		return nil, fmt.Errorf("jobid: zero epoch: %w", ErrRange)
	}
	return &Generator{id: id, epoch: epoch.Round(0)}, nil
}

// After makes every later id of g greater than id, whoever made it; it never
// lowers what an earlier call or an earlier id demands. This is how ids never come back
// (I9): store the watermark durably before anything that proves an id used is removed,
// and pass it here at a restart.
//
// An id of a time yet to come makes [Generator.Next] refuse with ErrClock until
// that time.
func (g *Generator) After(id ID) { g.last = max(g.last, id) }

// Last returns the greatest id that g made or was told by After: the watermark to
// store. It is 0 if there was none.
func (g *Generator) Last() ID { return g.last }

// Next returns a new id for the time now, greater than every one before it. Only the
// wall clock of now counts, cut to the millisecond. The id 0 is never made.
//
// An error is a [*GeneratorError], and g is unchanged after it: ErrExhausted if the
// 1024 ids of this millisecond are used, or an id told to After leaves none in it;
// ErrClock if now is before the epoch or before the last id's millisecond; ErrRange if
// now is 2^40 milliseconds after the epoch or later. Next takes constant time and
// does not allocate but for an error.
func (g *Generator) Next(now time.Time) (ID, error) {
	since := now.Sub(g.epoch) // cut at 292 years, which is outside the range either way
	ms := uint64(since / time.Millisecond)
	switch {
	case since < 0:
		return 0, g.refuse(since, ErrClock)
	case ms > maxTimestamp:
		return 0, g.refuse(since, ErrRange)
	case ms < g.last.Timestamp():
		return 0, g.refuse(since, ErrClock)
	}
	id := compose(ms, g.id, 0)
	if id <= g.last {
		// The millisecond is the last id's. Its sequence goes on, if it is
		// ours; behind another generator's id ours would be less than it.
		if g.last.Generator() != g.id || g.last.Sequence() == maxSequence {
			return 0, g.refuse(since, ErrExhausted)
		}
		id = g.last + 1
	}
	g.last = id
	return id, nil
}

func (g *Generator) refuse(since time.Duration, category error) error {
	return &GeneratorError{Generator: g.id, Millis: since.Milliseconds(), Last: g.last, Err: category}
}
