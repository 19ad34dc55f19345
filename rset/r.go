package rset

import (
	"cmp"
	"encoding/json"
	"iter"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset/children"
	"github.com/joblife/joblife/rset/hostlist"
)

// Limits of [Parse] and [New].
const (
	MaxRank  = 1 << 24  // the largest rank
	MaxBytes = 64 << 20 // bytes of a text

	maxChild   = 1 << 20 // the largest id of a child
	maxEntries = 1 << 20 // entries of R_lite
	maxHosts   = 1 << 24 // hosts
)

// R is a set of resources (RFC 20). It is immutable: operations return a new R. The zero
// value and a nil *R are the empty set.
type R struct {
	spans      []span          // ascending, disjoint; neighbours that touch have different nodes
	nodes      []*children.Set // distinct, in the order of their first rank
	hosts      *hostlist.List  // in rank order, one a rank; never changed, empty if they are not known
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

// IsEmpty reports whether there are no resources. An empty R is a valid result, a valid
// inventory and a valid last fragment, but not a valid allocation.
func (r *R) IsEmpty() bool { return r == nil || len(r.spans) == 0 }

// Ranks returns a new set of the ranks.
func (r *R) Ranks() *idset.Set {
	s := new(idset.Set)
	for _, sp := range r.orEmpty().spans {
		s.InsertRange(sp.first, sp.last)
	}
	return s
}

// Nodelist returns a new list of the hosts in rank order. All ranks have a host, or none has.
func (r *R) Nodelist() *hostlist.List { return r.orEmpty().hosts.Clone() }

// Host returns the host of a rank, or false if r has no such rank or no hosts.
func (r *R) Host(rank uint32) (string, bool) {
	r = r.orEmpty()
	i, ok := find(r.spans, rank)
	if !ok {
		return "", false
	}
	return r.hosts.Nth(r.index(i, rank))
}

// Children returns a new set of the ids of a kind, such as "core", on a rank, perhaps of none.
func (r *R) Children(rank uint32, kind string) *idset.Set {
	r = r.orEmpty()
	if i, ok := find(r.spans, rank); ok {
		ids, _ := r.nodes[r.spans[i].node].Kind(kind)
		return ids.Clone()
	}
	return new(idset.Set)
}

// Count returns the number of resources of a kind, such as "core", on all ranks.
func (r *R) Count(kind string) int64 {
	r = r.orEmpty()
	per := make([]int64, len(r.nodes))
	for i, n := range r.nodes {
		_, count := n.Kind(kind)
		per[i] = int64(count)
	}
	total := int64(0)
	for _, s := range r.spans {
		total += int64(s.len()) * per[s.node]
	}
	return total
}

// Start returns the time from which the resources are valid; 0 means always.
func (r *R) Start() eventlog.Timestamp { return r.orEmpty().start }

// Expiration returns the time at which the resources expire; 0 means never.
func (r *R) Expiration() eventlog.Timestamp { return r.orEmpty().end }

// Slots returns the number of slots of the allocation, also in its fragments; 0: not known.
func (r *R) Slots() int64 { return r.orEmpty().slots }

// Scheduling returns a copy of the key scheduling, which only a scheduler understands, or nil.
func (r *R) Scheduling() json.RawMessage {
	return append(json.RawMessage(nil), r.orEmpty().scheduling...)
}

// An Entry is a group of ranks with equal children.
type Entry struct {
	Ranks    *idset.Set
	Children map[string]*idset.Set // ids by kind, such as "core"
}

// Entries returns an iterator over the groups of ranks with equal children, copies, in the
// order of their first ranks.
func (r *R) Entries() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		r := r.orEmpty()
		ranks := r.groups()
		for i, n := range r.nodes {
			e := Entry{Ranks: &ranks[i], Children: make(map[string]*idset.Set)}
			for _, k := range n.Kinds() {
				e.Children[k.Name] = k.IDs.Clone()
			}
			if !yield(e) {
				return
			}
		}
	}
}

func (r *R) groups() []idset.Set {
	out := make([]idset.Set, len(r.nodes))
	for _, s := range r.spans {
		out[s.node].InsertRange(s.first, s.last)
	}
	return out
}

// Properties returns an iterator over the properties, by name, and copies of their ranks.
func (r *R) Properties() iter.Seq2[string, *idset.Set] {
	return func(yield func(string, *idset.Set) bool) {
		for _, p := range r.orEmpty().properties {
			if !yield(p.name, p.ranks.Clone()) {
				return
			}
		}
	}
}

// Property returns a new set of the ranks that have a property; empty if there are none.
func (r *R) Property(name string) *idset.Set {
	r = r.orEmpty()
	if i, ok := findProperty(r.properties, name); ok {
		return r.properties[i].ranks.Clone()
	}
	return new(idset.Set)
}

// findProperty returns where a property is, or would be, and whether it is.
func findProperty(list []property, name string) (int, bool) {
	return slices.BinarySearchFunc(list, name, func(p property, name string) int { return cmp.Compare(p.name, name) })
}

// Equal reports whether a and b have equal encodings. It encodes both.
func Equal(a, b *R) bool {
	return string(a.AppendJSON(nil)) == string(b.AppendJSON(nil))
}

// SameResources reports whether a and b have the same ranks with the same children.
func SameResources(a, b *R) bool {
	a, b = a.orEmpty(), b.orEmpty()
	same := len(a.spans) == len(b.spans)
	for i := 0; same && i < len(a.spans); i++ {
		s, t := a.spans[i], b.spans[i]
		same = s.first == t.first && s.last == t.last && a.nodes[s.node].Equal(b.nodes[t.node])
	}
	return same
}
