package main

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/manager"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset/sched"
)

// A process that is a manager again and again keeps nothing of its earlier lives.
func TestALifeOfAManagerLeavesNothing(t *testing.T) {
	w := begin(t, 1, perilog.Config{})
	var own *engine.Engine
	var said bytes.Buffer
	w.log = slog.New(slog.NewTextHandler(&said, nil))
	stop := w.start("manager", func(ctx context.Context, e *engine.Engine, log *slog.Logger) error {
		nodes, err := alike(1, 1)
		require.NoError(t, err)
		own = e
		return manager.Run(ctx, manager.Config{Engine: e, Manager: w.cfg, Policy: sched.EASY{}, Nodes: nodes, Log: log})
	})
	ctx := within(t, 40*time.Second)
	w.asks(ctx, "status", wire.Request{})
	before := own.NumSubscriptions()
	for range 3 {
		old := w.asks(ctx, "status", wire.Request{})
		w.asks(ctx, "takeover", wire.Request{})
		require.Eventually(t, func() bool {
			now, err := w.Ask(ctx, "status", wire.Request{})
			return err == nil && now.Status.Epoch > old.Status.Epoch
		}, 10*time.Second, 20*time.Millisecond)
	}
	require.Eventually(t, func() bool { return own.NumSubscriptions() <= before }, 5*time.Second, 20*time.Millisecond, "%d subscriptions, and %d before", own.NumSubscriptions(), before)
	stop()
	require.NotContains(t, said.String(), "level=ERROR", "an operator asked for it")
}
