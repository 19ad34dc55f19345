package rset_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/bomb"
	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/rset"
)

// How errors begin.
const (
	invalidR = "rset: invalid R"
	noSuch   = "rset: no such resources"
	badHosts = "rset: hosts do not match"
	wasFinal = "rset: the final fragment was already given"
)

// fragments collects what a ledger gives out and checks it: conservation after
// each step (PR-1), one final (PR-2), no rank twice.
type fragments struct {
	t     require.TestingT
	r     *rset.R
	l     *rset.Ledger
	sum   *rset.R
	final int
}

func follow(t require.TestingT, r *rset.R, l *rset.Ledger) *fragments {
	return &fragments{t: t, r: r, l: l, sum: new(rset.R)}
}

func (f *fragments) take(part rset.Fragment, err error) rset.Fragment {
	require.NoError(f.t, err)
	require.Zero(f.t, f.final, "a fragment after the final one")
	require.NotNil(f.t, part.R)
	f.sum, err = rset.UnionDisjoint(f.sum, part.R)
	require.NoError(f.t, err)
	if part.Final {
		f.final++
	}
	require.Equal(f.t, part.Final, f.l.IsFinal())
	f.check()
	return part
}

func (f *fragments) check() {
	held, err := f.r.Restrict(f.l.Held())
	require.NoError(f.t, err)
	whole, err := rset.UnionDisjoint(f.sum, held)
	require.NoError(f.t, err)
	require.True(f.t, rset.SameResources(whole, f.r), "I1: %s and %s are not %s", f.sum, held, f.r)
	require.True(f.t, f.sum.Ranks().Equal(f.l.Freed()))
}

// PR-1 to PR-3: any R, any groups, in any order.
func TestWhatIsFreedAndWhatIsHeldIsAlwaysTheWhole(t *testing.T) {
	t.Log("PR-1, PR-2, PR-3")
	rapid.Check(t, func(t *rapid.T) {
		r := drawNaive(t, "r").build(t)
		named := rapid.SampledFrom([][]string{nil, {"ssd0"}, {"rabbit", "ssd0"}}).Draw(t, "named")
		var texts []string
		for range 2 {
			l := rset.NewLedger(r, named...)
			f := follow(t, r, l)
			order := rapid.Permutation(slices.Collect(r.Ranks().All())).Draw(t, "order")
			names := rapid.Permutation(named).Draw(t, "names")
			for len(order)+len(names) > 0 {
				if len(names) > 0 && (len(order) == 0 || rapid.Bool().Draw(t, "name")) {
					part := f.take(l.Free(nil, names[0]))
					require.Equal(t, names[:1], part.Named)
					require.True(t, part.R.IsEmpty())
					names = names[1:]
					continue
				}
				n := rapid.IntRange(0, len(order)).Draw(t, "n")
				part := f.take(l.Free(idset.Of(order[:n]...)))
				require.Equal(t, n, part.R.Len())
				order = order[n:]
			}
			if !l.IsFinal() { // nothing was ever held
				require.True(t, r.IsEmpty())
				f.take(l.Free(nil))
			}
			require.Equal(t, 1, f.final)
			_, err := l.Free(nil)
			require.ErrorContains(t, err, wasFinal)
			_, err = l.FreeRest()
			require.ErrorContains(t, err, wasFinal)
			// The fragments together are the allocation to the byte.
			if !r.IsEmpty() {
				require.Equal(t, string(r.AppendJSON(nil)), string(f.sum.AppendJSON(nil)))
			}
			texts = append(texts, l.String())
		}
		require.Equal(t, texts[0], texts[1], "the order tells")
	})
}

func TestEveryOrderOfFiveRanksEndsAlike(t *testing.T) {
	r := parse(t, mixed)
	want, orders := "", 0
	var walk func(order, rest []uint32)
	walk = func(order, rest []uint32) {
		if len(rest) > 0 {
			for i := range rest {
				walk(append(slices.Clone(order), rest[i]), slices.Delete(slices.Clone(rest), i, i+1))
			}
			return
		}
		orders++
		l := rset.NewLedger(r)
		f := follow(t, r, l)
		for i, rank := range order {
			part := f.take(l.Free(idset.Of(rank)))
			require.Equal(t, i == 4, part.Final)
		}
		if want == "" {
			want = l.String()
		}
		require.Equal(t, want, l.String())
	}
	walk(nil, []uint32{0, 1, 2, 3, 4})
	require.Equal(t, 120, orders)
	require.Equal(t, `held ; freed 0-4; named held []; named freed []; final`, want)
}

func TestRanksThatAreNotHeldAreNamedAndNothingChanges(t *testing.T) {
	l := rset.NewLedger(parse(t, mixed), "ssd0")
	_, err := l.Free(ids(t, "1-2"))
	require.NoError(t, err)
	before := l.String()
	_, err = l.Free(ids(t, "0-7"))
	require.ErrorContains(t, err, noSuch)
	require.EqualError(t, err, "rset: no such resources: unknown ranks 5-7, ranks freed before 1-2")
	_, err = l.Free(idset.Of(1))
	require.EqualError(t, err, "rset: no such resources: ranks freed before 1")
	_, err = l.Free(nil, "ssd1")
	require.EqualError(t, err, `rset: no such resources: unknown resource "ssd1"`)
	require.Equal(t, before, l.String())

	// PR-3: a tolerant caller asks for what is held of them.
	part, err := l.Free(idset.Intersect(ids(t, "0-7"), l.Held()))
	require.NoError(t, err)
	require.Equal(t, "0,3-4", part.R.Ranks().String())
	require.False(t, part.Final)
	part, err = l.Free(nil, "ssd0")
	require.NoError(t, err)
	require.True(t, part.Final)
	_, err = l.Free(nil, "ssd0")
	require.EqualError(t, err, `rset: no such resources: resource "ssd0" was freed before`)
}

func TestFreeingNothingIsNothingUnlessItIsTheLast(t *testing.T) {
	l := rset.NewLedger(parse(t, mixed))
	before := l.String()
	part, err := l.Free(nil)
	require.NoError(t, err)
	require.True(t, part.IsEmpty())
	require.Equal(t, before, l.String())

	for _, empty := range []*rset.Ledger{rset.NewLedger(nil), new(rset.Ledger)} {
		part, err = empty.Free(new(idset.Set))
		require.NoError(t, err)
		require.True(t, part.Final && !part.IsEmpty(), "there is a final fragment to send")
		require.True(t, part.R.IsEmpty())
		_, err = empty.Free(nil)
		require.ErrorContains(t, err, wasFinal)
	}
}

// PR-5: named resources hold the final fragment back, or go with the rest.
func TestResourcesWithoutARankAreHeldUntilNamedOrFinal(t *testing.T) {
	r := parse(t, mixed)
	l := rset.NewLedger(r, "ssd1", "ssd0", "ssd1")
	require.True(t, l.HoldsNamed("ssd0") && l.HoldsNamed("ssd1"))
	part, err := l.Free(r.Ranks())
	require.NoError(t, err)
	require.False(t, part.Final || part.IsEmpty())
	require.True(t, l.Held().IsEmpty())
	part, err = l.FreeRest()
	require.NoError(t, err)
	require.True(t, part.Final && !part.IsEmpty())
	require.True(t, part.R.IsEmpty())
	require.Equal(t, []string{"ssd0", "ssd1"}, part.Named)
	require.False(t, l.HoldsNamed("ssd0") || l.HoldsNamed("ssd1"))
}

// PR-15: what was freed is a set, told again after a restart, never a count.
func TestALedgerIsRebuiltFromWhatWasFreed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawNaive(t, "r").build(t)
		l := rset.NewLedger(r, "a", "b")
		for rank := range r.Ranks().All() {
			if rapid.Bool().Draw(t, "free") {
				_, err := l.FreePart(idset.Of(rank))
				require.NoError(t, err)
			}
		}
		if names := []string{"a", "b"}[rapid.IntRange(0, 2).Draw(t, "names"):]; len(names) > 0 {
			_, err := l.FreePart(nil, names...)
			require.NoError(t, err)
		}
		if rapid.Bool().Draw(t, "rest") {
			_, err := l.FreeRest()
			require.NoError(t, err)
		}
		done := rset.Released{Ranks: l.Freed(), Final: l.IsFinal()}
		for _, name := range []string{"b", "a"} {
			if !l.HoldsNamed(name) {
				done.Named = append(done.Named, name)
			}
		}
		again, err := rset.Rebuild(r, done, "b", "a")
		require.NoError(t, err)
		require.Equal(t, l.String(), again.String())
		require.Equal(t, l.IsFinal(), again.IsFinal())
	})
}

func TestWhatCannotHaveBeenFreedIsRefused(t *testing.T) {
	r := parse(t, mixed)
	_, err := rset.Rebuild(r, rset.Released{Ranks: ids(t, "3-6")})
	require.EqualError(t, err, "rset: no such resources: unknown ranks 5-6")
	_, err = rset.Rebuild(r, rset.Released{Named: []string{"a", "a"}}, "a")
	require.EqualError(t, err, `rset: no such resources: resource "a" is named twice`)
	_, err = rset.Rebuild(r, rset.Released{Ranks: ids(t, "0-3"), Final: true})
	require.ErrorContains(t, err, wasFinal)
	_, err = rset.Rebuild(r, rset.Released{Ranks: r.Ranks(), Final: true}, "a")
	require.ErrorContains(t, err, wasFinal)
	// All was freed, but the final fragment never went out.
	l, err := rset.Rebuild(r, rset.Released{Ranks: r.Ranks()})
	require.NoError(t, err)
	require.False(t, l.IsFinal())
	part, err := l.Free(nil)
	require.NoError(t, err)
	require.True(t, part.Final)
}

// flux-sched issue 1301: an R with more than one entry, uneven cores; only the
// last entry was freed.
func TestReenact1301EveryEntryIsFreed(t *testing.T) {
	r := parse(t, `{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0-47"}},`+
		`{"rank":"1","children":{"core":"0-23"}},{"rank":"2","children":{"core":"24-47"}}]}}`)
	require.Len(t, slices.Collect(r.Entries()), 3)
	l := rset.NewLedger(r)
	f := follow(t, r, l)
	part := f.take(l.Free(ids(t, "0-2")))
	require.True(t, part.Final)
	require.EqualValues(t, 96, part.R.Count("core"))
}

// flux-sched issue 1284: what no rank owns was in no fragment, and stayed.
func TestReenact1284RanklessResourcesEndWithTheFinalFragment(t *testing.T) {
	r := parse(t, mixed)
	l := rset.NewLedger(r, "rack0/ssd0")
	f := follow(t, r, l)
	for _, rank := range []uint32{0, 1, 2, 3, 4} {
		require.False(t, f.take(l.Free(idset.Of(rank))).Final)
	}
	require.True(t, l.HoldsNamed("rack0/ssd0"))
	part := f.take(l.Free(nil, "rack0/ssd0"))
	require.True(t, part.Final)
	require.Equal(t, 1, f.final)
}

// flux-sched commit 75462fef: releasing exactly half made the later release of
// all fail (PR-4).
func TestReenact75462fefHalfThenHalfThenAll(t *testing.T) {
	for _, ranks := range []int{2, 4, 6, 64} {
		r := parse(t, fmt.Sprintf(`{"version":1,"execution":{"R_lite":[{"rank":"0-%d","children":{"core":"0-7"}}]}}`, ranks-1))
		half := new(idset.Set)
		half.InsertRange(0, uint32(ranks/2-1))
		l := rset.NewLedger(r)
		f := follow(t, r, l)
		require.False(t, f.take(l.Free(half)).Final)
		rest := idset.Difference(r.Ranks(), half)
		require.True(t, f.take(l.Free(rest)).Final)
		_, err := l.Free(r.Ranks()) // "release all", once more
		require.ErrorContains(t, err, noSuch)
	}
}

// TestFreeRestAtOnce compares the fragment that is all of an R with Restrict.
func TestFreeRestAtOnce(t *testing.T) {
	for _, text := range []string{
		`{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0-7"}},{"rank":"5","children":{"core":"0"}}],"starttime":1,"expiration":2,"nodelist":["n[0-4]"],"properties":{"big":"0-1"}},"scheduling":{"x":1}}`,
		`{"version":1,"execution":{"R_lite":[{"rank":"7","children":{"core":"0"}}],"starttime":0,"expiration":0}}`,
	} {
		r, err := rset.Parse([]byte(text))
		require.NoError(t, err)
		want, err := r.Restrict(r.Ranks())
		require.NoError(t, err)
		l := rset.NewLedger(r, "b", "a")
		f, err := l.FreeRest()
		require.NoError(t, err)
		require.True(t, f.Final)
		require.Equal(t, []string{"a", "b"}, f.Named)
		require.Equal(t, string(want.AppendJSON(nil)), string(f.R.AppendJSON(nil)))
		require.True(t, l.Held().IsEmpty())
		_, err = l.FreeRest()
		require.ErrorContains(t, err, wasFinal)
	}
}

// The zero Ledger holds nothing, and ends as any other.
func TestTheZeroLedgerHasAFinalFragment(t *testing.T) {
	var l rset.Ledger
	f, err := l.FreeRest()
	require.NoError(t, err)
	require.True(t, f.Final)
	require.NotNil(t, f.R)
	require.True(t, l.IsFinal())
}

// Names are freed in any order and number, in linear time.
func TestManyNamesAreFreed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		held := rapid.SliceOfDistinct(rapid.StringN(1, 2, -1), rapid.ID[string]).Draw(t, "held")
		l := rset.NewLedger(nil, held...)
		for rest := held; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			f, err := l.Free(nil, rest[:n]...)
			require.NoError(t, err)
			require.ElementsMatch(t, rest[:n], f.Named)
			rest = rest[n:]
			require.Equal(t, len(rest) == 0, f.Final)
			for i, name := range held {
				require.Equal(t, i >= len(held)-len(rest), l.HoldsNamed(name))
			}
			_, err = l.Free(nil, held[len(held)-len(rest)-1])
			require.ErrorContains(t, err, "was freed before")
		}
	})
	race.Skip(t)
	cost := func(n int) time.Duration {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("ssd%08d", i)
		}
		_, took := bomb.Cost(func() {
			_, err := rset.NewLedger(nil, names...).Free(nil, names...)
			require.NoError(t, err)
		})
		return took
	}
	require.Less(t, cost(40_000), 8*cost(10_000)+100*time.Millisecond)
}
