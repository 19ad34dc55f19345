package jobid_test

import (
	"testing"

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
