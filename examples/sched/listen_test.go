package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/lines"
)

// socketPath returns a path that is short enough for a socket.
func socketPath(t *testing.T) string {
	dir, err := os.MkdirTemp("", "sched")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return filepath.Join(dir, "s")
}

// start runs the command on a socket until the function that it returns is
// called, which returns the exit status and standard error.
func start(t *testing.T, path string, args ...string) (stop func() (int, string)) {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	out, w := io.Pipe()
	status := make(chan int, 1)
	var stderr bytes.Buffer
	go func() {
		status <- lines.Run(ctx, program, append([]string{"-listen=unix:" + path, "-now=1000"}, args...), strings.NewReader(""), w, &stderr)
		_ = w.Close()
	}()
	text, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, &stderr)
	require.Equal(t, "sched: listening on unix:"+path+"\n", text)
	return func() (int, string) {
		cancel()
		s := <-status
		return s, stderr.String()
	}
}

// dial connects and returns what reads a line.
func dial(t *testing.T, path string) (net.Conn, func() string) {
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	br := bufio.NewReader(conn)
	return conn, func() string {
		text, err := br.ReadString('\n')
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
		}
		return text
	}
}

func TestASocketHasOneSessionAfterTheOther(t *testing.T) {
	path := socketPath(t)
	stop := start(t, path, "-queue-depth=3")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	request := `{"topic":"sched.alloc","payload":{"id":1,"priority":1,"userid":1,"jobspec":` + oneCore + `}}` + "\n"
	for range 2 { // the second knows nothing of the first
		conn, read := dial(t, path)
		require.Contains(t, read(), "sched-hello")
		_, other := dial(t, path)
		require.Equal(t, `{"topic":"sched.error","errnum":16,"errstr":"another session is going on"}`+"\n", other())
		require.Empty(t, other(), "it is turned away")
		_, err := io.WriteString(conn, inventory+helloDone+request)
		require.NoError(t, err)
		require.Equal(t, `{"topic":"job-manager.sched-ready","payload":{"mode":"limited","limit":3}}`+"\n", read())
		require.Contains(t, read(), `"resource_summary":"rank0/core0"`)
		require.NoError(t, conn.(*net.UnixConn).CloseWrite())
		require.Empty(t, read(), "the session ends with its input")
	}
	conn, read := dial(t, path)
	require.Contains(t, read(), "sched-hello")
	_, err = io.WriteString(conn, `{"topic":"resource.acquire","errnum":5}`+"\n")
	require.NoError(t, err)
	require.Empty(t, read())

	_, read = dial(t, path)
	require.Contains(t, read(), "sched-hello", "a session that failed is followed by another")
	status, stderr := stop()
	require.Equal(t, lines.ExitOK, status)
	require.Empty(t, read(), "the end of all ends the session")
	require.Equal(t, 2, strings.Count(stderr, "1 job allocated"), stderr)
	require.Contains(t, stderr, "sched: session: line 1: resource.acquire failed: errnum 5")
	_, err = os.Lstat(path)
	require.ErrorIs(t, err, os.ErrNotExist, "the socket is removed")
}
