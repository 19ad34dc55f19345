package loop_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/loop"
)

// A peer's large set of ids counts, however it is kept.
func TestALargeSetIsMeasured(t *testing.T) {
	s := newSite(t, start, new(disk), config(), 0)
	ids := new(idset.Set)
	for id := uint32(0); id < 1<<20; id += 2 { // 128 KiB
		ids.Insert(id)
	}
	for range 64<<20/(1<<17) - 8 {
		s.put(joblife.Tagged{In: joblife.Drained{Ranks: ids}})
	}
	require.ErrorIs(t, s.l.Put(slices.Repeat([]joblife.Input{joblife.Drained{Ranks: ids}}, 9)...), loop.ErrFull)
}

// The Manager refuses a type that embeds an input, whatever else it has.
func TestATypeThatEmbedsAnInputIsRefused(t *testing.T) {
	s := newSite(t, start, new(disk), config(), 0)
	for _, in := range []joblife.Input{
		struct{ *joblife.Submit }{}, struct {
			Tag string
			joblife.Tick
		}{Tag: "x"},
	} {
		s.put(in)
		require.NoError(t, s.l.Advance(start))
		require.ErrorIs(t, s.refused[len(s.refused)-1], joblife.ErrInvalid)
		require.ErrorIs(t, s.l.Put(joblife.Raise{Tag: 1 << 63}), joblife.ErrInvalid)
	}
}
