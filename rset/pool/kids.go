package pool

import (
	"cmp"
	"slices"
	"strings"

	"github.com/joblife/joblife/idset"
)

// kids are children of a node, or some of them: what is there, what is free,
// what a job holds. They are never changed, so that nodes, jobs and copies of a
// pool share them. A nil *kids is none.
type kids struct {
	kinds []kind // cores first, then gpus, then the others by name; none is empty
}

// A kind is the children of one type.
type kind struct {
	name string
	ids  *idset.Set // never changed
	n    int        // how many
}

// compareKinds is the order of kinds: that in which nodes are compared.
func compareKinds(a, b string) int {
	if a == b {
		return 0
	}
	if d := cmp.Compare(kindRank(a), kindRank(b)); d != 0 {
		return d
	}
	return strings.Compare(a, b)
}

func kindRank(name string) int {
	switch name {
	case "core":
		return 0
	case "gpu":
		return 1
	}
	return 2
}

// newKids returns the children given, nil if there are none. It retains the
// sets.
func newKids(children map[string]*idset.Set) *kids {
	kinds := make([]kind, 0, len(children))
	for name, ids := range children {
		if !ids.IsEmpty() {
			kinds = append(kinds, kind{name, ids, ids.Len()})
		}
	}
	slices.SortFunc(kinds, func(a, b kind) int { return compareKinds(a.name, b.name) })
	return kidsOf(kinds)
}

// kidsOf returns kinds that are in order and not empty, nil if there are none.
func kidsOf(kinds []kind) *kids {
	if len(kinds) == 0 {
		return nil
	}
	return &kids{kinds}
}

// list returns the kinds, of which nil has none.
func (k *kids) list() []kind {
	if k == nil {
		return nil
	}
	return k.kinds
}

// kind returns the children of a type, and how many.
func (k *kids) kind(name string) (*idset.Set, int) {
	for _, have := range k.list() {
		if have.name == name {
			return have.ids, have.n
		}
	}
	return nil, 0
}

// equal reports whether both are the same children.
func (k *kids) equal(o *kids) bool {
	if k == o {
		return true
	}
	return slices.EqualFunc(k.list(), o.list(), func(a, b kind) bool {
		return a.name == b.name && a.n == b.n && (a.ids == b.ids || a.ids.Equal(b.ids))
	})
}

// compareCounts orders children by how many there are: of the first kind, then
// of the second, and so on. A kind that is not there counts as none.
func (k *kids) compareCounts(o *kids) int {
	if k == o {
		return 0
	}
	a, b := k.list(), o.list()
	for len(a) > 0 && len(b) > 0 {
		switch d := compareKinds(a[0].name, b[0].name); {
		case d < 0:
			return 1
		case d > 0:
			return -1
		}
		if d := cmp.Compare(a[0].n, b[0].n); d != 0 {
			return d
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// union returns what is in k or in o, subtract what is in k and not in o,
// intersect what is in both. They return an operand itself where the result is
// equal to it, so that most comparisons are those of pointers.
func (k *kids) union(o *kids) *kids {
	switch {
	case k == nil:
		return o
	case o == nil:
		return k
	}
	out := make([]kind, 0, len(k.kinds)+len(o.kinds))
	a, b := k.kinds, o.kinds
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && compareKinds(a[0].name, b[0].name) < 0:
			out, a = append(out, a[0]), a[1:]
		case len(a) == 0 || compareKinds(a[0].name, b[0].name) > 0:
			out, b = append(out, b[0]), b[1:]
		default:
			ids := idset.Union(a[0].ids, b[0].ids)
			out = append(out, kind{a[0].name, ids, ids.Len()})
			a, b = a[1:], b[1:]
		}
	}
	return kidsOf(out)
}

func (k *kids) subtract(o *kids) *kids {
	if k == o {
		return nil
	}
	return k.each(o, idset.Difference)
}

func (k *kids) intersect(o *kids) *kids {
	if k == o {
		return k
	}
	return k.each(o, idset.Intersect)
}

// each applies an operation to the ids of every kind of k and those of o.
func (k *kids) each(o *kids, op func(a, b *idset.Set) *idset.Set) *kids {
	if k == nil {
		return nil
	}
	out := make([]kind, 0, len(k.kinds))
	same := true
	for _, have := range k.kinds {
		other, _ := o.kind(have.name)
		ids := op(have.ids, other)
		n := ids.Len()
		same = same && n == have.n
		if n > 0 {
			out = append(out, kind{have.name, ids, n})
		}
	}
	if same {
		return k
	}
	return kidsOf(out)
}

// intersects reports whether both have a child in common.
func (k *kids) intersects(o *kids) bool {
	for _, have := range k.list() {
		if other, n := o.kind(have.name); n > 0 && have.ids.Intersects(other) {
			return true
		}
	}
	return false
}

// contains reports whether all of o is in k.
func (k *kids) contains(o *kids) bool {
	if k == o {
		return true
	}
	for _, want := range o.list() {
		if have, n := k.kind(want.name); n < want.n || !have.ContainsAll(want.ids) {
			return false
		}
	}
	return true
}

// holds reports how many times the needs fit, one beside the other: at most
// most times.
func (k *kids) holds(needs []need, most int64) int64 {
	for _, want := range needs {
		if want.n > 0 {
			_, n := k.kind(want.kind)
			most = min(most, int64(n)/want.n)
		}
	}
	return most
}

// lowest returns the lowest ids that make up the needs times over, which k
// has.
func (k *kids) lowest(needs []need, times int64) *kids {
	out := make([]kind, 0, len(needs))
	for _, have := range k.list() {
		for _, want := range needs {
			if want.kind != have.name || want.n == 0 {
				continue
			}
			if n := int(want.n * times); n < have.n {
				out = append(out, kind{have.name, firstIDs(have.ids, n), n})
			} else {
				out = append(out, have)
			}
		}
	}
	if len(out) == len(k.list()) && slices.EqualFunc(out, k.kinds, func(a, b kind) bool { return a.ids == b.ids }) {
		return k
	}
	return kidsOf(out)
}

// firstIDs returns the n lowest ids of a set that has more.
func firstIDs(from *idset.Set, n int) *idset.Set {
	out := new(idset.Set)
	for first, last := range from.Ranges() {
		if n == 0 {
			break
		}
		if left := first + uint32(n) - 1; left < last {
			last = left
		}
		out.InsertRange(first, last)
		n -= int(last-first) + 1
	}
	return out
}

// children returns the sets by kind, for an R. They must not be changed.
func (k *kids) children() map[string]*idset.Set {
	out := make(map[string]*idset.Set, len(k.list()))
	for _, have := range k.list() {
		out[have.name] = have.ids
	}
	return out
}
