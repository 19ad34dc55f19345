package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// small is enough that each manager is down, and users wait.
var small = size{Instances: 6, Nodes: 16, Jobs: 600, Users: 12, Seed: 1}

// worlds are the simulations at their end.
var worlds = sync.OnceValue(func() (list []*world) {
	for _, c := range rows {
		c.size = small
		list = append(list, simulate(c))
	}
	return list
})

func each(t *testing.T, f func(t *testing.T, w *world)) {
	for _, w := range worlds() {
		t.Run(w.Group+"/"+w.Name, func(t *testing.T) { f(t, w) })
	}
}

// twice says of each way to repeat a submission whether it makes two jobs of one.
var twice = map[string]bool{"elsewhere": true, "keyless": true}

func TestEachJobEndsOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		for _, j := range w.jobs {
			require.NotZero(t, j.id, "job %d has no answer", j.number)
			require.Equal(t, j.runs, j.ends, "job %d", j.number)
			require.False(t, j.answer.Before(j.arrive) || j.began.Before(j.arrive), "job %d", j.number)
			if !twice[w.Repeat] {
				require.Equal(t, 1, j.runs, "job %d", j.number)
			}
		}
		r := w.result()
		require.Zero(t, r.Lost)
		require.Equal(t, twice[w.Repeat], r.Twice > 0, "%d jobs ran twice, of %d without an answer", r.Twice, r.NoAnswer)
		require.Equal(t, w.Repeat != "", r.NoAnswer > 0)
		require.InDelta(t, 0.5, r.Busy, 0.5)
	})
}

// Nothing is left in a manager, and its scheduler has all nodes back.
func TestNothingIsHeldInTheEnd(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ended := 0
		for n, in := range w.instances {
			require.NotNil(t, in.l, "manager %d is down", n)
			for v := range in.m.Jobs(jobstate.StateNew | jobstate.StateActive) {
				t.Errorf("instance %d: job %v is in %v", n, v.ID(), v.State())
			}
			for h := range in.m.Holders() {
				t.Errorf("instance %d: %v is held by %v", n, h.Ranks, h)
			}
			for id := range in.m.Allocated() {
				t.Errorf("instance %d: %v has resources", n, id)
			}
			for rank, id := range in.nodes {
				require.Zero(t, id, "node %d of instance %d", rank, n)
			}
			ended += in.m.Stats().States[jobstate.StateInactive]
		}
		runs := 0
		for _, j := range w.jobs {
			runs += j.runs
		}
		require.Equal(t, runs, ended)
	})
}

// Whoever has an id knows where the job is, after managers were down too.
func TestAnIDSaysWhereItsJobIs(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		seen, used := make(map[jobid.ID]bool), make(map[*instance]bool)
		for _, j := range w.jobs {
			require.False(t, seen[j.id], "%v is the id of two jobs", j.id)
			in := w.instances[j.id>>10&(1<<14-1)] // each has a generator of its own, with this number (RFC 19)
			v, ok := in.m.Job(j.id)
			require.True(t, ok, "%v is not where its id says", j.id)
			require.Equal(t, uint32(firstUser+j.user), v.UserID())
			seen[j.id], used[in] = true, true
			for _, other := range w.instances {
				_, ok := other.m.Job(j.id)
				require.Equal(t, other == in, ok)
			}
		}
		require.Len(t, used, small.Instances)
	})
}

func TestTheSameFlagsPrintTheSame(t *testing.T) {
	args := []string{"-instances", "3", "-nodes", "8", "-jobs", "150", "-users", "8", "-json", "-seed"}
	var out [3]bytes.Buffer
	for i, seed := range []string{"7", "7", "8"} {
		require.NoError(t, run(append(args, seed), &out[i]))
	}
	require.Equal(t, out[0].String(), out[1].String())
	require.NotEqual(t, out[0].String(), out[2].String())
	d, n := json.NewDecoder(&out[0]), 0
	for ; d.More(); n++ {
		var r result
		require.NoError(t, d.Decode(&r))
		require.Equal(t, rows[n].Name, r.Name)
		require.Equal(t, 150, r.Jobs)
	}
	require.Len(t, rows, n)
}

func TestEqualUsersGetMoreAlikeByAllUsage(t *testing.T) {
	jain := make(map[string]float64)
	for _, c := range rows {
		if c.Group == "fair share" && c.Route == "two" {
			c.size = small
			c.Jobs = 2400
			jain[c.Share] = simulate(c).result().Jain
		}
	}
	require.Less(t, jain[""], jain["local"], fmt.Sprint(jain))
	require.Less(t, jain["local"], jain["all"], fmt.Sprint(jain))
}

func TestWrongArguments(t *testing.T) {
	for _, args := range [][]string{{"-users", "5"}, {"-instances", "1"}, {"-instances", "1001"}, {"-nodes", "7"}, {"-jobs", "0"}, {"more"}} {
		require.Error(t, run(args, new(bytes.Buffer)), "%q", args)
	}
}
