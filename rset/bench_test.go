package rset_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset"
)

// clusterText returns the R of n nodes with 48 cores and 8 gpus; different
// nodes each lack cores of their own.
func clusterText(n int, different bool) string {
	var b strings.Builder
	b.WriteString(`{"version":1,"execution":{"R_lite":[`)
	if different {
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"rank":"%d","children":{"core":"%s","gpu":"0-7"}}`, i, missing(i))
		}
	} else {
		ranks := new(idset.Set)
		ranks.InsertRange(0, uint32(n-1))
		fmt.Fprintf(&b, `{"rank":"%s","children":{"core":"0-47","gpu":"0-7"}}`, ranks)
	}
	hosts := fmt.Sprintf("n[0-%d]", n-1)
	if n == 1 {
		hosts = "n0"
	}
	fmt.Fprintf(&b, `],"starttime":0.0,"expiration":0.0,"nodelist":["%s"]}}`, hosts)
	return b.String()
}

// missing returns the cores of a node, another set for each below 2^15.
func missing(i int) string {
	s := new(idset.Set)
	s.InsertRange(0, 47)
	for bit := range uint32(15) {
		if i>>bit&1 == 1 {
			s.Remove(3*bit + 1)
		}
	}
	return s.String()
}

func BenchmarkParse(b *testing.B) {
	for _, different := range []bool{false, true} {
		for _, n := range []int{1, 64, 4096, 16384} {
			b.Run(fmt.Sprintf("different=%v/nodes=%d", different, n), func(b *testing.B) {
				text := []byte(clusterText(n, different))
				b.ReportAllocs()
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					if _, err := rset.Parse(text); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// Release of all ranks one by one, in scattered order: ns/rank should stay.
func BenchmarkRelease(b *testing.B) {
	for _, different := range []bool{false, true} {
		for _, n := range []int{128, 1024, 16384} {
			b.Run(fmt.Sprintf("different=%v/nodes=%d", different, n), func(b *testing.B) {
				b.ReportAllocs()
				r := parse(b, clusterText(n, different))
				for b.Loop() {
					l := rset.NewLedger(r)
					for i := range n {
						if _, err := l.Free(idset.Of(uint32(i * 7919 % n))); err != nil {
							b.Fatal(err)
						}
					}
					if !l.IsFinal() {
						b.Fatal("not final")
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/rank")
			})
		}
	}
}
