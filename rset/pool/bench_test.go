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
	"github.com/joblife/joblife/rset"
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

func eachCluster(b *testing.B, f func(b *testing.B, p *pool.Pool, n int)) {
	for _, different := range []bool{false, true} {
		for _, n := range []int{1, 128, 4096, 16384} {
			b.Run(fmt.Sprintf("different=%v/nodes=%d", different, n), func(b *testing.B) {
				p := clusterOf(b, n, different)
				b.ReportAllocs()
				f(b, p, n)
			})
		}
	}
}

// allocFree allocates and frees over and over.
func allocFree(b *testing.B, p *pool.Pool, q *pool.Request, id jobid.ID) {
	r, err := p.Alloc(id, q, 100)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := p.Free(id, r, true); err != nil {
		b.Fatal(err)
	}
}

// One node, of a pool that is idle.
func BenchmarkAllocFreeOneNode(b *testing.B) {
	eachCluster(b, func(b *testing.B, p *pool.Pool, _ int) {
		q := byNode(b, "1", "32")
		for b.Loop() {
			allocFree(b, p, q, 1)
		}
	})
}

// One node, of a pool of which every second node is taken.
func BenchmarkAllocFreeOneNodeHalfFull(b *testing.B) {
	eachCluster(b, func(b *testing.B, p *pool.Pool, n int) {
		q := byNode(b, "1", "32")
		fill(b, p, n)
		for b.Loop() {
			allocFree(b, p, q, 1<<40)
		}
	})
}

// fill gives every second node to a job of its own.
func fill(b *testing.B, p *pool.Pool, n int) {
	for rank := 0; rank < n; rank += 2 {
		r, err := p.Inventory().Restrict(idset.Of(uint32(rank)))
		if err != nil {
			b.Fatal(err)
		}
		if n > 1 {
			if err := p.Adopt(jobid.ID(rank+1), r, nil); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// One core, of a node that fills up with such jobs.
func BenchmarkAllocFreeOneCore(b *testing.B) {
	eachCluster(b, func(b *testing.B, p *pool.Pool, n int) {
		q := bySlot(b, "1", "1")
		for i := range min(24*n, 24*128) {
			if _, err := p.Alloc(jobid.ID(i+1), q, 100); err != nil {
				b.Fatal(err)
			}
		}
		for b.Loop() {
			allocFree(b, p, q, 1<<40)
		}
	})
}

// All nodes.
func BenchmarkAllocFreeAll(b *testing.B) {
	eachCluster(b, func(b *testing.B, p *pool.Pool, n int) {
		q := requestOf(b, specText("["+wholeNodes(fmt.Sprint(n))+"]", ""))
		for b.Loop() {
			allocFree(b, p, q, 1)
		}
	})
}

// All nodes, freed one by one in scattered order.
func BenchmarkFreeOneByOne(b *testing.B) {
	eachCluster(b, func(b *testing.B, p *pool.Pool, n int) {
		q := requestOf(b, specText("["+wholeNodes(fmt.Sprint(n))+"]", ""))
		r, err := p.Alloc(1, q, 100)
		if err != nil {
			b.Fatal(err)
		}
		parts := make([]*rset.R, n)
		for i := range n {
			parts[i], _ = r.Restrict(idset.Of(uint32(i * 7919 % n)))
		}
		for b.Loop() {
			c := p.Clone()
			for i, part := range parts {
				if _, err := c.Free(1, part, i == n-1); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/rank")
	})
}

// A clone, and the first change of it.
func BenchmarkClone(b *testing.B) {
	eachCluster(b, func(b *testing.B, p *pool.Pool, _ int) {
		q := byNode(b, "1", "32")
		for b.Loop() {
			allocFree(b, p.Clone(), q, 1)
		}
	})
}

// A request that cannot be met now.
func BenchmarkBusy(b *testing.B) {
	eachCluster(b, func(b *testing.B, p *pool.Pool, n int) {
		q := requestOf(b, specText("["+wholeNodes(fmt.Sprint(n))+"]", ""))
		if _, err := p.Alloc(1, bySlot(b, "1", "1"), 100); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := p.Alloc(2, q, 100); err == nil {
				b.Fatal("not busy")
			}
		}
	})
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

// A forecast for half the nodes, which many jobs leave before; and how many times longer
// it takes to end these jobs in a copy instead.
func BenchmarkEarliest(b *testing.B) {
	for _, different := range []bool{false, true} {
		for _, n := range []int{1024, 16384} {
			b.Run(fmt.Sprintf("different=%v/nodes=%d", different, n), func(b *testing.B) {
				p := loaded(b, n, different)
				q := requestOf(b, specText("["+wholeNodes(fmt.Sprint(n/2))+"]", ""))
				var fast, plain time.Duration // the least of each, since others use the machine too
				b.ReportAllocs()
				for b.Loop() {
					start := b.Elapsed()
					at, err := p.Earliest(q, 150)
					if took := b.Elapsed() - start; fast == 0 || took < fast {
						fast = took
					}
					if err != nil {
						b.Fatal(err)
					}
					if plain > 0 && (different || n > 1024) {
						continue // once is long enough
					}
					start = b.Elapsed()
					if want, err := plainEarliest(p, q, 150); err != nil || at != want {
						b.Fatal(at, want, err)
					}
					if took := b.Elapsed() - start; plain == 0 || took < plain {
						plain = took
					}
				}
				b.ReportMetric(float64(fast.Nanoseconds()), "ns/forecast")
				b.ReportMetric(float64(plain)/float64(fast), "plain/forecast")
			})
		}
	}
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

// One rank goes down and comes up.
func BenchmarkDownUp(b *testing.B) {
	eachCluster(b, func(b *testing.B, p *pool.Pool, n int) {
		one := idset.Of(uint32(n / 2))
		for b.Loop() {
			if p.Update(pool.Change{Down: one}) != nil || p.Update(pool.Change{Up: one}) != nil {
				b.Fatal("refused")
			}
		}
	})
}

// One rank gets a property.
func BenchmarkProperty(b *testing.B) {
	eachCluster(b, func(b *testing.B, p *pool.Pool, n int) {
		c := pool.Change{AddProperties: map[string]*idset.Set{"a": idset.Of(uint32(n / 2))}}
		for b.Loop() {
			if err := p.Update(c); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// One job, in a pool where two others hold the same of so many ranges.
func BenchmarkHolderBesideConflicts(b *testing.B) {
	for _, n := range []int{1, 64, 4096} {
		b.Run(fmt.Sprintf("ranges=%d", n), func(b *testing.B) {
			p := clusterOf(b, 16384, false)
			var every []string
			for i := range n {
				every = append(every, fmt.Sprint(2*i))
			}
			r := parseR(b, "rank["+strings.Join(every, ",")+"]/core0")
			if err := p.Adopt(1, r, nil); err != nil {
				b.Fatal(err)
			}
			_ = p.Adopt(2, r, nil) // a conflict
			alloc(b, p, 3, byNode(b, "1", "32"))
			b.ReportAllocs()
			for b.Loop() {
				p.Holder(3)
			}
		})
	}
}
