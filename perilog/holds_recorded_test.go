package perilog_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// recordedJob is a line of a recording.
type recordedJob struct {
	F58      string          `json:"f58"`
	Eventlog string          `json:"eventlog"`
	R        json.RawMessage `json:"R"`
}

// parseR returns the R of a recorded job, nil if it never had one.
func (j *recordedJob) parseR(t *testing.T) *rset.R {
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
	for _, line := range strings.Split(string(b), "\n") {
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
	jobs := refdata.Lines[recordedJob](t, "recorded/brokers.jsonl.gz", 33)
	require.Len(t, jobs, 33)
	require.Len(t, ranks, 33)
	lines, events := 0, 0
	stillHeld := map[string]string{}
	for _, j := range jobs {
		r := j.parseR(t)
		s := newStory(t, 0, perilog.HoldsOptions{})
		s.r, s.holds, s.ledger = r, perilog.NewHolds(r, perilog.HoldsOptions{}), rset.NewLedger(r)
		if r == nil {
			require.Equal(t, "none", ranks[j.F58], j.F58)
		} else {
			require.Equal(t, r.Ranks().String(), ranks[j.F58], j.F58)
		}
		var got []string
		n, before := 0, "-"
		for e, err := range eventlog.Entries([]byte(j.Eventlog)) {
			require.NoError(t, err)
			_, err := s.holds.Apply(e)
			require.NoError(t, err)
			s.log, err = eventlog.AppendEntry(s.log, e)
			require.NoError(t, err)
			s.check()
			n++
			if now := who(s.holds); now != before {
				got = append(got, strconv.Itoa(n)+" "+e.Name+": "+now)
				before = now
			}
		}
		require.Equal(t, want[j.F58], got, j.F58)
		require.Equal(t, j.Eventlog, string(s.log))
		lines += len(got)
		events += n
		if held := s.holds.Held(); !held.IsEmpty() {
			stillHeld[j.F58] = who(s.holds)
			require.Zero(t, s.finals, j.F58)
		} else if r != nil {
			require.Equal(t, 1, s.finals, j.F58)
		}
	}
	require.Equal(t, map[string]string{"f5hfJv3H": "epilog 0-3", "f5DmrRb5": "epilog 0-3"}, stillHeld,
		"the epilogs that the reference lost")
	require.Equal(t, 144, lines)
	require.Equal(t, 363, events)
}

// The reducer and Holds agree on what may be done next, at every event of every
// recorded job, and where they may not, a reason is listed.
func TestHoldsMayDoWhatTheReducerMay(t *testing.T) {
	for _, file := range []struct {
		name        string
		jobs, freed int
	}{{"recorded/brokers.jsonl.gz", 33, 27}, {"recorded/mixed.jsonl.gz", 380, 364}, {"recorded/restart-done.jsonl.gz", 8, 8}} {
		freed := 0
		for _, rec := range refdata.Lines[recordedJob](t, file.name, file.jobs) {
			j, r := jobstate.NewJob(0), rec.parseR(t)
			h, l := perilog.NewHolds(r, perilog.HoldsOptions{}), rset.NewLedger(r)
			finals := 0
			for e, err := range eventlog.Entries([]byte(rec.Eventlog)) {
				require.NoError(t, err)
				_, err = j.Apply(e)
				require.NoError(t, err)
				_, err = h.Apply(e)
				require.NoError(t, err)
				require.NoError(t, h.Check())
				if h.Feed(l).Final {
					finals++
				}
				require.Equal(t, may(j), may(h), "%s after %s", rec.F58, e.Name)
			}
			require.LessOrEqual(t, finals, 1)
			freed += finals
			if finals == 0 && j.WasAllocated() && j.Closed() && !h.Revoked() { // an R alone is no allocation
				require.Contains(t, []string{"f5hfJv3H", "f5DmrRb5"}, rec.F58, "who keeps what at the end")
			}
		}
		require.Equal(t, file.freed, freed, "jobs that freed everything")
	}
}

// may returns what a job or its holds allow next.
func may(x interface {
	MayStart() bool
	MayFree() bool
	MayClean() bool
}) string {
	return fmt.Sprintf("start %t, free %t, clean %t", x.MayStart(), x.MayFree(), x.MayClean())
}
