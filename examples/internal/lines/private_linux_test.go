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
