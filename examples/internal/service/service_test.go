package service

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.Unix(1700000000, 0)

const sleep = `{"version":1,"resources":[{"type":"slot","count":1,"label":"task","with":[{"type":"core","count":1}]}],` +
	`"tasks":[{"command":["sleep"],"slot":"task","count":{"per_slot":1}}],"attributes":{"system":{"duration":60}}}`

// drive asks, and returns all that comes out until nothing follows.
func drive(t *testing.T, s *Service, list ...Request) (out Out) {
	t.Helper()
	for _, r := range list {
		s.Request(start, r)
	}
	for o := (Out{}); s.Next(&o); {
		out.Append = append(out.Append, o.Append...)
		out.Answers = append(out.Answers, o.Answers...)
		out.Calls = append(out.Calls, o.Calls...)
		out.Events = append(out.Events, o.Events...)
		require.NoError(t, s.Done(start, &o, nil))
	}
	return out
}

// owner is a request of the instance's owner.
func owner(topic, payload string) Request {
	return Request{Topic: "job-manager." + topic, Sender: "a", Matchtag: 1, UserID: 100, Rolemask: roleOwner, Payload: json.RawMessage(payload)}
}

func TestSubmit(t *testing.T) {
	s, err := New(start, Config{})
	require.NoError(t, err)
	job := `{"jobs":[{"id":16,"urgency":16,"userid":100,"t_submit":1.0,"flags":0,"jobspec":` + sleep + `}]}`
	out := drive(t, s, owner("submit", job), owner("raise", `{"id":17,"severity":0,"type":"cancel"}`))
	require.Len(t, out.Answers, 2)
	require.Equal(t, "unknown job id", out.Answers[0].Errstr) // at once
	text, err := json.Marshal(out.Answers[1].Payload)
	require.NoError(t, err)
	require.JSONEq(t, `{"errors":[]}`, string(text))
	require.NotEmpty(t, out.Append)

	out = drive(t, s, owner("raise", `{"id":16,"severity":0,"type":"cancel"}`))
	require.Equal(t, []Answer{{Topic: "job-manager.raise", Sender: "a", Matchtag: 1}}, out.Answers)
}

// The Manager goes by the time of the day, and refuses one that is before its last. So the service
// must see a clock that was set back, which a monotonic reading hides.
func TestTheServiceGoesByTheTimeOfTheDay(t *testing.T) {
	now := time.Now()
	s, err := New(now, Config{})
	require.NoError(t, err)
	require.NotContains(t, s.now.String(), " m=")
	require.NoError(t, s.Tick(now.Add(time.Second)))
	require.NotContains(t, s.now.String(), " m=")
	require.True(t, s.now.Equal(now.Add(time.Second)))
}

func TestAStreamEndsWithAnErrnum(t *testing.T) {
	s, err := New(start, Config{})
	require.NoError(t, err)
	var got []int
	hear := func(r Response) error { got = append(got, r.Errnum); return nil }
	s.send(&s.quick, Call{Topic: "x.stream", Nodeid: 3, Stream: true}, hear)
	s.send(&s.quick, Call{Topic: "x.once", Nodeid: Any}, hear)
	calls := drive(t, s).Calls
	require.Len(t, calls, 2)
	for _, errnum := range []int{0, 0, 61} {
		require.NoError(t, s.Respond(start, Response{Topic: "x.stream", Tag: calls[0].Tag, Errnum: errnum}))
	}
	require.NoError(t, s.Respond(start, Response{Topic: "x.once", Tag: calls[1].Tag}))
	require.Equal(t, []int{0, 0, 61, 0}, got)
	for _, c := range calls {
		require.ErrorContains(t, s.Respond(start, Response{Topic: c.Topic, Tag: c.Tag}), "nobody waits for")
	}
}
