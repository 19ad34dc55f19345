package service

import (
	"testing"

	"github.com/stretchr/testify/require"
)

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
