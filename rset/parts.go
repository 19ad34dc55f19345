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
	made := builder{spans: room.spans[:0], nodes: room.nodes[:0]}
	out := &room.R
	out.hosts = room.hosts[:0]
	var known memo
	at := 0
	for _, p := range parts {
		made.add(p.First, p.Last, known.node(p.What))
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

// A memo knows the nodes of sets of children.
type memo struct {
	nodes []*node
	index map[*children.Set]*node // nil while a search is as fast
	room  [1]*node
}

// node returns the node of a set of children, each time the same.
func (m *memo) node(set *children.Set) *node {
	if n, ok := m.index[set]; ok {
		return n
	}
	for _, n := range m.nodes {
		if n.children == set {
			return n
		}
	}
	n := newNode(set)
	if m.nodes == nil {
		m.nodes = m.room[:0]
	}
	if len(m.nodes) < maxSearch {
		m.nodes = append(m.nodes, n)
		return n
	}
	if m.index == nil {
		m.index = make(map[*children.Set]*node)
	}
	m.index[set] = n
	return n
}
