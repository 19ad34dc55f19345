package idset_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/refdata"
)

// What the reference lets in and this package refuses, by reason.
const (
	laxCommas = "empty elements are let in"
	wraps     = "ids above 2^32 are cut to 32 bits"
)

func TestEveryTextIsReadAsTheReferenceReadsIt(t *testing.T) {
	type vector struct {
		In       string  `json:"in"`
		OK       bool    `json:"ok"`
		Ranges   string  `json:"ranges"`
		List     *string `json:"list"`
		Brackets string  `json:"brackets"`
		Count    int     `json:"count"`
		First    *uint32 `json:"first"`
		Last     *uint32 `json:"last"`
	}
	differences := refdata.ExpectDifferences(t, map[string]int{laxCommas: refdata.Of(106, 125), wraps: 43})
	accepted, refused := 0, 0
	for _, v := range refdata.Lines[vector](t, "vectors/idset.jsonl.gz", refdata.Of(1974, 2269)) {
		s, err := idset.Parse(v.In)
		switch {
		case err == nil && !v.OK:
			t.Errorf("%q: the reference refuses it", v.In)
		case err != nil && !v.OK:
			refused++
		case errors.Is(err, idset.ErrRange):
			differences.Note(wraps)
		case err != nil:
			require.ErrorContains(t, err, syntaxError)
			require.ErrorContains(t, err, ": empty element in ", v.In)
			differences.Note(laxCommas)
		default:
			accepted++
			for _, rep := range representations {
				if rep.force(s); s.Representation() == "bitmap" && s.Estimate() > 1<<20 {
					continue
				}
				require.NoError(t, s.Check())
				require.Equal(t, v.Ranges, s.String(), v.In)
				require.Equal(t, v.Brackets, string(s.AppendBrackets(nil)), v.In)
				if v.List != nil {
					require.True(t, parse(t, *v.List).Equal(s), v.In)
				}
				require.Equal(t, v.Count, s.Len(), v.In)
				requireID(t, v.First, s.Min)
				requireID(t, v.Last, s.Max)
			}
		}
	}
	require.Equal(t, refdata.Of(622, 898), accepted)
	require.Equal(t, 1203, refused)
}

// requireID fails the test unless ask answers want, or false where want is nil.
func requireID(t *testing.T, want *uint32, ask func() (uint32, bool)) {
	t.Helper()
	id, ok := ask()
	require.Equal(t, want != nil, ok)
	if ok {
		require.Equal(t, *want, id)
	}
}

func TestEveryOperationAnswersAsTheReference(t *testing.T) {
	type vector struct {
		A          string       `json:"a"`
		B          string       `json:"b"`
		Union      string       `json:"union"`
		Intersect  string       `json:"intersect"`
		AMinusB    string       `json:"a_minus_b"`
		BMinusA    string       `json:"b_minus_a"`
		Equal      bool         `json:"equal"`
		Intersects bool         `json:"intersects"`
		Next       [][2]*uint32 `json:"next"`
		Test       [][2]any     `json:"test"`
	}
	differences := refdata.ExpectDifferences(t, map[string]int{laxCommas: 2})
	// strict leaves out the empty elements that the reference lets in, so that
	// the operation itself is compared.
	strict := func(text string) string {
		if _, err := idset.Parse(text); err != nil {
			differences.Note(laxCommas)
			return strings.Join(strings.FieldsFunc(text, func(c rune) bool { return c == ',' }), ",")
		}
		return text
	}
	asked := 0
	for _, v := range refdata.Lines[vector](t, "vectors/idset_ops.jsonl.gz", refdata.Of(192, 432)) {
		v.A, v.B = strict(v.A), strict(v.B)
		for _, rep := range representations {
			a, b := rep.force(parse(t, v.A)), rep.force(parse(t, v.B))
			for _, c := range []struct {
				want string
				new  func(a, b *idset.Set) *idset.Set
				with func(s, t *idset.Set) bool
				a, b *idset.Set
			}{
				{v.Union, idset.Union, (*idset.Set).UnionWith, a, b},
				{v.Union, idset.Union, (*idset.Set).UnionWith, b, a},
				{v.Intersect, idset.Intersect, (*idset.Set).IntersectWith, a, b},
				{v.Intersect, idset.Intersect, (*idset.Set).IntersectWith, b, a},
				{v.AMinusB, idset.Difference, (*idset.Set).SubtractWith, a, b},
				{v.BMinusA, idset.Difference, (*idset.Set).SubtractWith, b, a},
			} {
				before := c.a.String()
				require.Equal(t, c.want, c.new(c.a, c.b).String())
				s := rep.force(c.a.Clone())
				require.Equal(t, c.want != before, c.with(s, c.b))
				require.Equal(t, c.want, s.String())
				require.NoError(t, s.Check())
				require.Equal(t, before, c.a.String())
			}
			require.Equal(t, v.Equal, a.Equal(b))
			require.Equal(t, v.Intersects, a.Intersects(b))
			require.Equal(t, v.AMinusB == "", b.ContainsAll(a))
			for _, p := range v.Next {
				requireID(t, p[1], func() (uint32, bool) { return a.Next(*p[0]) })
				asked++
			}
			for _, p := range v.Test {
				require.Equal(t, p[1], a.Contains(uint32(p[0].(float64))))
				asked++
			}
		}
	}
	require.Equal(t, refdata.Of(7668, 11800+11800)*len(representations), asked)
}
