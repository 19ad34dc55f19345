package rset_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/children"
)

// What is cut out of a set, in parts as they come, is what New makes of the same
// resources.
func TestCutIsWhatNewMakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawNaive(t, "a")
		a := x.build(t)
		part := x.where(func(uint32, string, uint32) bool { return rapid.Bool().Draw(t, "this") })
		var parts []children.Part
		for p := range part.build(t).Parts() {
			for p.First < p.Last && rapid.Bool().Draw(t, "split") {
				parts = append(parts, children.Part{First: p.First, Last: p.First, What: p.What})
				p.First++
			}
			parts = append(parts, p)
		}
		for p := range part.build(t).Parts() { // stops when it is told
			require.Equal(t, parts[0].First, p.First)
			break
		}
		before := string(a.AppendJSON(nil))
		got := a.Cut(parts, 1000.5, 2000.25, 3)
		require.NoError(t, got.Check())
		require.Equal(t, part.String(), naiveOf(got).String())
		if len(parts) > 0 {
			require.Equal(t, string(part.build(t).AppendJSON(nil)), string(got.AppendJSON(nil)))
		}
		require.Equal(t, before, string(a.AppendJSON(nil)))

		var none *rset.R
		got = none.Cut(parts, 0, 0, 0)
		require.NoError(t, got.Check())
		require.True(t, rset.SameResources(part.build(t), got))
		require.True(t, got.Nodelist().IsEmpty() && got.Property("odd").IsEmpty() && got.Slots() == 0)
	})
}

// Of many different nodes each keeps its own.
func TestCutOfManyDifferentNodes(t *testing.T) {
	r := parse(t, clusterText(64, true))
	var parts []children.Part
	for p := range r.Parts() {
		parts = append(parts, p, children.Part{First: p.First + 64, Last: p.First + 64, What: p.What})
	}
	var low, high []children.Part
	for i := 0; i < len(parts); i += 2 {
		low, high = append(low, parts[i]), append(high, parts[i+1])
	}
	var none *rset.R
	got := none.Cut(append(low, high...), 0, 0, 0)
	require.NoError(t, got.Check())
	require.Equal(t, 128, got.Len())
	half, err := got.Restrict(r.Ranks())
	require.NoError(t, err)
	require.True(t, rset.SameResources(r, half))
}

func TestWithPropertiesHasThemAndTheOthers(t *testing.T) {
	names := []string{"a", "b", "odd", "z"}
	rapid.Check(t, func(t *rapid.T) {
		r := drawNaive(t, "r").build(t)
		want := map[string]*idset.Set{"odd": r.Property("odd")}
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			given := make(map[string]*idset.Set)
			unknown := ""
			for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 4, rapid.ID[string]).Draw(t, "names") {
				given[name] = idset.Of(rapid.SliceOf(rapid.Uint32Range(0, 20)).Draw(t, "ranks")...)
			}
			for _, name := range names {
				if set := given[name]; unknown == "" && set != nil && !r.Ranks().ContainsAll(set) {
					unknown = fmt.Sprintf("property %q: unknown ranks %v", name, idset.Difference(set, r.Ranks()))
				}
			}
			before := string(r.AppendJSON(nil))
			got, err := r.WithProperties(given)
			require.Equal(t, before, string(r.AppendJSON(nil)))
			if unknown != "" {
				require.ErrorContains(t, err, invalidR)
				require.ErrorContains(t, err, unknown)
				continue
			}
			require.NoError(t, err)
			require.NoError(t, got.Check())
			require.NotSame(t, r, got)
			for name, set := range given {
				want[name] = set.Clone()
				set.Insert(1 << 20) // it was copied
			}
			r = got
			for _, name := range names {
				require.True(t, r.Property(name).Equal(want[name]), name)
			}
		}
		_, err := r.WithProperties(map[string]*idset.Set{"a b&": nil})
		require.EqualError(t, err, `rset: invalid R: property "a b&": invalid property name`)
	})
}

func TestCutPanicsForWhatAreNoParts(t *testing.T) {
	what := children.Of([]children.Kind{{Name: "core", IDs: idset.Of(0), N: 1}})
	r := parse(t, clusterText(4, true))
	for _, parts := range [][]children.Part{
		{{First: 0, Last: 0}}, {{First: 1, Last: 0, What: what}}, {{First: 0, Last: rset.MaxRank + 1, What: what}},
		{{First: 1, Last: 2, What: what}, {First: 2, Last: 2, What: what}}, {{First: 1, Last: 1, What: what}, {First: 0, Last: 0, What: what}},
	} {
		require.Panics(t, func() { (*rset.R)(nil).Cut(parts, 0, 0, 0) }, parts)
	}
	for _, first := range []uint32{3, 4, 9} {
		require.Panics(t, func() { r.Cut([]children.Part{{First: first, Last: 9, What: what}}, 0, 0, 0) }, first)
	}
}
