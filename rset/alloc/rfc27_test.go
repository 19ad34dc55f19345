package alloc_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

const textR = `{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0-7"}}],"starttime":100.0,"expiration":200.0,"nodelist":["n[0-3]"]}}`

func parseR(t testing.TB, text string) *rset.R {
	t.Helper()
	r, err := rset.Parse([]byte(text))
	require.NoError(t, err)
	return r
}

// reads parses a payload.
func reads[M alloc.Payload](text string) (M, error) {
	return alloc.Parse[M]([]byte(text))
}

// prints reads a payload, and requires what it is written as.
func prints[M alloc.Payload](t *testing.T, text, canonical string) M {
	t.Helper()
	m, err := reads[M](text)
	require.NoError(t, err)
	b, err := alloc.Append([]byte("before "), m)
	require.NoError(t, err)
	require.Equal(t, "before "+canonical, string(b))
	return m
}

// same is prints, and requires what the payload means.
func same[M alloc.Payload](t *testing.T, text string, want M, canonical string) {
	t.Helper()
	require.Equal(t, want, prints[M](t, text, canonical))
	require.Equal(t, want, prints[M](t, canonical, canonical))
}

// RFC 27, Hello: the request may tell that partly released jobs are understood.
func TestHelloRequestOfTheRFCIsRead(t *testing.T) {
	same(t, `{"partial-ok": true}`, alloc.Hello{PartialOK: true}, `{"partial-ok":true}`)
	same(t, `{}`, alloc.Hello{}, `{"partial-ok":false}`)
	m, err := alloc.Parse[alloc.Hello](nil)
	require.NoError(t, err, "early schedulers sent no payload")
	require.Equal(t, alloc.Hello{}, m)
}

// RFC 27, Hello: id, priority, userid and t_submit of each job, and free.
func TestHelloAnswerOfTheRFCIsRead(t *testing.T) {
	job := alloc.JobInfo{ID: 1552593348, Priority: 43444, UserID: 5588, Submit: 1552593547.5}
	same(t, `{ "id": 1552593348, "priority": 43444, "userid": 5588, "t_submit": 1552593547.5 }`,
		alloc.HelloResponse{JobInfo: job},
		`{"id":1552593348,"priority":43444,"userid":5588,"t_submit":1552593547.5}`)

	m := prints[alloc.HelloResponse](t, `{"free":"[1,3]","t_submit":5,"id":1,"priority":4294967295,"userid":4294967295}`,
		`{"id":1,"priority":4294967295,"userid":4294967295,"t_submit":5.0,"free":"1,3"}`)
	require.Equal(t, "1,3", m.Free.String())
}

// Where time is simulated it may begin at 0. That is the same as no time.
func TestASubmitTimeOfZeroIsNotKnown(t *testing.T) {
	for _, zero := range []string{"0", "0.0", "-0", "-0.0"} {
		same(t, `{"id":1,"priority":1,"userid":1,"t_submit":`+zero+`}`,
			alloc.HelloResponse{JobInfo: alloc.JobInfo{ID: 1, Priority: 1, UserID: 1}}, `{"id":1,"priority":1,"userid":1}`)
	}
}

func TestHelloAnswerMayCarryR(t *testing.T) {
	text := `{"id":1,"priority":16,"userid":0,"t_submit":5.5,"R":` + textR + `,"free":"0-1"}`
	m := prints[alloc.HelloResponse](t, text, text)
	require.True(t, rset.Equal(parseR(t, textR), m.R))
	held, err := m.R.Without(m.Free)
	require.NoError(t, err)
	require.Equal(t, "rank[2-3]/core[0-7]", held.String())
}

// RFC 27, Ready: a mode, with a limit if it is limited.
func TestReadyOfTheRFCIsRead(t *testing.T) {
	same(t, `{"mode":"unlimited"}`, alloc.Ready{}, `{"mode":"unlimited"}`)
	same(t, `{"mode":"limited", "limit":8}`, alloc.Ready{Limit: 8}, `{"mode":"limited","limit":8}`)
	same(t, `{"limit":"any","mode":"unlimited"}`, alloc.Ready{}, `{"mode":"unlimited"}`)
	same(t, `{"limit":2147483647,"mode":"limited"}`, alloc.Ready{Limit: 1<<31 - 1}, `{"mode":"limited","limit":2147483647}`)
	same(t, `{"count":42}`, alloc.ReadyResponse{Count: 42}, `{"count":42}`)
}

// The mode of the first draft of RFC 27 is not in flux-core, nor here.
func TestModeSingleIsRefused(t *testing.T) {
	_, err := reads[alloc.Ready](`{"mode":"single"}`)
	require.EqualError(t, err, `alloc: invalid message: ready request: mode: offset 8: must be "unlimited" or "limited"`)
}

// RFC 27, Alloc: the request, with the jobspec as flux-core sends it.
func TestAllocRequestOfTheRFCIsRead(t *testing.T) {
	same(t, `{"id": 1552593348, "priority": 53444, "userid": 5588, "t_submit": 1552593348.073045, "jobspec": {"version": 1} }`,
		alloc.Request{
			JobInfo: alloc.JobInfo{ID: 1552593348, Priority: 53444, UserID: 5588, Submit: 1552593348.073045},
			Jobspec: json.RawMessage(`{"version":1}`),
		},
		`{"id":1552593348,"priority":53444,"userid":5588,"t_submit":1552593348.073045,"jobspec":{"version":1}}`)
	same(t, `{"jobspec":{},"id":0,"priority":0,"userid":0}`,
		alloc.Request{Jobspec: json.RawMessage(`{}`)}, `{"id":0,"priority":0,"userid":0,"jobspec":{}}`)
}

// RFC 27, Alloc Success.
func TestSuccessOfTheRFCIsRead(t *testing.T) {
	annotations := `{"sched":{"resource_summary":"rank[0-1]/core0"}}`
	m := prints[alloc.Response](t, `{"id":1552593348,"type":0,"R":`+textR+`,"annotations":`+annotations+`}`,
		`{"id":1552593348,"type":0,"annotations":`+annotations+`,"R":`+textR+`}`)
	require.Equal(t, jobid.ID(1552593348), m.ID)
	require.Equal(t, alloc.ResponseSuccess, m.Type)
	require.Equal(t, annotations, string(m.Annotations))
	require.Equal(t, "rank[0-3]/core[0-7]", m.R.String())
	bare := `{"id":1,"type":0,"R":` + textR + `}`
	require.Nil(t, prints[alloc.Response](t, bare, bare).Annotations, "they are optional")
}

// RFC 27, Alloc Annotate.
func TestAnnotateOfTheRFCIsRead(t *testing.T) {
	const annotations = `{"sched":{"t_estimate":593016000.0,"reason_pending":"requested GPUs are unavailable"}}`
	same(t, `{"id":1552593348, "type":1, "annotations": `+annotations+`}`,
		alloc.Response{ID: 1552593348, Type: alloc.ResponseAnnotate, Annotations: json.RawMessage(annotations)},
		`{"id":1552593348,"type":1,"annotations":`+annotations+`}`)
}

// RFC 27, Alloc Deny.
func TestDenyOfTheRFCIsRead(t *testing.T) {
	same(t, `{"id":1552593348, "type":2, "note":"more nodes requested than configured"}`,
		alloc.Response{ID: 1552593348, Type: alloc.ResponseDeny, Note: "more nodes requested than configured"},
		`{"id":1552593348,"type":2,"note":"more nodes requested than configured"}`)
	same(t, `{"id":1,"type":2}`, alloc.Response{ID: 1, Type: alloc.ResponseDeny}, `{"id":1,"type":2}`)
	same(t, `{"id":1,"type":2,"note":""}`, alloc.Response{ID: 1, Type: alloc.ResponseDeny}, `{"id":1,"type":2}`)
}

// RFC 27, Alloc Cancel: only the required keys are allowed.
func TestCancelAnswerOfTheRFCIsRead(t *testing.T) {
	same(t, `{"id":1552593348, "type":3, "unknown":"ignored"}`,
		alloc.Response{ID: 1552593348, Type: alloc.ResponseCancel}, `{"id":1552593348,"type":3}`)
	for _, key := range []string{"note", "annotations", "R"} {
		_, err := reads[alloc.Response](`{"id":1,"type":3,"` + key + `":{}}`)
		require.EqualError(t, err, fmt.Sprintf("alloc: invalid message: alloc response: %s: offset %d: does not belong to this type of response",
			key, len(`{"id":1,"type":3,"":`)+len(key)))
	}
}

// RFC 27, Cancel.
func TestCancelRequestOfTheRFCIsRead(t *testing.T) {
	same(t, `{"id": 1552593348}`, alloc.Cancel{ID: 1552593348}, `{"id":1552593348}`)
	same(t, `{"id":9223372036854775807}`, alloc.Cancel{ID: 1<<63 - 1}, `{"id":9223372036854775807}`)
}

// RFC 27, Prioritize.
func TestPrioritizeOfTheRFCIsRead(t *testing.T) {
	same(t, `{"jobs":[ [49056579584, 444], [57428410368, 298], [63988301824, 343205], [69675778048, 99] ]}`,
		alloc.Prioritize{Jobs: []alloc.Priority{{49056579584, 444}, {57428410368, 298}, {63988301824, 343205}, {69675778048, 99}}},
		`{"jobs":[[49056579584,444],[57428410368,298],[63988301824,343205],[69675778048,99]]}`)
	same(t, `{"jobs":[ ]}`, alloc.Prioritize{}, `{"jobs":[]}`)
}

// RFC 27, Expiration, which flux-core sends.
func TestExpirationIsRead(t *testing.T) {
	same(t, `{"id":1552593348,"expiration":1710076122}`,
		alloc.Expiration{ID: 1552593348, Expiration: 1710076122}, `{"id":1552593348,"expiration":1710076122.0}`)
	same(t, `{"id":1,"expiration":0}`, alloc.Expiration{ID: 1}, `{"id":1,"expiration":0.0}`)
	same(t, `{"id":1,"expiration":-0.0}`, alloc.Expiration{ID: 1}, `{"id":1,"expiration":0.0}`)
}

// RFC 27, Free: a fragment of R, and whether it is the last.
func TestFreeIsRead(t *testing.T) {
	for final, text := range map[bool]string{
		true:  `{"id":1552593348,"R":` + textR + `,"final":true}`,
		false: `{"id":1552593348,"R":` + textR + `,"final":false}`,
	} {
		m := prints[alloc.Free](t, text, text)
		require.Equal(t, final, m.Final)
		require.Equal(t, "rank[0-3]/core[0-7]", m.R.String())
	}
	m, err := reads[alloc.Free](`{"id":1,"R":` + textR + `}`)
	require.NoError(t, err)
	require.False(t, m.Final)

	b, err := alloc.Append(nil, alloc.Free{ID: 7, Final: true})
	require.NoError(t, err, "a last fragment may have no ranks")
	m, err = reads[alloc.Free](string(b))
	require.NoError(t, err)
	require.True(t, m.R.IsEmpty())
}

func TestFeasibilityCheckIsRead(t *testing.T) {
	same(t, `{"jobspec": {"version":1, "tasks":[]}}`,
		alloc.Feasibility{Jobspec: json.RawMessage(`{"version":1,"tasks":[]}`)}, `{"jobspec":{"version":1,"tasks":[]}}`)
}

// RFC 27: response types are 0 through 3.
func TestAnswerTypesHaveTheNumbersOfTheRFC(t *testing.T) {
	for i, name := range []string{"SUCCESS", "ANNOTATE", "DENY", "CANCEL", "ResponseType(4)"} {
		require.Equal(t, name, alloc.ResponseType(i).String())
	}
	for _, typ := range []int64{-1, 4, 256, 1 << 40} {
		_, err := reads[alloc.Response](fmt.Sprintf(`{"id":1,"type":%d}`, typ))
		require.EqualError(t, err, "alloc: invalid message: alloc response: type: offset 15: must be from 0 to 3")
	}
}
