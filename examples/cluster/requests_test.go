package main

import (
	"context"
	"encoding/json"
	"fmt"
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
	stop := w.manager()
	w.node(0)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for verb, r := range map[string]wire.Request{
		"submit": {Jobspec: []byte(`{}`)}, "cancel": {ID: 7}, "urgency": {ID: 7, Urgency: new(int)}, "wait": {ID: 7}, "job": {ID: 7}, "drain": {},
	} {
		_, err := w.Ask(ctx, verb, r)
		require.ErrorIs(t, err, client.ErrRefused, verb)
	}
	_, err := w.Ask(ctx, "urgency", wire.Request{ID: 7})
	require.ErrorContains(t, err, "the urgency is missing")

	conn, err := nats.Connect(w.url, nats.CustomInboxPrefix(wire.Inbox(w.cfg.Owner)))
	require.NoError(t, err)
	defer conn.Close()
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
	_, err = w.Ask(ctx, "cancel", wire.Request{ID: id})
	require.NoError(t, err)
	_, err = w.Wait(ctx, id)
	require.NoError(t, err)
}
