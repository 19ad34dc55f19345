package sched

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/bomb"
	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
)

// A queue does as a sorted slice does.
func TestAQueueIsASortedSlice(t *testing.T) {
	chunks := 0
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var all []*job
		requests := []*pool.Request{new(pool.Request), new(pool.Request)}
		less := func(a, b *job) int {
			return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
		}
		some := func(most int) int { return rapid.IntRange(0, most).Draw(t, "some") }
		next, growing := jobid.ID(0), true
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			for range some(200) { // many jobs come, or many go
				if growing || len(all) == 0 {
					next++
					j := &job{Job: Job{JobInfo: alloc.JobInfo{ID: next*7919%4096 + 1, Priority: uint32(some(2))}}}
					j.need = need{int64(some(9)), int64(some(9)), eventlog.Timestamp(some(9)), requests[some(9)/8]}
					if slices.ContainsFunc(all, func(k *job) bool { return k.ID == j.ID }) {
						continue
					}
					i, _ := slices.BinarySearchFunc(all, j, less)
					all = slices.Insert(all, i, j)
					q.insert(j.entry())
				} else {
					i := some(min(len(all)-1, 300))
					q.remove(all[i].key())
					all = slices.Delete(all, i, i+1)
				}
			}
			growing = some(1) == 1
			chunks = max(chunks, len(q.chunks))
			require.Equal(t, len(all), q.n)
			f := &sieve{nodes: int64(some(9)), cores: int64(some(9)), spare: int64(some(9)), now: 100, until: 100 + eventlog.Timestamp(some(9)),
				busy: map[*pool.Request]bool{requests[some(1)]: some(1) == 1}}
			for _, f := range []*sieve{nil, f} {
				var got, want []*job
				for j := q.first(f); j != nil; j = q.after(j.key(), f) {
					got = append(got, j)
				}
				for i, j := range all {
					if f == nil || j.nodes <= f.nodes && j.cores <= f.cores && (j.nodes <= f.spare || 100+j.takes <= f.until) && !f.busy[j.request] {
						want = append(want, j)
					}
					for _, n := range []int{i - 1, i, i + 1} {
						require.True(t, (i > n) == q.beyond(j.key(), n))
					}
				}
				require.Equal(t, len(want), len(got))
				for i := range want {
					require.True(t, want[i] == got[i])
				}
			}
			for i, c := range q.chunks {
				was := c.least
				c.measure()
				require.Equal(t, was, c.least)
				require.True(t, i == 0 || len(c.entries)+len(q.chunks[i-1].entries) > chunkLen/2, "no two small ones beside each other")
				require.Equal(t, chunkLen, cap(c.entries))
			}
		}
	})
	require.Greater(t, chunks, 4)
}

// Chunks stay few in whatever order jobs go.
func TestChunksThatShrinkFromFrontToBackBecomeOne(t *testing.T) {
	var q queue
	for i := range 64 * chunkLen {
		q.insert(entry{key: key{id: jobid.ID(i)}})
	}
	for i := range 64 * chunkLen {
		if i%chunkLen > 0 {
			q.remove(key{id: jobid.ID(i)})
		}
	}
	require.Equal(t, 64, q.n)
	require.Len(t, q.chunks, 1)
}

// Whether a job is among the first does not depend on how many there are.
func TestAPlaceFarBehindIsFoundSoon(t *testing.T) {
	race.Skip(t)
	cost := func(n int) time.Duration {
		var q queue
		for i := range n {
			q.insert(entry{key: key{id: jobid.ID(i)}})
		}
		_, took := bomb.Cost(func() {
			for i := range n {
				if q.beyond(key{id: jobid.ID(i)}, 10) != (i > 10) {
					t.Fatal(i)
				}
			}
		})
		return took
	}
	require.Less(t, cost(200_000), 8*cost(50_000)+100*time.Millisecond)
}
