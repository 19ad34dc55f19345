package jobspec_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/jobstate/jobspec"
)

// recordedJob is a line of the recorded jobs.
type recordedJob struct {
	F58      string          `json:"f58"`
	Jobspec  json.RawMessage `json:"jobspec"`
	Eventlog string          `json:"eventlog"`
	Joblist  map[string]any  `json:"joblist"`
	R        *struct {
		Execution struct {
			RLite []struct {
				Rank     string            `json:"rank"`
				Children map[string]string `json:"children"`
			} `json:"R_lite"`
			Nslots int64 `json:"nslots"`
		} `json:"execution"`
	} `json:"R"`
}

// ids counts the ids of an idset, naively.
func ids(t *testing.T, set string) (n int64) {
	t.Helper()
	if set == "" {
		return 0
	}
	for part := range strings.SplitSeq(set, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		a, err := strconv.ParseInt(first, 10, 64)
		require.NoError(t, err)
		b, err := strconv.ParseInt(last, 10, 64)
		require.NoError(t, err)
		n += b - a + 1
	}
	return n
}

// resources counts what the stored resource set holds.
func (j *recordedJob) resources(t *testing.T) jobspec.Resources {
	t.Helper()
	require.NotNil(t, j.R)
	r := jobspec.Resources{Slots: j.R.Execution.Nslots}
	for _, entry := range j.R.Execution.RLite {
		ranks := ids(t, entry.Rank)
		r.Nodes += ranks
		r.Cores += ranks * ids(t, entry.Children["core"])
		r.GPUs += ranks * ids(t, entry.Children["gpu"])
	}
	return r
}

// replay returns the jobspec after all updates, and whether the log has alloc.
func (j *recordedJob) replay(t *testing.T, updates *int) (s *jobspec.Spec, allocated bool) {
	t.Helper()
	s, err := jobspec.Parse(j.Jobspec)
	require.NoError(t, err)
	for line := range strings.Lines(j.Eventlog) {
		var e struct {
			Name    string
			Context json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		switch e.Name {
		case "alloc":
			allocated = true
		case "jobspec-update":
			*updates++
			original := s.Original()
			s, err = s.UpdateAll(event(string(e.Context)))
			require.NoError(t, err)
			require.Same(t, original, s.Original())
		}
	}
	return s, allocated
}

// files are the recorded jobs, and how many there are.
var files = map[string]int{"brokers": 33, "mixed": 380, "restart-pending": 8, "restart-done": 8}

func TestListingsOfRecordedJobsFollowFromTheirJobspecs(t *testing.T) {
	jobs, updates, allocated := 0, 0, 0
	shown := map[string]int{}
	for file, n := range files {
		lines := refdata.Lines[recordedJob](t, "recorded/"+file+".jsonl.gz", n)
		require.Len(t, lines, n)
		for _, j := range lines {
			jobs++
			s, alloc := j.replay(t, &updates)
			c := s.Counts()
			if alloc {
				allocated++
				r := j.resources(t)
				before := c
				c = s.CountsOn(r)
				// What was asked for is what was got, where that is known before.
				require.Equal(t, before.Slots, jobspec.Known(r.Slots), j.F58)
				for _, pair := range [][2]jobspec.Quantity{{before.Nodes, c.Nodes}, {before.Cores, c.Cores}, {before.GPUs, c.GPUs}} {
					if _, known := pair[0].Value(); known {
						require.Equal(t, pair[0], pair[1], j.F58)
					}
				}
			}
			for key, q := range map[string]jobspec.Quantity{"nnodes": c.Nodes, "ncores": c.Cores, "ntasks": c.Tasks} {
				want, listed := j.Joblist[key]
				got, known := q.Value()
				require.Equal(t, listed, known, "%s: %s", j.F58, key)
				if listed {
					shown[key]++
					require.Equal(t, want, float64(got), "%s: %s", j.F58, key)
				}
			}
			require.Equal(t, j.Joblist["duration"], s.Duration().Seconds(), j.F58)
			require.Equal(t, j.Joblist["name"], s.Name(), j.F58)
			for key, got := range map[string]string{"queue": s.Queue(), "cwd": s.Cwd(), "bank": s.Bank(), "project": s.Project()} {
				require.NotContains(t, j.Joblist, key)
				require.Empty(t, got)
			}
		}
	}
	require.Equal(t, 429, jobs)
	require.Equal(t, 402, allocated)
	require.Equal(t, 3, updates)
	require.Equal(t, map[string]int{"nnodes": 415, "ncores": 427, "ntasks": 429}, shown)
}

func TestRecordedJobspecsKeepTheRulesAndPrintTheSame(t *testing.T) {
	jobs, dependencies := 0, 0
	for file, n := range files {
		for _, j := range refdata.Lines[recordedJob](t, "recorded/"+file+".jsonl.gz", n) {
			jobs++
			s, err := jobspec.Parse(j.Jobspec)
			require.NoError(t, err)
			_, err = s.Shape()
			require.NoError(t, err)
			require.NotEmpty(t, s.Command())
			require.JSONEq(t, string(j.Jobspec), print(t, s))
			again, err := jobspec.Parse([]byte(print(t, s)))
			require.NoError(t, err)
			require.Equal(t, print(t, s), print(t, again))

			var plain struct {
				Attributes struct {
					System struct {
						Dependencies []struct{ Scheme, Value string }
					}
				}
			}
			require.NoError(t, json.Unmarshal(j.Jobspec, &plain))
			got := slices.Collect(s.Dependencies())
			require.Len(t, got, len(plain.Attributes.System.Dependencies))
			for i, want := range plain.Attributes.System.Dependencies {
				dependencies++
				require.Equal(t, want.Scheme+"="+want.Value, got[i].Scheme+"="+got[i].Value)
			}
		}
	}
	require.Equal(t, 429, jobs)
	require.Equal(t, 68, dependencies)
}
