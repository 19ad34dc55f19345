package eventlog_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
)

// plainEntry is what a user of encoding/json would decode a line into.
type plainEntry struct {
	Timestamp float64         `json:"timestamp"`
	Name      string          `json:"name"`
	Context   json.RawMessage `json:"context,omitempty"`
}

// testdataLogs returns the logs in testdata, by name.
func testdataLogs(t testing.TB) map[string][]byte {
	paths, err := filepath.Glob("testdata/*.eventlog")
	require.NoError(t, err)
	logs := make(map[string][]byte)
	for _, path := range paths {
		logs[filepath.Base(path)], err = os.ReadFile(path)
		require.NoError(t, err)
	}
	require.Len(t, logs, 5)
	return logs
}

// benchLog returns a log of n recorded entries.
func benchLog(t testing.TB, n int) []byte {
	var lines [][]byte
	logs := testdataLogs(t)
	for _, name := range []string{"prolog", "update", "exec", "restart", "dependency"} {
		for line := range bytes.Lines(logs[name+".eventlog"]) {
			lines = append(lines, line)
		}
	}
	var log []byte
	for i := range n {
		log = append(log, lines[i%len(lines)]...)
	}
	return log
}

func decodePlain(b *testing.B, log []byte) {
	for line := range bytes.Lines(log) {
		var e plainEntry
		if err := json.Unmarshal(line, &e); err != nil {
			b.Fatal(err)
		}
	}
}

// decoded returns the entries of a log for either codec.
func decoded(b *testing.B, log []byte) (entries []eventlog.Entry, plain []plainEntry) {
	for e, err := range eventlog.Entries(log) {
		if err != nil {
			b.Fatal(err)
		}
		entries = append(entries, e)
		plain = append(plain, plainEntry{float64(e.Timestamp), e.Name, e.Context})
	}
	return entries, plain
}

func encode(b testing.TB, buf []byte, entries []eventlog.Entry) []byte {
	var err error
	for _, e := range entries {
		if buf, err = eventlog.AppendEntry(buf, e); err != nil {
			b.Fatal(err)
		}
	}
	return buf
}

func encodePlain(b *testing.B, buf []byte, entries []plainEntry) []byte {
	for i := range entries {
		line, err := json.Marshal(&entries[i])
		if err != nil {
			b.Fatal(err)
		}
		buf = append(append(buf, line...), '\n')
	}
	return buf
}

// BenchmarkRatio runs this package and encoding/json in turns over a few recorded
// logs and reports how many times faster we are: the shortest turn of either,
// for on a busy host the others measure what else runs there.
func BenchmarkRatio(b *testing.B) {
	log := benchLog(b, 256)
	entries, plain := decoded(b, log)
	buf := make([]byte, 0, 2*len(log))
	ratio := func(ours, theirs func()) func(b *testing.B) {
		return func(b *testing.B) {
			best := [2]time.Duration{time.Hour, time.Hour}
			for b.Loop() {
				for i, f := range []func(){ours, theirs} {
					before := b.Elapsed()
					f()
					best[i] = min(best[i], b.Elapsed()-before)
				}
			}
			b.ReportMetric(float64(best[1])/float64(best[0]), "times-json")
			b.ReportMetric(float64(best[0])/float64(len(entries)), "ns/event")
		}
	}
	b.Run("op=decode", ratio(func() { count(eventlog.Entries(log)) }, func() { decodePlain(b, log) }))
	b.Run("op=encode", ratio(func() { buf = encode(b, buf[:0], entries) }, func() { buf = encodePlain(b, buf[:0], plain) }))
}
