package idset_test

import (
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/idset"
)

type representation struct {
	name  string
	force func(*idset.Set) *idset.Set
}

// representations are what the tests run over, besides what a set chooses.
var representations = []representation{
	{"as it is", func(s *idset.Set) *idset.Set { return s }},
	{"as runs", (*idset.Set).ForceRuns},
	{"as a bitmap", (*idset.Set).ForceBitmap},
}

func drawRepresentation(t *rapid.T) representation {
	return representations[rapid.IntRange(0, len(representations)-1).Draw(t, "representation")]
}

// comb returns the set of n ids that stand step apart.
func comb(n, step uint32) *idset.Set {
	s := new(idset.Set)
	for i := range n {
		s.Insert(i * step)
	}
	return s
}

func TestRepresentationFollowsTheRuns(t *testing.T) {
	s := new(idset.Set)
	seen := map[string][2]int{} // the fewest and the most runs of each, on the way up
	note := func(n int) {
		require.NoError(t, s.Check())
		r := s.Representation()
		if b, ok := seen[r]; ok {
			seen[r] = [2]int{min(b[0], n), max(b[1], n)}
		} else {
			seen[r] = [2]int{n, n}
		}
	}
	const most = 2000
	for i := range most {
		s.Insert(uint32(2 * i))
		note(i + 1)
	}
	require.Equal(t, map[string][2]int{"few": {1, 8}, "list": {9, 256}, "bitmap": {257, most}}, seen)

	clear(seen)
	for i := most - 1; i >= 0; i-- {
		s.Remove(uint32(2 * i))
		note(i)
	}
	// On the way down it changes later, so that no set goes back and forth.
	require.Equal(t, [2]int{0, 4}, seen["few"])
	require.Equal(t, 5, seen["list"][0])
	require.Less(t, seen["list"][1], idset.MaxShort/2)
	require.Equal(t, most-1, seen["bitmap"][1])
}

func TestFillingTheGapsOfABitmapMakesItARunAgain(t *testing.T) {
	s := comb(5000, 2)
	require.Equal(t, "bitmap", s.Representation())
	for i := range uint32(5000) {
		s.Insert(2*i + 1)
	}
	require.Equal(t, "few", s.Representation())
	require.Equal(t, "0-9999", s.String())
}

func TestABulkOperationChangesTheRepresentation(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *idset.Set)
		want   string
	}{
		{"union fills the gaps", func(s *idset.Set) { s.UnionWith(parse(t, "0-9999")) }, "0-9999"},
		{"union of two combs", func(s *idset.Set) { o := comb(5000, 2); o.Remove(0); s.UnionWith(shift(o)) }, "0-9998"},
		{"intersection", func(s *idset.Set) { s.IntersectWith(parse(t, "0-9")) }, "0,2,4,6,8"},
		{"intersection of two combs", func(s *idset.Set) { s.IntersectWith(comb(5000, 3001)) }, "0,6002"},
		{"difference", func(s *idset.Set) { s.SubtractWith(parse(t, "10-9999")) }, "0,2,4,6,8"},
		{"difference of two combs", func(s *idset.Set) { o := comb(5000, 2); o.Remove(6); s.SubtractWith(o) }, "6"},
		{"a range in", func(s *idset.Set) { s.InsertRange(0, 9998) }, "0-9998"},
		{"a range out", func(s *idset.Set) { s.RemoveRange(3, 9999) }, "0,2"},
		{"all out", func(s *idset.Set) { s.RemoveRange(0, idset.MaxID) }, ""},
		{"a huge range in", func(s *idset.Set) { s.InsertRange(1, idset.MaxID) }, "0-2147483647"},
		{"a huge union", func(s *idset.Set) { s.UnionWith(hugeList()) }, "0-9999,20000,20002,20004,20006,20008,20010,20012,20014,20016,20020-2147483647"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := comb(5000, 2)
			require.Equal(t, "bitmap", s.Representation())
			c.change(s)
			require.NoError(t, s.Check())
			require.NotEqual(t, "bitmap", s.Representation())
			require.Equal(t, c.want, s.String())
		})
	}
}

// hugeList is a list of more runs than a Set holds itself, one of them huge.
func hugeList() *idset.Set {
	s := idset.Of(20000, 20002, 20004, 20006, 20008, 20010, 20012, 20014, 20016)
	s.InsertRange(0, 9999)
	s.InsertRange(20020, idset.MaxID)
	return s
}

// shift returns the set of the ids one below those of s.
func shift(s *idset.Set) *idset.Set {
	t := new(idset.Set)
	for id := range s.All() {
		t.Insert(id - 1)
	}
	return t
}

func TestMemoryIsInProportionToRuns(t *testing.T) {
	for name, text := range hostile() {
		s, err := idset.Parse(text)
		if err != nil {
			continue
		}
		for _, op := range []struct {
			name  string
			apply func(s *idset.Set)
		}{
			{"as parsed", func(*idset.Set) {}},
			{"complement", func(s *idset.Set) {
				all := parse(t, "0-2147483647")
				all.SubtractWith(s)
				s.RemoveRange(0, idset.MaxID)
				s.UnionWith(all)
			}},
			{"with a comb", func(s *idset.Set) { s.UnionWith(comb(3000, 2)) }},
			{"with huge ranges", func(s *idset.Set) { s.UnionWith(hugeList()) }},
			{"less a comb", func(s *idset.Set) { s.SubtractWith(comb(30000, 3)) }},
			{"within huge ranges", func(s *idset.Set) { s.IntersectWith(hugeList()) }},
			{"less every other run", func(s *idset.Set) {
				n := 0
				for first, last := range s.Ranges() {
					if n++; n%2 == 0 {
						s.RemoveRange(first, last)
					}
				}
			}},
		} {
			t.Run(name+" "+op.name, func(t *testing.T) {
				c := s.Clone()
				op.apply(c)
				require.NoError(t, c.Check())
				require.LessOrEqual(t, c.Memory(), 128*runs(c)+16384)
			})
		}
	}
}

func runs(s *idset.Set) int {
	n := 0
	for range s.Ranges() {
		n++
	}
	return n
}

func TestResultsShareNothingWithOperands(t *testing.T) {
	shapes := []*idset.Set{
		parse(t, "0-5"), parse(t, "1,3,5,7,9,11,13,15,17,19,65536-200000"),
		comb(1000, 3), comb(40000, 2), comb(400, 600), parse(t, "0-2147483647"), hugeList(), new(idset.Set),
	}
	operations := map[string]func(a, b *idset.Set) *idset.Set{
		"Union": idset.Union, "Intersect": idset.Intersect, "Difference": idset.Difference,
		"Clone": func(a, _ *idset.Set) *idset.Set { return a.Clone() },
		"UnionWith into an empty one": func(_, b *idset.Set) *idset.Set {
			s := new(idset.Set)
			s.UnionWith(b)
			return s
		},
	}
	for _, rep := range representations {
		for i, x := range shapes {
			for j, y := range shapes {
				for name, op := range operations {
					a, b := x.Clone(), y.Clone()
					if a.Estimate() < 1<<20 && b.Estimate() < 1<<20 {
						rep.force(a)
						rep.force(b)
					}
					s := op(a, b)
					require.NoError(t, s.Check())
					scribble(s)
					require.True(t, x.Equal(a) && y.Equal(b), "%s %d %d %s", name, i, j, rep.name)
				}
			}
		}
	}
}

func scribble(s *idset.Set) {
	for id := uint32(0); id < 250000; id += 1009 {
		if !s.Remove(id) {
			s.Insert(id)
		}
	}
	for at := uint32(0); at < 250000; at += 65536 {
		s.RemoveRange(at+100, at+200)
		s.InsertRange(at+150, at+30000)
	}
}

// Reading does not write: the race detector looks on.
func TestManyGoroutinesMayReadOneSet(t *testing.T) {
	for _, s := range []*idset.Set{parse(t, "1-5"), comb(100, 2), comb(5000, 2), comb(50000, 3)} {
		want := s.String()
		other := comb(3000, 3)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if s.Clone().String() != want || s.Len() == 0 || !s.ContainsAll(s) || !s.Intersects(s) || !s.Equal(s) {
					t.Error("a read differs")
				}
				idset.Union(s, other).Insert(1)
				idset.Intersect(other, s).Insert(1)
				idset.Difference(other, s).Insert(1)
				mine := comb(4000, 5)
				mine.UnionWith(s)
				mine.SubtractWith(s)
				for id := range s.All() {
					if !s.Contains(id) {
						t.Error(id)
					}
				}
			})
		}
		wg.Wait()
		require.Equal(t, want, s.String())
	}
}

// go vet reports copies of a type whose first field is a Locker by pointer.
func TestGoVetReportsCopiesOfASet(t *testing.T) {
	field := reflect.TypeFor[idset.Set]().Field(0)
	require.True(t, reflect.PointerTo(field.Type).Implements(reflect.TypeFor[sync.Locker]()))
	require.Zero(t, field.Type.Size())
	require.Equal(t, idset.Set{}, *new(idset.Set))
	require.LessOrEqual(t, reflect.TypeFor[idset.Set]().Size(), uintptr(80), "a set has grown")
}
