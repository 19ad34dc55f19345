package children_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset/children"
)

// A child is one resource; a map of them is what a Set is compared with.
type child struct {
	kind string
	id   uint32
}

func draw(t *rapid.T, label string) map[child]bool {
	out := map[child]bool{}
	for range rapid.IntRange(0, 6).Draw(t, label) {
		kind := rapid.SampledFrom([]string{"core", "gpu", "bay"}).Draw(t, label+" kind")
		out[child{kind, rapid.Uint32Range(0, 3).Draw(t, label+" id")}] = true
	}
	return out
}

func setOf(naive map[child]bool) *children.Set {
	kinds := []children.Kind{{Name: "none", IDs: new(idset.Set)}}
	for _, name := range []string{"gpu", "core", "bay"} {
		k := children.Kind{Name: name, IDs: new(idset.Set)}
		for c := range naive {
			if c.kind == name {
				k.IDs.Insert(c.id)
				k.N++
			}
		}
		kinds = append(kinds, k)
	}
	return children.Of(kinds)
}

func naiveOf(s *children.Set) map[child]bool {
	out := map[child]bool{}
	for _, k := range s.Kinds() {
		for id := range k.IDs.All() {
			out[child{k.Name, id}] = true
		}
	}
	return out
}

func TestOperationsDoAsMapsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := draw(t, "a"), draw(t, "b")
		a, b := setOf(x), setOf(y)
		check := func(got *children.Set, keep func(child) bool) {
			want := maps.Clone(x)
			maps.Copy(want, y)
			maps.DeleteFunc(want, func(c child, _ bool) bool { return !keep(c) })
			require.Equal(t, want, naiveOf(got))
			require.Equal(t, len(want) == 0, got == nil, "nil is the only empty set")
			require.True(t, got.Equal(setOf(want)))
			require.True(t, slices.IsSortedFunc(got.Kinds(), func(a, b children.Kind) int { return strings.Compare(a.Name, b.Name) }))
			for _, k := range got.Kinds() {
				require.Equal(t, k.IDs.Len(), k.N)
				require.NotZero(t, k.N)
			}
			if got.Equal(a) {
				require.Same(t, a, got, "the receiver is returned where the result equals it")
			}
		}
		check(a.Union(b), func(child) bool { return true })
		check(a.Intersect(b), func(c child) bool { return x[c] && y[c] })
		check(a.Subtract(b), func(c child) bool { return x[c] && !y[c] })
		require.Equal(t, maps.Equal(x, y), a.Equal(b))
		require.Equal(t, a.Intersect(b) != nil, a.Intersects(b))
		require.Equal(t, b.Subtract(a) == nil, a.Contains(b))
		require.Equal(t, x, naiveOf(a), "an operand changed")
		require.Equal(t, y, naiveOf(b), "an operand changed")
		ids, n := a.Kind("core")
		require.Equal(t, ids.Len(), n)
		for _, kind := range []string{"core", "gpu", "bay", "none"} {
			_, n := a.Kind(kind)
			require.Equal(t, n, a.Len(kind))
		}
	})
}
