package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/node"
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
