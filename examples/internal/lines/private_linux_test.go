package lines

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A socket is private before it has a name, whatever the umask lets through.
func TestASocketIsPrivateFromTheStart(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	path := filepath.Join(t.TempDir(), "s")
	l, err := (&net.ListenConfig{Control: private}).Listen(context.Background(), "unix", path)
	require.NoError(t, err)
	defer l.Close()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// One who listens, and is too busy to take in those who connect, keeps its socket.
func TestABusyListenerKeepsItsSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	defer syscall.Close(fd)
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}))
	require.NoError(t, syscall.Listen(fd, 1))
	for err == nil { // until there is no room for one more
		var conn net.Conn
		if conn, err = net.Dial("unix", path); err == nil {
			defer conn.Close()
		}
	}
	_, err = Listen(path)
	require.ErrorContains(t, err, "another process listens on "+path)
	_, err = os.Lstat(path)
	require.NoError(t, err)
}
