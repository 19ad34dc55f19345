package main

import (
	"context"
	"io"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/joblife/joblife/internal/refdata"
)

// simulate runs the command with one seed and reports the jobs a second, of both ways.
func simulate(b *testing.B, args ...string) {
	if os.Getenv("JOBLIFE_LONG") == "" {
		b.Skip("JOBLIFE_LONG is not set")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for b.Loop() {
		o, err := parse(append(args, "-seeds", "1", "-html", ""), io.Discard)
		if err != nil {
			b.Fatal(err)
		}
		s := newStudy(o, io.Discard)
		if err := s.open(); err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		if err := s.play(context.Background()); err != nil {
			b.Fatal(err)
		}
		jobs := 2 * (len(s.runs[0][wholeJob].jobs) - 1)
		b.ReportMetric(float64(jobs)/time.Since(start).Seconds(), "jobs/s")
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	b.ReportMetric(float64(mem.Sys)/1e9, "GB")
}

// The NASA iPSC log, with EASY.
func BenchmarkLongTrace(b *testing.B) {
	simulate(b, "-swf", refdata.Path(b, "traces/NASA-iPSC-1993-3.1-cln.swf.gz"), "-load", "0.9")
}

// A million jobs on 16 384 nodes, with EASY.
func BenchmarkLongMillion(b *testing.B) {
	simulate(b, "-jobs", "1000000", "-nodes", "16384")
}
