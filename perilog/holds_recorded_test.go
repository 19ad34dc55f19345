package perilog_test

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// holdsRecording is a line of a recording.
type holdsRecording struct {
	F58      string          `json:"f58"`
	Eventlog string          `json:"eventlog"`
	R        json.RawMessage `json:"R"`
}

// parseR returns the R of a recorded job, nil if it never had one.
func (j *holdsRecording) parseR(t testing.TB) *rset.R {
	t.Helper()
	if string(j.R) == "null" {
		return nil
	}
	text := []byte(j.R)
	if text[0] == '"' {
		var s string
		require.NoError(t, json.Unmarshal(text, &s))
		text = []byte(s)
	}
	r, err := rset.Parse(text)
	require.NoError(t, err)
	return r
}

// handwritten reads testdata/brokers-holds.txt: for each job its ranks and the
// lines below it.
func handwritten(t *testing.T) (ranks map[string]string, lines map[string][]string) {
	t.Helper()
	b, err := os.ReadFile("testdata/brokers-holds.txt")
	require.NoError(t, err)
	ranks, lines = map[string]string{}, map[string][]string{}
	id := ""
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		switch {
		case len(f) == 0 || f[0][0] == '#':
		case f[0] == "job":
			require.Len(t, f, 4)
			id = f[1]
			ranks[id] = f[3]
		default:
			lines[id] = append(lines[id], strings.TrimSpace(line))
		}
	}
	return ranks, lines
}

func TestTheHoldsOfTheRecordedJobsAreThoseAPersonReadFromTheirLogs(t *testing.T) {
	ranks, want := handwritten(t)
	jobs := refdata.Lines[holdsRecording](t, "recorded/brokers.jsonl.gz", 33)
	require.Len(t, ranks, len(jobs))
	lines, events := 0, 0
	stillHeld := map[string]string{}
	for _, j := range jobs {
		s := &holdsStory{t: t, r: j.parseR(t)}
		s.holds = perilog.NewHolds(7, s.r)
		if s.r == nil {
			require.Equal(t, "none", ranks[j.F58], j.F58)
		} else {
			require.Equal(t, s.r.Ranks().String(), ranks[j.F58], j.F58)
		}
		var got []string
		n, before := 0, "-"
		for e, err := range eventlog.Entries([]byte(j.Eventlog)) {
			require.NoError(t, err)
			require.NoError(t, s.apply(e))
			n++
			if now := whoHolds(s.holds); now != before {
				got = append(got, strconv.Itoa(n)+" "+e.Name+": "+now)
				before = now
			}
		}
		require.Equal(t, want[j.F58], got, j.F58)
		require.Equal(t, s.holds.String(), s.replay().String())
		lines += len(got)
		events += n
		if !s.holds.Held().IsEmpty() {
			stillHeld[j.F58] = whoHolds(s.holds)
		}
		require.Equal(t, s.r != nil && s.holds.Held().IsEmpty(), s.holds.Released().Final, j.F58)
	}
	require.Empty(t, stillHeld, "all are closed, two of them with an epilog that the reference lost")
	require.Equal(t, 146, lines)
	require.Equal(t, 363, events)
}
