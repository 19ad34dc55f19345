//go:build unix

package files

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Another user may have put jobs into a folder that is there.
func TestMakeDirRefusesAFolderOfOthers(t *testing.T) {
	dir, link := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "link")
	require.NoError(t, MakeDir(dir))
	require.NoError(t, os.Symlink(dir, link))
	for mode, want := range map[os.FileMode]string{0o755: "", 0o720: "others may write", 0o702: "others may write", 0o700: ""} {
		require.NoError(t, os.Chmod(dir, mode))
		for _, name := range []string{dir, link} {
			if err := MakeDir(name); want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, want)
			}
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("only root gives folders away")
	}
	require.NoError(t, os.Chmod(dir, 0o700))
	require.NoError(t, os.Lchown(link, 65534, 65534))
	require.NoError(t, MakeDir(dir))
	require.ErrorContains(t, MakeDir(link), "belongs to user 65534")
	require.NoError(t, os.Lchown(link, 0, 0))
	require.NoError(t, os.Chown(dir, 65534, 65534))
	require.ErrorContains(t, MakeDir(dir), "belongs to user 65534")
	require.ErrorContains(t, MakeDir(link), "belongs to user 65534")
	require.NoError(t, MakeDir(filepath.Join(dir, "b", "c")), "those above are not looked at")
}

// A folder of ours may be in one that we may pass and not list, such as a /home of mode 0711.
func TestMakeDirNeedsNotListWhatIsAbove(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives folders away")
	}
	dir, err := os.MkdirTemp("", "files") // others may not pass that of t.TempDir
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	require.NoError(t, os.Chmod(dir, 0o711))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "a"), 0o700))
	require.NoError(t, os.Chown(filepath.Join(dir, "a"), 65534, 65534))
	require.NoError(t, syscall.Seteuid(65534))
	defer func() { require.NoError(t, syscall.Seteuid(0)) }()
	require.NoError(t, MakeDir(filepath.Join(dir, "a")))
}
