package pool

import (
	"cmp"
	"slices"
	"sort"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset/hostlist"
)

// A hostIndex finds the ranks on hosts. It never changes.
//
// To make one of n ranges of hosts on consecutive ranks takes n log n steps. To look up a range
// of a list takes log n steps, and one for each range found. Where ranges lie in each other, as
// those of two brokers on each host do, it takes up to n.
type hostIndex struct {
	spans []hostRange // by prefix, then by first id
}

// A hostRange is hosts with consecutive ids on consecutive ranks.
type hostRange struct {
	hostlist.Range
	rank  uint32 // of the first
	reach uint64 // the largest id of the spans of this prefix up to this one
}

// A rankRun is consecutive ranks, both ends included.
type rankRun struct{ first, last uint32 }

// newHostIndex returns the index of hosts, which are in the order of their ranks.
func newHostIndex(ranks *idset.Set, hosts *hostlist.List) *hostIndex {
	var runs []rankRun
	for first, last := range ranks.Ranges() {
		runs = append(runs, rankRun{first, last})
	}
	x := new(hostIndex)
	for r := range hosts.Ranges() {
		for len(runs) > 0 {
			n := min(r.Last-r.First, uint64(runs[0].last-runs[0].first)) // one less than how many
			span := hostRange{Range: r, rank: runs[0].first}
			span.Last = r.First + n
			x.spans = append(x.spans, span)
			if runs[0].first += uint32(n) + 1; runs[0].first > runs[0].last {
				runs = runs[1:]
			}
			if span.Last == r.Last {
				break
			}
			r.First = span.Last + 1
		}
	}
	slices.SortFunc(x.spans, func(a, b hostRange) int {
		return cmp.Or(cmp.Compare(a.Prefix, b.Prefix), cmp.Compare(a.First, b.First), cmp.Compare(a.rank, b.rank))
	})
	for i := range x.spans {
		s := &x.spans[i]
		if s.reach = s.Last; i > 0 && x.spans[i-1].Prefix == s.Prefix {
			s.reach = max(s.reach, x.spans[i-1].reach)
		}
	}
	return x
}

// ranks returns a new set of the ranks on the hosts of a list, as far as it has them.
func (x *hostIndex) ranks(list *hostlist.List) *idset.Set {
	var found []rankRun
	for r := range list.Ranges() {
		i := sort.Search(len(x.spans), func(i int) bool {
			d := cmp.Compare(x.spans[i].Prefix, r.Prefix)
			return d > 0 || d == 0 && x.spans[i].reach >= r.First
		})
		for ; i < len(x.spans) && x.spans[i].Prefix == r.Prefix && x.spans[i].First <= r.Last; i++ {
			s := &x.spans[i]
			if first, last, ok := common(s.Range, r); ok {
				found = append(found, rankRun{s.rank + uint32(first-s.First), s.rank + uint32(last-s.First)})
			}
		}
	}
	return setOf(found)
}

// setOf returns a new set of runs, which it sorts: a set takes ascending ids faster.
func setOf(runs []rankRun) *idset.Set {
	slices.SortFunc(runs, func(a, b rankRun) int { return cmp.Compare(a.first, b.first) })
	set := new(idset.Set)
	for _, r := range runs {
		set.InsertRange(r.first, r.last)
	}
	return set
}

// common returns the ids of the hosts in both of two ranges of one prefix, if there are any.
func common(a, b hostlist.Range) (first, last uint64, ok bool) {
	first, last = max(a.First, b.First), min(a.Last, b.Last)
	if a.Width != b.Width {
		// Ids that need as many digits as the wider range has are written alike
		// in both; shorter ones have more zeros there. A name without an id has
		// the id 0 and no width: that is below all of these.
		alike := uint64(1)
		for range max(a.Width, b.Width) - 1 {
			alike *= 10
		}
		first = max(first, alike)
	}
	return first, last, first <= last
}
