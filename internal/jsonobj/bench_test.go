package jsonobj

import (
	"fmt"
	"strings"
	"testing"
)

// benchTexts are an event's context, and objects of many keys, whose
// fingerprints differ or are the same.
func benchTexts() map[string][]byte {
	texts := map[string][]byte{
		"context": []byte(`{"userid":1000,"urgency":16,"flags":0,"version":1,"annotations":{"sched":{"resource_summary":"rank[0-3]/core[0-7]"}}}`),
		"text":    []byte(`"` + strings.Repeat("all work and no play ", 200) + `"`),
	}
	for _, n := range []int{64, 4 << 10, 100_000} {
		texts[fmt.Sprintf("keys-%d", n)], _ = objectOf(n, -1, func(i int) string { return fmt.Sprintf("key%d", i) })
		texts[fmt.Sprintf("same-print-%d", n)], _ = objectOf(n, -1, func(i int) string { return fmt.Sprintf("aaaaaaaa%06daaaaaaaa", i) })
	}
	return texts
}

func BenchmarkCheck(b *testing.B) {
	for name, text := range benchTexts() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if err := Check(text, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkWalk(b *testing.B) {
	text := benchTexts()["context"]
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		walkAll(text)
	}
}

func BenchmarkFloat(b *testing.B) {
	text := []byte(`1795226020.2783487,"name":"x"`)
	b.Run("op=read", func(b *testing.B) {
		for b.Loop() {
			FloatAt(text, 0)
		}
	})
	b.Run("op=append", func(b *testing.B) {
		dst := make([]byte, 0, 64)
		for b.Loop() {
			AppendFloat(dst, 1795226020.2783487)
		}
	})
}
