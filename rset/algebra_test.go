package rset_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/bomb"
	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/hostlist"
)

// RS-3, RS-8.
func TestOperationsDoAsANaiveSetDoes(t *testing.T) {
	t.Log("RS-4")
	rapid.Check(t, func(t *rapid.T) {
		x, y := drawNaive(t, "a"), drawNaive(t, "b")
		a, b := x.build(t), y.build(t)
		before := string(a.AppendJSON(b.AppendJSON(nil)))
		check := func(want naive, r *rset.R, err error) {
			require.NoError(t, err)
			require.NoError(t, r.Check())
			require.Equal(t, want.String(), naiveOf(r).String())
			// Equal sets have equal bytes, whatever made them (RS-4).
			if fresh := want.build(t); !r.IsEmpty() {
				require.Equal(t, string(fresh.AppendJSON(nil)), string(r.AppendJSON(nil)))
				require.True(t, rset.Equal(fresh, r))
			}
		}
		union, err := rset.Union(a, b)
		check(x.union(y), union, err)
		both := x.where(y.has)
		intersect, err := rset.Intersect(a, b)
		check(both, intersect, err)
		rest, excess, err := rset.Subtract(a, b)
		onlyX := x.where(func(rank uint32, kind string, id uint32) bool { return !y.has(rank, kind, id) })
		onlyY := y.where(func(rank uint32, kind string, id uint32) bool { return !x.has(rank, kind, id) })
		check(onlyX, rest, err)
		require.Equal(t, onlyY.String(), naiveOf(excess).String())

		appended, err := rset.UnionDisjoint(a, b)
		if len(both) > 0 {
			require.EqualError(t, err, "rset: resources overlap: "+intersect.String()[:min(len(intersect.String()), 64)])
			require.Nil(t, appended)
		} else {
			check(x.union(y), appended, err)
		}
		require.Equal(t, x.String() == y.String(), rset.SameResources(a, b))
		require.Equal(t, before, string(a.AppendJSON(b.AppendJSON(nil))), "an operand changed")
	})
}

func TestAFragmentAndItsRestAreTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawNaive(t, "r")
		r := x.build(t)
		ranks := new(idset.Set)
		for rank := range r.Ranks().All() {
			if rapid.Bool().Draw(t, "take") {
				ranks.Insert(rank)
			}
		}
		part, err := r.Restrict(ranks)
		require.NoError(t, err)
		require.NoError(t, part.Check())
		rest, err := r.Without(ranks)
		require.NoError(t, err)
		require.NoError(t, rest.Check())
		require.True(t, part.Ranks().Equal(ranks))
		want := x.where(func(rank uint32, _ string, _ uint32) bool { return ranks.Contains(rank) })
		require.Equal(t, want.String(), naiveOf(part).String())
		whole, err := rset.UnionDisjoint(part, rest)
		require.NoError(t, err)
		require.Equal(t, string(r.AppendJSON(nil)), string(whole.AppendJSON(nil)))
		for rank := range ranks.All() {
			host, _ := r.Host(rank)
			got, ok := part.Host(rank)
			require.True(t, ok)
			require.Equal(t, host, got)
		}
	})
}

const mixed = `{"version":1,"execution":{"R_lite":[` +
	`{"rank":"0-1,4","children":{"core":"0-3"}},{"rank":"2-3","children":{"core":"0-7","gpu":"0-1","nic":"0"}}],` +
	`"starttime":1700000000.5,"expiration":1700003600.25,"nslots":5,"nodelist":["b[9,1],a[05,7],c"],` +
	`"properties":{"big":"2-3","edge":"0"},"future":{"x":[1]}},` +
	`"scheduling":{"graph":{"nodes":[],"edges":[]}},"attributes":{"system":{"queue":"batch"}}}`

func TestAFragmentKeepsWhatBelongsToItsRanks(t *testing.T) {
	t.Log("PR-6")
	part, err := parse(t, mixed).Restrict(ids(t, "1-2,4"))
	require.NoError(t, err)
	require.Equal(t, `{"version":1,"execution":{"R_lite":[`+
		`{"rank":"1,4","children":{"core":"0-3"}},{"rank":"2","children":{"core":"0-7","gpu":"0-1","nic":"0"}}],`+
		`"starttime":1700000000.5,"expiration":1700003600.25,"nslots":5,"nodelist":["b1,a05,c"],`+
		`"properties":{"big":"2"},"future":{"x":[1]}},"attributes":{"system":{"queue":"batch"}}}`,
		string(part.AppendJSON(nil)))
}

func TestRanksThatAreNotThereAreNamed(t *testing.T) {
	r := parse(t, mixed)
	for _, f := range []func(*idset.Set) (*rset.R, error){r.Restrict, r.Without} {
		part, err := f(ids(t, "1,3-9,16777217"))
		require.Nil(t, part)
		require.ErrorContains(t, err, noSuch)
		require.EqualError(t, err, `rset: no such resources: unknown ranks 5-9,16777217`)
	}
	gap := parse(t, `{"version":1,"execution":{"R_lite":[{"rank":"2,6","children":{"core":"0"}}]}}`)
	_, err := gap.Restrict(ids(t, "1-7"))
	require.EqualError(t, err, `rset: no such resources: unknown ranks 1,3-5,7`)
}

func TestARankOnTwoHostsIsRefused(t *testing.T) {
	a := parse(t, `{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0"}}],"nodelist":["n[0-3]"]}}`)
	b := parse(t, `{"version":1,"execution":{"R_lite":[{"rank":"1-2","children":{"core":"1"}}],"nodelist":["n1,m2"]}}`)
	for _, f := range []func(a, b *rset.R) (*rset.R, error){rset.Union, rset.Intersect, rset.UnionDisjoint} {
		_, err := f(a, b)
		require.ErrorContains(t, err, badHosts)
		require.EqualError(t, err, `rset: hosts do not match: rank 2 is on two hosts: "n2" and "m2"`)
	}
}

func TestHostsOfSomeRanksOnlyAreRefused(t *testing.T) {
	a := parse(t, `{"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0"}}],"nodelist":["n[0-1]"]}}`)
	b := parse(t, `{"version":1,"execution":{"R_lite":[{"rank":"1-2","children":{"core":"1"}}]}}`)
	_, err := rset.Union(a, b)
	require.EqualError(t, err, `rset: hosts do not match: rank 2 has no host, but others have`)
	_, ok := b.Host(1)
	require.False(t, ok)
	later, err := a.Restrict(idset.Of(1))
	require.NoError(t, err)
	_, err = rset.Union(later, parse(t, `{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"1"}}]}}`))
	require.EqualError(t, err, `rset: hosts do not match: rank 0 has no host, but others have`)
	// Where the hosts of all ranks are known they are taken from either side.
	b, err = b.Restrict(idset.Of(1))
	require.NoError(t, err)
	u, err := rset.Union(b, a)
	require.NoError(t, err)
	require.Equal(t, "n[0-1]", u.Nodelist().String())
}

func TestAUnionTakesFromTheSecondWhatTheFirstLacks(t *testing.T) {
	a := parse(t, `{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}],"properties":{"p":"0"},"y":1},"z":1}`)
	b := parse(t, `{"version":1,"execution":{"R_lite":[{"rank":"1","children":{"core":"0"}}],"starttime":5,"expiration":9,`+
		`"nslots":2,"properties":{"o":"1","p":"1"},"x":2,"y":2},"scheduling":1}`)
	u, err := rset.Union(a, b)
	require.NoError(t, err)
	require.Equal(t, `{"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0"}}],"starttime":5.0,"expiration":9.0,`+
		`"nslots":2,"properties":{"o":"1","p":"0-1"},"x":2,"y":1},"z":1}`, string(u.AppendJSON(nil)))
	late, err := a.WithTimes(100, 0)
	require.NoError(t, err)
	u, err = rset.Union(late, b)
	require.NoError(t, err)
	require.EqualValues(t, 100, u.Start())
	require.Zero(t, u.Expiration())
}

func TestNilAndZeroAreTheEmptySet(t *testing.T) {
	r := parse(t, mixed)
	require.Equal(t, r.String(), fmt.Sprintf("%#v", r))
	for _, empty := range []*rset.R{nil, new(rset.R)} {
		require.True(t, empty.IsEmpty())
		require.Zero(t, empty.Len())
		require.Equal(t, "", empty.String())
		require.Equal(t, "", fmt.Sprintf("%#v", empty))
		require.Equal(t, `{"version":1,"execution":{"R_lite":[],"starttime":0.0,"expiration":0.0}}`, string(empty.AppendJSON(nil)))
		u, err := rset.Union(empty, r)
		require.NoError(t, err)
		require.True(t, rset.SameResources(u, r))
		u, _, err = rset.Subtract(r, empty)
		require.NoError(t, err)
		require.True(t, rset.SameResources(u, r))
		u, err = rset.Intersect(empty, r)
		require.NoError(t, err)
		require.True(t, u.IsEmpty())
		u, err = empty.Restrict(nil)
		require.NoError(t, err)
		require.True(t, u.IsEmpty())
		require.Zero(t, empty.Count("core"))
		require.True(t, empty.Ranks().IsEmpty())
		require.True(t, empty.Nodelist().IsEmpty())
		require.True(t, empty.Children(0, "core").IsEmpty())
		require.True(t, empty.Property("p").IsEmpty())
		_, ok := empty.Host(0)
		require.False(t, ok)
		require.NoError(t, empty.Check())
	}
}

func TestHostsAreComparedByNameWhateverTheirRanges(t *testing.T) {
	with := func(ranks, hosts string) *rset.R {
		return parse(t, `{"version":1,"execution":{"R_lite":[{"rank":"`+ranks+`","children":{"core":"0"}}],"nodelist":["`+hosts+`"]}}`)
	}
	for _, c := range []struct{ ranksA, a, ranksB, b, err string }{
		{"0-4", "n[8-12]", "1-3", "n9,n10,n11", ""},
		{"0-4", "n[8-12]", "1-3", "n9,n[10-11]", ""},
		{"0-4", "n[08-12]", "2-4", "n[10-12]", ""},
		{"0-4", "n[08-12]", "1-4", "n[9-12]", `rset: hosts do not match: rank 1 is on two hosts: "n09" and "n9"`},
		{"0-4", "n[8-12]", "0-4", "n[8-11],x", `rset: hosts do not match: rank 4 is on two hosts: "n12" and "x"`},
		{"0-4", "n[8-12]", "0-4", "n[8,9,10,11],n13", `rset: hosts do not match: rank 4 is on two hosts: "n12" and "n13"`},
		{"0-4", "a,b,c,d,e", "1,3", "b,d", ""},
		{"0-4", "a,b,c,d,e", "1,3", "b,e", `rset: hosts do not match: rank 3 is on two hosts: "d" and "e"`},
	} {
		a, b := with(c.ranksA, c.a), with(c.ranksB, c.b)
		_, _, err := rset.Subtract(a, b)
		if c.err == "" {
			require.NoError(t, err, c.b)
		} else {
			require.EqualError(t, err, c.err)
		}
		// The same from a fragment, whose hosts are parts of a list.
		part, err := a.Restrict(b.Ranks())
		require.NoError(t, err)
		_, err = rset.Union(part, b)
		require.Equal(t, c.err != "", err != nil)
	}
}

// Hosts are compared in linear time, though the ranks of one side are on two lists by turns.
func TestHostsOnTwoListsByTurns(t *testing.T) {
	race.Skip(t)
	every := func(from, n, step int) *rset.R {
		ranks, hosts := new(idset.Set), new(hostlist.List)
		for i := from; i < n; i += step {
			ranks.Insert(uint32(i))
			require.NoError(t, hosts.Append(fmt.Sprintf("n%d", i)))
		}
		r, err := rset.New(rset.Config{Entries: []rset.Entry{{Ranks: ranks, Children: map[string]*idset.Set{"core": idset.Of(0)}}}, Hosts: hosts})
		require.NoError(t, err)
		return r
	}
	cost := func(n int) time.Duration {
		turns, err := rset.Union(every(0, n, 2), every(1, n, 2))
		require.NoError(t, err)
		whole := every(0, n, 1)
		_, took := bomb.Cost(func() {
			both, err := rset.Intersect(turns, whole)
			require.NoError(t, err)
			require.Equal(t, n, both.Len())
		})
		return took
	}
	require.Less(t, cost(20_000), 8*cost(5_000)+100*time.Millisecond)
}
