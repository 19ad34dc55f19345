// Package refdata opens the reference data that tests compare this library
// with: the vectors that flux-core's own C libraries answered, the jobs
// recorded from a running instance, and the dump archives.
//
// The data is no part of the repository. Where the environment variable
// JOBLIFE_DATA names its folder, a file that is absent fails the test;
// without the variable the test is skipped and says so. Each reader asserts
// how much it read, and each listed difference how often it was met, so that
// a comparison can not pass by comparing nothing.
//
// Only tests import this package.
package refdata

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// Env is the environment variable that names the data folder.
const Env = "JOBLIFE_DATA"

// Path returns the path of a file or folder of the data, given relative to
// its root with slashes. It skips the test where Env is not set, and fails it
// where Env is set and nothing is there.
func Path(t testing.TB, name string) string {
	t.Helper()
	root := os.Getenv(Env)
	if root == "" {
		t.Skipf("%s is not compared: set %s to the folder that holds it", name, Env)
	}
	path := filepath.Join(root, filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is set, but %s is absent: %v", Env, name, err)
	}
	return path
}

// Read returns the content of a file of the data, gunzipped where its name
// ends in .gz. It skips or fails as Path does.
func Read(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var r io.Reader = bufio.NewReader(f)
	if filepath.Ext(name) == ".gz" {
		if r, err = gzip.NewReader(r); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return b
}

// Lines decodes each line of a JSON-lines file of the data into a T. It fails
// the test on fewer than atLeast lines and on a line that is not a T. It skips
// or fails as Path does.
func Lines[T any](t testing.TB, name string, atLeast int) []T {
	t.Helper()
	var out []T
	for i, line := range bytes.Split(bytes.TrimSuffix(Read(t, name), []byte("\n")), []byte("\n")) {
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatalf("%s: line %d: %v", name, i+1, err)
		}
		out = append(out, v)
	}
	if len(out) < atLeast {
		t.Fatalf("%s: %d lines, want at least %d", name, len(out), atLeast)
	}
	return out
}

// Differences counts the places where this library deliberately differs from
// the reference, by reason.
type Differences struct {
	want, got map[string]int
	t         testing.TB
}

// ExpectDifferences returns a counter that fails the test, when it ends, unless
// each reason was noted exactly as often as want says. A want of zero is a
// defect of the test and fails it too: an exception that matches nothing goes.
func ExpectDifferences(t testing.TB, want map[string]int) *Differences {
	t.Helper()
	d := &Differences{want: want, got: make(map[string]int), t: t}
	t.Cleanup(func() {
		t.Helper()
		if t.Skipped() {
			return // for lack of data: nothing was compared
		}
		for reason, n := range d.want {
			if n == 0 || d.got[reason] != n {
				t.Errorf("difference %q: met %d times, listed %d", reason, d.got[reason], n)
			}
		}
	})
	return d
}

// Note records that a line differs for the given reason. A reason that is not
// listed fails the test.
func (d *Differences) Note(reason string) {
	d.t.Helper()
	if _, ok := d.want[reason]; !ok {
		d.t.Errorf("difference %q is not listed", reason)
	}
	d.got[reason]++
}
