package sched_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

// pair is two schedulers, one that counts nodes and one that plans. Both start the same jobs
// at the same time, on other nodes perhaps, and what happens to the node of one happens to
// that of the other.
type pair struct {
	t       *rapid.T
	s       [2]*sched.Scheduler
	now     eventlog.Timestamp
	waiting []jobid.ID
	running []*holding
	down    [2][]uint32
}

// holding is a job with nodes of each scheduler.
type holding struct {
	id    jobid.ID
	r     [2]*rset.R
	ranks [2][]uint32 // that it still has
}

func (p *pair) take(m alloc.Message) {
	for _, s := range p.s {
		require.NoError(p.t, s.Handle(m))
	}
}

// frees returns how many of its nodes a job gives back, perhaps all.
func (p *pair) frees(h *holding, n int) {
	for i, s := range p.s {
		fragment, err := h.r[i].Restrict(idset.Of(h.ranks[i][:n]...))
		require.NoError(p.t, err)
		require.NoError(p.t, s.Handle(alloc.Free{ID: h.id, R: fragment, Final: n == len(h.ranks[i])}))
		h.ranks[i] = h.ranks[i][n:]
	}
	if len(h.ranks[0]) == 0 {
		p.running = slices.DeleteFunc(p.running, func(o *holding) bool { return o == h })
	}
}

func (p *pair) update(up, down [2][]uint32) {
	for i, s := range p.s {
		require.NoError(p.t, s.Acquire(pool.Acquire{Change: pool.Change{Up: idset.Of(up[i]...), Down: idset.Of(down[i]...)}}))
	}
}

// restart ends the session. The next one learns what jobs have.
func (p *pair) restart(nodes *rset.R) {
	for i := range p.s {
		p.s[i] = sched.New(sched.Config{Policy: sched.EASY{}})
		if i == 1 {
			p.s[i].PlanOnly()
		}
		require.NoError(p.t, p.s[i].Acquire(pool.Acquire{Resources: nodes, Change: pool.Change{Up: idset.Difference(nodes.Ranks(), idset.Of(p.down[i]...))}}))
		for _, h := range p.running {
			free := idset.Difference(h.r[i].Ranks(), idset.Of(h.ranks[i]...))
			require.NoError(p.t, p.s[i].Handle(alloc.HelloResponse{JobInfo: alloc.JobInfo{ID: h.id}, R: h.r[i], Free: free}))
		}
		_, err := p.s[i].EndHello()
		require.NoError(p.t, err)
	}
	p.waiting = nil
}

func TestReservationsByCountAreAsGoodAsPlans(t *testing.T) {
	overtook, counted := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(2, 16).Draw(t, "nodes")
		nodes := machine(t, size, 2)
		p := &pair{t: t, now: 1000}
		p.restart(nodes)
		next := jobid.ID(1)
		some := func(most int) int { return rapid.IntRange(1, most).Draw(t, "some") }
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			p.now += eventlog.Timestamp(rapid.IntRange(0, 3).Draw(t, "after") * some(60))
			switch k := rapid.IntRange(0, 20).Draw(t, "what"); {
			case k < 8:
				text := specOf(t, jobspec.Job{Nodes: int64(some(some(size))), Exclusive: true, Duration: time.Duration(30*(some(20)-1)) * time.Second})
				p.take(alloc.Request{JobInfo: alloc.JobInfo{ID: next, Priority: uint32(some(2))}, Jobspec: text})
				p.waiting = append(p.waiting, next)
				next++
			case k < 15 && len(p.running) > 0: // early or late
				h := p.running[some(len(p.running))-1]
				p.frees(h, some(len(h.ranks[0])))
			case k == 15 && len(p.running) > 0:
				p.take(alloc.Expiration{ID: p.running[some(len(p.running))-1].id, Expiration: p.now + eventlog.Timestamp(30*some(20)-300)})
			case k == 16 && len(p.waiting) > 0:
				at := some(len(p.waiting)) - 1
				p.take(alloc.Cancel{ID: p.waiting[at]})
				p.waiting = slices.Delete(p.waiting, at, at+1)
			case k == 17 && len(p.waiting) > 0:
				p.take(alloc.Prioritize{Jobs: []alloc.Priority{{ID: p.waiting[some(len(p.waiting))-1], Priority: uint32(some(3))}, {ID: 1 << 40}}})
			case k == 18 && len(p.down[0]) > 0:
				p.update(p.down, [2][]uint32{})
				p.down = [2][]uint32{}
			case k == 19:
				p.restart(nodes)
			case k == 20:
				var falls [2][]uint32
				held := len(p.running) > 0 && some(2) == 1
				for i, s := range p.s {
					ranks := s.Pool().Available().Ranks()
					if held {
						ranks = idset.Of(p.running[0].ranks[i]...)
						ranks.SubtractWith(idset.Of(p.down[i]...))
					}
					if last, ok := ranks.Max(); ok {
						falls[i] = append(falls[i], last)
					}
				}
				if len(falls[0]) != len(falls[1]) {
					continue
				}
				p.update([2][]uint32{}, falls)
				for i := range p.down {
					p.down[i] = append(p.down[i], falls[i]...)
				}
			}
			p.decide(&overtook)
			if p.s[0].ByCount() {
				counted++
			}
		}
	})
	if !testing.Short() {
		require.Greater(t, overtook, 10)
		require.Greater(t, counted, 100)
	}
}

func (p *pair) decide(overtook *int) {
	got, want := p.s[0].Decide(p.now), p.s[1].Decide(p.now)
	require.False(p.t, p.s[1].ByCount())
	require.Len(p.t, got, len(want))
	for i := range got {
		require.NoError(p.t, p.s[i%2].Check())
		require.Equal(p.t, want[i].ID, got[i].ID)
		require.Equal(p.t, want[i].Type, got[i].Type)
		if got[i].Type != alloc.ResponseSuccess {
			continue
		}
		if p.waiting[0] != got[i].ID {
			*overtook++
		}
		h := &holding{id: got[i].ID, r: [2]*rset.R{got[i].R, want[i].R}}
		for k, r := range h.r {
			h.ranks[k] = slices.Collect(r.Ranks().All())
		}
		p.running = append(p.running, h)
		p.waiting = slices.DeleteFunc(p.waiting, func(id jobid.ID) bool { return id == h.id })
	}
	for _, s := range p.s {
		require.Equal(p.t, len(p.waiting), s.Len())
	}
}

// Nodes are counted again when no job shares one, or asks to.
func TestNodesAreCountedAgain(t *testing.T) {
	s := begun(t, sched.Config{Policy: sched.EASY{}}, machine(t, 2, 2))
	require.NoError(t, s.Handle(alloc.Request{JobInfo: alloc.JobInfo{ID: 1, Priority: 16}, Jobspec: specOf(t, jobspec.Job{Slots: 1, Cores: 1})}))
	require.Equal(t, []jobid.ID{1}, starts(t, s, 1))
	require.False(t, s.ByCount())
	require.NoError(t, s.Handle(alloc.Free{ID: 1, Final: true}))
	require.NoError(t, s.Handle(ask(t, 2, 1)))
	require.Equal(t, []jobid.ID{2}, starts(t, s, 2))
	require.True(t, s.ByCount())
}

// Then the plan that the head had is void.
func TestThePlanOfAHeadGoesWhenNodesAreCounted(t *testing.T) {
	s := begun(t, sched.Config{Policy: sched.EASY{}}, machine(t, 2, 2))
	require.NoError(t, s.Handle(ask(t, 1, 1)))
	require.Equal(t, []jobid.ID{1}, starts(t, s, 1000))
	require.NoError(t, s.Handle(ask(t, 2, 2)), "it is to start at 1060")
	require.NoError(t, s.Handle(alloc.Request{JobInfo: alloc.JobInfo{ID: 3, Priority: 16}, Jobspec: specOf(t, jobspec.Job{Slots: 2, Cores: 2})}))
	require.Empty(t, starts(t, s, 1000))
	require.False(t, s.ByCount())
	require.NoError(t, s.Handle(alloc.Cancel{ID: 3}))
	require.NoError(t, s.Handle(alloc.Expiration{ID: 1, Expiration: 1100}))
	require.NoError(t, s.Handle(ask(t, 4, 1)))
	require.Equal(t, []jobid.ID{4}, starts(t, s, 1030), "it ends at 1090")
	require.True(t, s.ByCount())
}

// A job that ends in time may have nodes that the head needs, and leaves those that it does not.
func TestAJobThatEndsInTimeLeavesWhatTheHeadDoesNotNeed(t *testing.T) {
	s := begun(t, sched.Config{Policy: sched.EASY{}}, machine(t, 10, 1))
	for id, nodes := range []int64{5, 8, 3} {
		require.NoError(t, s.Handle(ask(t, jobid.ID(id+1), nodes)))
	}
	for id := jobid.ID(4); id <= 5; id++ {
		require.NoError(t, s.Handle(alloc.Request{JobInfo: alloc.JobInfo{ID: id, Priority: 16}, Jobspec: specOf(t, jobspec.Job{Nodes: 2, Exclusive: true, Duration: time.Hour})}))
	}
	require.Equal(t, []jobid.ID{1, 3, 4}, starts(t, s, 1000), "2 is to start at 1060, on the nodes of 1 and 3")
	require.True(t, s.ByCount())
}

// A policy that calls EASY, and starts more then, cannot delay the head.
func TestAPolicyCannotBreakTheReservationOfEASY(t *testing.T) {
	s := begun(t, sched.Config{Policy: code(func(p *sched.Pass) {
		sched.EASY{}.Schedule(p)
		p.Start(3)
	})}, machine(t, 2, 2))
	require.NoError(t, s.Handle(ask(t, 1, 1)))
	require.Equal(t, []jobid.ID{1}, starts(t, s, 1000))
	require.NoError(t, s.Handle(ask(t, 2, 2)), "it is to start at 1060")
	long := specOf(t, jobspec.Job{Nodes: 1, Exclusive: true, Duration: time.Hour})
	require.NoError(t, s.Handle(alloc.Request{JobInfo: alloc.JobInfo{ID: 3, Priority: 1}, Jobspec: long}))
	require.Empty(t, starts(t, s, 1001))
}
