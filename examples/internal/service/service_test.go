package service

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
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
