package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/cluster/client"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/jobstate/jobspec"
)

// cpu returns the seconds of CPU that a process has used.
func cpu(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if err != nil || len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100
}

// BenchmarkJobs runs jobs that do nothing, from submit to clean, durably. Each has one
// node, and for each node there are 4 at once.
func BenchmarkJobs(b *testing.B) {
	type params struct {
		log     string
		servers int
		store   string
		nodes   int
	}
	for _, p := range []params{{"R1", 0, "", 16}, {"R1", 0, "", 128}, {"R3", 3, "", 16}, {"R3", 3, "", 128}, {"bbolt", 0, "bbolt:jobs.db", 16}, {"bbolt", 0, "bbolt:jobs.db", 128}} {
		nodes := p.nodes
		b.Run(fmt.Sprintf("log=%s/nodes=%d", p.log, nodes), func(b *testing.B) {
			f := launch(b, fleetConfig{nodes: nodes, managers: 1, servers: p.servers, store: p.store, simulate: true})
			ctx := within(b, 10*time.Minute)
			spec, err := jobspec.New(jobspec.Job{Nodes: 1, Exclusive: true, Command: []string{"true"}})
			require.NoError(b, err)
			text, err := spec.MarshalJSON()
			require.NoError(b, err)
			one := func(c *client.Client) {
				answer, err := c.Ask(ctx, "submit", wire.Request{Jobspec: text})
				require.NoError(b, err)
				_, err = c.Ask(ctx, "wait", wire.Request{ID: answer.ID})
				require.NoError(b, err)
			}
			one(f.Client)
			before := make(map[string]float64)
			for name, p := range f.procs {
				before[name] = cpu(p.Process.Pid)
			}
			var left atomic.Int64
			left.Store(int64(b.N))
			var all sync.WaitGroup
			b.ResetTimer()
			for range 4 * nodes {
				all.Go(func() {
					for left.Add(-1) >= 0 {
						one(f.Client)
					}
				})
			}
			all.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
			used := make(map[string]float64)
			for name, p := range f.procs {
				kind, _, _ := strings.Cut(name, " ")
				used[kind] += cpu(p.Process.Pid) - before[name]
			}
			for kind, seconds := range used {
				b.ReportMetric(seconds*1e6/float64(b.N), kind+"-µs/job")
			}
		})
	}
}

// BenchmarkFailover kills the active manager, and waits until a job that is submitted then has
// started. A thousand jobs wait meanwhile.
func BenchmarkFailover(b *testing.B) {
	f := launch(b, fleetConfig{nodes: 16, managers: 3, simulate: true})
	ctx := within(b, 10*time.Minute)
	hold := 0
	for range 1000 {
		f.asks(ctx, "submit", wire.Request{Jobspec: f.spec(1, []string{"true"}), Urgency: &hold})
	}
	for b.Loop() {
		b.StopTimer()
		time.Sleep(2 * time.Second) // the one that was killed stands by again
		name := f.active(ctx)
		b.StartTimer()
		f.signal(name, syscall.SIGKILL)
		answer := f.asks(ctx, "submit", wire.Request{Jobspec: f.spec(1, []string{"true"})})
		f.starts(ctx, answer.ID)
	}
}
