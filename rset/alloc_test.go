package rset_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/rset"
)

func TestAllocationBudget(t *testing.T) {
	race.Skip(t)
	equal, different := parse(t, clusterText(16384, false)), parse(t, clusterText(16384, true))
	half := new(idset.Set)
	half.InsertRange(0, 8191)
	for name, r := range map[string]*rset.R{"equal": equal, "different": different} {
		budget := func(want float64, what string, f func()) {
			t.Helper()
			require.LessOrEqual(t, testing.AllocsPerRun(3, f), want, "%s of %s", what, name)
		}
		budget(0, "Len", func() { r.Len() })
		budget(1, "Host", func() { r.Host(9000) })
		budget(1, "Count", func() { r.Count("core") })
		one := idset.Of(9000)
		budget(12, "Restrict to one rank", func() { _, _ = r.Restrict(one) })
	}
	require.LessOrEqual(t, testing.AllocsPerRun(3, func() { _, _ = equal.Restrict(half) }), 12.0)
	require.LessOrEqual(t, testing.AllocsPerRun(3, func() { _, _ = rset.Intersect(equal, equal) }), 12.0)
	dst := make([]byte, 0, 4096)
	require.LessOrEqual(t, testing.AllocsPerRun(3, func() { dst = equal.AppendJSON(dst[:0]) }), 7.0)
	require.LessOrEqual(t, testing.AllocsPerRun(3, func() { _, _ = rset.Parse([]byte(one)) }), 20.0)
	for n, want := range map[int]float64{64: 4, 16384: 5.5} {
		text := []byte(clusterText(n, true))
		require.LessOrEqual(t, testing.AllocsPerRun(3, func() { _, _ = rset.Parse(text) })/float64(n), want, "a node of %d", n)
	}
}

// Release of every rank, one by one: amortised, whatever the size.
func TestFreeingRanksOneByOneAllocatesTheFragmentAlone(t *testing.T) {
	race.Skip(t)
	for _, n := range []int{128, 16384} {
		r := parse(t, clusterText(n, true))
		allocs := testing.AllocsPerRun(1, func() {
			l := rset.NewLedger(r)
			for rank := range n {
				_, _ = l.Free(idset.Of(uint32(rank * 7919 % n)))
			}
			require.True(t, l.IsFinal())
		})
		require.Less(t, allocs/float64(n), 8.0)
	}
}
