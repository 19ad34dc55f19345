package disk

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// A call that the tracer does not know is an error, and ends the process with all its threads.
func TestAnUnknownCallEndsTheProcess(t *testing.T) {
	const variable = "JOBLIFE_SYMLINK"
	if dir := os.Getenv(variable); dir != "" {
		for range 4 { // threads
			go func() { runtime.LockOSThread(); select {} }()
		}
		for {
			runtime.Gosched()
			_ = os.Symlink("x", filepath.Join(dir, "link"))
		}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	dir := t.TempDir()
	cmd.Env = append(os.Environ(), variable+"="+dir)
	err := trace(cmd, dir, func(Call) {})
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) {
		t.Skipf("a process cannot be traced here: %v", err)
	}
	require.ErrorContains(t, err, "is not known")
}
