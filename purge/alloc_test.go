package purge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// churn is an index of n jobs through which jobs pass: each that is added at the
// end pushes out the oldest.
type churn struct {
	x    *purge.Index
	n    int
	next int
}

func churnJob(i int) jobstate.Summary {
	return jobstate.Summary{
		ID: jobid.ID(i + 1), Inactive: start + eventlog.Timestamp(i)/64, Result: jobstate.ResultCompleted, Ran: true,
	}
}

func newChurn(t testing.TB, n int) *churn {
	jobs := make([]jobstate.Summary, n)
	for i := range jobs {
		jobs[i] = churnJob(i)
	}
	x, err := purge.Recover(purge.Config{}, purge.Snapshot{Jobs: jobs})
	require.NoError(t, err)
	return &churn{x, n, n}
}

// batch passes 100 jobs through the index.
func (c *churn) batch(t testing.TB) {
	for range purge.DefaultBatch {
		if err := c.x.Add(churnJob(c.next)); err != nil {
			t.Fatal(err)
		}
		c.next++
	}
	p, err := c.x.Claim(start+eventlog.Timestamp(c.next)/64, purge.Limits{MaxCount: jobstate.Some(c.n)})
	if err != nil || len(p.Jobs) != purge.DefaultBatch {
		t.Fatal(len(p.Jobs), err)
	}
	if _, _, done := c.x.Unlinked(p.IDs(), nil); !done {
		t.Fatal("all are gone")
	}
}

func TestAllocations(t *testing.T) {
	race.Skip(t)
	c := newChurn(t, 20_000)
	for range 1000 { // until the maps have grown to their size
		c.batch(t)
	}
	perJob := testing.AllocsPerRun(300, func() { c.batch(t) }) / purge.DefaultBatch
	t.Logf("%.3f allocations per job", perJob)
	require.Less(t, perJob, 0.1, "add, claim and outcome with its tombstone, per job")

	now := start + eventlog.Timestamp(c.next)/64
	plan := func(batch int) float64 {
		return testing.AllocsPerRun(100, func() {
			if _, err := c.x.Plan(now, purge.Limits{MaxCount: jobstate.Some(0), Batch: batch}); err != nil {
				t.Fatal(err)
			}
		})
	}
	require.Equal(t, plan(1), plan(purge.MaxBatch), "a plan costs the slice of its jobs, however long")
	t.Logf("%v allocations per plan", plan(1))
	require.LessOrEqual(t, plan(1), 8.0)

	text, err := churnJob(5).MarshalText()
	require.NoError(t, err)
	room := make([]byte, 0, 100)
	var j jobstate.Summary
	for name, f := range map[string]func(){
		"Lookup": func() { _, _ = c.x.Lookup(jobid.ID(c.next)) },
		"Ended":  func() { c.x.Ended(jobid.ID(c.next)) },
		"Stats":  func() { c.x.Stats() },
		"Due":    func() { c.x.Due(purge.Limits{MaxCount: jobstate.Some(c.n)}) },
		"Observe": func() {
			if c.x.Observe(now) != nil {
				t.Fatal("it is later")
			}
		},
		"AppendText": func() { _, _ = churnJob(5).AppendText(room) },
	} {
		require.Zero(t, testing.AllocsPerRun(100, f), name)
	}
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		if j.UnmarshalText(text) != nil {
			t.Fatal("it is a tombstone")
		}
	}), 1.0)
}
