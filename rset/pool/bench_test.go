package pool_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
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

// loaded returns a pool with 1000 jobs that end at different times.
func loaded(tb testing.TB, n int, different bool) *pool.Pool {
	p := clusterOf(tb, n, different)
	q := byNode(tb, fmt.Sprint(n/1000), "30")
	for i := range 1000 {
		id := jobid.ID(i + 1)
		if _, err := p.Alloc(id, q, 100); err != nil {
			tb.Fatal(err)
		}
		if err := p.SetExpiration(id, eventlog.Timestamp(200+i*7919%1000)); err != nil {
			tb.Fatal(err)
		}
	}
	return p
}

// Conservative backfill: each of 200 jobs is planned, one after the other.
func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{1024, 16384} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			p := loaded(b, n, false)
			var requests []*pool.Request
			for i := range 200 {
				requests = append(requests, needs(b, jobspec.Job{
					Nodes: int64(1 + i*7919%(n/8)), Cores: int64(1 + i%48), Duration: time.Duration(1+i*31%1000) * time.Second,
				}))
			}
			b.ReportAllocs()
			for b.Loop() {
				c := p.Clone()
				for i, q := range requests {
					if _, err := c.Plan(jobid.ID(10_000+i), q, 150); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(requests)), "ns/plan")
		})
	}
}
