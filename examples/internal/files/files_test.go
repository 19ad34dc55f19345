package files

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file is replaced whole, and nothing else is left in its folder, whether that worked or not.
func TestWriteReplacesAFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a")
	for _, text := range []string{"one", "two"} {
		require.NoError(t, Write(name, []byte(text)))
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
	}
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
	require.NoError(t, os.Mkdir(filepath.Join(dir, "full"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "full", "x"), nil, 0o600))
	require.Error(t, Write(filepath.Join(dir, "full"), nil), "a folder is in its place")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.Error(t, Write(filepath.Join(dir, "none", "a"), nil))
}
