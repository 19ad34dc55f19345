package refdata

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// Env is the environment variable that names the folder of the full data.
const Env = "JOBLIFE_DATA"

//go:embed testdata/recorded testdata/vectors
var corpus embed.FS

// Of returns sample where tests read the corpus, and full where they read the folder that
// Env names. Counts differ between the two in the files of which the corpus has a sample.
func Of[T any](sample, full T) T {
	if os.Getenv(Env) == "" {
		return sample
	}
	return full
}

// Path returns the path of a file of the data, given relative to its root with slashes. A
// file of the corpus is copied to a temporary folder of the test. Where Env is set, an
// absent file fails the test. Where it is not, a file outside the corpus skips the test.
func Path(t testing.TB, name string) string {
	t.Helper()
	if root := os.Getenv(Env); root != "" {
		file := filepath.Join(root, filepath.FromSlash(name))
		if _, err := os.Stat(file); err != nil {
			t.Fatalf("%s is set, but %s is absent: %v", Env, name, err)
		}
		return file
	}
	file := filepath.Join(t.TempDir(), path.Base(name))
	if err := os.WriteFile(file, fromCorpus(t, name), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// fromCorpus returns the bytes of a file of the corpus.
func fromCorpus(t testing.TB, name string) []byte {
	t.Helper()
	b, err := corpus.ReadFile("testdata/" + name)
	if err == nil {
		return b
	}
	if dir, _, _ := strings.Cut(name, "/"); dir == "recorded" || dir == "vectors" {
		t.Fatalf("the corpus has no such file: %v", err)
	}
	t.Skipf("%s is not compared: set %s to the folder that holds it", name, Env)
	return nil
}

// Read returns the content of a file of the data, gunzipped where its name
// ends in .gz. It skips or fails as Path does.
func Read(t testing.TB, name string) []byte {
	t.Helper()
	var b []byte
	if os.Getenv(Env) == "" {
		b = fromCorpus(t, name)
	} else {
		var err error
		if b, err = os.ReadFile(Path(t, name)); err != nil {
			t.Fatal(err)
		}
	}
	if path.Ext(name) != ".gz" {
		return b
	}
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err == nil {
		b, err = io.ReadAll(r)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return b
}

// Lines decodes each line of a JSON-lines file of the data into a T. It fails the test
// unless there are exactly want lines and each is a T. It skips or fails as Path does.
func Lines[T any](t testing.TB, name string, want int) []T {
	t.Helper()
	var out []T
	for i, line := range bytes.Split(bytes.TrimSuffix(Read(t, name), []byte("\n")), []byte("\n")) {
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatalf("%s: line %d: %v", name, i+1, err)
		}
		out = append(out, v)
	}
	if len(out) != want {
		t.Fatalf("%s: %d lines, want %d", name, len(out), want)
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
				t.Errorf("difference %q: seen %d times, listed %d", reason, d.got[reason], n)
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
