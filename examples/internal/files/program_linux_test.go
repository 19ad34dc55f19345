package files

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A program whose file was removed, or replaced as by an upgrade, starts itself and no other.
func TestAProgramStartsItself(t *testing.T) {
	const again = "FILES_PROGRAM"
	if name := os.Getenv(again); name != "" {
		require.NoError(t, os.Remove(name))
		self, err := Program()
		require.NoError(t, err)
		cmd := exec.Command(self, "-test.run=^$")
		require.NoError(t, cmd.Run())
		return
	}
	self, err := os.Executable()
	require.NoError(t, err)
	text, err := os.ReadFile(self)
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(name, text, 0o700))
	cmd := exec.Command(name, "-test.run=^TestAProgramStartsItself$")
	cmd.Env = append(os.Environ(), again+"="+name)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}
