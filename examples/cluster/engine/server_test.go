package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// A server starts again by what it says of itself, and not by what anybody sends or is called.
func TestAServerStartsAgainByItsOwnWordsOnly(t *testing.T) {
	said := make(saying, 100)
	e := newEar(slog.New(slog.NewTextHandler(said, nil)))
	s, err := Serve(Server{URL: "nats://127.0.0.1:0", Dir: t.TempDir()}, "")
	require.NoError(t, err)
	defer s.Shutdown()
	s.SetLogger(e, false, false)
	const text = "JetStream out of space, will be DISABLED, Critical write error: %v"
	for _, line := range []string{"C" + text, "PUB " + text} {
		c, err := net.Dial("tcp", s.Addr().String())
		require.NoError(t, err)
		defer c.Close()
		_, err = fmt.Fprintf(c, "CONNECT {\"name\":%q,\"lang\":%q,\"version\":%q}\r\n%s\r\n", text, text, text, line)
		require.NoError(t, err)
		select {
		case got := <-said:
			require.Contains(t, got, "DISABLED")
		case <-time.After(10 * time.Second):
			require.Fail(t, "the server says nothing of "+line)
		}
	}
	require.InDelta(t, 100, e.own.Tokens(), 0, "a connection was it")
	e.Errorf("%v", errors.New(text))
	require.Empty(t, e.heard)
	for _, format := range []string{
		"Filestore [JL-main-log] Critical write error: %v", "RAFT [a - b] Critical write error: %v",
		"JetStream out of %s resources, will be DISABLED", "JetStream out of space, will be DISABLED",
	} {
		e.Errorf(format, make([]any, strings.Count(format, "%"))...)
		require.Len(t, e.heard, 1, format)
		<-e.heard
	}
}

// Who may not do something, or who connects without a credential, can cause a line as often as it
// likes: it fills no disk, and hides no fault of the server.
func TestTheLogHasPartOfAFlood(t *testing.T) {
	var said bytes.Buffer
	e := newEar(slog.New(slog.NewTextHandler(&said, nil)))
	for range 100_000 {
		e.Errorf("127.0.0.1:5 - cid:7 - Publish Violation - Subject %q", strings.Repeat("x", 4000))
	}
	require.Contains(t, said.String(), "cid:7")
	require.Less(t, said.Len(), 100<<10)
	for _, own := range []string{"Filestore [JL-main-log] Critical write error: %v", "JetStream failed to store: %v", "Client Accept error: %v"} {
		e.Errorf(own, errors.New("disk"))
		require.Contains(t, said.String(), strings.TrimSuffix(own, "%v")+"disk")
	}
	lines := strings.Count(said.String(), "\n")
	for _, m := range regexp.MustCompile(`left out before"=(\d+)`).FindAllStringSubmatch(said.String(), -1) {
		n, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		lines += n
	}
	require.Equal(t, 100_003, lines, "each is there or counted")
}

// A saying is what was logged.
type saying chan string

func (s saying) Write(b []byte) (int, error) {
	select {
	case s <- string(b):
	default:
	}
	return len(b), nil
}

// A server in a cluster removes the streams of one that was alone, since its cluster knows none of them.
func TestAServerInAClusterRefusesTheFolderOfOneThatWasAlone(t *testing.T) {
	dir := t.TempDir()
	begin := func(cfg Server) error {
		cfg.URL, cfg.Name, cfg.Dir = "nats://127.0.0.1:0", "a", dir
		s, err := Serve(cfg, "")
		if err != nil {
			return err
		}
		defer s.WaitForShutdown()
		defer s.Shutdown()
		if cfg.Route != "" {
			return nil
		}
		e, err := Make(t.Context(), Config{URL: s.ClientURL(), Instance: "main", Name: "a"})
		require.NoError(t, err)
		e.Close()
		return nil
	}
	clustered := Server{Route: "nats://127.0.0.1:0", Routes: []string{"nats://127.0.0.1:1"}}
	require.NoError(t, begin(Server{}))
	require.ErrorContains(t, begin(clustered), "was alone")
	require.NoError(t, begin(Server{}), "nothing has changed")
	dir = t.TempDir()
	require.NoError(t, begin(clustered))
	require.NoError(t, begin(clustered), "its own folder")
}

// Who waits for a server that is not there, and has waited enough, learns that.
func TestAServerThatIsNotThere(t *testing.T) {
	cfg := Config{URL: "nats://127.0.0.1:1", Instance: "main", Name: "a"}
	for _, open := range []func(context.Context, Config) (*Engine, error){Open, Make} {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		_, err := open(ctx, cfg)
		cancel()
		require.ErrorIs(t, err, nats.ErrNoServers)
	}
}
