//go:build darwin || freebsd || linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// In a folder no link to a folder is followed, which may be one above, and nothing is waited for.
func TestWhatIsNoFileInAFolderIsTold(t *testing.T) {
	for _, harm := range []func(path string) error{
		func(path string) error { return os.Symlink("..", path) },
		func(path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		for _, name := range []string{"x.log", "R", "jobspec"} {
			dir := folderOfALog(t)
			bad := filepath.Join(dir, "a", name)
			require.NoError(t, harm(bad))
			told := make(chan [2]string, 1)
			go func() {
				_, stdout, stderr := replay(t, nil, "-json", dir)
				told <- [2]string{stdout, stderr}
			}()
			select {
			case text := <-told:
				require.Equal(t, 1, strings.Count(text[0], "\n"))
				require.Equal(t, "replay: "+bad+": not a regular file\n", text[1])
			case <-time.After(10 * time.Second):
				t.Fatal("it waits for", bad)
			}
		}
	}
}

func TestALinkToAFolderIsThatFolder(t *testing.T) {
	dir := folderOfALog(t)
	for _, name := range []string{"link", "link.log"} {
		link := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.Symlink(dir, link))
		require.Equal(t, 1, strings.Count(good(t, nil, "-json", link), "\n"))
	}
}
