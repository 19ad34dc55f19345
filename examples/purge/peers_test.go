package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/btree"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// A stream makes records as an instance does: ids of a generator, one job every 10
// ms, and each ends up to an hour after its neighbors.
type stream struct {
	ids    *jobid.Generator
	random *rand.Rand
	at     time.Time
}

func newStream(tb testing.TB) *stream {
	ids, err := jobid.NewGenerator(0, epoch)
	require.NoError(tb, err)
	return &stream{ids, rand.New(rand.NewPCG(1, 2)), epoch}
}

func (s *stream) next() purge.Record {
	s.at = s.at.Add(10 * time.Millisecond)
	id, err := s.ids.Next(s.at)
	if err != nil {
		panic(err)
	}
	ended := s.at.Add(time.Duration(s.random.Int64N(int64(time.Hour))))
	return purge.Record{ID: id, Inactive: eventlog.FromTime(ended), Result: jobstate.ResultCompleted, Ran: true}
}

func (s *stream) now() eventlog.Timestamp { return eventlog.FromTime(s.at.Add(2 * time.Hour)) }

func less(a, b purge.Record) bool {
	return a.Inactive < b.Inactive || a.Inactive == b.Inactive && a.ID < b.ID
}

const peerBatch = 100

// A peer takes records and drops the oldest 100 at a time.
type peer interface {
	add(purge.Record)
	drop(now eventlog.Timestamp)
}

type index struct {
	x *purge.Index
	n int
}

func (p index) add(r purge.Record) {
	if err := p.x.Add(r); err != nil {
		panic(err)
	}
}

func (p index) drop(now eventlog.Timestamp) {
	plan, err := p.x.Claim(now, purge.Limits{MaxCount: jobstate.Some(p.n)})
	p.x.Unlinked(plan.IDs(), nil)
	if err != nil || len(plan.Jobs) != peerBatch {
		panic(fmt.Sprint(len(plan.Jobs), err))
	}
}

// tree is what one would write: tidwall's B-tree by time, and a map by id. It has no
// counts, pins, claims or tombstones.
type tree struct {
	byTime *btree.BTreeG[purge.Record]
	byID   map[jobid.ID]purge.Record
}

func (p tree) add(r purge.Record) {
	p.byTime.Set(r)
	p.byID[r.ID] = r
}

func (p tree) drop(eventlog.Timestamp) {
	for range peerBatch {
		r, _ := p.byTime.PopMin()
		delete(p.byID, r.ID)
	}
}

// sorted is a sorted slice and a map by id.
type sorted struct {
	byTime []purge.Record
	byID   map[jobid.ID]purge.Record
}

func (p *sorted) add(r purge.Record) {
	at, _ := slices.BinarySearchFunc(p.byTime, r, func(a, b purge.Record) int {
		switch {
		case less(a, b):
			return -1
		case less(b, a):
			return 1
		}
		return 0
	})
	p.byTime = slices.Insert(p.byTime, at, r)
	p.byID[r.ID] = r
}

func (p *sorted) drop(eventlog.Timestamp) {
	for _, r := range p.byTime[:peerBatch] {
		delete(p.byID, r.ID)
	}
	p.byTime = slices.Delete(p.byTime, 0, peerBatch)
}

// BenchmarkPeers passes jobs through an index of n, beside what one would write
// instead: each that comes pushes out the oldest, a hundred at a time. The sides
// alternate within one run, and the ratios are of medians.
func BenchmarkPeers(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("jobs=%d", n), func(b *testing.B) {
			bare, err := purge.New(purge.Config{TombstoneCount: jobstate.Some(0)})
			require.NoError(b, err)
			whole, err := purge.New(purge.Config{})
			require.NoError(b, err)
			sides := []peer{
				index{whole, n}, index{bare, n},
				tree{btree.NewBTreeGOptions(less, btree.Options{NoLocks: true}), make(map[jobid.ID]purge.Record)},
				&sorted{byID: make(map[jobid.ID]purge.Record)},
			}
			streams := make([]*stream, len(sides))
			for i, p := range sides {
				streams[i] = newStream(b)
				if s, ok := p.(*sorted); ok { // built at once: one by one takes hours
					for range n {
						r := streams[i].next()
						s.byTime, s.byID[r.ID] = append(s.byTime, r), r
					}
					slices.SortFunc(s.byTime, func(a, b purge.Record) int {
						if less(a, b) {
							return -1
						}
						return 1
					})
					continue
				}
				for range n {
					p.add(streams[i].next())
				}
			}
			rounds := make([][]time.Duration, len(sides))
			random := rand.New(rand.NewPCG(3, 4))
			for b.Loop() {
				for _, i := range random.Perm(len(sides)) { // the slice empties the caches of what follows
					p := sides[i]
					records := make([]purge.Record, peerBatch)
					for k := range records {
						records[k] = streams[i].next()
					}
					started := time.Now()
					for _, r := range records {
						p.add(r)
					}
					p.drop(streams[i].now())
					rounds[i] = append(rounds[i], time.Since(started))
				}
			}
			median := make([]float64, len(sides))
			for i := range sides {
				slices.Sort(rounds[i])
				median[i] = float64(rounds[i][len(rounds[i])/2])
			}
			b.ReportMetric(median[0]/peerBatch, "ns/job")
			b.ReportMetric(median[0]/median[2], "default/tidwall")
			b.ReportMetric(median[1]/median[2], "bare/tidwall")
			b.ReportMetric(median[3]/median[0], "slice/default")
		})
	}
}
