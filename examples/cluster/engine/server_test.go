package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A server starts again by what it says of itself, and not by what anybody sends or is called.
func TestAServerStartsAgainByItsOwnWordsOnly(t *testing.T) {
	said := make(saying, 100)
	e := &ear{log: slog.New(slog.NewTextHandler(said, nil)), heard: make(chan struct{}, 1)}
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

// A saying is what was logged.
type saying chan string

func (s saying) Write(b []byte) (int, error) {
	select {
	case s <- string(b):
	default:
	}
	return len(b), nil
}
