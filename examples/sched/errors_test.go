package main

import (
	"context"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/errpage"
	"github.com/joblife/joblife/examples/internal/lines"
)

// listens has a broker at the socket s that says something to who connects.
func listens(say string) func(*testing.T) {
	return func(t *testing.T) {
		l, err := net.Listen("unix", "s")
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
				_, _ = conn.Write([]byte(say))
				t.Cleanup(func() { _ = conn.Close() })
			}
		}()
	}
}

// left has a socket s that nobody listens on.
func left(t *testing.T) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "s"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
}

func file(t *testing.T) { require.NoError(t, os.WriteFile("s", nil, 0o600)) }

// An impatient writer interrupts a program that waits for a broker.
type impatient struct {
	strings.Builder
	interrupt func()
}

func (w *impatient) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "tries again") {
		w.interrupt()
	}
	return w.Builder.Write(b)
}

func runUntilItWaits(in io.Reader, args ...string) (status int, stdout, stderr string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var out strings.Builder
	errs := impatient{interrupt: cancel}
	status = lines.Run(ctx, prog, args, in, &out, &errs)
	return status, out.String(), errs.String()
}

func TestErrorsAreLessons(t *testing.T) {
	noFlux := func(t *testing.T) { t.Setenv("FLUX_URI", "") }
	errpage.Page{
		Name: "sched", Run: runUntilItWaits, Sources: []string{".", "../internal/lines"},
		Elsewhere: map[string][]string{
			"flux_test.go, on the other side of a broker": {
				"this is the broker of rank %s: a scheduler belongs on rank 0", "the instance has a scheduler: remove its module first (%w)",
				"the inventory is refused: %w", "the hello has one response, and no end", "hello: %v", "hello: job %v runs on: %s", "hello: job %v: %v: raising a fatal exception on it",
				"job %v: no exception raised: %v", "%w: R of job %v: %w", "%w: R is not stored: %w", "%w: a request is refused: %s", "%w: the job manager is gone", "%w: %s: no answer within %v",
				"no more is known of the resources", "resource.acquire: %s", "the session is over", "the module is removed", "the scheduler is not ready",
				"a debug bit denies it", "want an op and flags", "many responses come: ask for a stream", "Request requires owner credentials",
			},
			"main_test.go and listen_test.go: streams that break, and waits": {
				"line %d: input: %w", "output: %w", "sched: session:", "the hello has not ended well within %v", "it does not read: %d bytes wait",
			},
			"they are never told": {"lines were refused", "transcript: %s"},
		},
		Cases: []errpage.Case{
			{When: "a flag that is not there", Args: "-polcy=easy", Status: 2},
			{When: "a file without <", Args: "input.txt", Status: 2},
			{When: "a policy that is not there", Args: "-policy=best", Status: 2},
			{When: "a flag without its value", Args: "-policy", Status: 2},
			{When: "a fit that is not there", Args: "-fit=first", Status: 2},
			{When: "no queue depth", Args: "-queue-depth=0", Status: 2},
			{When: "no mode", Args: "-mode=10", Status: 2},
			{When: "no seconds", Args: "-forecast-period=often", Status: 2},
			{When: "no level", Args: "-log-level=loud", Status: 2},
			{When: "a port in the place of a socket", Args: "-listen=tcp:80", Status: 2},
			{When: "no time", Args: "-now=today", Status: 2},
			{When: "two inputs", Args: "-sample -listen=unix:s", Status: 2},
			{When: "an instance and a socket", Args: "-flux -listen=unix:s", Status: 2},
			{When: "an instance without a =", Args: "-flux local://s", Status: 2},
			{When: "a socket that is in use", Args: "-listen=unix:s", Prepare: listens(""), Status: 1},
			{When: "a file in the place of a socket", Args: "-listen=unix:s", Prepare: file, Status: 1},
			{When: "a socket in a folder that is not there", Args: "-listen=unix:none/s", Status: 1},
			{When: "a socket with a long path", Args: "-listen=unix:" + strings.Repeat("x", 104), Status: 1},
			{When: "no Flux", Args: "-flux", Prepare: noFlux, Status: 1},
			{When: "the URI of another machine", Args: "-flux=ssh://host/run/flux/local", Status: 1},
			{When: "a URI without a path", Args: "-flux=local://", Status: 1},
			{When: "a URI with a long path", Args: "-flux=local:///" + strings.Repeat("x", 110), Status: 1},
			{When: "an instance that has ended", Args: "-flux=local://s", Prepare: left},
			{When: "an instance that is not there", Args: "-flux=local://s"},
			{When: "a descriptor that is none", Args: "-flux=fd://x", Status: 1},
			{When: "a descriptor that is not open", Args: "-flux=fd://999", Status: 1},
			{When: "a broker that refuses the user", Args: "-flux=local://s", Prepare: listens("\x01"), Status: 1},
			{When: "a broker that talks otherwise", Args: "-flux=local://s", Prepare: listens("\x00HTTP/1.1 400\r\n"), Status: 1},
			{When: "a line that is no JSON", Args: "-now=1", Stdin: "{\n", Status: 1},
			{When: "a topic that is not there", Args: "-now=1", Stdin: `{"topic":"sched.what"}` + "\n", Status: 1},
			{When: "a question before the inventory", Args: "-now=1", Stdin: `{"topic":"feasibility.check","payload":{"jobspec":{}}}` + "\n", Status: 1},
			{When: "a manager that refuses", Args: "-now=1", Stdin: `{"topic":"job-manager.sched-hello","errnum":1,"errstr":"not now"}` + "\n", Status: 1},
			{When: "a request with an errnum", Args: "-now=1", Stdin: `{"topic":"sched.alloc","errnum":1}` + "\n", Status: 1},
		},
	}.Check(t, *update)
}
