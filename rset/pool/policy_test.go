package pool_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/pool"
)

// gpuNodes returns a request for nodes with so many cores and gpus on each.
func gpuNodes(t require.TestingT, nodes, cores, gpus string) *pool.Request {
	return requestOf(t, specText(shape("node", nodes, vertex("slot", "1", vertex("core", cores), vertex("gpu", gpus))), ""))
}

func TestTheTightestFitComesFirst(t *testing.T) {
	p := upPool(t, "rank0/core[0-7] rank1/core[0-3] rank[2-3]/core[0-7],gpu[0-1] n[0-3]")
	// By the number of cores, then of gpus, then by rank.
	require.Equal(t, "rank1/core[0-1]", alloc(t, p, 1, byNode(t, "1", "2")).String())
	require.Equal(t, "rank1/core[2-3]", alloc(t, p, 2, byNode(t, "1", "2")).String())
	require.Equal(t, "rank0/core[0-1]", alloc(t, p, 3, byNode(t, "1", "2")).String())
	// Nodes in use come before idle ones.
	require.Equal(t, "rank0/core[2-5]", alloc(t, p, 4, byNode(t, "1", "4")).String())
	require.Equal(t, "rank2/core[0-3]", alloc(t, p, 5, byNode(t, "1", "4")).String())
	// The one with a gpu, though others are tighter.
	require.Equal(t, "rank2/core4,gpu0", alloc(t, p, 6, gpuNodes(t, "1", "1", "1")).String())
	require.Equal(t, "rank3/core0,gpu[0-1]", alloc(t, p, 7, gpuNodes(t, "1", "1", "2")).String())
	// Room that was made in the middle is used from below.
	_, err := p.Free(3, nil, true)
	require.NoError(t, err)
	require.Equal(t, "rank2/core[5-7]", alloc(t, p, 8, byNode(t, "1", "3")).String())
	require.Equal(t, "rank0/core[0-1,6]", alloc(t, p, 9, byNode(t, "1", "3")).String())
	// Of the other kinds the first name counts first.
	p = upPool(t, "rank0/core0,nic0 rank1/core0,ssd0")
	require.Equal(t, "rank1/core0", alloc(t, p, 1, byNode(t, "1", "1")).String())
}

// worstPool is upPool with FitWorst.
func worstPool(t require.TestingT, inventory string) *pool.Pool {
	p, err := pool.New(parseR(t, inventory), pool.Config{Fit: pool.FitWorst})
	require.NoError(t, err)
	require.NoError(t, p.Update(pool.Change{Up: p.Inventory().Ranks()}))
	return p
}

func TestTheWorstFitSpreadsJobs(t *testing.T) {
	p := worstPool(t, "rank0/core[0-3] rank1/core[0-7] rank[2-3]/core[0-3],gpu[0-1] n[0-3]")
	require.Equal(t, "rank1/core[0-3]", alloc(t, p, 1, byNode(t, "1", "4")).String())
	// Four cores each: by gpus, then by rank, and those in use last.
	require.Equal(t, "rank2/core0", alloc(t, p, 2, byNode(t, "1", "1")).String())
	require.Equal(t, "rank3/core0", alloc(t, p, 3, byNode(t, "1", "1")).String())
	require.Equal(t, "rank0/core0", alloc(t, p, 4, byNode(t, "1", "1")).String())
	require.Equal(t, "rank1/core4", alloc(t, p, 5, byNode(t, "1", "1")).String())
	// All have three. One with a gpu, though rank 0 has as much room.
	require.Equal(t, "rank2/core1,gpu0", alloc(t, p, 6, gpuNodes(t, "1", "1", "1")).String())
	require.Equal(t, "rank[0,3]/core[1-2] rank1/core[5-6]", alloc(t, p, 7, byNode(t, "3", "2")).String())
	_, err := p.Alloc(8, byNode(t, "1", "3"), 100)
	require.ErrorIs(t, err, pool.ErrBusy)
	require.ErrorIs(t, p.Feasible(byNode(t, "2", "8")), pool.ErrInfeasible)
	require.NoError(t, p.Feasible(byNode(t, "1", "8")))
}

func TestWhatIsLeftOpenIsTheMostThereIs(t *testing.T) {
	for _, c := range []struct{ resources, want string }{
		{shape("node", "1+", vertex("slot", "1", vertex("core", "1"))), "rank[0-3]/core0"},
		{shape("node", "2-3", vertex("slot", "1", vertex("core", "1"))), "rank[0-2]/core0"},
		{shape("node", "1,3,5", vertex("slot", "1", vertex("core", "3"))), "rank[0-2]/core[0-2]"},
		{shape("node", "2,5-9", vertex("slot", "1", vertex("core", "3"))), "rank[0-1]/core[0-2]"},
		// Slots: as many on each node as on the one with the least room.
		{shape("node", "3", vertex("slot", "1+", vertex("core", "1"))), "rank[0-2]/core[0-2]"},
		{shape("node", "4", vertex("slot", "1+", vertex("core", "1"))), "rank[0-3]/core[0-2]"},
		{shape("node", "1", vertex("slot", "2-9:2:*", vertex("core", "1"))), "rank0/core[0-1]"},
		{shape("slot", "1+", vertex("core", "2")), "rank[0-2]/core[0-1] rank3/core[0-3]"},
		{shape("slot", "2-7:5", vertex("core", "1")), "rank[0-1]/core[0-2] rank2/core0"},
		{shape("slot", "4,12", vertex("core", "1")), "rank[0-2]/core[0-2] rank3/core[0-2]"},
		{shape("slot", "4,11", vertex("core", "1")), "rank[0-2]/core[0-2] rank3/core[0-1]"},
		{shape("slot", "2,8,16", vertex("core", "1")), "rank[0-1]/core[0-2] rank2/core[0-1]"},
		{shape("slot", "2,16", vertex("core", "1")), "rank0/core[0-1]"},
	} {
		p := upPool(t, "rank[0-2]/core[0-2] rank3/core[0-3] n[0-3]")
		r := alloc(t, p, 1, requestOf(t, specText(c.resources, "")))
		require.True(t, rset.SameResources(r, parseR(t, c.want)), "%s: %s, want %s", c.resources, r, c.want)
	}
}

func TestInfeasibleDiffersFromUnavailable(t *testing.T) {
	p := newPool(t, "rank[0-3]/core[0-3] n[0-3]")
	_, err := p.Alloc(1, byNode(t, "4", "4"), 100)
	require.ErrorIs(t, err, pool.ErrBusy) // all are down
	require.NoError(t, p.Feasible(byNode(t, "4", "4")))
	require.NoError(t, p.Update(pool.Change{Up: idset.Of(0, 1, 2)}))
	_, err = p.Alloc(1, byNode(t, "4", "4"), 100)
	require.ErrorIs(t, err, pool.ErrBusy)
	for text, q := range map[string]*pool.Request{
		"pool: infeasible: request for 5 nodes of 1 slot of 1 core: room for 4":                   byNode(t, "5", "1"),
		"pool: infeasible: request for 1 node of 1 slot of 5 cores: room for 0":                   byNode(t, "1", "5"),
		"pool: infeasible: request for 1 node of 1 slot of 1 core, 1 gpu: room for 0":             gpuNodes(t, "1", "1", "1"),
		"pool: infeasible: request for 17 slots of 1 core: room for 16":                           bySlot(t, "17", "1"),
		"pool: infeasible: request for 2000000000 nodes of 1 slot of 2000000 cores: room for 0":   byNode(t, "2000000000", "2000000"),
		"pool: infeasible: request for 1 slot of 2147483647 cores: room for 0":                    bySlot(t, "1", "2147483647"),
		"pool: infeasible: request for 3-4 nodes of 1 slot of 5 cores, 1 gpu, 2 nics: room for 0": requestOf(t, specText(shape("node", "3-4", vertex("slot", "1", vertex("core", "5"), vertex("gpu", "1"), vertex("nic", "2"))), "")),
		"pool: infeasible: request for 1 slot of 1 core, constrained: room for 0":                 requestOf(t, specText(shape("slot", "1", vertex("core", "1")), `{"properties":["x"]}`)),
		"pool: infeasible: request for 1 slot of 5 whole nodes: room for 4":                       requestOf(t, specText("["+wholeNodes("5")+"]", "")),
		"pool: infeasible: request for 1073741824 nodes of 4 slots of 500000 cores: room for 0":   requestOf(t, specText(shape("node", "1073741824", vertex("slot", "4", vertex("core", "500000"))), "")),
	} {
		for range 2 {
			require.EqualError(t, p.Feasible(q), text)
			_, err := p.Alloc(1, q, 100)
			require.EqualError(t, err, text)
			require.ErrorIs(t, err, pool.ErrInfeasible)
			_, err = p.Earliest(q, 100)
			require.EqualError(t, err, text)
		}
	}
	require.Zero(t, p.Len())
}

func TestTheZeroRequestIsRefused(t *testing.T) {
	p := upPool(t, "rank0/core0 n0")
	for _, q := range []*pool.Request{nil, new(pool.Request)} {
		require.ErrorIs(t, p.Feasible(q), pool.ErrRequest)
		_, err := p.Alloc(1, q, 100)
		require.EqualError(t, err, "pool: invalid request: it asks for nothing")
		_, err = p.Earliest(q, 100)
		require.ErrorIs(t, err, pool.ErrRequest)
	}
}

func TestAnAllocationEndsWithItsDurationOrWithThePool(t *testing.T) {
	timed := func(duration string) *pool.Request {
		text := `{"version":1,"resources":` + shape("slot", "1", vertex("core", "1")) +
			`,"tasks":[{"command":["app"],"slot":"task","count":{"per_slot":1}}],"attributes":{"system":{"duration":` + duration + `}}}`
		return requestOf(t, text)
	}
	for _, c := range []struct {
		duration              string
		now, expiration, want float64
	}{
		{"0", 100, 0, 0},
		{"0", 100, 500, 500},
		{"60", 100, 0, 160},
		{"60", 100, 120.5, 120.5},
		{"60", 0, 0, 60},
		{"1e-9", 1.7e9, 0, math.Nextafter(1.7e9, 2e9)},
		{"1e308", 100, 5000, 5000},
	} {
		p := upPool(t, "rank0/core[0-3] n0")
		expiration := eventlog.Timestamp(c.expiration)
		require.NoError(t, p.Update(pool.Change{Expiration: &expiration}))
		require.Equal(t, expiration, p.Inventory().Expiration())
		r, err := p.Alloc(1, timed(c.duration), eventlog.Timestamp(c.now))
		require.NoError(t, err)
		require.Equal(t, c.now, float64(r.Start()))
		require.Equal(t, c.want, float64(r.Expiration()), c)
		h, _ := p.Allocation(1)
		require.Equal(t, r.Start(), h.Since)
		require.Equal(t, r.Expiration(), h.Expiration)
	}
	r, err := parseR(t, "rank0/core0 n0").WithTimes(0, 500)
	require.NoError(t, err)
	p, err := pool.New(r, pool.Config{})
	require.NoError(t, err)
	require.NoError(t, p.Update(pool.Change{Up: idset.Of(0)}))
	require.Equal(t, eventlog.Timestamp(500), p.Inventory().Expiration())
	for _, now := range []float64{500, 501, -1, math.NaN(), math.Inf(1)} {
		_, err := p.Alloc(1, timed("1"), eventlog.Timestamp(now))
		require.True(t, strings.Contains(err.Error(), badArg) != errors.Is(err, pool.ErrExpired), now)
		_, err = p.Earliest(timed("1"), eventlog.Timestamp(now))
		require.True(t, strings.Contains(err.Error(), badArg) != errors.Is(err, pool.ErrExpired), now)
	}
	require.Zero(t, p.Len())
}

func TestPropertiesOfThisInstanceStayHere(t *testing.T) {
	p := upPool(t, "rank[0-1]/core[0-3] n[0-1]")
	require.NoError(t, p.Update(pool.Change{AddProperties: map[string]*idset.Set{"a": idset.Of(0), "+b": idset.Of(0), "c": idset.Of(1)}}))
	r := alloc(t, p, 1, byNode(t, "1", "2"))
	names := ""
	for name := range r.Properties() {
		names += name + " "
	}
	require.Equal(t, "a ", names)
	require.Equal(t, "0", p.Inventory().Property("+b").String())
	require.Equal(t, "0", p.Available().Property("+b").String())
	q := requestOf(t, specText(shape("slot", "1", vertex("core", "1")), `{"properties":["+b"]}`))
	require.Equal(t, "rank0/core2", alloc(t, p, 2, q).String())
}

// A job without an expiration, the end of the pool and ranks that are down limit what is
// to come.
func TestNoForecastGoesBeyondTheEndOfThePool(t *testing.T) {
	p := upPool(t, "rank[0-3]/core[0-3] n[0-3]")
	for i, end := range []float64{400, 200, 300, 0} {
		alloc(t, p, jobid.ID(i+1), byNode(t, "1", "4"))
		require.NoError(t, p.SetExpiration(jobid.ID(i+1), eventlog.Timestamp(end)))
	}
	earliest := func(nodes string, want float64) {
		t.Helper()
		at, err := p.Earliest(byNode(t, nodes, "4"), 150)
		require.Equal(t, want == 0, errors.Is(err, pool.ErrBusy))
		require.Equal(t, want, float64(at))
	}
	earliest("3", 400)
	earliest("4", 0)
	expiration := eventlog.Timestamp(300)
	require.NoError(t, p.Update(pool.Change{Expiration: &expiration}))
	earliest("2", 0)
	earliest("1", 200)
	require.NoError(t, p.Update(pool.Change{Down: idset.Of(1)}))
	earliest("1", 0)
}

// Slots of several nodes come whole, as many of them as the count accepts.
func TestSlotsOfNodesComeWhole(t *testing.T) {
	q := requestOf(t, specText(shape("slot", "1,4", vertex("node", "2")), ""))
	for ranks, want := range map[string][]int64{"0-1": {2, 1}, "0-6": {2, 1}, "0-7": {8, 4}, "0-15": {8, 4}} {
		p := upPool(t, "rank["+ranks+"]/core[0-3]")
		r, err := p.Alloc(1, q, 10)
		require.NoError(t, err, ranks)
		require.Equal(t, want, []int64{int64(r.Len()), r.Slots()}, ranks)
		require.NoError(t, p.Check())
	}
	_, err := upPool(t, "rank0/core[0-3]").Alloc(1, q, 10)
	require.EqualError(t, err, "pool: infeasible: request for 1,4 slots of 2 whole nodes: room for 1")
}

// The next eligible rank may be in the midst of a span.
func TestASearchFindsAnEligibleRankInALaterSpan(t *testing.T) {
	p := upPool(t, "rank[0,2-5]/core0")
	q := requestOf(t, specText(shape("slot", "1", vertex("core", "1")), `{"ranks":["4"]}`))
	require.Equal(t, "rank4/core0", alloc(t, p, 1, q).String())
}

// One span of equal nodes, of which every other one is eligible: the search goes on until
// it has what the job needs, and no further.
func TestASearchGoesThroughTheEligibleRanksOfASpan(t *testing.T) {
	for nodes, want := range map[string]string{"1": "rank0/core[0-1]", "2": "rank[0,2]/core[0-1]", "3": "rank[0,2,4]/core[0-1]"} {
		for name, resources := range map[string]string{"whole": wholeNodes(nodes), "cores": vertex("node", nodes, vertex("slot", "1", vertex("core", "2")))} {
			p, err := pool.New(parseR(t, "rank[0-5]/core[0-1] n[0-5]"), pool.Config{})
			require.NoError(t, err)
			require.NoError(t, p.Update(pool.Change{Up: p.Inventory().Ranks()}))
			q := requestOf(t, specText("["+resources+"]", `{"ranks":["0,2,4"]}`))
			require.Equal(t, want, alloc(t, p, 1, q).String(), "%s, %s nodes", name, nodes)
		}
	}
}
