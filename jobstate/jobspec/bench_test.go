package jobspec_test

import (
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
