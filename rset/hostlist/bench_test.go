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

func each(b *testing.B, f func(b *testing.B, l *hostlist.List, text string)) {
	for _, c := range benchTexts {
		b.Run(c.name, func(b *testing.B) {
			l := parse(b, c.text)
			b.ReportAllocs()
			f(b, l, c.text)
		})
	}
}

func BenchmarkParse(b *testing.B) {
	each(b, func(b *testing.B, _ *hostlist.List, text string) {
		for b.Loop() {
			_, _ = hostlist.Parse(text)
		}
	})
}

func BenchmarkAppendText(b *testing.B) {
	each(b, func(b *testing.B, l *hostlist.List, _ string) {
		var dst []byte
		for b.Loop() {
			dst, _ = l.AppendText(dst[:0])
		}
	})
}

func BenchmarkUniq(b *testing.B) {
	each(b, func(b *testing.B, l *hostlist.List, _ string) {
		for b.Loop() {
			l.Clone().Uniq()
		}
	})
}

func BenchmarkNth(b *testing.B) {
	each(b, func(b *testing.B, l *hostlist.List, _ string) {
		for b.Loop() {
			l.Nth(l.Len() / 2)
		}
	})
}

func BenchmarkFind(b *testing.B) {
	each(b, func(b *testing.B, l *hostlist.List, _ string) {
		name, _ := l.Nth(l.Len() / 2)
		for b.Loop() {
			l.Find(name)
		}
	})
}
