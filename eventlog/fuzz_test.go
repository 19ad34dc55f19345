package eventlog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
)

// requireRoundTrip checks that an entry that was read from a line is written so
// that it means the same, with the same bytes in the usual form.
func requireRoundTrip(t *testing.T, line []byte, e eventlog.Entry) {
	out, err := eventlog.AppendEntry([]byte("#"), e)
	if errors.Is(err, eventlog.ErrLimit) {
		return // the line grew: a shorter one reads as the same number
	}
	require.NoError(t, err, "%q", line)
	again, err := eventlog.Parse(out[1:])
	require.NoError(t, err, "%q from %q", out, line)
	require.Equal(t, e.Timestamp, again.Timestamp)
	require.Equal(t, e.Name, again.Name)
	require.Equal(t, string(e.Context), string(again.Context))
	twice, err := eventlog.AppendEntry([]byte("#"), again)
	require.NoError(t, err)
	require.Equal(t, string(out), string(twice))

	// It means the same to someone who knows nothing of events.
	var want, got any
	require.NoError(t, json.Unmarshal(line, &want))
	require.NoError(t, json.Unmarshal(out[1:], &got))
	require.Equal(t, want, got)
}

func FuzzParse(f *testing.F) {
	for _, tt := range badLines {
		if len(tt.line) < 200 {
			f.Add([]byte(tt.line))
		}
	}
	f.Add([]byte(good))
	f.Add([]byte(`{"timestamp":1795226020.2783487,"name":"submit","context":{"userid":0,"x":[1.5,"\u00e9"]}}` + "\n"))
	f.Add([]byte(`{ "other" : {"a":[]}, "context":{"a" : 1}, "n\u0061me":"debug.x", "timestamp":42 }`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := eventlog.Parse(line)
		if err != nil {
			var syntax *eventlog.SyntaxError
			require.ErrorAs(t, err, &syntax)
			require.Equal(t, 1, syntax.Line)
			require.True(t, 0 <= syntax.Offset && syntax.Offset <= int64(len(line)), "%v", err)
			require.Equal(t, eventlog.Entry{}, e)
			return
		}
		// A struct would take Timestamp for timestamp.
		var keys map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(line, &keys), "%q", line)
		var timestamp float64
		require.NoError(t, json.Unmarshal(keys["timestamp"], &timestamp))
		require.Equal(t, timestamp, float64(e.Timestamp))
		require.Greater(t, timestamp, 0.0)
		var name string
		require.NoError(t, json.Unmarshal(keys["name"], &name))
		require.Equal(t, name, e.Name)
		require.Equal(t, string(keys["context"]), string(e.Context))
		requireRoundTrip(t, line, e)
	})
}

func FuzzEntries(f *testing.F) {
	for _, log := range testdataLogs(f) {
		f.Add(log[:len(log)/3], uint8(7), uint8(60))
	}
	for _, tt := range badLines {
		if len(tt.line) < 200 {
			f.Add([]byte(good+tt.line+"\n"+good), uint8(1), uint8(30))
		}
	}
	f.Add([]byte(good+good+"{"), uint8(1), uint8(0))
	f.Fuzz(func(t *testing.T, log []byte, a, b uint8) {
		requireDecoderAgrees(t, log, &cutReader{rest: log, sizes: []int{int(a) + 1, int(b) + 1}})
		entries, err := collect(log)
		lines := bytes.SplitAfter(log, []byte("\n"))
		for i, e := range entries {
			alone, err := eventlog.Parse(lines[i])
			require.NoError(t, err)
			require.Equal(t, alone, e)
		}
		// What Entries ends at is what Parse refuses, or torn.
		rest := lines[len(entries)]
		switch {
		case len(rest) == 0:
			require.NoError(t, err)
		case rest[len(rest)-1] == '\n':
			_, alone := eventlog.Parse(rest)
			require.Error(t, alone)
			require.NotErrorIs(t, err, eventlog.ErrTorn)
			require.Error(t, err)
		default:
			require.ErrorIs(t, err, eventlog.ErrTorn)
		}
	})
}

func FuzzAppendEntry(f *testing.F) {
	f.Add(1795226020.2783487, "submit", []byte(`{"userid":0}`))
	f.Add(42.0, "a\n\"é", []byte("{\n \"a\" : [1,\r2] }\t"))
	f.Add(math.Inf(1), "", []byte(`[]`))
	f.Add(-1.0, "\xff", []byte(`{"a":1,"a":2}`))
	f.Add(5e-324, "x\x00", []byte(nil))
	f.Fuzz(func(t *testing.T, timestamp float64, name string, context []byte) {
		e := eventlog.Entry{Timestamp: eventlog.Timestamp(timestamp), Name: name, Context: context}
		line, err := eventlog.AppendEntry([]byte("before"), e)
		valid := timestamp > 0 && !math.IsInf(timestamp, 1) && name != "" && utf8.ValidString(name) && !bytes.ContainsRune([]byte(name), 0)
		if err != nil {
			require.Equal(t, "before", string(line))
			field := strings.SplitN(err.Error(), ": ", 3)[1]
			require.Equal(t, !valid, field == "timestamp" || field == "name", "%v", err)
			return
		}
		require.True(t, valid)
		require.True(t, bytes.HasPrefix(line, []byte("before{")))
		line = line[len("before"):]
		require.Equal(t, len(line)-1, bytes.IndexByte(line, '\n'))
		read, err := eventlog.Parse(line)
		require.NoError(t, err, "%q", line)
		require.Equal(t, e.Timestamp, read.Timestamp)
		require.Equal(t, name, read.Name)
		require.Equal(t, len(context) == 0, len(read.Context) == 0)
		if len(context) > 0 {
			var want, got any
			require.NoError(t, json.Unmarshal(context, &want))
			require.NoError(t, json.Unmarshal(read.Context, &got))
			require.Equal(t, want, got)
		}
		requireRoundTrip(t, line, read)
	})
}
