package pool

import (
	"cmp"
	"slices"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset/children"
)

// compareCounts orders nodes by how much they have: cores, then gpus, then the
// other kinds in the order of their names. A missing kind counts as 0.
func compareCounts(a, b *children.Set) int {
	if a == b {
		return 0
	}
	if d := cmp.Or(cmp.Compare(a.Len("core"), b.Len("core")), cmp.Compare(a.Len("gpu"), b.Len("gpu"))); d != 0 {
		return d
	}
	x, y := otherKinds(a.Kinds()), otherKinds(b.Kinds())
	for ; len(x) > 0 && len(y) > 0; x, y = otherKinds(x[1:]), otherKinds(y[1:]) {
		if d := cmp.Compare(y[0].Name, x[0].Name); d != 0 {
			return d // the other has none of that kind
		}
		if d := cmp.Compare(x[0].N, y[0].N); d != 0 {
			return d
		}
	}
	return cmp.Compare(len(x), len(y))
}

// otherKinds returns kinds from the first that is neither cores nor gpus.
func otherKinds(kinds []children.Kind) []children.Kind {
	for len(kinds) > 0 && (kinds[0].Name == "core" || kinds[0].Name == "gpu") {
		kinds = kinds[1:]
	}
	return kinds
}

// fitting returns how many times the needs fit into children, at most jobspec.MaxCount.
func fitting(free *children.Set, needs []need) int64 {
	most := int64(jobspec.MaxCount)
	for _, want := range needs {
		most = min(most, int64(free.Len(want.kind))/want.n)
	}
	return most
}

// A cut divides the free children of a node, and of those alike, into what lowest does and a rest.
type cut struct {
	free, what, rest *children.Set
	needs            []need
	times            int64
}

func (k *known) cut(free *children.Set, needs []need, times int64) cut {
	for i := range k.cuts {
		if c := &k.cuts[i]; c.free == free && c.times == times && slices.Equal(c.needs, needs) {
			return *c
		}
	}
	what := lowest(free, needs, times)
	c := cut{free, what, free.Subtract(what), needs, times}
	k.last = (k.last + 1) % len(k.cuts)
	k.cuts[k.last] = c
	return c
}

// lowest returns the lowest ids that satisfy the needs of all slots; there are enough.
func lowest(free *children.Set, needs []need, times int64) *children.Set {
	var room [4]children.Kind
	out := room[:0]
	for _, have := range free.Kinds() {
		for _, want := range needs {
			if want.kind != have.Name {
				continue
			}
			if n := int(want.n * times); n < have.N {
				have = children.Kind{Name: have.Name, IDs: firstIDs(have.IDs, n), N: n}
			}
			out = append(out, have)
		}
	}
	if slices.EqualFunc(out, free.Kinds(), func(a, b children.Kind) bool { return a.IDs == b.IDs }) {
		return free
	}
	return children.Of(out)
}

// firstIDs returns the n lowest ids of a set that has more.
func firstIDs(from *idset.Set, n int) *idset.Set {
	out := new(idset.Set)
	for first, last := range from.Ranges() {
		if n == 0 {
			break
		}
		last = min(last, first+uint32(n)-1)
		out.InsertRange(first, last)
		n -= int(last-first) + 1
	}
	return out
}
