package perilog

import (
	"fmt"
	"testing"
)

// BenchmarkRunReport is one rank's start and exit, and taking its end.
func BenchmarkRunReport(b *testing.B) {
	for _, scattered := range []bool{false, true} {
		for _, n := range []uint32{16, 1024, 16384} {
			b.Run(fmt.Sprintf("ranks=%d/scattered=%t", n, scattered), func(b *testing.B) {
				spec := wideSpec(int(n), scattered)
				r, step := (*Run)(nil), uint32(1)
				if scattered {
					step = 2
				}
				var ends []RankEnd
				b.ReportAllocs()
				i := n
				for b.Loop() {
					if i == n {
						b.StopTimer()
						r, _ = NewRun(spec)
						_ = r.Start(t0)
						i = 0
						b.StartTimer()
					}
					rank := i * 7919 % n * step
					r.Report(t0, Report{Kind: ReportStarted, Rank: rank})
					r.Report(t0, Report{Kind: ReportExited, Rank: rank})
					ends = r.AppendEnded(ends[:0])
					i++
				}
			})
		}
	}
}

// BenchmarkRunWhole is a run from its start to its outcome, per rank.
func BenchmarkRunWhole(b *testing.B) {
	for _, status := range []int32{0, 256} {
		for _, n := range []uint32{16, 1024, 16384} {
			b.Run(fmt.Sprintf("ranks=%d/status=%d", n, status), func(b *testing.B) {
				spec := wideSpec(int(n), false)
				b.ReportAllocs()
				for b.Loop() {
					r, _ := NewRun(spec)
					_ = r.Start(t0)
					for rank := range n {
						r.Report(t0, Report{Kind: ReportExited, Rank: rank, Status: status})
					}
					if r.Outcome() == nil {
						b.Fatal("not done")
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/rank")
			})
		}
	}
}

func BenchmarkParseControl(b *testing.B) {
	for name, line := range map[string]string{"plain": "the file systems are mounted",
		"control": `perilog-control: {"version":1,"failed":"3","note":"gpu 2 is gone"}`} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _, _ = ParseControl([]byte(line))
			}
		})
	}
}
