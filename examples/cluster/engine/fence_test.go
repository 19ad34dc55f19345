package engine_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/cluster/engine"
)

// A fence that arrives late, after it was repeated, is not taken for the first append.
func TestALateFenceIsNoAppend(t *testing.T) {
	s := open(t, serve(t), "main", 1)
	js, err := jetstream.New(s.e.Conn)
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), s.e.Log())
	require.NoError(t, err)
	fence, err := stream.GetMsg(t.Context(), s.epoch)
	require.NoError(t, err)
	_, err = js.PublishMsg(t.Context(), &nats.Msg{Subject: fence.Subject, Header: fence.Header})
	require.NoError(t, err)
	s.Patience = 5 * time.Second
	record := joblife.Record{Time: 1, Kind: joblife.RecordQueue, Data: []byte(`{"name":"","enable":true,"start":true}`)}
	require.ErrorIs(t, s.Append([]joblife.Record{record}), engine.ErrFenced)
}
