package engine_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/jobstate/jobid"
)

// begin starts a server, and returns what opens an engine there.
func begin(t *testing.T) (context.Context, func(name string) *engine.Engine) {
	s, err := engine.Serve(engine.Server{URL: "nats://127.0.0.1:0", Dir: t.TempDir()}, "")
	require.NoError(t, err)
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx, func(name string) *engine.Engine {
		e, err := engine.Make(ctx, engine.Config{URL: s.ClientURL(), Instance: "main", Name: name})
		require.NoError(t, err)
		t.Cleanup(e.Close)
		return e
	}
}

func summaries(n, user int) iter.Seq[joblife.Record] {
	return func(yield func(joblife.Record) bool) {
		for i := range n {
			text := fmt.Appendf(nil, "%d %d 1700000000 completed ran", i+1, user)
			if !yield(joblife.Record{Time: 1_700_000_000, Job: jobid.ID(i + 1), Kind: joblife.RecordInactive, Data: text}) {
				return
			}
		}
	}
}

// Two readers count the same messages, so they make a snapshot at the same time.
func TestOfTwoSnapshotsAtATimeOneCounts(t *testing.T) {
	ctx, open := begin(t)
	const n = 12_000 // more than a message has
	engines := []*engine.Engine{open("a"), open("b")}
	errs := make([]error, len(engines))
	for seq := uint64(1); seq < 4; seq++ {
		_, err := engines[0].Fence(ctx)
		require.NoError(t, err)
		var all sync.WaitGroup
		for i, e := range engines {
			all.Go(func() { errs[i] = e.Compact(ctx, seq, summaries(n, i)) })
		}
		all.Wait()
		won := 0
		for i, err := range errs {
			if err != nil {
				require.ErrorIs(t, err, engine.ErrLost)
				won = 1 - i
			}
		}
		users := make(map[string]int)
		got, err := engines[0].Snapshot(ctx, func(r joblife.Record) error {
			users[strings.Fields(string(r.Data))[1]]++
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, seq, got)
		require.Len(t, users, 1, "records of both")
		if errs[0] != nil || errs[1] != nil {
			require.Equal(t, map[string]int{fmt.Sprint(won): n}, users)
		}
	}
	require.NoError(t, engines[0].Compact(ctx, 2, summaries(1, 9)), "an older one")
	got, err := engines[1].Snapshot(ctx, func(joblife.Record) error { return nil })
	require.NoError(t, err)
	require.Equal(t, uint64(3), got)
}
