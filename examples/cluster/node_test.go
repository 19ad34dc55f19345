package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/node"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/perilog"
)

// A second process of a node would not know the tasks of the first.
func TestANodeRunsOnce(t *testing.T) {
	w := begin(t, 1, perilog.Config{})
	w.manager()
	stop := w.node(0)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := w.Wait(ctx, w.submit(ctx, "", 1, "true"))
	require.NoError(t, err)
	e, err := engine.Open(ctx, engine.Config{URL: w.url, Instance: "main", Name: "second"})
	require.NoError(t, err)
	defer e.Close()
	again := func() error {
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return node.Run(short, node.Config{Engine: e, Dir: filepath.Join(w.dir, "node-0"), Log: w.log})
	}
	require.ErrorContains(t, again(), "another process")
	stop()
	require.NoError(t, again())
}

// for ever.
func TestAJobFailsWhereItCannotBeNoted(t *testing.T) {
	w := begin(t, 1, perilog.Config{})
	w.manager()
	w.node(0)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := w.Wait(ctx, w.submit(ctx, "", 1, "true"))
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(filepath.Join(w.dir, "node-0", "output")))
	job, err := w.Wait(ctx, w.submit(ctx, "", 1, "true"))
	require.NoError(t, err)
	require.Equal(t, "FAILED", job.Result)
}

// A submission without a key that is repeated, since its answer was lost, is one job.
func TestARepeatedSubmissionIsOneJob(t *testing.T) {
	w := begin(t, 1, perilog.Config{})
	conn, err := nats.Connect(w.url)
	require.NoError(t, err)
	defer conn.Close()
	keys := make(chan string, 2)
	_, err = conn.Subscribe("jl.main.req.*.submit", func(m *nats.Msg) {
		var r wire.Request
		_ = json.Unmarshal(m.Data, &r)
		if keys <- r.Key; len(keys) > 1 {
			_ = m.Respond([]byte(`{"id":1}`))
		}
	})
	require.NoError(t, err)
	require.NoError(t, conn.Flush())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	w.submit(ctx, "", 1, "true")
	key := <-keys
	require.NotEmpty(t, key)
	require.Equal(t, key, <-keys)
}
