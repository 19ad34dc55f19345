package rset

import (
	"iter"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/rset/internal/children"
)

// Parts returns an iterator over the resources by ranges of ranks, in ascending order.
// It is for package pool.
func (r *R) Parts() iter.Seq[children.Part] {
	return func(yield func(children.Part) bool) { r.orEmpty().parts(yield) }
}

func (r *R) parts(yield func(children.Part) bool) {
	for _, s := range r.spans {
		if !yield(children.Part{First: s.first, Last: s.last, What: r.nodes[s.node].set()}) {
			return
		}
	}
}

// Cut returns parts, which are in ascending order and each on other ranks, with the hosts
// and properties that r has there, and the times and slots given: nothing else. Either r
// has all their ranks, or it is nil. It is for package pool, and trusts it. It retains the
// children.
func (r *R) Cut(parts []children.Part, start, end eventlog.Timestamp, slots int64) *R {
	r = r.orEmpty()
	// What most jobs need is in one piece of memory.
	room := new(struct {
		R
		spans [1]span
		nodes [1]*node
		hosts [1]hostPart
	})
	made := builder{spans: room.spans[:0], interner: interner{nodes: room.nodes[:0]}}
	out := &room.R
	out.hosts = room.hosts[:0]
	var known map[*children.Set]*node // nil while a search is as fast
	at := 0
	for _, p := range parts {
		if known == nil && len(made.nodes) == maxSearch {
			known = make(map[*children.Set]*node)
		}
		made.add(p.First, p.Last, made.nodeOf(p.What, known))
		for first := p.First; len(r.hosts) > 0 && first <= p.Last; {
			if at >= len(r.spans) || r.spans[at].first > first || r.spans[at].last < first {
				at, _ = find(r.spans, first)
			}
			last := min(p.Last, r.spans[at].last)
			out.hosts = out.hosts.appendPart(r.hosts, r.index(at, first), int(last-first)+1)
			first = last + 1
		}
	}
	out.spans, out.nodes = made.spans, made.nodes
	out.start, out.end, out.slots = start, end, slots
	return out.cutProperties(r)
}

// nodeOf returns the node of a set of children, mostly one that is there.
func (b *builder) nodeOf(set *children.Set, known map[*children.Set]*node) *node {
	n := known[set]
	if known == nil {
		for _, m := range b.nodes {
			if m.children == set {
				return m
			}
		}
	}
	if n == nil {
		n = newNode(set)
	}
	if known != nil {
		known[set] = n
	}
	return n
}
