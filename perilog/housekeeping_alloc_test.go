package perilog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/perilog"
)

// The end of a rank costs no memory of its own, but for the fragment where it
// goes back at once.
func TestTheEndOfARankAllocatesTheFragmentAlone(t *testing.T) {
	if perilog.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, n := range []int{128, 16384} {
		r := hkEqual(t, n)
		h := hkStarted(t, r, nil)
		hkReport(h, 0, n/4) // buffers grow
		require.Less(t, testing.AllocsPerRun(1, func() { hkReport(h, n/4, n) })/float64(n), 0.1)
		require.True(t, h.Done() || h.Status(0).Pending.IsEmpty())

		h = hkStarted(t, r, hkAfter(0))
		hkReport(h, 0, n/4)
		require.Less(t, testing.AllocsPerRun(1, func() { hkReport(h, n/4, n) })/float64(n), 10.0)
	}
}

// hkReport ends the ranks from first to before last, and repeats each report.
func hkReport(h *perilog.Housekeeping, first, last int) {
	for rank := first; rank < last; rank++ {
		for range 2 {
			h.Report(hkT0, perilog.Report{Kind: perilog.ReportExited, Rank: uint32(rank)})
		}
		h.Take()
	}
}
