// Package proctest tests programs whose processes outlive them.
//
//	func TestMain(m *testing.M) { proctest.Main(m, main) }
package proctest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The environment of the processes of a test.
const (
	run  = "JOBLIFE_TEST_RUN" // it is the program
	mark = "JOBLIFE_TEST_PID" // the pid of the test
)

// Main runs the tests of a program, or the program in a process that Command started. It
// fails if the tests leave processes.
func Main(m *testing.M, program func()) {
	if os.Getenv(run) != "" {
		program()
		os.Exit(0)
	}
	os.Setenv(mark, strconv.Itoa(os.Getpid()))
	status := m.Run()
	if left := left(); len(left) > 0 {
		fmt.Println("FAIL: processes are left:", left)
		status = 1
	}
	os.Exit(status)
}

// left returns the processes that the tests have left, where there is a /proc, and ends them.
// A shim that has told the end of its task needs a moment for its own.
func left() (left []int) {
	own := []byte(fmt.Sprintf("%s=%d\x00", mark, os.Getpid()))
	for range 300 {
		left = nil
		names, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, name := range names {
			if text, _ := os.ReadFile(name); bytes.Contains(text, own) {
				pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
				left = append(left, pid)
			}
		}
		if len(left) == 0 {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, pid := range left {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
	return left
}

// Command is the program with arguments. Its output goes to out: a file, if something outlives
// the program, since a pipe would stay open.
func Command(out io.Writer, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), run+"=1")
	cmd.Stdout, cmd.Stderr = out, out
	return cmd
}

// Start starts the program. Its output goes to the end of a file.
func Start(t testing.TB, file string, args ...string) *exec.Cmd {
	t.Helper()
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := Command(f, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// Await waits until a file has a text so many times.
func Await(t testing.TB, file, text string, times int) {
	t.Helper()
	var b []byte
	for range 1000 {
		if b, _ = os.ReadFile(file); strings.Count(string(b), text) >= times {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s has no %q:\n%s", file, text, b)
}
