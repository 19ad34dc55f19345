package eventlog_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/race"
)

func TestReadingAndWritingAllocatesNothing(t *testing.T) {
	race.Skip(t)
	log := benchLog(t, 256)
	entries, err := collect(log)
	require.NoError(t, err)
	line := []byte(`{"timestamp":1795226020.4940028,"name":"alloc","context":{"annotations":{"sched":{"resource_summary":"rank[0-3]/core[0-3]"}}}}` + "\n")
	unusual := []byte(`{ "name":"alloc", "timestamp":1795226020.4940028, "other":1, "context":{}}` + "\n")
	odd := parse(t, string(unusual))
	names := bytes.Repeat([]byte(`{"timestamp":1.5,"name":"debug.a"}`+"\n"+`{"timestamp":1.5,"name":"debug.b"}`+"\n"), 1000)
	buf := make([]byte, 0, 2*len(log))
	for name, tt := range map[string]struct {
		f      func()
		allocs float64
	}{
		"Parse":              {func() { _, _ = eventlog.Parse(line) }, 0},
		"Parse, unusual":     {func() { _, _ = eventlog.Parse(unusual) }, 0},
		"Entries":            {func() { count(eventlog.Entries(log)) }, 0},
		"Entries, new names": {func() { count(eventlog.Entries(names)) }, 2},
		"AppendEntry":        {func() { encode(t, buf, entries) }, 0},
		"AppendEntry, odd":   {func() { _, _ = eventlog.AppendEntry(buf, odd) }, 0},
		"Clone":              {func() { _ = entries[4].Clone() }, 1},
	} {
		require.LessOrEqual(t, testing.AllocsPerRun(20, tt.f), tt.allocs, name)
	}
}

func TestADecoderAllocatesNothingPerEntry(t *testing.T) {
	race.Skip(t)
	// The reader, the Decoder, its buffers of 4 to 64 KiB and the loop.
	for _, n := range []int{1_000, 20_000} {
		log := benchLog(t, n)
		allocs := testing.AllocsPerRun(5, func() {
			count(eventlog.NewDecoder(bytes.NewReader(log), eventlog.DecoderOptions{}).All())
		})
		require.LessOrEqual(t, allocs, 12.0, "%d entries", n)
	}
}

func count(seq func(func(eventlog.Entry, error) bool)) (n int) {
	for _, err := range seq {
		if err != nil {
			panic(err)
		}
		n++
	}
	return n
}
