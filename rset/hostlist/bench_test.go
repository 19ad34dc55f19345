package hostlist_test

import (
	"testing"

	"github.com/joblife/joblife/rset/hostlist"
)

var benchTexts = []struct{ name, text string }{
	{"1", "foo7"},
	{"1024range", "foo[0-1023]"},
	{"1024shuffled", shuffled(1024)},
	{"16384shuffled", shuffled(16384)},
	{"1024suffix", "foo[0-1023]-ib"},
	{"1Mrange", "n[0-999999]"},
}

func BenchmarkParse(b *testing.B) {
	for _, c := range benchTexts {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = hostlist.Parse(c.text)
			}
		})
	}
}
