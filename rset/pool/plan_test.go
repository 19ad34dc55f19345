package pool_test

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset/pool"
)

// until is when a job ends that starts at a time.
func (a ask) until(at float64) float64 {
	if a.duration == 0 {
		return math.Inf(1)
	}
	return max(at+a.duration, math.Nextafter(at, math.Inf(1)))
}

// A sight is what there is: of each rank that is up what it has, and until when each
// resource is held; and what planned jobs are to have.
type sight struct {
	*machine
	held   map[uint32]map[thing]float64
	claims []pool.Claim
}

func (m *machine) look() sight {
	s := m.lookAtAll()
	s.claims = m.p.Claims()
	for rank, held := range s.held {
		if !m.n.up[rank] {
			delete(s.held, rank)
		}
		for x := range held {
			for _, id := range m.n.owners(x) {
				end := m.n.jobs[id].end
				if end == 0 {
					end = math.Inf(1)
				}
				held[x] = max(held[x], end)
			}
		}
	}
	return s
}

// lookAtAll is look if all were up and free.
func (m *machine) lookAtAll() sight {
	s := sight{machine: m, held: map[uint32]map[thing]float64{}}
	for x := range m.n.there {
		if s.held[x.rank] == nil {
			s.held[x.rank] = map[thing]float64{}
		}
		s.held[x.rank][x] = -1
	}
	return s
}

// roomAt is for how many slots a rank has room at a time: what jobs hold until then is
// free, and what others are to have then is not.
func (s sight) roomAt(a ask, self jobid.ID, rank uint32, at float64) int {
	idle := true
	free := map[string]int{}
	for x, end := range s.held[rank] {
		if end > at {
			idle = false
		} else {
			free[x.kind]++
		}
	}
	for _, c := range s.claims {
		if c.Rank != rank || c.Job == self || float64(c.Start) > at || float64(c.End) <= at {
			continue
		}
		idle = false
		other := s.asks[c.Job]
		free["core"] -= other.cores * int(c.Slots)
		free["gpu"] -= other.gpus * int(c.Slots)
		if other.whole {
			clear(free)
		}
	}
	name, not := strings.CutPrefix(a.property, "^")
	if name != "" && s.n.props[name][rank] == not || a.whole && !idle {
		return 0
	}
	room := free["core"] / a.cores
	if a.gpus > 0 {
		room = min(room, free["gpu"]/a.gpus)
	}
	return max(room, 0)
}

// roomFrom is roomAt all the time.
func (s sight) roomFrom(a ask, self jobid.ID, rank uint32, from, to float64) int {
	room := s.roomAt(a, self, rank, from)
	for _, c := range s.claims {
		if start := float64(c.Start); c.Rank == rank && start > from && start < to {
			room = min(room, s.roomAt(a, self, rank, start))
		}
	}
	return room
}

// granted is how many nodes, or slots, a job gets that starts at a time.
func (s sight) granted(t require.TestingT, a ask, self jobid.ID, from, to float64) (int, bool) {
	least, nodes, slots := 1, 0, 0
	if a.nodes != "" && a.slots[0] > '1' {
		least = int(a.slots[0] - '0')
	}
	for rank := range s.n.ranks().All() {
		room := s.roomFrom(a, self, rank, from, to)
		if slots += room; room >= least {
			nodes++
		}
	}
	if a.nodes == "" {
		return granted(t, a.slots, slots)
	}
	return granted(t, a.nodes, nodes)
}

// earliest is the first of all times at which something ends that a job can start at.
func (m *machine) earliest(t require.TestingT, a ask, self jobid.ID) (float64, bool) {
	times := []float64{m.now}
	for _, j := range m.n.jobs {
		times = append(times, j.end)
	}
	for _, c := range m.p.Claims() {
		times = append(times, float64(c.End))
	}
	slices.Sort(times)
	s := m.look()
	for _, at := range times {
		if at >= m.now && at < math.MaxFloat64 {
			if _, ok := s.granted(t, a, self, at, a.until(at)); ok {
				return at, true
			}
		}
	}
	return 0, false
}

// kept are the planned jobs that can start as planned, on the ranks of their plan.
func (m *machine) kept(t require.TestingT) map[jobid.ID]bool {
	out := map[jobid.ID]bool{}
	for id := range m.asks {
		out[id] = true
	}
	s := m.look()
	for _, c := range s.claims {
		a := m.asks[c.Job]
		if int64(s.roomFrom(a, c.Job, c.Rank, float64(c.Start), float64(c.End))) < c.Slots {
			out[c.Job] = false
		}
	}
	return out
}

// keeps checks that what can start as planned can do so after a change.
func (m *machine) keeps(t require.TestingT, change func()) {
	before := m.kept(t)
	change()
	for id, ok := range m.kept(t) {
		require.True(t, ok || !before[id], "job %v is delayed", id)
	}
}

func (m *machine) Plan(t *rapid.T) {
	id, a := m.waiting(t)
	want, ok := m.earliest(t, a, id)
	q := a.request(t)
	now := eventlog.Timestamp(m.now)
	if _, known := m.asks[id]; !known {
		at, err := m.p.Earliest(q, now)
		require.Equal(t, ok, err == nil, "%v", err)
		require.Equal(t, want, float64(at))
	}
	before := m.p.Claims()
	m.keeps(t, func() {
		at, err := m.p.Plan(id, q, now)
		require.Equal(t, ok, err == nil, "%v", err)
		if !ok {
			require.True(t, errors.Is(err, pool.ErrBusy) || errors.Is(err, pool.ErrInfeasible))
			require.Equal(t, before, m.p.Claims())
			return
		}
		require.Equal(t, want, float64(at))
		m.asks[id] = a
	})
	if !ok {
		return
	}
	require.True(t, m.kept(t)[id])
	nodes, slots := 0, int64(0)
	for _, c := range m.p.Claims() {
		if c.Job == id {
			require.Equal(t, want, float64(c.Start))
			require.Equal(t, min(a.until(want), math.MaxFloat64), float64(c.End))
			nodes, slots = nodes+1, slots+c.Slots
		}
	}
	if a.nodes != "" {
		slots = int64(nodes)
	}
	most, ok := 0, false
	if want == m.now { // what is past its end is left out if it is not needed
		most, ok = m.look().granted(t, a, id, -1, a.until(want))
	}
	if !ok {
		most, _ = m.look().granted(t, a, id, want, a.until(want))
	}
	require.EqualValues(t, most, slots)
}

func (m *machine) Unplan(t *rapid.T) {
	id := jobid.ID(rapid.IntRange(0, int(m.next)).Draw(t, "id"))
	_, known := m.asks[id]
	delete(m.asks, id)
	require.Equal(t, known, m.p.Unplan(id))
}

// Pass: time passes.
func (m *machine) Pass(t *rapid.T) {
	m.now += rapid.SampledFrom([]float64{0.25, 3, 10}).Draw(t, "passes")
}

// What is planned on ranks that gain room later counts once.
func TestAPlanTakesAsMuchAsThereIs(t *testing.T) {
	p := upPool(t, "rank[0-3]/core[0-3] n[0-3]")
	_, err := p.Plan(1, needs(t, jobspec.Job{Nodes: 4, Cores: 2, Duration: 1e9}), 100)
	require.NoError(t, err)
	at, err := p.Plan(2, requestOf(t, specText(shape("slot", "1+", vertex("core", "3")), "")), 100)
	require.NoError(t, err)
	require.EqualValues(t, 101, at)
	for _, c := range p.Claims() {
		require.EqualValues(t, 1, c.Slots)
	}
	require.Len(t, p.Claims(), 8)
	require.True(t, p.Unplan(2))
	require.Len(t, p.Claims(), 4)

	// Planned again, it takes what has become free at the same time.
	for _, q := range []*pool.Request{
		requestOf(t, specText(shape("slot", "1+", vertex("core", "4")), "")),
		byNode(t, "1+", "4"),
	} {
		p = upPool(t, "rank[0-1]/core[0-3] n[0-1]")
		alloc(t, p, 1, byNode(t, "1", "4"))
		alloc(t, p, 2, byNode(t, "1", "4"))
		require.NoError(t, p.SetExpiration(1, 200))
		for i, end := range []eventlog.Timestamp{300, 200} {
			require.NoError(t, p.SetExpiration(2, end))
			at, err := p.Plan(3, q, 100)
			require.NoError(t, err)
			require.EqualValues(t, 200, at)
			require.Len(t, p.Claims(), i+1)
		}
	}
}

// What two jobs hold is free when both have ended.
func TestAForecastWaitsForBothHoldersOfAConflict(t *testing.T) {
	p := upPool(t, "rank0/core[0-1]")
	for id, end := range map[jobid.ID]eventlog.Timestamp{1: 200, 2: 300} {
		r, err := parseR(t, "rank0/core0").WithTimes(100, end)
		require.NoError(t, err)
		_ = p.Adopt(id, r, nil)
	}
	at, err := p.Earliest(byNode(t, "1", "2"), 100)
	require.NoError(t, err)
	require.EqualValues(t, 300, at)
}

// A node that is free now does not count for a later time, if the job would run on into a plan.
func TestALaterJobMeetsAPlanThatAnEarlierOneDoesNot(t *testing.T) {
	p := upPool(t, "rank[0-2]/core[0-3] n[0-2]")
	for id, seconds := range []time.Duration{10, 50, 100} {
		alloc(t, p, jobid.ID(id), needs(t, jobspec.Job{Nodes: 1, Cores: 4, Duration: seconds * time.Second}))
	}
	free(t, p, 0, nil, "", true)
	for _, c := range []struct {
		id    jobid.ID
		ranks string
		want  eventlog.Timestamp
	}{{3, "0,2", 200}, {4, "0-1", 290.5}} {
		at, err := p.Plan(c.id, requestOf(t, specText(shape("node", "2", vertex("slot", "1", vertex("core", "4"))), `{"ranks":["`+c.ranks+`"]}`)), 100)
		require.NoError(t, err)
		require.Equal(t, c.want, at, "on %s for 90.5 s", c.ranks)
	}
}

func TestAPlanOfAWholeNodeLeavesNothingOfIt(t *testing.T) {
	p := upPool(t, "rank0/core[0-3] n0")
	alloc(t, p, 1, needs(t, jobspec.Job{Nodes: 1, Cores: 4, Duration: 100e9}))
	at, err := p.Plan(2, needs(t, jobspec.Job{Nodes: 1, Exclusive: true, Duration: 50e9}), 100)
	require.NoError(t, err)
	require.EqualValues(t, 200, at)
	at, err = p.Plan(3, byNode(t, "1", "1"), 100)
	require.NoError(t, err)
	require.EqualValues(t, 250, at)
}

// EarliestIdle is Earliest where nodes are uniform, also if some are down.
func TestTheEarliestIdleNodes(t *testing.T) {
	for down, ends := range map[string][]eventlog.Timestamp{"": {100, 100, 200, 200, 300}, "1": {100, 100, 200, 300}, "0,2": {100, 100, 200}, "3": {100, 200, 200, 300}} {
		p := upPool(t, "rank[0-4]/core[0-1] n[0-4]")
		for id, ranks := range map[jobid.ID]string{1: "rank[0-1]/core[0-1]", 2: "rank2/core[0-1]"} {
			r, err := parseR(t, ranks).WithTimes(100, 100+100*eventlog.Timestamp(id))
			require.NoError(t, err)
			require.NoError(t, p.Adopt(id, r, nil))
		}
		if down != "" {
			require.NoError(t, p.Update(pool.Change{Down: ids(t, down)}))
		}
		for i, want := range ends {
			at, kept, ok := p.EarliestIdle(int64(i+1), 100)
			require.True(t, ok)
			require.Equal(t, want, at, "%d with %q down", i+1, down)
			at, err := p.Earliest(byNode(t, strconv.Itoa(i+1), "2"), 100)
			require.NoError(t, err)
			require.Equal(t, want, at)
			require.LessOrEqual(t, kept, int64(2))
		}
		_, _, ok := p.EarliestIdle(int64(len(ends)+1), 100)
		require.False(t, ok, "%q down", down)
	}
}

// needs returns the request of a job in numbers.
func needs(t require.TestingT, j jobspec.Job) *pool.Request {
	j.Command = []string{"app"}
	spec, err := jobspec.New(j)
	require.NoError(t, err)
	q, err := pool.NewRequest(spec)
	require.NoError(t, err)
	return q
}

func TestPlansAreLimited(t *testing.T) {
	p, err := pool.New(parseR(t, "rank0/core[0-3] n0"), pool.Config{MaxJobs: 2})
	require.NoError(t, err)
	q := needs(t, jobspec.Job{Cores: 4, Duration: 1e9})
	_, err = p.Plan(1, q, 100)
	require.ErrorIs(t, err, pool.ErrBusy) // it is down
	require.NoError(t, p.Update(pool.Change{Up: idset.Of(0)}))
	for i, want := range []eventlog.Timestamp{100, 101} {
		at, err := p.Plan(jobid.ID(i+1), q, 100)
		require.NoError(t, err)
		require.Equal(t, want, at)
	}
	_, err = p.Plan(3, q, 100)
	require.EqualError(t, err, "pool: limit exceeded: 3 jobs, at most 2 are allowed")
	at, err := p.Plan(1, q, 100) // again: the same
	require.NoError(t, err)
	require.EqualValues(t, 100, at)
	require.Len(t, p.Claims(), 2)
	_, err = p.Plan(3, nil, 100)
	require.ErrorContains(t, err, tooMuch)
	require.True(t, p.Unplan(2))
	_, err = p.Plan(2, nil, 100)
	require.ErrorIs(t, err, pool.ErrRequest)
	// Nothing is planned after the end of the pool.
	end := eventlog.Timestamp(100.5)
	require.NoError(t, p.Update(pool.Change{Expiration: &end}))
	_, err = p.Plan(2, q, 100)
	require.ErrorIs(t, err, pool.ErrBusy)
	_, err = p.Plan(2, q, 101)
	require.ErrorIs(t, err, pool.ErrExpired)
}

// What is planned on a rank ends when the rank leaves. The next Plan of the job reserves it again
// if it came back, though all else is the same.
func TestAPlanReservesARankThatCameBack(t *testing.T) {
	p := upPool(t, "rank[0-1]/core[0-3] n[0-1]")
	alloc(t, p, 1, byNode(t, "1", "4"))
	require.NoError(t, p.SetExpiration(1, 150))
	q := byNode(t, "2", "4")
	for range 2 {
		at, err := p.Plan(2, q, 100)
		require.NoError(t, err)
		require.EqualValues(t, 150, at)
		require.Len(t, p.Claims(), 2)
		_, err = p.Alloc(3, byNode(t, "1", "4"), 100)
		require.ErrorIs(t, err, pool.ErrBusy, "it would delay job 2")
		require.NoError(t, p.Check())
		require.NoError(t, p.Update(pool.Change{Shrink: idset.Of(1), Grow: parseR(t, "rank1/core[0-3] n1"), Up: idset.Of(1)}))
	}
}
