package reader

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/cluster/metrics"
)

// Strangers, who may be many on a machine, leave room for the live pages of those who have the token.
func TestStrangersLeaveRoomForLivePages(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	r := &reader{Config: Config{Listener: l, Token: "t", Log: slog.New(slog.DiscardHandler), Metrics: metrics.New()}}
	stop := r.serve(ctx)
	t.Cleanup(func() { cancel(); stop() })
	get := func(token string) int {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.Addr().String()+"/live", nil)
		require.NoError(t, err)
		req.AddCookie(&http.Cookie{Name: r.cookie(), Value: token})
		answer, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer.StatusCode
	}
	refused := 0
	for range maxLive {
		if get("") == http.StatusServiceUnavailable {
			refused++
		}
	}
	require.Equal(t, http.StatusOK, get("t"))
	require.Equal(t, maxLive/2, refused)
}
