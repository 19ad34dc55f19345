package eventlog_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/refdata"
)

// vector is a line of vectors/eventlog.jsonl or vectors/eventlog_entry.jsonl.
type vector struct {
	In        *string         `json:"in"`
	InHex     string          `json:"in_hex"`
	OK        bool            `json:"ok"`
	Roundtrip *string         `json:"roundtrip"`
	Events    int             `json:"nevents"`
	ParseOK   bool            `json:"parse_ok"`
	Timestamp json.RawMessage `json:"timestamp"`
	Name      *string         `json:"name"`
	Context   json.RawMessage `json:"context"` // empty: not told, for it is too deep
}

func (v vector) input(t *testing.T) []byte {
	if v.In != nil {
		return []byte(*v.In)
	}
	b, err := hex.DecodeString(v.InHex)
	require.NoError(t, err)
	return b
}

// reason names why we refuse what the reference lets in.
func reason(err error) string {
	for _, r := range []string{
		"duplicate key", "timestamp: must be greater than zero", "name: must not be empty", "name: must not contain U+0000", "torn last line", "carriage return before the newline",
	} {
		if strings.Contains(err.Error(), r) {
			return "refused: " + r
		}
	}
	return "refused: " + err.Error()
}

// values decodes each line of a log for comparison: numbers as float64, the
// order of keys forgotten.
func values(t *testing.T, log []byte) (vs []any) {
	for line := range bytes.Lines(log) {
		var v any
		require.NoError(t, json.Unmarshal(line, &v), "%q", line)
		vs = append(vs, v)
	}
	return vs
}

// requireAgreement compares what we wrote with what the reference did: byte for
// byte where it gave back its input, else as JSON. It notes a difference where
// that is white space, numbers or escapes in what we keep as it was read.
func requireAgreement(t *testing.T, differences *refdata.Differences, v vector, in, out []byte) {
	want := []byte(*v.Roundtrip)
	if bytes.Equal(want, in) {
		require.Equal(t, string(in), string(out))
	}
	if bytes.Equal(want, out) {
		return
	}
	// An integer of -0 is 0 to the reference and -0 as a float64.
	out = bytes.ReplaceAll(out, []byte(":-0}"), []byte(":0}"))
	require.Equal(t, values(t, want), values(t, out), "%q", in)
	differences.Note("values are kept as they were read")
}

func TestLogsAreReadAsTheReferenceReadsThem(t *testing.T) {
	vectors := refdata.Lines[vector](t, "vectors/eventlog.jsonl.gz", 527)
	differences := refdata.ExpectDifferences(t, map[string]int{
		"refused: duplicate key":                        38,
		"refused: timestamp: must be greater than zero": 1,
		"refused: name: must not be empty":              84,
		"refused: torn last line":                       35,
		"refused: carriage return before the newline":   26,
		"values are kept as they were read":             59,
	})
	for _, v := range vectors {
		in := v.input(t)
		out, events, err := reencode(t, in)
		if !v.OK {
			require.Error(t, err, "%q", in)
			continue
		}
		if err != nil {
			differences.Note(reason(err))
			continue
		}
		require.Equal(t, v.Events, events, "%q", in)
		requireAgreement(t, differences, v, in, out)
	}
}

func TestEntriesAreReadAsTheReferenceReadsThem(t *testing.T) {
	vectors := refdata.Lines[vector](t, "vectors/eventlog_entry.jsonl.gz", 1101)
	differences := refdata.ExpectDifferences(t, map[string]int{
		"refused: duplicate key":                        18,
		"refused: timestamp: must be greater than zero": 11,
		"refused: name: must not be empty":              12,
		"refused: name: must not contain U+0000":        2,
		"refused: carriage return before the newline":   22,
		"accepted: no newline":                          20,
		"values are kept as they were read":             76,
	})
	for _, v := range vectors {
		in := v.input(t)
		e, err := eventlog.Parse(in)
		if !v.OK {
			if err == nil {
				require.False(t, bytes.HasSuffix(in, []byte("\n")), "%q", in)
				differences.Note("accepted: no newline")
			}
			continue
		}
		if err != nil {
			differences.Note(reason(err))
			continue
		}
		require.True(t, v.ParseOK)
		var want float64
		require.NoError(t, json.Unmarshal(v.Timestamp, &want))
		require.Equal(t, want, float64(e.Timestamp))
		require.Equal(t, *v.Name, e.Name)
		if len(v.Context) > 0 {
			require.Equal(t, string(v.Context) != "null", e.Context != nil)
		}
		out, err := eventlog.AppendEntry(nil, e)
		require.NoError(t, err)
		requireAgreement(t, differences, v, in, out)
	}
}

// reencode reads a log and writes its entries again.
func reencode(t testing.TB, log []byte) (out []byte, events int, err error) {
	for e, err := range eventlog.Entries(log) {
		if err != nil {
			return out, events, err
		}
		out, err = eventlog.AppendEntry(out, e)
		require.NoError(t, err)
		events++
	}
	return out, events, nil
}

// job is a line of the recorded jobs.
type job struct {
	F58  string  `json:"f58"`
	Log  string  `json:"eventlog"`
	Exec *string `json:"exec_eventlog"`
}

// logs returns the logs of a job.
func (j job) logs() (logs []string) {
	logs = append(logs, j.Log)
	if j.Exec != nil {
		logs = append(logs, *j.Exec)
	}
	return logs
}

// recorded returns the jobs recorded from a running instance.
func recorded(t testing.TB) (jobs []job) {
	for name, n := range map[string]int{"brokers": 33, "mixed": 380, "restart-done": 8, "restart-pending": 8} {
		jobs = append(jobs, refdata.Lines[job](t, "recorded/"+name+".jsonl.gz", n)...)
	}
	return jobs
}

// EL-3.
func TestEveryRecordedLogIsWrittenAgainWithTheSameBytes(t *testing.T) {
	jobs, events := 0, 0
	for _, j := range recorded(t) {
		for _, log := range j.logs() {
			out, n, err := reencode(t, []byte(log))
			require.NoError(t, err, j.F58)
			require.Equal(t, log, string(out), j.F58)
			events += n
		}
		jobs++
	}
	require.Equal(t, 429, jobs)
	require.Equal(t, 6772, events)
}
