package client_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/cluster/auth"
	"github.com/joblife/joblife/examples/cluster/client"
	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/jobstate/jobid"
)

// begin starts a server, and returns a client of user 7 and a connection that may answer it.
func begin(t *testing.T) (*client.Client, *nats.Conn) {
	s, err := engine.Serve(engine.Server{URL: "nats://127.0.0.1:0", Dir: t.TempDir()}, "")
	require.NoError(t, err)
	t.Cleanup(s.Shutdown)
	c, err := client.Open(s.ClientURL(), "main", 7)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	conn, err := nats.Connect(s.ClientURL())
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return c, conn
}

// Who waits for a job with a long log asks less often, since each answer counts by its size.
func TestALongLogIsAskedForLessOften(t *testing.T) {
	c, manager := begin(t)
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

// What no repeated request mends is an error at once, whoever asks for what.
func TestARequestEndsThatNobodyCanAnswer(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, auth.Init(keys, auth.Config{Instance: "main"}))
	require.NoError(t, auth.Add(keys, auth.User(7), time.Second))
	s, err := engine.Serve(engine.Server{URL: "nats://127.0.0.1:0", Dir: t.TempDir()}, keys)
	require.NoError(t, err)
	defer s.Shutdown()
	options, err := auth.Options(keys, auth.User(7), s.ClientURL())
	require.NoError(t, err)
	c, err := client.Open(s.ClientURL(), "main", 7, options...)
	require.NoError(t, err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ask := func(verb string, r wire.Request) error {
		_, err := c.Ask(ctx, verb, r)
		return err
	}
	watch := func(string, wire.Request) error {
		return c.Watch(ctx, 0, func(jobid.ID, []byte) {})
	}
	history := func(_ string, r wire.Request) error {
		_, err := c.History(ctx, r)
		return err
	}
	long := wire.Request{Note: strings.Repeat("x", auth.UserMaxPayload)}
	for _, err := range []error{ask("submit", long), ask("cancel", long), history("", long)} {
		require.ErrorIs(t, err, nats.ErrMaxPayload)
		require.ErrorContains(t, err, "a user may send 65536")
	}
	for _, f := range []func(string, wire.Request) error{ask, watch, history} { // the first until the credential has expired
		err := f("wait", wire.Request{ID: 1})
		require.ErrorIs(t, err, nats.ErrConnectionClosed)
		require.ErrorContains(t, err, "cluster user add 7")
	}
	c.Close()
	require.ErrorIs(t, ask("wait", wire.Request{}), nats.ErrConnectionClosed)
}

// Who can answer in place of a manager or a reader, as a node can, ends no client.
func TestAnAnswerThatLacksWhatWasAskedForIsAnError(t *testing.T) {
	c, node := begin(t)
	_, err := node.Subscribe("jl.main.req.7.>", func(m *nats.Msg) { _ = m.Respond([]byte(`{}`)) })
	require.NoError(t, err)
	require.NoError(t, node.Flush())
	const lacks = "an answer lacks what was asked for"
	_, err = c.Job(t.Context(), 1)
	require.ErrorContains(t, err, lacks)
	_, err = c.Archived(t.Context(), 1)
	require.ErrorContains(t, err, lacks)
	_, err = c.Ask(t.Context(), "status", wire.Request{})
	require.ErrorContains(t, err, lacks)
}
