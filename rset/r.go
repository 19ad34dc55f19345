package rset

import (
	"encoding/json"
	"iter"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset/hostlist"
)

// Default limits of Parse, and what no limit can exceed.
const (
	MaxRank    = 1 << 24  // the largest rank
	MaxChild   = 1 << 20  // the largest id of a core, gpu or other child
	MaxBytes   = 64 << 20 // the number of bytes of a text
	MaxEntries = 1 << 20  // the number of entries of R_lite
	MaxHosts   = 1 << 24  // the number of hosts
)

// R is a set of resources, RFC 20: which cores, gpus and other children of
// which ranks, on which hosts, and from when to when. It is immutable: every
// operation returns another one, any number of goroutines may use it, and it
// may be copied. The zero value and a nil *R are the empty set.
type R struct {
	spans      []span  // ascending, disjoint; neighbours that touch have different nodes
	nodes      []*node // distinct, in the order of their first rank
	hosts      hosts   // in rank order, one a rank; empty if they are not known
	properties []property
	start, end eventlog.Timestamp
	slots      int64
	scheduling []byte   // compact JSON, nil if there is none
	execution  []member // keys under execution that RFC 20 does not name, by key
	top        []member // keys beside execution, the same way
}

// A property is a name and the ranks that have it.
type property struct {
	name  string
	ranks *idset.Set // never changed, never empty
}

// A member is a key of a JSON object and its value, compact.
type member struct {
	key string
	raw []byte
}

// empty is what a nil *R reads as.
func (r *R) orEmpty() *R {
	if r == nil {
		return new(R)
	}
	return r
}

// Len returns the number of ranks.
func (r *R) Len() int {
	if r.IsEmpty() {
		return 0
	}
	last := r.spans[len(r.spans)-1]
	return last.before + last.len()
}

// IsEmpty reports whether there are no resources. An empty R is legal as the
// result of an operation and as a last fragment, not as an inventory or an
// allocation.
func (r *R) IsEmpty() bool { return r == nil || len(r.spans) == 0 }

// Ranks returns a new set of the ranks.
func (r *R) Ranks() *idset.Set {
	s := new(idset.Set)
	for _, sp := range r.orEmpty().spans {
		s.InsertRange(sp.first, sp.last)
	}
	return s
}

// HasRank reports whether a rank is among those of r, in the logarithm of its
// ranges.
func (r *R) HasRank(rank uint32) bool {
	_, ok := find(r.orEmpty().spans, rank)
	return ok
}

// Nodelist returns a new list of the hosts in rank order, empty if they are not
// known.
func (r *R) Nodelist() *hostlist.List { return r.orEmpty().hosts.list() }

// HasHosts reports whether the hosts of the ranks are known.
func (r *R) HasHosts() bool { return len(r.orEmpty().hosts) > 0 }

// Host returns the host of a rank, or false if the rank is not there or the
// hosts are not known.
func (r *R) Host(rank uint32) (string, bool) {
	r = r.orEmpty()
	i, ok := find(r.spans, rank)
	if !ok {
		return "", false
	}
	return r.hosts.at(r.spans[i].before + int(rank-r.spans[i].first))
}

// Children returns a new set of the ids of a kind, as "core", at a rank: empty
// if there are none.
func (r *R) Children(rank uint32, kind string) *idset.Set {
	r = r.orEmpty()
	if i, ok := find(r.spans, rank); ok {
		return r.nodes[r.spans[i].node].ids(kind).Clone()
	}
	return new(idset.Set)
}

// Count returns the number of resources of a kind, as "core" or "gpu", over all
// ranks.
func (r *R) Count(kind string) int64 {
	r = r.orEmpty()
	per := make([]int64, len(r.nodes))
	for i, n := range r.nodes {
		per[i] = int64(n.ids(kind).Len())
	}
	total := int64(0)
	for _, s := range r.spans {
		total += int64(s.len()) * per[s.node]
	}
	return total
}

// Start returns the time from which on the resources are valid; 0 if that is
// not limited.
func (r *R) Start() eventlog.Timestamp { return r.orEmpty().start }

// Expiration returns the time at which the resources expire; 0 if they never do.
func (r *R) Expiration() eventlog.Timestamp { return r.orEmpty().end }

// Slots returns the number of slots of the allocation that r is, or is a
// fragment of; 0 if it is not known.
func (r *R) Slots() int64 { return r.orEmpty().slots }

// Scheduling returns a copy of what the scheduler that made this R keeps with
// it, nil if there is nothing.
func (r *R) Scheduling() json.RawMessage {
	return append(json.RawMessage(nil), r.orEmpty().scheduling...)
}

// An Entry is ranks that have the same children.
type Entry struct {
	Ranks    *idset.Set
	Children map[string]*idset.Set // by kind, as "core"
}

// Entries returns an iterator over the groups of ranks with equal children, in
// the order of their first ranks. The entries share nothing with r.
func (r *R) Entries() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		r := r.orEmpty()
		ranks := r.groups()
		for i, n := range r.nodes {
			e := Entry{Ranks: ranks[i], Children: make(map[string]*idset.Set, len(n.kinds))}
			for _, k := range n.kinds {
				e.Children[k.name] = k.ids.Clone()
			}
			if !yield(e) {
				return
			}
		}
	}
}

// groups returns the ranks of each node.
func (r *R) groups() []*idset.Set {
	out := make([]*idset.Set, len(r.nodes))
	for i := range out {
		out[i] = new(idset.Set)
	}
	for _, s := range r.spans {
		out[s.node].InsertRange(s.first, s.last)
	}
	return out
}

// Properties returns an iterator over the properties by name, and the ranks
// that have them. The sets are copies.
func (r *R) Properties() iter.Seq2[string, *idset.Set] {
	return func(yield func(string, *idset.Set) bool) {
		for _, p := range r.orEmpty().properties {
			if !yield(p.name, p.ranks.Clone()) {
				return
			}
		}
	}
}

// Property returns a new set of the ranks that have a property.
func (r *R) Property(name string) *idset.Set {
	for _, p := range r.orEmpty().properties {
		if p.name == name {
			return p.ranks.Clone()
		}
	}
	return new(idset.Set)
}

// Equal reports whether a and b are equal in all respects, which is when their
// encodings are the same bytes.
func Equal(a, b *R) bool {
	return string(a.orEmpty().appendJSON(nil)) == string(b.orEmpty().appendJSON(nil))
}

// SameResources reports whether a and b have the same ranks with the same
// children, whatever else they have.
func SameResources(a, b *R) bool {
	a, b = a.orEmpty(), b.orEmpty()
	same := len(a.spans) == len(b.spans)
	for i := 0; same && i < len(a.spans); i++ {
		s, t := a.spans[i], b.spans[i]
		same = s.first == t.first && s.last == t.last && a.nodes[s.node].equal(b.nodes[t.node])
	}
	return same
}
