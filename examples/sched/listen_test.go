package main

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/examples/internal/linestest"
)

func TestASocketHasOneSessionAfterTheOther(t *testing.T) {
	path := linestest.SocketPath(t)
	stop := prog.Start(t, path, "-queue-depth=3")

	request := `{"topic":"sched.alloc","payload":{"id":1,"priority":1,"userid":1,"jobspec":` + oneCore + `}}` + "\n"
	for range 2 { // the second knows nothing of the first
		conn, _, read := linestest.Dial(t, path)
		require.Contains(t, read(), "sched-hello")
		_, _, other := linestest.Dial(t, path)
		require.Equal(t, `{"topic":"sched.error","errnum":16,"errstr":"another session is going on"}`+"\n", other())
		require.Empty(t, other(), "it is turned away")
		_, err := io.WriteString(conn, inventory+helloDone+request)
		require.NoError(t, err)
		require.Equal(t, `{"topic":"job-manager.sched-ready","payload":{"mode":"limited","limit":3}}`+"\n", read())
		require.Contains(t, read(), `"resource_summary":"rank0/core0"`)
		require.NoError(t, conn.(*net.UnixConn).CloseWrite())
		require.Empty(t, read(), "the session ends with its input")
	}
	conn, _, read := linestest.Dial(t, path)
	require.Contains(t, read(), "sched-hello")
	_, err := io.WriteString(conn, `{"topic":"resource.acquire","errnum":5}`+"\n")
	require.NoError(t, err)
	require.Empty(t, read())

	_, _, read = linestest.Dial(t, path)
	require.Contains(t, read(), "sched-hello", "a session that failed is followed by another")
	status, stderr := stop()
	require.Equal(t, lines.ExitOK, status)
	require.Empty(t, read(), "the end of all ends the session")
	require.Equal(t, 2, strings.Count(stderr, "1 job allocated"), stderr)
	require.Contains(t, stderr, "sched: session: line 1: resource.acquire failed: errnum 5")
}
