package alloc_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// Jobs that a running instance recorded, as the messages that it must have
// sent for them: requests with its jobspecs, successes with its R and its
// annotations, and the answers to a hello.
func TestRecordedJobsPassThroughEveryMessage(t *testing.T) {
	for _, c := range []struct {
		name              string
		jobs, allocations int
	}{
		{"recorded/brokers.jsonl.gz", 33, 29},
		{"recorded/mixed.jsonl.gz", 380, 364},
	} {
		t.Run(c.name, func(t *testing.T) {
			jobs, allocations := 0, 0
			for _, rec := range refdata.Lines[recordedJob](t, c.name, c.jobs) {
				job := alloc.JobInfo{ID: rec.ID, Priority: rec.List.Priority, UserID: rec.List.UserID, Submit: rec.List.Submit}
				request := alloc.Request{JobInfo: job, Jobspec: rec.Jobspec}
				b, err := alloc.Append(nil, request)
				require.NoError(t, err)
				again, err := reads[alloc.Request](string(b))
				require.NoError(t, err)
				require.Equal(t, job, again.JobInfo)
				require.JSONEq(t, string(rec.Jobspec), string(again.Jobspec))
				jobs++

				for e, err := range eventlog.Entries([]byte(rec.Eventlog)) {
					require.NoError(t, err)
					if e.Name != "alloc" {
						continue
					}
					allocations++
					checkAllocation(t, job, rec.R, e.Context)
				}
			}
			require.Equal(t, c.jobs, jobs)
			require.Equal(t, c.allocations, allocations)
		})
	}
}

type recordedJob struct {
	ID       jobid.ID        `json:"id"`
	Eventlog string          `json:"eventlog"`
	R        json.RawMessage `json:"R"`
	Jobspec  json.RawMessage `json:"jobspec"`
	List     struct {
		UserID   uint32             `json:"userid"`
		Priority uint32             `json:"priority"`
		Submit   eventlog.Timestamp `json:"t_submit"`
	} `json:"joblist"`
}

// checkAllocation writes and reads a success and a hello for a recorded job.
func checkAllocation(t *testing.T, job alloc.JobInfo, text, context json.RawMessage) {
	t.Helper()
	r, err := rset.Parse(text)
	require.NoError(t, err)
	var annotations struct {
		Annotations json.RawMessage `json:"annotations"`
	}
	if len(context) > 0 {
		require.NoError(t, json.Unmarshal(context, &annotations))
	}
	b, err := alloc.Append(nil, alloc.Response{ID: job.ID, R: r, Annotations: annotations.Annotations})
	require.NoError(t, err)
	answer, err := reads[alloc.Response](string(b))
	require.NoError(t, err)
	require.True(t, rset.Equal(r, answer.R))
	require.Equal(t, string(annotations.Annotations), string(answer.Annotations))

	a := alloc.Announce([]alloc.HelloResponse{{JobInfo: job, R: r}}, false)
	require.Len(t, a.Responses, 1)
	b, err = alloc.Append(nil, a.Responses[0])
	require.NoError(t, err)
	hello, err := reads[alloc.HelloResponse](string(b))
	require.NoError(t, err)
	require.Equal(t, job, hello.JobInfo)
	require.True(t, rset.Equal(r, hello.R))
}
