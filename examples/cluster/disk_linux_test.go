package main

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A disk that is full stops the instance, which goes on when there is room. The test runs again
// where it may mount a small disk for the server, in a namespace of its own.
func TestNothingIsLostByAFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	const again = "CLUSTER_DISK_TEST"
	if os.Getenv(again) == "" {
		cmd := osexec.Command(os.Args[0], "-test.v", "-test.timeout=0", "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), again+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		if uid := os.Getuid(); uid != 0 {
			cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
		}
		out, err := cmd.CombinedOutput()
		if exit := new(osexec.ExitError); err != nil && !errors.As(err, &exit) {
			t.Skipf("no mount here: this system gives no namespace: %v", err)
		} else if exit.ExitCode() == noMount {
			t.Skipf("no mount here: %s", out)
		}
		require.NoError(t, err, "%s", out)
		return
	}
	const size = 64 << 20
	eachRound(t, 40, func(ctx context.Context, t *testing.T, n int) {
		var disk string
		f := launch(t, fleetConfig{nodes: 4, managers: 2, prepare: func(dir string) {
			disk = filepath.Join(dir, "nats")
			err := os.Mkdir(disk, 0o700)
			if err == nil {
				err = syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
			}
			if err == nil {
				err = syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=64m")
			}
			if err != nil {
				_, _ = os.Stdout.WriteString(err.Error())
				os.Exit(noMount)
			}
			t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
		}})
		_ = f.active(ctx)
		times := 0
		jobs := f.under(ctx, t, n, func(*rand.Rand) time.Duration {
			filler, err := os.Create(filepath.Join(disk, "filler"))
			require.NoError(t, err)
			_, err = io.CopyN(filler, zeros{}, size)
			require.ErrorIs(t, err, syscall.ENOSPC)
			times++
			time.Sleep(time.Second + rand.N(3*time.Second)) // at times long enough for a manager to lose its lease
			require.NoError(t, errors.Join(filler.Close(), os.Remove(filler.Name())))
			return 2*time.Second + rand.N(2*time.Second)
		})
		require.Greater(t, times, 1)
		f.check(ctx, jobs)
	})
}

// noMount is the exit status of a test that may not mount.
const noMount = 77

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// Output that a full disk does not take is an error of who printed it.
func TestNoOutputIsLostByAFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	stdout := os.Stdout
	os.Stdout = full
	defer func() { os.Stdout = stdout }()
	for _, text := range []string{"a\n", strings.Repeat("x", maxLine+1)} {
		_, err := (&labeled{mu: new(sync.Mutex)}).Write([]byte(text))
		require.ErrorIs(t, err, syscall.ENOSPC)
	}
	require.ErrorIs(t, (&labeled{mu: new(sync.Mutex), rest: []byte("x")}).end(), syscall.ENOSPC)
}
