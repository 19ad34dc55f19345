package flux

import (
	"io"
	"math"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// pipe returns a connection to a broker that answers nothing.
func pipe(t *testing.T) *Conn {
	here, there := net.Pipe()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, there)
	}()
	c := New(here, Config{})
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		<-c.Done()
		<-read
	})
	return c
}

// RFC 6: a matchtag in use is not given out, and neither is 0.
func TestMatchtagsInUse(t *testing.T) {
	c := pipe(t)
	c.tag = math.MaxUint32 - 1
	for _, want := range []uint32{math.MaxUint32, 1, 2} {
		tag, err := c.Start(NewRequest("s.x", nil), func(Message, error) {})
		require.NoError(t, err)
		require.Equal(t, want, tag)
	}
	c.Forget(1)
	c.Forget(9)
	c.tag = math.MaxUint32 - 1
	tag, err := c.Start(NewRequest("s.x", nil), func(Message, error) {})
	require.NoError(t, err)
	require.EqualValues(t, 3, tag)
}

func TestOpenCallsHaveALimit(t *testing.T) {
	c := pipe(t)
	ends := 0
	for range maxCalls {
		_, err := c.Start(NewRequest("s.x", nil), func(_ Message, err error) {
			if err != nil {
				ends++
			}
		})
		require.NoError(t, err)
	}
	_, err := c.Start(NewRequest("s.x", nil), nil)
	require.ErrorIs(t, err, ErrFull)
	require.NoError(t, c.Close())
	<-c.Done()
	require.Equal(t, maxCalls, ends, "all hear of the end")
}
