package perilog_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// hkEqual returns the R of n equal ranks from 0.
func hkEqual(t testing.TB, n int) *rset.R {
	ranks := new(idset.Set)
	ranks.InsertRange(0, uint32(n-1))
	cores := new(idset.Set)
	cores.InsertRange(0, 47)
	r, err := rset.New(rset.Config{Entries: []rset.Entry{{Ranks: ranks, Children: map[string]*idset.Set{"core": cores}}}})
	require.NoError(t, err)
	return r
}

// hkStarted returns the housekeeping of n ranks, started on all.
func hkStarted(t testing.TB, r *rset.R, after *fsd.Duration) *perilog.Housekeeping {
	h, err := perilog.NewHousekeeping(hkT0, perilog.HousekeepingJob{Job: 1, R: r, ReleaseAfter: after}, perilog.HousekeepingOptions{})
	require.NoError(t, err)
	_, err = h.Start(hkT0, perilog.Spec{Timeout: 600})
	require.NoError(t, err)
	h.Take()
	return h
}

// hkEndAll ends all ranks, scattered, taking what is to be done after each.
func hkEndAll(h *perilog.Housekeeping, n int) {
	for i := range n {
		rank := uint32(i * 7919 % n)
		h.Report(hkT0+eventlog.Timestamp(i), perilog.Report{Kind: perilog.ReportExited, Rank: rank})
		h.Take()
	}
}

// Every rank ends by itself, in scattered order: ns/rank should stay.
func BenchmarkHousekeepingEnd(b *testing.B) {
	for name, after := range map[string]*fsd.Duration{"unset": nil, "0": hkAfter(0)} {
		for _, n := range []int{16, 1024, 16384} {
			b.Run(fmt.Sprintf("release-after=%s/ranks=%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				r := hkEqual(b, n)
				for b.Loop() {
					b.StopTimer()
					h := hkStarted(b, r, after)
					b.StartTimer()
					hkEndAll(h, n)
					if !h.Done() {
						b.Fatal("not done")
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/rank")
			})
		}
	}
}

// Each rank is started by itself, as when epilogs end one by one, and ends.
func BenchmarkHousekeepingStartOneByOne(b *testing.B) {
	for _, n := range []int{16, 1024, 16384} {
		b.Run(fmt.Sprintf("ranks=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			r := hkEqual(b, n)
			for b.Loop() {
				h, err := perilog.NewHousekeeping(hkT0, perilog.HousekeepingJob{Job: 1, R: r}, perilog.HousekeepingOptions{})
				if err != nil {
					b.Fatal(err)
				}
				for i := range n {
					rank := uint32(i * 7919 % n)
					if _, err := h.Start(hkT0, perilog.Spec{Ranks: idset.Of(rank)}); err != nil {
						b.Fatal(err)
					}
					h.Report(hkT0, perilog.Report{Kind: perilog.ReportExited, Rank: rank})
					h.Take()
				}
				if !h.Done() {
					b.Fatal("not done")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/rank")
		})
	}
}

// A log of one entry a rank, as long as it gets, is replayed.
func BenchmarkReplayHousekeeping(b *testing.B) {
	for _, n := range []int{16, 1024, 16384} {
		b.Run(fmt.Sprintf("ranks=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			h, err := perilog.NewHousekeeping(hkT0, perilog.HousekeepingJob{Job: 1, R: hkEqual(b, n), ReleaseAfter: hkAfter(0)}, perilog.HousekeepingOptions{})
			require.NoError(b, err)
			_, err = h.Start(hkT0, perilog.Spec{})
			require.NoError(b, err)
			for i := range n {
				h.Report(hkT0, perilog.Report{Kind: perilog.ReportExited, Rank: uint32(i * 7919 % n)})
			}
			log := h.Take().Log
			b.SetBytes(int64(len(log)))
			for b.Loop() {
				if _, err := perilog.ReplayHousekeeping(log, perilog.HousekeepingOptions{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/rank")
		})
	}
}
