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
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := fsd.Parse(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	for _, n := range []int{64, 4096, 100_000} {
		b.Run(strconv.Itoa(n)+" digits", func(b *testing.B) {
			text := "0." + strings.Repeat("3", n) + "h"
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := fsd.Parse(text); err != nil {
					b.Fatal(err)
				}
			}
		})
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

func BenchmarkAppendText(b *testing.B) {
	for _, d := range []fsd.Duration{30, 4500, 1.0 / 3, 12345678.9, fsd.Infinity()} {
		b.Run(d.String(), func(b *testing.B) {
			buf := make([]byte, 0, 64)
			b.ReportAllocs()
			for b.Loop() {
				buf, _ = d.AppendText(buf[:0])
			}
		})
	}
}

func BenchmarkFormat(b *testing.B) {
	buf := make([]byte, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		buf = fsd.Duration(12345678.9).AppendFormat(buf[:0], 2)
	}
}
