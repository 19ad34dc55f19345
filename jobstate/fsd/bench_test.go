package fsd_test

import (
	"testing"

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
