package idset_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/idset"
)

// A model is the naive set that Set is compared with.
type model map[uint32]struct{}

func (m model) sorted() []uint32 { return slices.Sorted(maps.Keys(m)) }

func (m model) text() string { return textOf(m.sorted()) }

// textOf prints ids that ascend, id by id.
func textOf(ids []uint32) string {
	var parts []string
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		part := strconv.Itoa(int(ids[i]))
		if j > i {
			part += "-" + strconv.Itoa(int(ids[j]))
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// windows are where the ids of the model tests lie: at both ends, and around
// the bounds of containers.
var windows = []uint32{0, 65536 - 40, 2*65536 - 700, 3 * 65536, idset.MaxID - 2100}

const window = 2100 // ids in each

func drawID(t *rapid.T, label string) uint32 {
	at := rapid.SampledFrom(windows).Draw(t, label+" window")
	width := rapid.SampledFrom([]uint32{0, 60, window}).Draw(t, label+" width")
	return at + rapid.Uint32Range(0, width).Draw(t, label)
}

// A machine is two sets and what they should be.
type machine struct {
	a, b           *idset.Set
	modelA, modelB model
	force          func(*idset.Set) *idset.Set // before every action
}

func drawRange(t *rapid.T) (first, last uint32) {
	first = drawID(t, "first")
	n := rapid.SampledFrom([]uint32{0, 1, 2, 30, 300}).Draw(t, "length")
	return first, min(first+n, idset.MaxID)
}

func (m *machine) Insert(t *rapid.T) {
	id := drawID(t, "id")
	_, present := m.modelA[id]
	require.Equal(t, !present, m.a.Insert(id))
	m.modelA[id] = struct{}{}
}

func (m *machine) Remove(t *rapid.T) {
	id := drawID(t, "id")
	_, present := m.modelA[id]
	require.Equal(t, present, m.a.Remove(id))
	delete(m.modelA, id)
}

func (m *machine) RemovePresent(t *rapid.T) {
	if len(m.modelA) == 0 {
		t.Skip("empty")
	}
	ids := m.modelA.sorted()
	for range rapid.IntRange(1, 100).Draw(t, "times") {
		if len(ids) == 0 {
			break
		}
		i := rapid.IntRange(0, len(ids)-1).Draw(t, "index")
		require.True(t, m.a.Remove(ids[i]))
		delete(m.modelA, ids[i])
		ids = slices.Delete(ids, i, i+1)
	}
}

func (m *machine) InsertRange(t *rapid.T) {
	first, last := drawRange(t)
	before := len(m.modelA)
	changed := m.a.InsertRange(first, last)
	for id := first; id <= last; id++ {
		m.modelA[id] = struct{}{}
	}
	require.Equal(t, len(m.modelA) != before, changed)
}

func (m *machine) RemoveRange(t *rapid.T) {
	first, last := drawRange(t)
	if rapid.Bool().Draw(t, "to the end") {
		last = ^uint32(0)
	}
	before := len(m.modelA)
	changed := m.a.RemoveRange(first, last)
	maps.DeleteFunc(m.modelA, func(id uint32, _ struct{}) bool { return id >= first && id <= last })
	require.Equal(t, len(m.modelA) != before, changed)
}

// InsertComb adds many runs close together: enough for a bitmap.
func (m *machine) InsertComb(t *rapid.T) {
	first := drawID(t, "first")
	step := rapid.Uint32Range(2, 4).Draw(t, "step")
	for i := range rapid.Uint32Range(0, 400).Draw(t, "count") {
		id := first + i*step
		if id > idset.MaxID {
			break
		}
		m.a.Insert(id)
		m.modelA[id] = struct{}{}
	}
}

func (m *machine) UnionWith(t *rapid.T) {
	before := len(m.modelA)
	sum := idset.Union(m.a, m.b)
	changed := m.a.UnionWith(m.b)
	maps.Copy(m.modelA, m.modelB)
	require.Equal(t, len(m.modelA) != before, changed)
	compare(t, sum, m.modelA)
}

func (m *machine) IntersectWith(t *rapid.T) {
	before := len(m.modelA)
	common := idset.Intersect(m.a, m.b)
	changed := m.a.IntersectWith(m.b)
	maps.DeleteFunc(m.modelA, func(id uint32, _ struct{}) bool { _, ok := m.modelB[id]; return !ok })
	require.Equal(t, len(m.modelA) != before, changed)
	compare(t, common, m.modelA)
}

func (m *machine) SubtractWith(t *rapid.T) {
	before := len(m.modelA)
	rest := idset.Difference(m.a, m.b)
	changed := m.a.SubtractWith(m.b)
	maps.DeleteFunc(m.modelA, func(id uint32, _ struct{}) bool { _, ok := m.modelB[id]; return ok })
	require.Equal(t, len(m.modelA) != before, changed)
	compare(t, rest, m.modelA)
}

func (m *machine) WithItself(t *rapid.T) {
	before := m.a.String()
	require.False(t, m.a.UnionWith(m.a))
	require.False(t, m.a.IntersectWith(m.a))
	require.Equal(t, before, m.a.String())
	require.True(t, m.a.Equal(m.a))
	require.True(t, m.a.ContainsAll(m.a))
	require.Equal(t, len(m.modelA) > 0, m.a.Intersects(m.a))
	if rapid.Bool().Draw(t, "subtract") {
		require.Equal(t, len(m.modelA) > 0, m.a.SubtractWith(m.a))
		clear(m.modelA)
	}
}

func (m *machine) Swap(*rapid.T) {
	m.a, m.b, m.modelA, m.modelB = m.b, m.a, m.modelB, m.modelA
}

// Clone goes on with the clone and writes over the source, which must not show.
func (m *machine) Clone(*rapid.T) {
	source := m.a
	m.a = source.Clone()
	source.RemoveRange(0, idset.MaxID)
	source.InsertRange(5, 100000)
}

func (m *machine) ForceRuns(t *rapid.T) {
	m.a.ForceRuns()
	if rapid.Bool().Draw(t, "both") {
		m.b.ForceRuns()
	}
}

func (m *machine) ForceBitmap(t *rapid.T) {
	m.a.ForceBitmap()
	if rapid.Bool().Draw(t, "both") {
		m.b.ForceBitmap()
	}
}

// Ask compares what is said of two sets and of single ids.
func (m *machine) Ask(t *rapid.T) {
	common, only := 0, 0
	for id := range m.modelB {
		if _, ok := m.modelA[id]; ok {
			common++
		} else {
			only++
		}
	}
	require.Equal(t, common > 0, m.a.Intersects(m.b))
	require.Equal(t, only == 0, m.a.ContainsAll(m.b))
	require.True(t, m.a.ContainsAll(idset.Intersect(m.a, m.b).ForceBitmap()))
	require.False(t, m.a.Intersects(idset.Difference(m.b, m.a).ForceBitmap()))
	require.Equal(t, only == 0 && common == len(m.modelA), m.a.Equal(m.b))

	ids := m.modelA.sorted()
	for range 10 {
		id := drawID(t, "id")
		i, present := slices.BinarySearch(ids, id)
		require.Equal(t, present, m.a.Contains(id))
		if present {
			i++
		}
		next, ok := m.a.Next(id)
		require.Equal(t, i < len(ids), ok)
		if ok {
			require.Equal(t, ids[i], next)
		}
	}
}

func (m *machine) Check(t *rapid.T) {
	compare(t, m.a, m.modelA)
	compare(t, m.b, m.modelB)
	m.force(m.a)
	m.force(m.b)
}

// compare fails the test unless a set is the model and keeps its invariants.
func compare(t require.TestingT, s *idset.Set, m model) {
	require.NoError(t, s.Check())
	ids := m.sorted()
	require.Equal(t, len(ids), s.Len())
	require.Equal(t, len(ids) == 0, s.IsEmpty())
	i := 0
	for id := range s.All() {
		if i >= len(ids) || ids[i] != id {
			require.FailNow(t, "All differs", "id %d at %d in %q, want %q", id, i, s, m.text())
		}
		i++
	}
	require.Equal(t, len(ids), i)
	require.Equal(t, m.text(), s.String())
	first, ok := s.Min()
	last, ok2 := s.Max()
	require.Equal(t, len(ids) > 0, ok)
	require.Equal(t, len(ids) > 0, ok2)
	if len(ids) > 0 {
		require.Equal(t, ids[0], first)
		require.Equal(t, ids[len(ids)-1], last)
	}
}

func (m *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"Insert": m.Insert, "Remove": m.Remove, "RemovePresent": m.RemovePresent,
		"InsertRange": m.InsertRange, "RemoveRange": m.RemoveRange, "InsertComb": m.InsertComb,
		"UnionWith": m.UnionWith, "IntersectWith": m.IntersectWith, "SubtractWith": m.SubtractWith,
		"WithItself": m.WithItself, "Swap": m.Swap, "Clone": m.Clone,
		"ForceRuns": m.ForceRuns, "ForceBitmap": m.ForceBitmap, "Ask": m.Ask,
		"": m.Check,
	}
}

func modelProperty(force func(*idset.Set) *idset.Set) func(*rapid.T) {
	return func(t *rapid.T) {
		m := &machine{new(idset.Set), new(idset.Set), model{}, model{}, force}
		t.Repeat(m.actions())
	}
}

func TestASetBehavesAsANaiveOneOverEachRepresentation(t *testing.T) {
	for _, rep := range representations {
		t.Run(rep.name, rapid.MakeCheck(modelProperty(rep.force)))
	}
}

func FuzzModel(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		modelProperty(drawRepresentation(t).force)(t)
	}))
}
