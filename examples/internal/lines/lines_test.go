package lines

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// A scarce listener fails before each connection, and then is closed.
type scarce struct {
	net.Listener
	failures int
	conns    []net.Conn
}

func (l *scarce) Accept() (net.Conn, error) {
	switch {
	case l.failures > 0:
		l.failures--
		return nil, &net.OpError{Op: "accept", Net: "unix", Err: syscall.EMFILE}
	case len(l.conns) == 0:
		return nil, net.ErrClosed
	}
	conn := l.conns[0]
	l.conns, l.failures = l.conns[1:], 2
	return conn, nil
}

// A process that has no descriptor for one more connection ends nothing, says so once, and takes
// it in later.
func TestAcceptWaitsForRoom(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	l, told := &scarce{failures: 2, conns: []net.Conn{here}}, 0
	tell := func(err error) {
		require.ErrorIs(t, err, syscall.EMFILE)
		told++
	}
	conn, err := Accept(context.Background(), l, tell)
	require.NoError(t, err)
	require.Equal(t, here, conn)
	require.Equal(t, 1, told)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = Accept(ctx, l, tell)
	require.Error(t, err)
	l.failures = 0
	_, err = Accept(context.Background(), l, tell)
	require.ErrorIs(t, err, net.ErrClosed)
	require.Equal(t, 1, told)
}

func TestLongLinesArePassedOver(t *testing.T) {
	read := func(input string) (got []string) {
		for l := range Read(context.Background(), iotest.HalfReader(strings.NewReader(input)), 10, nil) {
			switch {
			case errors.Is(l.Err, io.EOF):
				return got
			case l.Err != nil:
				require.Empty(t, l.Text)
				require.ErrorAs(t, l.Err, new(*LongError))
				got = append(got, l.Err.Error())
			default:
				got = append(got, string(rune('0'+l.Number))+string(bytes.TrimSuffix(l.Text, []byte("\n"))))
			}
		}
		return got
	}
	const long = "line is longer than 10 bytes and was skipped"
	require.Equal(t, []string{"1a", long, "4c"}, read("a\n"+strings.Repeat("b", 10)+"\n\nc"))
	require.Equal(t, []string{"1" + strings.Repeat("b", 9), "2c"}, read(strings.Repeat("b", 9)+"\nc\n"))
	require.Equal(t, []string{"1a", long}, read("a\n"+strings.Repeat("b", 200_000)))
	require.Equal(t, []string{long, "2c"}, read(strings.Repeat("b", 200_000)+"\nc\n"))
	require.Equal(t, []string{"1" + strings.Repeat("b", 10)}, read(strings.Repeat("b", 10)), "no newline, no byte of it")
}

// socketPath returns a path that is short enough for a socket.
func socketPath(t *testing.T) string {
	t.Chdir(t.TempDir())
	return "s"
}

func TestASocketInUseIsLeftAlone(t *testing.T) {
	path := socketPath(t)
	l, err := Listen(path)
	require.NoError(t, err)
	_, err = Listen(path)
	require.EqualError(t, err, "another process listens on "+path+": end it, or choose another path")
	require.NoError(t, l.Close())
	_, err = os.Lstat(path)
	require.ErrorIs(t, err, os.ErrNotExist, "the socket is removed")
}

func TestWhatStandsInTheWayOfASocket(t *testing.T) {
	path := socketPath(t)
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	_, err = os.Lstat(path)
	require.NoError(t, err)
	l, err = Listen(path) // nobody listens there
	require.NoError(t, err)
	require.NoError(t, l.Close())

	require.NoError(t, os.WriteFile(path, []byte("precious"), 0o600))
	_, err = Listen(path)
	require.ErrorContains(t, err, "exists and is not a socket: choose another path")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "precious", string(b))

	for path, want := range map[string]string{
		strings.Repeat("x", 104): " has 104 bytes, a socket can have 103: choose a shorter one",
		path + ".none/s":         "no such file or directory",
		path + "/s":              "not a directory",
	} {
		_, err := Listen(path)
		require.ErrorContains(t, err, want)
	}
}

func TestATextIsOneLineThatNoTerminalObeys(t *testing.T) {
	require.Equal(t, `a "b" \c ƒ½ é`, Escape(`a "b" \c ƒ½ é`))
	require.Equal(t, `\x1b[2J\n\r\t\u009b\x9b\u202e\x7f`, Escape("\x1b[2J\n\r\t\u009b\x9b\u202e\x7f"))
}
