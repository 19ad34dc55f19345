package service

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
)

// The Manager goes by the time of the day, and refuses one that is before its last. So the service
// must see a clock that was set back, which a monotonic reading hides.
func TestTheServiceGoesByTheTimeOfTheDay(t *testing.T) {
	now := time.Now()
	s, _, err := Restore(now, Config{}, func(func(joblife.Record, error) bool) {})
	require.NoError(t, err)
	require.NotContains(t, s.now.String(), " m=")
	require.NoError(t, s.Tick(now.Add(time.Second)))
	require.NotContains(t, s.now.String(), " m=")
	require.True(t, s.now.Equal(now.Add(time.Second)))
}

func TestAStreamEndsWithAnErrnum(t *testing.T) {
	s := newDesk(t, Config{})
	var got []int
	hear := func(r Response) error { got = append(got, r.Errnum); return nil }
	s.core.send(&s.quick, Call{Topic: "x.stream", Nodeid: 3, Stream: true}, hear)
	s.core.send(&s.quick, Call{Topic: "x.once", Nodeid: Any}, hear)
	calls := s.collect().Calls
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

func TestRestart(t *testing.T) {
	w := newWorld(t, joblife.Config{})
	w.drive(owner("urgency", `{"id":16,"urgency":31}`))
	w.do(joblife.Update{ID: 16, Updates: []jobstate.Update{
		{Path: "attributes.system.environment", Value: []byte(`{"A":"b"}`)},
		{Path: "attributes.system.duration", Value: []byte("7")},
	}})
	requests := []Request{
		owner("list", `{"max_entries":0}`), owner("getinfo", ``), by(ownGuest, roleUser, "history.get", `{"slice":"[:]"}`),
	}
	for _, id := range []int{pending, running, inactive, owners} {
		requests = append(requests, owner("getattr", fmt.Sprintf(`{"id":%d,"attrs":["jobspec"]}`, id)))
	}
	requests = append(requests, owner("getattr", `{"id":17,"attrs":["R"]}`))
	before := w.drive(requests...)
	w.restart()
	after := w.drive(requests...)
	for i, a := range before.Answers {
		require.Zero(t, a.Errnum)
		require.JSONEq(t, text(t, a.Payload), text(t, after.Answers[i].Payload), string(requests[i].Payload))
	}

	// A submission whose answer got lost comes again.
	out := w.drive(owner("submit", submission1(pending, ownGuest)), owner("submit", submission1(running, ownGuest)))
	for _, a := range out.Answers {
		require.JSONEq(t, `{"errors":[]}`, text(t, a.Payload))
	}
	require.Empty(t, out.Append)
}
