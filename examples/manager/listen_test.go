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
)

// socketPath returns a path that is short enough for a socket.
func socketPath(t *testing.T) string {
	dir, err := os.MkdirTemp("", "manager")
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
		status <- run(ctx, append([]string{"-listen=unix:" + path, "-now=1000"}, args...), strings.NewReader(""), w, &stderr)
		_ = w.Close()
	}()
	text, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, &stderr)
	require.Equal(t, "manager: listening on unix:"+path+"\n", text)
	return func() (int, string) {
		cancel()
		s := <-status
		return s, stderr.String()
	}
}

// dial connects, and returns what asks and reads a line.
func dial(t *testing.T, path string) (conn net.Conn, say func(string), read func() string) {
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	br := bufio.NewReader(conn)
	say = func(text string) {
		t.Helper()
		_, err := io.WriteString(conn, text)
		require.NoError(t, err)
	}
	return conn, say, func() string {
		t.Helper()
		text, err := br.ReadString('\n')
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
		}
		return text
	}
}

// noSuch asks for what there is not: the answer tells that all before was handled.
const (
	noSuch   = `{"topic":"job-manager.nosuch","matchtag":1}` + "\n"
	noAnswer = `{"topic":"job-manager.nosuch","matchtag":1,"errnum":38}` + "\n"
)

func TestManyClientsHaveTheirOwnAnswers(t *testing.T) {
	path := socketPath(t)
	stop := start(t, path)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	_, say, read := dial(t, path)
	_, sayToo, readToo := dial(t, path)
	say(noSuch)
	require.Equal(t, noAnswer, read())
	sayToo("{\n" + submit(1, 16))
	require.Contains(t, readToo(), `"errnum":71`)
	require.Equal(t, `{"topic":"job-manager.submit","matchtag":1,"payload":{"errors":[]}}`+"\n", readToo())
	say(raise(1, 16) + noSuch)
	require.Equal(t, `{"topic":"job-manager.raise","matchtag":1}`+"\n", read())
	require.Contains(t, read(), `{"event":"job-exception",`, "an event comes to all")
	require.Contains(t, readToo(), `{"event":"job-exception",`)
	require.Equal(t, noAnswer, read())
	status, stderr := stop()
	require.Equal(t, exitOK, status)
	require.Empty(t, readToo(), "the end of all ends each client")
	require.Contains(t, stderr, "manager: client 2: line 1: ")
	_, err = os.Lstat(path)
	require.ErrorIs(t, err, os.ErrNotExist, "the socket is removed")
}

func TestTheSocketHasRoomForSoManyClients(t *testing.T) {
	p, err := newProcess(options{now: 1}, io.Discard)
	require.NoError(t, err)
	for id := range maxClients + 1 {
		var out bytes.Buffer
		closed := false
		p.take(input{client: &client{id: id + 1, out: &out, close: func() { closed = true }}})
		require.Equal(t, id == maxClients, closed)
		if closed {
			require.Equal(t, `{"topic":"job-manager.error","errnum":16,"errstr":"there are too many clients"}`+"\n", out.String())
		}
	}
	require.Len(t, p.clients, maxClients)
}

// A client that asks and does not read is cut off, and holds up nobody.
func TestAClientThatDoesNotReadIsCutOff(t *testing.T) {
	here, there := net.Pipe()
	c := newClient(1, here)
	go c.out.(*outbox).run()
	text := bytes.Repeat([]byte("x"), 1<<20)
	var err error
	for n := 0; err == nil; n++ {
		require.Less(t, n, outboxRoom>>20+3)
		_, err = c.out.Write(text)
	}
	require.ErrorContains(t, err, "it does not read")
	c.broken(err)
	_, err = io.Copy(io.Discard, there)
	require.NoError(t, err)
}

func TestASocketInUseIsLeftAlone(t *testing.T) {
	path := socketPath(t)
	stop := start(t, path)
	status, stdout, stderr := manager(nil, "-listen=unix:"+path)
	require.Equal(t, exitFault, status)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "another process listens on "+path+": end it, or choose another path")
	status, _ = stop()
	require.Equal(t, exitOK, status)
}

func TestWhatStandsInTheWayOfASocket(t *testing.T) {
	path := socketPath(t)
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	_, err = os.Lstat(path)
	require.NoError(t, err)
	status, _ := start(t, path)() // nobody listens there
	require.Equal(t, exitOK, status)

	require.NoError(t, os.WriteFile(path, []byte("precious"), 0o600))
	status, _, stderr := manager(nil, "-listen=unix:"+path)
	require.Equal(t, exitFault, status)
	require.Contains(t, stderr, "exists and is not a socket: choose another path")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "precious", string(b))

	for path, want := range map[string]string{
		strings.Repeat("x", 104): "the path has 104 bytes, a socket can have 103: choose a shorter one",
		path + ".none/s":         "no such file or directory",
		path + "/s":              "not a directory",
	} {
		status, _, stderr := manager(nil, "-listen=unix:"+path)
		require.Equal(t, exitFault, status)
		require.Contains(t, stderr, want)
	}
}
