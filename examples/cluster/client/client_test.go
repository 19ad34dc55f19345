package client_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/cluster/client"
	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/wire"
)

// Who waits for a job with a long log asks less often, since each answer counts by its size.
func TestALongLogIsAskedForLessOften(t *testing.T) {
	s, err := engine.Serve(engine.Server{URL: "nats://127.0.0.1:0", Dir: t.TempDir()}, "")
	require.NoError(t, err)
	defer s.Shutdown()
	c, err := client.Open(s.ClientURL(), "main", 7)
	require.NoError(t, err)
	defer c.Close()
	manager, err := nats.Connect(s.ClientURL())
	require.NoError(t, err)
	defer manager.Close()
	text, err := wire.Marshal(wire.Answer{Jobs: []wire.JobInfo{{ID: 1, Eventlog: strings.Repeat("x", 300<<10)}}})
	require.NoError(t, err)
	var asked atomic.Int64
	_, err = manager.Subscribe("jl.main.req.7.job", func(m *nats.Msg) {
		asked.Add(1)
		_ = m.Respond(text)
	})
	require.NoError(t, err)
	require.NoError(t, manager.Flush())
	ctx, cancel := context.WithTimeout(t.Context(), 800*time.Millisecond)
	defer cancel()
	_, err = c.Started(ctx, 1)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, int64(1), asked.Load())
}
