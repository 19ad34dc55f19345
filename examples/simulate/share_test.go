package main

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/rset/children"
)

// Where a node has one core, to share nodes is to have them.
func TestToShareNodesOfOneCoreChangesNothing(t *testing.T) {
	args := []string{"-jobs", "200", "-nodes", "32", "-cores", "1", "-seeds", "2", "-straggle", "0.02", "-html", ""}
	alone := good(t, args...)
	shared := good(t, append(args, "-share")...)
	shared = strings.Replace(shared, "32 nodes of 1 core", "32 nodes", 1)
	shared = strings.Replace(shared, wrap("Jobs share nodes. What is said of nodes is by cores: a node-hour is 1 core-hour."), "", 1)
	require.Equal(t, alone, shared)
}

// Without prologs and epilogs, nothing is held idle and the load is that of the jobs.
func TestTheLoadOfSharedNodesIsByCores(t *testing.T) {
	args := []string{"-jobs", "300", "-nodes", "16", "-cores", "8", "-share", "-seeds", "1", "-html", "", "-straggle", "0"}
	out := good(t, append(args, "-prolog", "0", "-epilog", "0")...)
	require.Contains(t, out, "on 16 nodes of 8 cores, load 0.80")
	require.Contains(t, out, "a node-hour is 8\ncore-hours.")
	require.Contains(t, out, "epilogs: 0.80 with whole-job release, 0.80 with partial")
	require.Regexp(t, `node-hours held idle, a week +0\.0 +0\.0 +0\.0`, out)
	require.Regexp(t, `epilogs: 0.98 with whole-job release, 0.97 with partial\nWarning: 0.98 `, good(t, append(args, "-epilog", "10m")...))
}

// played is a cluster of 2 nodes with 4 cores each that jobs share, after all jobs are over.
func played(t *testing.T, w way, work []arrival) *cluster {
	t.Helper()
	o, err := parse([]string{"-nodes", "2", "-cores", "4", "-share", "-prolog", "0", "-straggle", "0.5", "-trim", "0", "-html", "", "-policy", "fifo"}, io.Discard)
	require.NoError(t, err)
	c, err := newCluster(o, work, w, 1)
	require.NoError(t, err)
	require.NoError(t, c.play(context.Background(), func(int) {}))
	return c
}

// A slow epilog holds the cores of its job on its node, and no others. Whole-job release
// holds all cores of the job.
func TestASlowEpilogHoldsTheCoresOfItsJob(t *testing.T) {
	work := []arrival{ // 4 and 2 cores, beside them 2, and then 4 and 2 again
		{submit: 0, run: 100, limit: 100, size: 6}, {submit: 1, run: 9000, limit: 9000, size: 2}, {submit: 2, run: 1, limit: 1, size: 6},
	}
	for w, c := range []*cluster{played(t, wholeJob, work), played(t, partialRelease, work)} {
		ends := slices.Clone(c.takes(1, jobstate.ActionEpilog, 2))
		require.NotEqual(t, ends[0], ends[1])
		if way(w) == wholeJob {
			ends[0], ends[1] = slices.Max(ends), slices.Max(ends)
		}
		want := map[seconds]int{}
		last := slices.Clone(c.takes(3, jobstate.ActionEpilog, 2))
		if way(w) == wholeJob {
			last[0], last[1] = slices.Max(last), slices.Max(last)
		}
		beside := c.takes(2, jobstate.ActionEpilog, 1)
		for _, e := range []struct {
			at    seconds
			cores int
		}{{ends[0], 4}, {ends[1], 2}, {last[0], 4}, {last[1], 2}, {beside[0], 2}} {
			want[e.at] += e.cores
		}
		require.Equal(t, want, c.latency)
		require.EqualValues(t, 1, c.jobs[2].began, "beside the first")
		require.Equal(t, 100+max(ends[0], ends[1]), c.jobs[3].began, "when the cores of the first are back, not those beside them")
	}
}

// Each of the logs is valid, with nodes that fail and restarts, and no core has two jobs: the
// cluster would panic.
func TestLogsOfJobsThatShareNodesAreValid(t *testing.T) {
	dir := t.TempDir()
	good(t, "-share", "-jobs", "150", "-nodes", "8", "-cores", "6", "-seeds", "1", "-mtbf", "2d", "-restarts", "3", "-straggle", "0.05", "-html", "", "-log", dir)
	for _, name := range []string{"whole.jsonl", "partial.jsonl"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		shares := 0
		for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			var j recording
			require.NoError(t, json.Unmarshal([]byte(line), &j))
			for _, f := range jobstate.Validate([]byte(j.Eventlog)) {
				require.NotEqual(t, jobstate.LevelError, f.Level, "%v: %v\n%s", j.ID, f, j.Eventlog)
			}
			if !strings.Contains(string(j.Jobspec), `"exclusive":true`) {
				shares++
			}
		}
		require.Positive(t, shares)
	}
}

// A job waits for gpus although cores are free.
func TestJobsWaitForGPUs(t *testing.T) {
	o, err := parse(strings.Fields("-nodes 2 -cores 6 -gpus 2 -share -prolog 0 -epilog 0 -jobs 400 -load 0.6"), io.Discard)
	require.NoError(t, err)
	work := []arrival{ // a core and a gpu, three of these, two more, and cores alone
		{run: 50, limit: 50, size: 1, gpu: true}, {submit: 1, run: 50, limit: 50, size: 3, gpu: true},
		{submit: 2, run: 50, limit: 50, size: 2, gpu: true}, {submit: 3, run: 9, limit: 9, size: 8},
	}
	c, err := newCluster(o, work, partialRelease, 1)
	require.NoError(t, err)
	require.NoError(t, c.play(context.Background(), func(int) {}))
	for i, want := range []seconds{0, 1, 51, 3} {
		require.Equal(t, want, c.jobs[i+1].began)
	}
	gpus := 0
	for _, j := range draw(o, rand.New(rand.NewPCG(1, 1))) {
		require.False(t, j.gpu && j.size > 2, "more than -max-size nodes have")
		if j.gpu {
			gpus++
		}
	}
	require.InDelta(t, 200, gpus, 50)
}

// A job takes fewer cores with a gpu than the node has for each, so gpus are short first.
func TestTheLoadOfGPUsIsTheGreater(t *testing.T) {
	o := &options{share: true, nodes: 2, cores: 16, gpus: 4}
	jobs := []arrival{{run: 300, size: 2, gpu: true}, {submit: 100, run: 100, size: 8, gpu: true}}
	require.InDelta(t, (300*1+100*4)/100.0/8, loadOf(jobs, o), 1e-9)
	jobs[0].gpu, jobs[1].gpu = false, false
	require.InDelta(t, (300*2+100*8)/100.0/32, loadOf(jobs, o), 1e-9)
	args := []string{"-html=", "-seeds", "1", "-nodes", "32", "-max-size", "4", "-share", "-gpus", "4", "-gpu-jobs", "1", "-jobs", "1000"}
	require.NotContains(t, good(t, args...), "Warning")
	require.Contains(t, good(t, append(args, "-load", "1.6")...), "Warning: ")
}

// All that the cores of a job do is drawn: as much as they have it.
func TestTheRowsOfSharedNodesAreCores(t *testing.T) {
	s, _ := page(t, "-share", "-jobs", "100", "-nodes", "8", "-cores", "6", "-seeds", "1", "-straggle", "0.05")
	for _, c := range s.runs[0] {
		sum := seconds(0)
		for _, g := range c.segments {
			require.Less(t, g.row, 8*6)
			sum += g.to - g.from
		}
		require.Equal(t, c.had, float64(sum))
		idle, jobs := seconds(0), seconds(0)
		for i := range c.jobs[1:] {
			idle += c.jobs[i+1].idle
		}
		for _, g := range c.segments {
			if g.kind == spentIdle {
				jobs += g.to - g.from
			}
		}
		require.Equal(t, idle, jobs)
	}
}

// What a job does on a node costs the same for any number of cores once no more is kept.
func TestNoCoreIsVisitedForAFullChart(t *testing.T) {
	took := func(cores int) time.Duration {
		o, err := parse([]string{"-share", "-cores", strconv.Itoa(cores)}, io.Discard)
		require.NoError(t, err)
		c := &cluster{o: o, jobs: make([]job, 2)}
		c.metrics = metrics{units: cores, draws: true, segments: make([]segment, maxSegments), last: 1}
		what := children.Of([]children.Kind{{Name: "core", IDs: o.kinds()["core"], N: cores}})
		at := tenant{job: 1, what: what, units: cores}
		least := time.Duration(math.MaxInt64)
		for range 3 {
			begin := time.Now()
			for range 100 {
				at.since = 0
				c.spent(0, &at, spentJob)
			}
			least = min(least, time.Since(begin))
		}
		return least
	}
	require.Less(t, took(1<<16), 8*took(1<<10)+time.Millisecond)
}
