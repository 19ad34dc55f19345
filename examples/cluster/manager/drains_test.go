package manager

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/idset"
)

// Once a manager has the drains, the one before it changes them no more, and what that had changed
// meanwhile is not forgotten.
func TestAnEarlierManagerDrainsNothing(t *testing.T) {
	b := new(bucket)
	before, next, last := idle(t), idle(t), idle(t)
	for i, a := range []idler{before, next, last} {
		a.keys, a.epoch, a.end = b, uint64(i+1), func(error) {}
	}
	require.NoError(t, before.openDrains(t.Context()))
	b.read = func() { require.NoError(t, before.drained(idset.Of(0), "it burns", 0)) }
	require.NoError(t, next.openDrains(t.Context()))
	require.Equal(t, uint64(1), next.status(next.m).Drained)
	require.ErrorIs(t, before.resumed(idset.Of(0)), engine.ErrLost)
	require.NoError(t, last.openDrains(t.Context()))
	require.ErrorIs(t, next.drained(idset.Of(0), "it burns", 0), engine.ErrLost, "though it changes nothing")
}

// The reason of a drain is the last one that an operator gave.
func TestAReasonIsReplacedByAnother(t *testing.T) {
	a := idle(t)
	a.keys = new(bucket)
	for _, c := range [][2]string{{"", "no reason was given"}, {"disk", "disk"}, {"", "disk"}, {actionFailed, "disk"}, {"disk and fan", "disk and fan"}} {
		require.NoError(t, a.drained(idset.Of(0), c[0], 7))
		require.Equal(t, c[1], a.drain.Ranks[0].Reason)
	}
	require.NoError(t, a.resumed(idset.Of(0)))
	require.NoError(t, a.drained(idset.Of(0), actionFailed, 7))
	require.NoError(t, a.drained(idset.Of(0), "disk", 7))
	require.Equal(t, "disk", a.drain.Ranks[0].Reason)
}

// A reason has a limit, since those of all nodes are one value.
func TestAReasonHasALimit(t *testing.T) {
	a := idle(t)
	a.keys = new(bucket)
	for _, n := range []int{maxReason, maxReason + 1} {
		_, err := a.answer(t.Context(), joblife.Cred{}, "drain", wire.Request{Ranks: idset.Of(0), Note: strings.Repeat("x", n)})
		require.Len(t, a.drain.Ranks[0].Reason, maxReason)
		if n > maxReason {
			require.EqualError(t, err, "the reason has 257 bytes: want 256 or fewer")
		} else {
			require.NoError(t, err)
		}
	}
}

// A rank that was drained, and is not in the inventory any more, keeps no other node from jobs.
func TestADrainOfARankThatIsGoneIsNoOther(t *testing.T) {
	a := idle(t)
	a.drain.Ranks = map[uint32]Drained{7: {Reason: "sold"}}
	require.NoError(t, a.Do(func(*joblife.Manager) func() {
		a.change(idset.Of(0), true)
		return nil
	}))
	require.NoError(t, a.Advance(time.Unix(1_700_000_000, 0)))
	require.Empty(t, a.sched.Pool().Down().Ranks().String())
	a.keys = new(bucket)
	_, err := a.answer(t.Context(), joblife.Cred{}, "resume", wire.Request{Ranks: idset.Of(7)})
	require.NoError(t, err)
	require.Empty(t, a.drain.Ranks)
}

// A bucket is a store with revisions.
type bucket struct {
	value    []byte
	revision uint64
	read     func() // what happens after the next Get
}

func (b *bucket) Get(context.Context, string) ([]byte, uint64, error) {
	value, revision, read := b.value, b.revision, b.read
	if b.read = nil; read != nil {
		read()
	}
	return value, revision, nil
}

func (b *bucket) Update(_ context.Context, _ string, value []byte, revision uint64) (uint64, error) {
	if revision != b.revision && string(value) != string(b.value) {
		return 0, engine.ErrLost
	}
	b.value, b.revision = value, b.revision+1
	return b.revision, nil
}
