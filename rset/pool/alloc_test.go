package pool_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset/pool"
)

func TestAllocationBudget(t *testing.T) {
	race.Skip(t)
	for _, different := range []bool{false, true} {
		p := clusterOf(t, 4096, different)
		budget := func(want float64, what string, f func()) {
			t.Helper()
			require.LessOrEqual(t, testing.AllocsPerRun(20, f), want, "%s, different=%v", what, different)
		}
		one, all, more := byNode(t, "1", "32"), byNode(t, "4096", "1"), byNode(t, "4097", "1")
		for what, q := range map[string]*pool.Request{"one node": one, "some cores of one": byNode(t, "1", "3")} {
			budget(5, "alloc and free of "+what, func() {
				r, err := p.Alloc(1, q, 100)
				require.NoError(t, err)
				_, err = p.Free(1, r, true)
				require.NoError(t, err)
			})
		}
		budget(20, "Clone", func() { p.Clone() })
		budget(4, "Feasible", func() { _ = p.Feasible(one) })
		_, err := p.Alloc(2, requestOf(t, specText("["+wholeNodes("1")+"]", "")), 100)
		require.NoError(t, err)
		budget(40, "Alloc when busy", func() {
			_, err := p.Alloc(3, all, 100)
			require.ErrorIs(t, err, pool.ErrBusy)
		})
		require.ErrorIs(t, p.Feasible(more), pool.ErrInfeasible)
		budget(2, "Allocation", func() { p.Allocation(2) })
	}
}

// A job on all of many equal nodes costs as one on a few.
func TestEqualNodesCostAsOne(t *testing.T) {
	race.Skip(t)
	var allocs [2]float64
	for i, n := range []int{64, 16384} {
		p := clusterOf(t, n, false)
		q := requestOf(t, specText("["+wholeNodes(fmt.Sprint(n))+"]", ""))
		allocs[i] = testing.AllocsPerRun(10, func() {
			r, err := p.Alloc(1, q, 100)
			require.NoError(t, err)
			require.Equal(t, n, r.Len())
			_, err = p.Free(1, r, true)
			require.NoError(t, err)
		})
	}
	require.InDelta(t, allocs[0], allocs[1], 2)
	require.LessOrEqual(t, allocs[1], 20.0)
}

// Constraints are read once, and a property costs what it changes, whatever the nodes.
func TestWhatAnInventoryCostsOnce(t *testing.T) {
	race.Skip(t)
	p := clusterOf(t, 4096, true)
	q := constrained(t)
	require.ErrorIs(t, p.Feasible(q), pool.ErrInfeasible)
	require.NoError(t, p.Update(pool.Change{AddProperties: map[string]*idset.Set{"foo": idset.Of(1, 3)}}))
	require.NoError(t, p.Feasible(q))
	require.Zero(t, testing.AllocsPerRun(10, func() { _ = p.Feasible(q) }))
	require.LessOrEqual(t, testing.AllocsPerRun(10, func() {
		r, err := p.Alloc(1, q, 100)
		require.NoError(t, err)
		require.Equal(t, "3", r.Ranks().String())
		_, err = p.Free(1, r, true)
		require.NoError(t, err)
	}), 24.0)
	add, remove := map[string]*idset.Set{"foo": idset.Of(2)}, map[string]*idset.Set{"foo": idset.Of(1, 2)}
	require.LessOrEqual(t, testing.AllocsPerRun(10, func() {
		require.NoError(t, p.Update(pool.Change{AddProperties: add}))
		require.NoError(t, p.Update(pool.Change{RemoveProperties: remove}))
	}), 48.0)
	require.Equal(t, "3", alloc(t, p, 1, q).Ranks().String())
	require.NoError(t, p.Update(pool.Change{RemoveProperties: map[string]*idset.Set{"foo": idset.Of(3)}}))
	require.ErrorIs(t, p.Feasible(q), pool.ErrInfeasible)
}

// Of many jobs that hold the same, an error makes an R for one, and counts some.
func TestWhatAConflictWithManyJobsMayAllocate(t *testing.T) {
	race.Skip(t)
	p := upPool(t, "rank0/core[0-3] n0")
	r := parseR(t, "rank0/core[0-3] n0")
	cost := func(jobs jobid.ID, want string) float64 {
		for id := range jobs {
			_ = p.Adopt(id+1, r, nil)
		}
		return testing.AllocsPerRun(3, func() { require.ErrorContains(t, p.Adopt(1, r, nil), want) })
	}
	require.LessOrEqual(t, cost(101, ", 100 conflicts in all"), 100.0)
	few := cost(102, ", more than 100 conflicts in all")
	require.LessOrEqual(t, cost(4000, ", more than 100 conflicts in all"), few)
}

// What is known of requests does not grow with them.
func TestWhatIsKnownOfRequestsIsLimited(t *testing.T) {
	p := upPool(t, "rank[0-7]/core[0-3] n[0-7]")
	alloc(t, p, 1, byNode(t, "8", "4"))
	ask := func(constraint string) {
		q := requestOf(t, specText(shape("slot", "1", vertex("core", "1")), constraint))
		_, err := p.Alloc(2, q, 100)
		require.ErrorIs(t, err, pool.ErrBusy)
	}
	for i := range 5000 {
		ask(fmt.Sprintf(`{"not":[{"ranks":["%d"]}]}`, 8+i))
		constraints, requests := p.Known()
		require.Equal(t, min(i+1, pool.MaxKnown), constraints)
		require.Equal(t, min(i+1, pool.MaxKnown), requests)
	}
	require.NoError(t, p.Update(pool.Change{AddProperties: map[string]*idset.Set{"foo": idset.Of(0)}}))
	for i := range 24 { // a long one is known, and nothing keeps its text alive
		ask(fmt.Sprintf(`{"not":[{"ranks":["%d"%s]}]}`, 8+i, strings.Repeat(`,"8"`, 1<<16)))
	}
	constraints, requests := p.Known()
	require.Equal(t, []int{24, 0}, []int{constraints, requests})
}

// Constraints that allow many ranges of ranks are known until these are too many.
func TestWhatIsKnownOfRangesIsLimited(t *testing.T) {
	const nodes = 1 << 16
	p := upPool(t, fmt.Sprintf("rank[0-%d]/core0 n[0-%d]", nodes-1, nodes-1))
	odd := new(idset.Set)
	for i := uint32(1); i < nodes; i += 2 {
		odd.Insert(i)
	}
	require.NoError(t, p.Update(pool.Change{AddProperties: map[string]*idset.Set{"foo": odd}}))
	for i := range 80 {
		q := requestOf(t, specText(shape("slot", "1", vertex("core", "1")), fmt.Sprintf(`{"properties":["foo"],"not":[{"ranks":["%d"]}]}`, nodes+i)))
		require.NoError(t, p.Feasible(q))
		constraints, _ := p.Known()
		require.Equal(t, min(i+1, pool.MaxKnownRanges/(nodes/2)), constraints)
	}
}

// constrained is a request with every operator in it.
func constrained(t testing.TB) *pool.Request {
	q, err := pool.NewRequest(specOf(t, shape("slot", "1", vertex("core", "1")),
		`{"and":[{"or":[{"properties":["foo"]},{"properties":["bar","^n7"]}]},{"hostlist":["n[0-9000]","n9002"]},{"not":[{"ranks":["5-6"]}]}]}`))
	require.NoError(t, err)
	return q
}

// A request keeps what the jobspec says, not the hosts that it means.
func TestARequestIsAsLargeAsItsText(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	spec := specOf(t, shape("slot", "1", vertex("core", "1")), `{"hostlist":["n[0-65535]m"]}`)
	kept := make([]*pool.Request, 8)
	before := heap()
	for i := range kept {
		var err error
		kept[i], err = pool.NewRequest(spec)
		require.NoError(t, err)
	}
	require.Less(t, heap(), before+1<<20)
	runtime.KeepAlive(kept)
}

func TestWhatConstraintsMayAllocate(t *testing.T) {
	race.Skip(t)
	q := constrained(t)
	for scattered, want := range map[bool]float64{false: 104, true: 208} { // 72 to read it
		f := bigFake(16384, scattered)
		require.LessOrEqual(t, testing.AllocsPerRun(3, func() { f.Eligible(q) }), want)
	}
	plain, err := pool.NewRequest(specOf(t, shape("slot", "1", vertex("core", "1")), ""))
	require.NoError(t, err)
	f := bigFake(64, false)
	require.Zero(t, testing.AllocsPerRun(3, func() { f.Eligible(plain) }))
	s := specOf(t, shape("node", "4", vertex("slot", "2", vertex("core", "4"), vertex("gpu", "1"))), "")
	require.LessOrEqual(t, testing.AllocsPerRun(3, func() { _, _ = pool.NewRequest(s) }), 20.0)
}
