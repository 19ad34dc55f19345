package jobspec_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/joblife/joblife/jobstate/jobspec"
)

// withEnvironment returns a jobspec whose environment has n variables.
func withEnvironment(n int) []byte {
	var env strings.Builder
	for i := range n {
		if i > 0 {
			env.WriteByte(',')
		}
		fmt.Fprintf(&env, `"VARIABLE_%d":"/usr/share/some/path/%d:/usr/local/bin"`, i, i)
	}
	return []byte(text(`[{"type":"node","count":4,"with":`+slotOfCore+`}]`, "", `{"system":{"duration":3600.0,"environment":{`+env.String()+`}}}`))
}

func BenchmarkParse(b *testing.B) {
	for _, n := range []int{1, 64, 4096} {
		in := withEnvironment(n)
		b.Run(fmt.Sprintf("variables=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				if _, err := jobspec.Parse(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{1, 64, 4096} {
		s := parse(b, string(withEnvironment(n)))
		b.Run(fmt.Sprintf("variables=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Update("attributes.system.duration", json.RawMessage(`60`)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCounts(b *testing.B) {
	s := parse(b, string(withEnvironment(1)))
	b.ReportAllocs()
	for b.Loop() {
		if c := s.Counts(); c == (jobspec.Counts{}) {
			b.Fatal(c)
		}
	}
}
