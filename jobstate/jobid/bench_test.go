package jobid_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/joblife/joblife/jobstate/jobid"
)

// benchID has eleven base 58 digits, as most ids of a running instance have.
const benchID = jobid.ID(0x3e7777a5d338e91b)

func BenchmarkParse(b *testing.B) {
	for _, f := range formats {
		b.Run(f.String(), func(b *testing.B) {
			text := benchID.Format(f)
			b.ReportAllocs()
			for b.Loop() {
				if id, err := jobid.Parse(text); id != benchID || err != nil {
					b.Fatal(id, err)
				}
			}
		})
	}
}

func BenchmarkAppendFormat(b *testing.B) {
	for _, f := range formats {
		b.Run(f.String(), func(b *testing.B) {
			buf := make([]byte, 0, 64)
			b.ReportAllocs()
			for b.Loop() {
				buf = benchID.AppendFormat(buf[:0], f)
			}
		})
	}
}

func BenchmarkUnmarshalJSON(b *testing.B) {
	text := []byte(benchID.Format(jobid.FormatDec))
	b.ReportAllocs()
	for b.Loop() {
		var id jobid.ID
		if err := json.Unmarshal(text, &id); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	for _, n := range []int{1, 64, 4096, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				g := newGenerator(b, 1)
				now := epoch
				for range n {
					now = now.Add(time.Microsecond)
					if _, err := g.Next(now); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/id")
		})
	}
}
