package alloc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/rset/alloc"
)

// A topic means one message from the manager and another one from the scheduler.
func TestALineIsAMessageOfTheSideThatWroteIt(t *testing.T) {
	for text, want := range map[string][2]alloc.Message{
		`{"topic":"job-manager.sched-hello"}`:                                             {nil, alloc.Hello{}},
		`{"topic":"job-manager.sched-hello","payload":{"partial-ok":true}}`:               {nil, alloc.Hello{PartialOK: true}},
		`{"topic":"job-manager.sched-hello","payload":{"id":1,"priority":2,"userid":3}}`:  {alloc.HelloResponse{JobInfo: alloc.JobInfo{ID: 1, Priority: 2, UserID: 3}}, alloc.Hello{}},
		`{"topic":"job-manager.sched-hello","errnum":61}`:                                 {nil, nil},
		`{"topic":"job-manager.sched-ready"}`:                                             {alloc.ReadyResponse{}, nil},
		`{"topic":"job-manager.sched-ready","payload":{"count":4}}`:                       {alloc.ReadyResponse{Count: 4}, nil},
		`{"topic":"job-manager.sched-ready","payload":{"mode":"limited","limit":3}}`:      {nil, alloc.Ready{Limit: 3}},
		`{"topic":"sched.alloc","payload":{"id":1,"type":3}}`:                             {nil, alloc.Response{ID: 1, Type: alloc.ResponseCancel}},
		`{"topic":"sched.alloc","payload":{"id":1,"priority":2,"userid":3,"jobspec":{}}}`: {alloc.Request{JobInfo: alloc.JobInfo{ID: 1, Priority: 2, UserID: 3}, Jobspec: []byte("{}")}, nil},
		`{"topic":"sched.cancel","payload":{"id":1}}`:                                     {alloc.Cancel{ID: 1}, nil},
		`{"topic":"sched.prioritize","payload":{"jobs":[[1,2]]}}`:                         {alloc.Prioritize{Jobs: []alloc.Priority{{ID: 1, Priority: 2}}}, nil},
		`{"topic":"sched.expiration","payload":{"id":1,"expiration":2}}`:                  {alloc.Expiration{ID: 1, Expiration: 2}, nil},
		`{"topic":"feasibility.check","payload":{"jobspec":{}}}`:                          {alloc.Feasibility{Jobspec: []byte("{}")}, nil},
		`{"topic":"resource.acquire","payload":{"up":"0"}}`:                               {nil, nil},
	} {
		for i, parse := range []func([]byte) (alloc.Line, alloc.Message, error){alloc.ParseFromManager, alloc.ParseFromScheduler} {
			l, m, err := parse([]byte(text))
			plain, fault := alloc.ParseLine([]byte(text))
			require.NoError(t, fault)
			require.Equal(t, plain, l, "the line is there, also if its payload is refused")
			require.Equal(t, want[i], m, text)
			if err != nil {
				require.ErrorIs(t, err, alloc.ErrMessage)
			}
		}
	}
	l, m, err := alloc.ParseFromManager([]byte(`{"topic":"sched.free","payload":{"id":1}}`))
	require.ErrorIs(t, err, alloc.ErrMessage)
	require.ErrorContains(t, err, "free request")
	require.Nil(t, m)
	require.Equal(t, alloc.TopicFree, l.Topic)
	l, m, err = alloc.ParseFromManager([]byte("no line"))
	require.ErrorIs(t, err, alloc.ErrMessage)
	require.Nil(t, m)
	require.Zero(t, l)
}
