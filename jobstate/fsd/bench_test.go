package fsd_test

import (
	"testing"
	"time"

	"github.com/joblife/joblife/jobstate/fsd"
)

func BenchmarkParse(b *testing.B) {
	for _, text := range []string{"30", "1.25h", "51ms", "0.3333333333333333s", "infinity"} {
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := fsd.Parse(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendText(b *testing.B) {
	for _, d := range []time.Duration{30 * time.Second, 4500 * time.Second, time.Second / 3, 12345678900 * time.Millisecond} {
		b.Run(of(d).String(), func(b *testing.B) {
			buf := make([]byte, 0, 64)
			b.ReportAllocs()
			for b.Loop() {
				buf, _ = of(d).AppendText(buf[:0])
			}
		})
	}
}
