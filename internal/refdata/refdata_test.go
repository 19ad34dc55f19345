package refdata

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "make the corpus anew from the folder that JOBLIFE_DATA names")

// Of the four largest files, the corpus has each line of at most shortLine
// bytes and each tenth of the longer ones.
const (
	shortLine    = 2048
	sampleStep   = 10
	corpusLimit  = 1_000_000 // bytes, compressed
	corpusFiles  = 16
	corpusSample = 4
)

var sampled = []string{"idset", "idset_ops", "hostlist", "hostlist_ops"}

// sample returns the lines that the corpus has of a file.
func sample(lines []byte) []byte {
	var out []byte
	long := 0
	for line := range bytes.Lines(lines) {
		if len(line) > shortLine {
			if long++; long%sampleStep != 0 {
				continue
			}
		}
		out = append(out, line...)
	}
	return out
}

// corpusNames returns the names of the corpus's files, and asserts its size.
func corpusNames(t *testing.T) []string {
	t.Helper()
	var names []string
	size := int64(0)
	err := fs.WalkDir(corpus, "testdata", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		names = append(names, strings.TrimPrefix(name, "testdata/"))
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != corpusFiles || size > corpusLimit {
		t.Errorf("the corpus has %d files and %d bytes, want %d files and at most %d bytes", len(names), size, corpusFiles, corpusLimit)
	}
	return names
}

// The corpus is what its README says: each file as it was recorded, and the
// rule's sample of the four largest.
func TestTheCorpusIsASampleOfTheFullData(t *testing.T) {
	names := corpusNames(t)
	if os.Getenv(Env) == "" {
		t.Skipf("there is nothing to compare the corpus with: %s is not set", Env)
	}
	samples := 0
	for _, name := range names {
		want := Read(t, name)
		if base := strings.TrimSuffix(filepath.Base(name), ".jsonl.gz"); slices.Contains(sampled, base) {
			want = sample(want)
			samples++
		}
		if *update {
			var b bytes.Buffer
			w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level exists
			_, _ = w.Write(want)                                  // a buffer takes it
			_ = w.Close()
			if err := os.WriteFile(filepath.Join("testdata", filepath.FromSlash(name)), b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		full := os.Getenv(Env)
		t.Setenv(Env, "")
		got := Read(t, name)
		t.Setenv(Env, full)
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from the data: run this test with -update", name)
		}
	}
	if samples != corpusSample {
		t.Errorf("%d files are sampled, want %d", samples, corpusSample)
	}
}

// A recorder stands for a test and notes how it ends.
type recorder struct {
	testing.TB
	ended    string
	cleanups []func()
}

func (r *recorder) Helper()               {}
func (r *recorder) Skipped() bool         { return r.ended == "skipped" }
func (r *recorder) Cleanup(f func())      { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(string, ...any) { r.ended = "failed" }
func (r *recorder) Fatalf(string, ...any) { r.ended = "failed"; runtime.Goexit() }
func (r *recorder) Skipf(string, ...any)  { r.ended = "skipped"; runtime.Goexit() }

// end runs f as a test of its own and tells how it ended.
func end(f func(t testing.TB)) string {
	r := &recorder{ended: "passed"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
	return r.ended
}

func TestAComparisonCannotPassByComparingNothing(t *testing.T) {
	lines := func(name string, want int) func(testing.TB) {
		return func(t testing.TB) { Lines[map[string]json.RawMessage](t, name, want) }
	}
	differences := func(want map[string]int, noted ...string) func(testing.TB) {
		return func(t testing.TB) {
			d := ExpectDifferences(t, want)
			for _, reason := range noted {
				d.Note(reason)
			}
		}
	}
	empty := t.TempDir()
	for _, c := range []struct {
		name, folder string
		f            func(testing.TB)
		want         string
	}{
		{"the corpus", "", lines("recorded/brokers.jsonl.gz", 33), "passed"},
		{"fewer lines", "", lines("recorded/brokers.jsonl.gz", 34), "failed"},
		{"more lines", "", lines("recorded/brokers.jsonl.gz", 32), "failed"},
		{"another file of the corpus's folders", "", lines("recorded/none.jsonl.gz", 33), "failed"},
		{"a file outside the corpus", "", lines("dumps/none.gz", 33), "skipped"},
		{"an absent file of the full data", empty, lines("recorded/brokers.jsonl.gz", 33), "failed"},
		{"an absent file outside the corpus", empty, lines("dumps/none.gz", 33), "failed"},
		{"differences as listed", "", differences(map[string]int{"a": 2}, "a", "a"), "passed"},
		{"fewer differences", "", differences(map[string]int{"a": 2}, "a"), "failed"},
		{"more differences", "", differences(map[string]int{"a": 2}, "a", "a", "a"), "failed"},
		{"a difference that is not listed", "", differences(nil, "a"), "failed"},
		{"a reason that matches nothing", "", differences(map[string]int{"a": 0}), "failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(Env, c.folder)
			if got := end(c.f); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
