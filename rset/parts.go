package rset

import (
	"fmt"
	"iter"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/rset/children"
)

// Parts returns an iterator over the resources by ranges of ranks, in ascending order, for an
// index of ranks, such as package pool. It allocates nothing.
func (r *R) Parts() iter.Seq[children.Part] {
	return func(yield func(children.Part) bool) { r.orEmpty().parts(yield) }
}

func (r *R) parts(yield func(children.Part) bool) {
	for _, s := range r.spans {
		if !yield(children.Part{First: s.first, Last: s.last, What: r.nodes[s.node]}) {
			return
		}
	}
}

// Cut is the way back from Parts. It returns parts, in ascending order, with the hosts and
// properties that r has there, its scheduling key, which is shared, and the times and slots
// given: nothing else. It retains the children. Panics if parts overlap, are out of order or
// have no children, and if r has hosts but does not have all their ranks.
func (r *R) Cut(parts []children.Part, start, end eventlog.Timestamp, slots int64) *R {
	r = r.orEmpty()
	out, made := newBuilder()
	for _, p := range parts {
		if k := len(made.spans); p.What == nil || p.First > p.Last || p.Last > MaxRank || k > 0 && p.First <= made.spans[k-1].last {
			panic(fmt.Sprintf("rset: ranks %d to %d: not a part, or not in order", p.First, p.Last))
		}
		made.add(p.First, p.Last, p.What)
		for first := p.First; !r.hosts.IsEmpty() && first <= p.Last; {
			at, ok := find(r.spans, first)
			if !ok {
				panic(fmt.Sprintf("rset: rank %d is not in the set with the hosts", first))
			}
			last := min(p.Last, r.spans[at].last)
			out.appendHosts(r, at, first, last)
			first = last + 1
		}
	}
	out.spans, out.nodes = made.spans, made.nodes
	out.start, out.end, out.slots, out.scheduling = start, end, slots, r.scheduling
	return out.cutProperties(r)
}
