package idset_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/idset"
)

func alloc(t require.TestingT, a *idset.Allocator) uint32 {
	id, ok := a.Alloc()
	require.True(t, ok)
	return id
}

func TestLowestFreeHandsOutTheLowest(t *testing.T) {
	a := idset.NewAllocator(parse(t, "2-3,7"), idset.LowestFree)
	require.Equal(t, 3, a.Available())
	require.Equal(t, uint32(2), alloc(t, a))
	require.Equal(t, uint32(3), alloc(t, a))
	require.NoError(t, a.Free(2))
	require.Equal(t, uint32(2), alloc(t, a))
	require.Equal(t, uint32(7), alloc(t, a))
	require.Zero(t, a.Available())
	id, ok := a.Alloc()
	require.False(t, ok)
	require.Zero(t, id)
	require.Equal(t, "2-3,7", a.Allocated().String())
	require.NoError(t, a.Free(7))
	require.Equal(t, uint32(7), alloc(t, a))
}

// What the reference's own test of its round robin flag expects of two ids.
func TestRoundRobinGoesOnAfterTheLastOneHandedOut(t *testing.T) {
	a := idset.NewAllocator(parse(t, "0-1"), idset.RoundRobin)
	require.Equal(t, uint32(0), alloc(t, a))
	require.NoError(t, a.Free(0))
	require.Equal(t, uint32(1), alloc(t, a))
	require.NoError(t, a.Free(1))
	require.Equal(t, uint32(0), alloc(t, a))
	require.Equal(t, uint32(1), alloc(t, a))
	_, ok := a.Alloc()
	require.False(t, ok)
	require.NoError(t, a.Free(0))
	require.Equal(t, uint32(0), alloc(t, a))
}

func TestRoundRobinBeginsAgainAtTheEndOfTheUniverse(t *testing.T) {
	a := idset.NewAllocator(idset.Of(5, idset.MaxID), idset.RoundRobin)
	for range 3 {
		for _, want := range []uint32{5, idset.MaxID} {
			require.Equal(t, want, alloc(t, a))
			require.NoError(t, a.Free(want))
		}
	}
}

func TestReservingDoesNotMoveRoundRobin(t *testing.T) {
	a := idset.NewAllocator(parse(t, "0-9"), idset.RoundRobin)
	require.Equal(t, uint32(0), alloc(t, a))
	require.NoError(t, a.Reserve(7))
	require.NoError(t, a.ReserveSet(parse(t, "1-2")))
	require.Equal(t, uint32(3), alloc(t, a))
}

func TestARefusalNamesTheIdAndChangesNothing(t *testing.T) {
	a := idset.NewAllocator(parse(t, "0-9,20"), idset.LowestFree)
	require.NoError(t, a.ReserveSet(parse(t, "0-4")))
	for _, c := range []struct {
		name string
		err  error
		id   uint32
		is   error
		text string
	}{
		{"a double free", a.Free(5), 5, idset.ErrNotAllocated, "idset: id 5: not allocated"},
		{"a free of another's", a.Free(10), 10, idset.ErrUniverse, "idset: id 10: not one of the allocator's ids"},
		{"a free above MaxID", a.Free(1 << 31), 1 << 31, idset.ErrUniverse, "idset: id 2147483648: not one of the allocator's ids"},
		{"a double reservation", a.Reserve(4), 4, idset.ErrAllocated, "idset: id 4: already allocated"},
		{"a reservation of another's", a.Reserve(19), 19, idset.ErrUniverse, "idset: id 19: not one of the allocator's ids"},
		{"a set partly free", a.FreeSet(parse(t, "3-6")), 5, idset.ErrNotAllocated, "idset: id 5: not allocated"},
		{"a set partly another's", a.FreeSet(parse(t, "3,11-30")), 11, idset.ErrUniverse, "idset: id 11: not one of the allocator's ids"},
		{"a set partly taken", a.ReserveSet(parse(t, "3-6")), 3, idset.ErrAllocated, "idset: id 3: already allocated"},
		{"a set partly beyond", a.ReserveSet(parse(t, "9-20")), 10, idset.ErrUniverse, "idset: id 10: not one of the allocator's ids"},
	} {
		var refused *idset.IDError
		require.ErrorAs(t, c.err, &refused, c.name)
		require.Equal(t, c.id, refused.ID, c.name)
		require.ErrorIs(t, c.err, c.is, c.name)
		require.EqualError(t, c.err, c.text, c.name)
		require.Equal(t, "0-4", a.Allocated().String(), c.name)
	}
	require.NoError(t, a.FreeSet(nil))
	require.NoError(t, a.ReserveSet(nil))
	require.NoError(t, a.FreeSet(parse(t, "1-3")))
	require.Equal(t, "0,4", a.Allocated().String())
}

func TestAnAllocatorWithoutIdsRefusesAll(t *testing.T) {
	for _, a := range []*idset.Allocator{{}, idset.NewAllocator(nil, idset.RoundRobin)} {
		_, ok := a.Alloc()
		require.False(t, ok)
		require.Zero(t, a.Available())
		require.False(t, a.IsFree(0))
		require.ErrorIs(t, a.Free(0), idset.ErrUniverse)
		require.ErrorIs(t, a.Reserve(0), idset.ErrUniverse)
		require.True(t, a.Allocated().IsEmpty())
		require.NoError(t, a.Check())
	}
	require.PanicsWithValue(t, "idset: no such policy", func() { idset.NewAllocator(nil, 2) })
}

func TestAnAllocatorKeepsACopyOfItsIds(t *testing.T) {
	universe := parse(t, "0-3")
	a := idset.NewAllocator(universe, idset.LowestFree)
	universe.RemoveRange(0, idset.MaxID)
	require.Equal(t, 4, a.Available())
	a.Allocated().Insert(9)
	require.ErrorIs(t, a.Free(9), idset.ErrUniverse)
}

// An allocator of every id costs no more than one of ten.
func TestAnAllocatorOfEveryIdIsSmall(t *testing.T) {
	a := idset.NewAllocator(parse(t, "0-2147483647"), idset.RoundRobin)
	for i := range uint32(100000) {
		require.Equal(t, i, alloc(t, a))
		require.NoError(t, a.Free(i))
	}
	require.Zero(t, a.Memory())
	if !raceEnabled {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			id, _ := a.Alloc()
			_ = a.Free(id)
		}))
	}
}

func TestAnAllocatorBehavesAsANaiveOne(t *testing.T) { rapid.Check(t, allocatorProperty) }

func FuzzAllocator(f *testing.F) { f.Fuzz(rapid.MakeFuzz(allocatorProperty)) }

func allocatorProperty(t *rapid.T) {
	universe := drawSet(t, "universe")
	policy := rapid.SampledFrom([]idset.Policy{idset.LowestFree, idset.RoundRobin}).Draw(t, "policy")
	a := idset.NewAllocator(universe, policy)
	taken := model{}
	from := int64(0) // where round robin looks first
	free := func() []uint32 {
		var ids []uint32
		for id := range universe.All() {
			if _, ok := taken[id]; !ok {
				ids = append(ids, id)
			}
		}
		return ids
	}
	// A set to free or reserve: mostly one that can be.
	some := func(of []uint32) *idset.Set {
		if len(of) == 0 || rapid.IntRange(0, 4).Draw(t, "any") == 0 {
			return drawSet(t, "some")
		}
		i := rapid.IntRange(0, len(of)-1).Draw(t, "i")
		j := rapid.IntRange(i, len(of)-1).Draw(t, "j")
		return idset.Of(of[i : j+1]...)
	}
	t.Repeat(map[string]func(*rapid.T){
		"Alloc": func(t *rapid.T) {
			for range rapid.IntRange(1, 20).Draw(t, "times") {
				ids := free()
				id, ok := a.Alloc()
				require.Equal(t, len(ids) > 0, ok)
				if !ok {
					return
				}
				want := ids[0]
				if i := slices.IndexFunc(ids, func(id uint32) bool { return int64(id) >= from }); i >= 0 {
					want = ids[i]
				}
				require.Equal(t, want, id)
				taken[id] = struct{}{}
				if policy == idset.RoundRobin {
					from = int64(id) + 1
				}
			}
		},
		"Free": func(t *rapid.T) {
			id := drawID(t, "id")
			if len(taken) > 0 && rapid.Bool().Draw(t, "taken") {
				id = rapid.SampledFrom(taken.sorted()).Draw(t, "one")
			}
			_, ok := taken[id]
			err := a.Free(id)
			require.Equal(t, ok, err == nil)
			if !ok && universe.Contains(id) {
				require.ErrorIs(t, err, idset.ErrNotAllocated)
			} else if !ok {
				require.ErrorIs(t, err, idset.ErrUniverse)
			}
			delete(taken, id)
		},
		"Reserve": func(t *rapid.T) {
			id := drawID(t, "id")
			_, ok := taken[id]
			err := a.Reserve(id)
			switch {
			case ok:
				require.ErrorIs(t, err, idset.ErrAllocated)
			case !universe.Contains(id):
				require.ErrorIs(t, err, idset.ErrUniverse)
			default:
				require.NoError(t, err)
				taken[id] = struct{}{}
			}
		},
		"FreeSet": func(t *rapid.T) {
			ids := some(taken.sorted())
			ok := true
			for id := range ids.All() {
				_, is := taken[id]
				ok = ok && is
			}
			require.Equal(t, ok, a.FreeSet(ids) == nil)
			if ok {
				maps.DeleteFunc(taken, func(id uint32, _ struct{}) bool { return ids.Contains(id) })
			}
		},
		"ReserveSet": func(t *rapid.T) {
			ids := some(free())
			ok := true
			for id := range ids.All() {
				_, is := taken[id]
				ok = ok && !is && universe.Contains(id)
			}
			require.Equal(t, ok, a.ReserveSet(ids) == nil)
			if ok {
				for id := range ids.All() {
					taken[id] = struct{}{}
				}
			}
		},
		"": func(t *rapid.T) {
			require.NoError(t, a.Check())
			require.Equal(t, universe.Len()-len(taken), a.Available())
			require.Equal(t, taken.text(), a.Allocated().String())
			id := drawID(t, "asked")
			_, is := taken[id]
			require.Equal(t, universe.Contains(id) && !is, a.IsFree(id))
		},
	})
}
