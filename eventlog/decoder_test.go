package eventlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/race"
)

// drain returns what is left in a Decoder, as clones: an entry is valid until the next step.
func drain(d *eventlog.Decoder) (entries []eventlog.Entry, err error) {
	for e, err := range d.All() {
		if err != nil {
			return entries, err
		}
		entries = append(entries, e.Clone())
	}
	return entries, nil
}

// cutReader gives a log in pieces of the given sizes, over and over.
type cutReader struct {
	rest  []byte
	sizes []int
	i     int
}

func (r *cutReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), r.sizes[r.i%len(r.sizes)])], r.rest)
	r.i++
	r.rest = r.rest[n:]
	return n, nil
}

// requireDecoderAgrees checks that a Decoder on r hands out what Entries does on
// log.
func requireDecoderAgrees(t require.TestingT, log []byte, r io.Reader) {
	want, wantErr := collect(log)
	d := eventlog.NewDecoder(r, eventlog.DecoderOptions{})
	got, err := drain(d)
	require.Equal(t, want, got)
	require.Equal(t, wantErr, err)
	require.Equal(t, len(want), d.Line())
	end := 0
	for range want {
		end += bytes.IndexByte(log[end:], '\n') + 1
	}
	require.Equal(t, int64(end), d.Offset())
}

// logsToRead are logs good and bad.
func logsToRead(t *testing.T) (logs [][]byte) {
	for _, log := range testdataLogs(t) {
		logs = append(logs, log, log[:len(log)-1], log[:len(log)/2])
	}
	for _, tt := range badLines {
		logs = append(logs, []byte(good+tt.line+"\n"+good), []byte(tt.line))
	}
	long := fmt.Appendf(nil, `{"timestamp":1.0,"name":"x","context":{"a":"%s"}}`+"\n", strings.Repeat("é", 300_000))
	return append(logs, nil, []byte(good), []byte(strings.Repeat(good, 10_000)), long, append(long, good...))
}

func TestADecoderHandsOutWhatEntriesDoes(t *testing.T) {
	for _, log := range logsToRead(t) {
		requireDecoderAgrees(t, log, bytes.NewReader(log))
		requireDecoderAgrees(t, log, iotest.DataErrReader(bytes.NewReader(log)))
		requireDecoderAgrees(t, log, iotest.HalfReader(bytes.NewReader(log)))
		requireDecoderAgrees(t, log, &cutReader{rest: log, sizes: []int{1, 0, 4096, 3, 100_000}})
		if len(log) < 10_000 {
			requireDecoderAgrees(t, log, iotest.OneByteReader(bytes.NewReader(log)))
		}
	}
}

func TestADecoderLoopCanBeLeftAndTakenUp(t *testing.T) {
	d := eventlog.NewDecoder(strings.NewReader(good+good+good+"torn"), eventlog.DecoderOptions{})
	for _, err := range d.All() {
		require.NoError(t, err)
		break
	}
	require.Equal(t, 1, d.Line())
	entries, err := drain(d)
	require.Len(t, entries, 2)
	requireSyntaxError(t, err, 4, int64(3*len(good)), eventlog.ErrTorn)
	require.Equal(t, int64(3*len(good)), d.Offset())

	entries, again := drain(d)
	require.Empty(t, entries)
	require.Equal(t, err, again)
}

var errDisk = errors.New("disk on fire")

func TestTheZeroDecoderPanics(t *testing.T) {
	require.Panics(t, func() { _, _ = drain(&eventlog.Decoder{}) })
}

func TestAReadersErrorComesAfterTheCompleteEntries(t *testing.T) {
	for _, rest := range []string{"", `{"time`} {
		r := io.MultiReader(strings.NewReader(good+good+rest), iotest.ErrReader(errDisk))
		d := eventlog.NewDecoder(r, eventlog.DecoderOptions{})
		entries, err := drain(d)
		require.Len(t, entries, 2)
		require.EqualError(t, err, fmt.Sprintf("eventlog: line 3: offset %d: disk on fire", 2*len(good)+len(rest)))
		require.ErrorIs(t, err, errDisk)
		require.NotErrorIs(t, err, eventlog.ErrTorn)
		_, again := drain(d)
		require.Equal(t, err, again)
	}
}

// readerFunc is a reader with its own idea of the contract.
type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestADecoderBearsReadersThatBreakTheContract(t *testing.T) {
	reads := 0
	_, err := drain(eventlog.NewDecoder(readerFunc(func([]byte) (int, error) { reads++; return 0, nil }), eventlog.DecoderOptions{}))
	require.ErrorIs(t, err, io.ErrNoProgress)
	require.Equal(t, 100, reads)
	for _, f := range []readerFunc{
		func([]byte) (int, error) { return -1, nil },
		func(p []byte) (int, error) { return len(p) + 1, nil },
	} {
		_, err := drain(eventlog.NewDecoder(io.MultiReader(strings.NewReader("{"), f), eventlog.DecoderOptions{}))
		require.EqualError(t, err, "eventlog: line 1: offset 1: reader returned an impossible count")
	}
}

// endless gives one line that does not end.
type endless struct{ given int }

func (r *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	r.given += len(p)
	return len(p), nil
}

func TestALineWithoutEndCostsAtMostTwiceTheLimit(t *testing.T) {
	var before, after runtime.MemStats
	r := &endless{}
	runtime.ReadMemStats(&before)
	_, err := drain(eventlog.NewDecoder(r, eventlog.DecoderOptions{}))
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, eventlog.ErrLimit)
	require.LessOrEqual(t, r.given, 2*eventlog.DefaultMaxLine)
	// All buffers together, each twice the one before.
	require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(5*eventlog.DefaultMaxLine))
}

func TestTheBufferGrowsWithTheLog(t *testing.T) {
	race.Skip(t)
	cost := func(open func() io.Reader) uint64 {
		least := uint64(math.MaxUint64) // of several: the runtime allocates, too
		for range 5 {
			var before, after runtime.MemStats
			r := open()
			runtime.ReadMemStats(&before)
			for _, err := range eventlog.NewDecoder(r, eventlog.DecoderOptions{}).All() {
				require.NoError(t, err)
			}
			runtime.ReadMemStats(&after)
			least = min(least, after.TotalAlloc-before.TotalAlloc)
		}
		return least
	}
	small, large := benchLog(t, 20), benchLog(t, 50_000)
	require.LessOrEqual(t, cost(func() io.Reader { return &cutReader{rest: small, sizes: []int{100}} }), uint64(7<<10))
	require.LessOrEqual(t, cost(func() io.Reader { return bytes.NewReader(large) }), uint64(160<<10))
	var reads int
	require.LessOrEqual(t, cost(func() io.Reader { reads = 0; return io.TeeReader(bytes.NewReader(large), countWrites(&reads)) }), uint64(160<<10))
	require.Less(t, reads, len(large)/(50<<10))
}

// countWrites counts how often it is written to.
func countWrites(n *int) io.Writer {
	return writerFunc(func(p []byte) (int, error) { *n++; return len(p), nil })
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Line and Offset are those of what was read, and an error comes after the entries before it.
// EL-1, EL-2.
func TestADecoderHasLimits(t *testing.T) {
	const other = `{"timestamp":1.0,"name":"x","other":1}` + "\n"
	long := `{"timestamp":1.0,"name":"` + strings.Repeat("x", 3<<20) + "\"}\n"
	deep := func(levels int) string {
		return `{"name":"x","timestamp":1,"context":` + strings.Repeat(`{"a":`, levels-2) + "{}" + strings.Repeat("}", levels-2) + "}\n"
	}
	key := strings.Repeat("k", 100)
	size := len(good)
	for _, tt := range []struct {
		o        eventlog.DecoderOptions
		log      string
		entries  int
		offset   int // of the error
		text     string
		category error
	}{
		{eventlog.DecoderOptions{}, good + other + deep(2048), 3, 0, "", nil},
		{eventlog.DecoderOptions{MaxLine: -1, MaxDepth: -1, MaxEvents: -1}, good + deep(2048), 2, 0, "", nil},
		{eventlog.DecoderOptions{MaxLine: size - 1}, good + good, 2, 0, "", nil},
		{eventlog.DecoderOptions{MaxLine: size - 2}, good, 0, size - 2, "line longer than 27 bytes", eventlog.ErrLimit},
		{eventlog.DecoderOptions{MaxLine: size - 2}, good[:size-1], 0, size - 2, "line longer than 27 bytes", eventlog.ErrLimit},
		{eventlog.DecoderOptions{MaxLine: size - 2}, good[:size-2], 0, 0, "torn last line", eventlog.ErrTorn},
		{eventlog.DecoderOptions{MaxLine: 1}, good, 0, 1, "line longer than 1 bytes", eventlog.ErrLimit},
		{eventlog.DecoderOptions{MaxLine: 4 << 20}, long, 1, 0, "", nil},
		{eventlog.DecoderOptions{MaxEvents: 1}, good + good, 1, size, "more than 1 entries", eventlog.ErrLimit},
		{eventlog.DecoderOptions{MaxEvents: 2}, good + good, 2, 0, "", nil},
		{eventlog.DecoderOptions{MaxEvents: 2}, good + good + good, 2, 2 * size, "more than 2 entries", eventlog.ErrLimit},
		{eventlog.DecoderOptions{MaxEvents: 2}, good + good + "x", 2, 2 * size, "torn last line", eventlog.ErrTorn},
		{eventlog.DecoderOptions{StrictKeys: true}, good + other, 1, size + 36, "other: unknown key", eventlog.ErrEntry},
		{eventlog.DecoderOptions{StrictKeys: true}, deep(2), 1, 0, "", nil},
		{eventlog.DecoderOptions{StrictKeys: true}, `{"` + key + `":1,"x":1}` + "\n", 0, 104, key[:64] + "...: unknown key", eventlog.ErrEntry},
		{eventlog.DecoderOptions{MaxDepth: 1}, deep(2) + deep(3), 1, len(deep(2)) + 37, "nested too deep", eventlog.ErrLimit}, // which means 2
		{eventlog.DecoderOptions{MaxDepth: 3}, deep(3) + deep(4), 1, len(deep(3)) + 42, "nested too deep", eventlog.ErrLimit},
		{eventlog.DecoderOptions{MaxDepth: 2}, `{"timestamp":1.0,"name":"x","context":{"a":1}}` + "\n", 0, 39, "nested too deep", eventlog.ErrLimit},
	} {
		d := eventlog.NewDecoder(strings.NewReader(tt.log), tt.o)
		require.Zero(t, d.Line()+int(d.Offset()))
		n, read := 0, 0
		var err error
		for e, failed := range d.All() {
			if err = failed; err == nil {
				n++
				read += strings.IndexByte(tt.log[read:], '\n') + 1
				require.NotEmpty(t, e.Name)
			}
			require.Equal(t, n, d.Line())
			require.Equal(t, int64(read), d.Offset())
		}
		require.Equal(t, tt.entries, n)
		if _, again := drain(d); tt.text == "" {
			require.NoError(t, err)
			require.NoError(t, again)
		} else {
			require.EqualError(t, err, fmt.Sprintf("eventlog: line %d: offset %d: %s", n+1, tt.offset, tt.text))
			requireSyntaxError(t, err, n+1, int64(tt.offset), tt.category)
			require.Equal(t, err, again)
		}
	}
}
