package reader

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A guest that reads its history over and over is served the less the more there is to read.
func TestAHistoryCountsAsManyRequests(t *testing.T) {
	s, err := engine.Serve(engine.Server{URL: "nats://127.0.0.1:0", Dir: t.TempDir()}, "")
	require.NoError(t, err)
	defer s.Shutdown()
	e, err := engine.Open(t.Context(), engine.Config{URL: s.ClientURL(), Instance: "main", Plain: true})
	require.NoError(t, err)
	defer e.Close()
	r := &reader{Config: Config{Engine: e, Users: e, Log: slog.New(slog.DiscardHandler), Owner: 1000}}
	r.reset()
	for i := range 150 * seenInOne {
		r.set(&wire.JobInfo{ID: jobid.ID(i + 1), UserID: uint32(i % 3), Name: "a", Inactive: eventlog.Timestamp(i + 1)})
	}
	stop, err := r.listen(t.Context())
	require.NoError(t, err)
	defer stop()
	for uid, ask := range []string{`{"protocol":1,"limit":1}`, `{"protocol":1,"limit":1250}`, `{"protocol":1,"name":"none"}`} {
		inbox := wire.Inbox(uint32(uid)) + ".x"
		answers, err := e.SubscribeSync(inbox)
		require.NoError(t, err)
		for range 4 * perSecond {
			require.NoError(t, e.PublishRequest(e.Subject("req", uid, "reader", "history"), inbox, []byte(ask)))
		}
		require.NoError(t, e.Flush())
		time.Sleep(300 * time.Millisecond)
		n, _, err := answers.Pending()
		require.NoError(t, err)
		require.Equal(t, uid == 0, n >= 2*perSecond, "%d answers to %s", n, ask)
	}
}

// The log of one job counts by its size. An answer has room for it whatever its owner wrote.
func TestALongLogCountsAsManyRequests(t *testing.T) {
	s, err := engine.Serve(engine.Server{URL: "nats://127.0.0.1:0", Dir: t.TempDir()}, "")
	require.NoError(t, err)
	defer s.Shutdown()
	e, err := engine.Make(t.Context(), engine.Config{URL: s.ClientURL(), Instance: "main", Name: "a"})
	require.NoError(t, err)
	defer e.Close()
	r := &reader{Config: Config{Engine: e, Users: e, Log: slog.New(slog.DiscardHandler)}}
	r.reset()
	requests, err := e.SubscribeSync("jl.main.req.7.reader.archived")
	require.NoError(t, err)
	answers, err := e.SubscribeSync(wire.Inbox(7) + ".x")
	require.NoError(t, err)
	for _, size := range []int{100, 2 << 20} {
		j := wire.Archived{JobInfo: wire.JobInfo{ID: 1, UserID: 7, Eventlog: strings.Repeat("<", size)}}
		require.NoError(t, e.Archive(t.Context(), []wire.Archived{j}))
		r.put(j)
		require.NoError(t, e.PublishRequest("jl.main.req.7.reader.archived", wire.Inbox(7)+".x", []byte(`{"protocol":1,"id":1}`)))
		m, err := requests.NextMsg(time.Minute)
		require.NoError(t, err)
		require.Equal(t, size/bytesInOne, r.request(t.Context(), m, 7))
		m, err = answers.NextMsg(time.Minute)
		require.NoError(t, err)
		require.Contains(t, string(m.Data), `"eventlog":"`+j.Eventlog+`"`)
	}
}
