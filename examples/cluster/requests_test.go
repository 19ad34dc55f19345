package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/cluster/client"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/perilog"
)

// A request gets one answer: what it asked for, why it is refused, or that it has to be asked again.
func TestEachRequestHasItsAnswer(t *testing.T) {
	t.Parallel()
	w := begin(t, 1, perilog.Config{})
	stop := w.nodes()
	ctx := within(t, 30*time.Second)
	for verb, r := range map[string]wire.Request{
		"submit": {Jobspec: []byte(`{}`)}, "cancel": {ID: 7}, "urgency": {ID: 7, Urgency: new(int)}, "wait": {ID: 7}, "job": {ID: 7}, "drain": {}, "frobnicate": {},
	} {
		_, err := w.Ask(ctx, verb, r)
		require.ErrorIs(t, err, client.ErrRefused, verb)
	}
	_, err := w.Ask(ctx, "urgency", wire.Request{ID: 7})
	require.ErrorContains(t, err, "the urgency is missing")

	conn := w.connect(nats.CustomInboxPrefix(wire.Inbox(w.cfg.Owner)))
	id := w.submit(ctx, "", 1, "exec sleep 30")
	ask := func(protocol int) (answer wire.Answer) {
		text, err := json.Marshal(wire.Request{Protocol: protocol, ID: id})
		require.NoError(t, err)
		m, err := conn.RequestWithContext(ctx, fmt.Sprintf("jl.main.req.%d.wait", w.cfg.Owner), text)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(m.Data, &answer))
		return answer
	}
	require.Contains(t, ask(wire.Protocol+1).Error, "protocol")
	require.Equal(t, wire.Answer{Error: "the job goes on", Retry: true}, ask(wire.Protocol))
	began := time.Now()
	time.AfterFunc(100*time.Millisecond, stop)
	require.Equal(t, wire.Answer{Error: "this manager is not active any more", Retry: true}, ask(wire.Protocol))
	require.Less(t, time.Since(began), 2*time.Second)
	w.manager()
	w.asks(ctx, "cancel", wire.Request{ID: id})
	w.over(ctx, id)
	list, err := w.Ask(ctx, "jobs", wire.Request{All: true, Limit: math.MaxInt})
	require.NoError(t, err, "no limit is too large")
	require.Len(t, list.Jobs, 1)
}

// A guest is told why a request is refused. The log has no line of it: a guest could fill the log.
func TestWhatAGuestIsRefusedIsNotLogged(t *testing.T) {
	t.Parallel()
	w := begin(t, 1, perilog.Config{})
	var said bytes.Buffer
	w.log = slog.New(slog.NewTextHandler(&said, nil))
	stop := w.manager()
	ctx := within(t, 30*time.Second)
	guest := w.open(7)
	for verb, r := range map[string]wire.Request{
		"submit": {Jobspec: []byte(`{}`)}, "cancel": {ID: 7}, "urgency": {ID: 7, Urgency: new(int)}, "wait": {ID: 7},
	} {
		_, err := guest.Ask(ctx, verb, r)
		require.ErrorIs(t, err, client.ErrRefused, verb)
	}
	stop()
	require.Contains(t, said.String(), "active")
	require.NotContains(t, said.String(), "level=WARN")
}

// A guest that lists its jobs over and over is served the less the more they are.
func TestAListOfJobsCountsAsManyRequests(t *testing.T) {
	t.Parallel()
	w := begin(t, 1, perilog.Config{})
	w.manager()
	ctx := within(t, 30*time.Second)
	guest := w.open(7)
	_, err := guest.Ask(ctx, "jobs", wire.Request{})
	require.NoError(t, err)
	conn := w.connect()
	answers, err := conn.SubscribeSync(wire.Inbox(7) + ".x")
	require.NoError(t, err)
	for range 400 {
		require.NoError(t, conn.PublishRequest("jl.main.req.7.jobs", wire.Inbox(7)+".x", []byte(`{"protocol":1}`)))
	}
	time.Sleep(500 * time.Millisecond)
	n, _, err := answers.Pending()
	require.NoError(t, err)
	require.Positive(t, n)
	require.Less(t, n, 60, "of 400")
}
