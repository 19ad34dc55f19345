package fsd_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/joblife/joblife/jobstate/fsd"
)

func BenchmarkParse(b *testing.B) {
	for _, text := range []string{"30", "1.25h", "51ms", "0.3333333333333333s", "infinity"} {
		b.Run(text, func(b *testing.B) { benchmarkParse(b, text) })
	}
	for _, n := range []int{64, 4096, 100_000} {
		b.Run(strconv.Itoa(n)+" digits", func(b *testing.B) { benchmarkParse(b, "0."+strings.Repeat("3", n)+"h") })
	}
	// What the standard library does for its own form.
	b.Run("time.ParseDuration", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := time.ParseDuration("1.25h"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func benchmarkParse(b *testing.B, text string) {
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := fsd.Parse(text); err != nil {
			b.Fatal(err)
		}
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
