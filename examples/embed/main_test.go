package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain runs the command itself where a test asks for it.
func TestMain(m *testing.M) {
	if os.Getenv("EMBED_RUN") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func embed(t *testing.T, out io.Writer, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "EMBED_RUN=1")
	cmd.Stdout, cmd.Stderr = out, out
	return cmd
}

func shell(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh: ", err)
	}
}

func TestJobsRunWithPrologAndEpilog(t *testing.T) {
	shell(t)
	dir := t.TempDir()
	var out bytes.Buffer
	err := embed(t, &out, "-dir", dir, "-n", "2", "-prolog", "echo p >>"+dir+"/trace", "-epilog", "echo e >>"+dir+"/trace",
		"echo j >>"+dir+"/trace", "exit 3").Run()
	require.NoError(t, err, out.String())
	trace, err := os.ReadFile(filepath.Join(dir, "trace"))
	require.NoError(t, err)
	require.Equal(t, 4, strings.Count(string(trace), "p"))
	require.Equal(t, 1, strings.Count(string(trace), "j"))
	require.Equal(t, 4, strings.Count(string(trace), "e"))
	require.Equal(t, 2, strings.Count(out.String(), " clean"))
}

func TestItGoesOnAfterKill9(t *testing.T) {
	shell(t)
	dir := t.TempDir()
	done := filepath.Join(dir, "done")
	args := []string{"-dir", dir, "-epilog", "test -e " + done + " || sleep 5"}
	out, err := os.Create(filepath.Join(dir, "out")) // no pipe, which what outlives the command would keep open
	require.NoError(t, err)
	defer out.Close()
	first := embed(t, out, append(args, "echo one", "sleep 5 & wait")...)
	require.NoError(t, first.Start())
	for range 500 {
		b, _ := os.ReadFile(filepath.Join(dir, "records"))
		if bytes.Contains(b, []byte("epilog-start")) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	require.NoError(t, first.Process.Kill())
	_ = first.Wait() // it was killed
	require.NoError(t, os.WriteFile(done, nil, 0o600))
	var next bytes.Buffer
	require.NoError(t, embed(t, &next, args...).Run(), next.String())
	require.Contains(t, next.String(), "epilog-launch", "the epilog runs again")
	require.Contains(t, next.String(), "exception", "the job died")
	require.Equal(t, 2, strings.Count(next.String(), " clean"), next.String())
	require.NoError(t, embed(t, io.Discard, args...).Run(), "nothing is left to do")
}

func TestBadFlagsAreRefused(t *testing.T) {
	var out bytes.Buffer
	err := embed(t, &out, "-n", "9", "true").Run()
	var status *exec.ExitError
	require.ErrorAs(t, err, &status)
	require.Equal(t, 2, status.ExitCode())
	require.Contains(t, out.String(), "-n must be 1 to 8")
}
