package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
)

// decidePlainly is decide with EASY as it reads: each pass plans the head anew in the
// pool, which keeps the planned nodes from other jobs.
func decidePlainly(t *testing.T, s *scheduler, now time.Time) []alloc.Response {
	if !s.freed && !s.fresh {
		return s.takeResponses()
	}
	if s.freed {
		for _, r := range s.planned {
			s.pool.Unplan(r.id)
			r.looked = false
		}
		s.planned = nil
	}
	look := s.waiting[:min(depth, len(s.waiting))]
	for i, r := range look {
		least := slices.MinFunc(look[i:], func(a, b *request) int { return int(a.nodes - b.nodes) })
		if least.nodes > int64(s.pool.Available().Len()) {
			break
		}
		if r.looked {
			continue
		}
		given, err := s.pool.Alloc(r.id, r.Request, eventlog.FromTime(now))
		if err == nil {
			s.responses = append(s.responses, alloc.Response{ID: r.id, Type: alloc.ResponseSuccess, R: given})
			r.started = true
			continue
		}
		require.ErrorIs(t, err, pool.ErrBusy)
		r.looked = true
		if s.planned = append(s.planned, r); len(s.planned) == 1 {
			if _, err := s.pool.Plan(r.id, r.Request, eventlog.FromTime(now)); err != nil {
				require.ErrorIs(t, err, pool.ErrBusy)
			}
		}
	}
	s.freed, s.fresh = false, false
	s.waiting = slices.DeleteFunc(s.waiting, func(r *request) bool { return r.started })
	return s.takeResponses()
}

func (s *scheduler) takeResponses() []alloc.Response {
	out := s.responses
	s.responses = nil
	return out
}

// Both start the same jobs at the same time, on other nodes perhaps. So each has nodes of
// its own, and what happens to the node of one happens to that of the other.
func TestReservationsAreAsGoodAsPlans(t *testing.T) {
	type both [2]*scheduler
	type holder struct {
		id    jobid.ID
		r     [2]*rset.R
		ranks [2][]uint32 // that it still has
	}
	seeds, overtook := uint64(30), 0
	if os.Getenv("JOBLIFE_DEEP") != "" {
		seeds = 300
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 4))
		const size = 24
		var s both
		for i := range s {
			var err error
			s[i], err = newScheduler(easy, machine(t, size), new(idset.Set))
			require.NoError(t, err)
		}
		now, next := time.Unix(1000, 0), jobid.ID(1)
		var running []*holder
		var down [2][]uint32
		var waiting []jobid.ID
		take := func(msg alloc.Message) {
			for i := range s {
				require.NoError(t, s[i].dispatch(msg))
			}
		}
		for step := range 300 {
			now = now.Add(time.Duration(rng.IntN(3)*rng.IntN(60)) * time.Second)
			switch k := rng.IntN(20); {
			case k < 8:
				r := ask(t, next, 1+int64(rng.IntN(1+rng.IntN(size))), time.Duration(30*(1+rng.IntN(20)))*time.Second, "")
				r.Priority += uint32(rng.IntN(2))
				take(r)
				waiting = append(waiting, next)
				next++
			case k < 17 && len(running) > 0: // early or late
				at := rng.IntN(len(running))
				h := running[at]
				n := len(h.ranks[0])
				if rng.IntN(2) == 0 {
					n = 1 + rng.IntN(n)
				}
				final := n == len(h.ranks[0])
				for i := range s {
					fragment, err := h.r[i].Restrict(idset.Of(h.ranks[i][:n]...))
					require.NoError(t, err)
					require.NoError(t, s[i].dispatch(alloc.Free{ID: h.id, R: fragment, Final: final}))
					h.ranks[i] = h.ranks[i][n:]
				}
				if final {
					running = slices.Delete(running, at, at+1)
				}
			case k == 17 && len(waiting) > 0:
				at := rng.IntN(len(waiting))
				take(alloc.Cancel{ID: waiting[at]})
				waiting = slices.Delete(waiting, at, at+1)
			case k == 18 && len(down[0]) > 0:
				for i := range s {
					require.NoError(t, s[i].nodes(idset.Of(down[i]...), nil))
					down[i] = nil
				}
			case k == 19:
				var fall [2]uint32
				if len(running) > 0 && rng.IntN(2) == 0 {
					h := running[rng.IntN(len(running))]
					for i := range s {
						fall[i] = h.ranks[i][0]
					}
				} else if !s[0].pool.Available().IsEmpty() {
					for i := range s {
						fall[i], _ = s[i].pool.Available().Ranks().Max()
					}
				} else {
					break
				}
				if slices.Contains(down[0], fall[0]) {
					break
				}
				for i := range s {
					require.NoError(t, s[i].nodes(nil, idset.Of(fall[i])))
					down[i] = append(down[i], fall[i])
				}
			}
			got, err := s[0].decide(now)
			require.NoError(t, err)
			want := decidePlainly(t, s[1], now)
			where := fmt.Sprintf("seed %d, step %d", seed, step)
			require.Len(t, got, len(want), where)
			for i := range got {
				require.Equal(t, want[i].ID, got[i].ID, where)
				require.Equal(t, want[i].Type, got[i].Type, where)
				if got[i].Type != alloc.ResponseSuccess {
					continue
				}
				if waiting[0] != got[i].ID {
					overtook++
				}
				h := &holder{id: got[i].ID, r: [2]*rset.R{got[i].R, want[i].R}}
				for k, r := range h.r {
					h.ranks[k] = slices.Collect(r.Ranks().All())
				}
				running = append(running, h)
				waiting = slices.DeleteFunc(waiting, func(id jobid.ID) bool { return id == h.id })
			}
			require.EqualValues(t, s[0].pool.Available().Len(), s[0].idle, where)
			require.Len(t, s[0].waiting, len(waiting), where)
			held := int64(0)
			for _, e := range s[0].ends {
				held += e.nodes
			}
			require.EqualValues(t, s[0].up(s[0].pool.Allocated()), held, where)
		}
	}
	require.Greater(t, overtook, int(6*seeds))
}

// A job that finds no nodes after all, here because it may only have some, leaves the head
// what is kept for it.
func TestAJobThatStaysBusySpendsNoReserve(t *testing.T) {
	nodes := machine(t, 4)
	s, err := newScheduler(easy, nodes, new(idset.Set))
	require.NoError(t, err)
	decide := func(r alloc.Request) []alloc.Response {
		require.NoError(t, s.dispatch(r))
		got, err := s.decide(time.Unix(1000, 0))
		require.NoError(t, err)
		return got
	}
	require.Len(t, decide(ask(t, 1, 1, time.Hour, "")), 1)
	require.Empty(t, decide(ask(t, 2, 4, time.Hour, "")), "the head: it starts when job 1 ends")
	busy := s.pool.Allocated().Ranks()
	free := idset.Difference(nodes.Ranks(), busy)
	first, _ := free.Min()
	free.Remove(first)
	require.Empty(t, decide(ask(t, 3, 3, time.Minute, fmt.Sprintf(`{"ranks":["%v"]}`, idset.Union(busy, free)))))
	require.Empty(t, decide(ask(t, 4, 3, 2*time.Hour, "")), "it would delay the head")
}
