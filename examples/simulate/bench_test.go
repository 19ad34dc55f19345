package main

import (
	"context"
	"io"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// A million jobs on 16 384 nodes with EASY, both ways.
func BenchmarkLongMillion(b *testing.B) {
	if os.Getenv("JOBLIFE_LONG") == "" {
		b.Skip("JOBLIFE_LONG is not set")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const jobs = 1_000_000
	o, err := parse([]string{"-jobs", strconv.Itoa(jobs), "-nodes", "16384", "-load", "0.9", "-seeds", "1", "-html", ""}, io.Discard)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := newStudy(o, io.Discard).play(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(2*jobs*b.N)/b.Elapsed().Seconds(), "jobs/s")
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	b.ReportMetric(float64(mem.Sys)/1e9, "GB")
}
