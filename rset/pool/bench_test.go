package pool_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset/pool"
)

// clusterOf returns a pool of n nodes, all up, with 48 cores and 8 gpus each;
// different nodes each lack cores of their own.
func clusterOf(tb testing.TB, n int, different bool) *pool.Pool {
	var text strings.Builder
	if different {
		for i := range n {
			s := new(idset.Set)
			s.InsertRange(0, 47)
			for bit := range uint32(15) {
				if i>>bit&1 == 1 {
					s.Remove(3*bit + 1)
				}
			}
			fmt.Fprintf(&text, "rank%d/core[%s],gpu[0-7] ", i, s)
		}
	} else {
		ranks := new(idset.Set)
		ranks.InsertRange(0, uint32(n-1))
		fmt.Fprintf(&text, "rank%s/core[0-47],gpu[0-7] ", ranks)
	}
	if n == 1 {
		text.WriteString("n0")
	} else {
		fmt.Fprintf(&text, "n[0-%d]", n-1)
	}
	return upPool(tb, text.String())
}

// One node, of a pool that is idle.
func BenchmarkAllocFreeOneNode(b *testing.B) {
	for _, different := range []bool{false, true} {
		for _, n := range []int{1, 128, 4096, 16384} {
			b.Run(fmt.Sprintf("different=%v/nodes=%d", different, n), func(b *testing.B) {
				p, q := clusterOf(b, n, different), byNode(b, "1", "32")
				b.ReportAllocs()
				for b.Loop() {
					r, err := p.Alloc(1, q, 100)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := p.Free(1, r, true); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
