package main

import "testing"

// BenchmarkPolicies drives jobs through a session and reports how many it takes
// in a second of its own time, parsing and printing included. The workload is
// that of the test: two dozen jobs wait, a hundred cores are shared by some
// thirty, and each gives back what it has in one to three fragments. Time flies: without
// -forecast-period=0, each line would have a forecast.
func BenchmarkPolicies(b *testing.B) {
	for _, policy := range []string{"fifo", "easy"} {
		b.Run(policy, func(b *testing.B) {
			var jobs, seconds float64
			for b.Loop() {
				d := newDriver(b, policy, 1, "-forecast-period=0")
				d.drive(1000, 24)
				d.finish()
				jobs += 1000
				seconds += d.spent.Seconds()
			}
			b.ReportMetric(jobs/seconds, "jobs/s")
		})
	}
}
