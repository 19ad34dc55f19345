package lines

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// I12: long lines that are not handled share one Budget, and get it back.
func TestLinesShareABudget(t *testing.T) {
	room := NewBudget(2*100_001 - 2*free)
	long, short := strings.Repeat("l", 100_000)+"\n", strings.Repeat("s", free-1)+"\n"
	next := func(in <-chan Line) Line { l := <-in; return l }
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	a := Read(ctx, strings.NewReader(long), Max, room)
	one := next(a)
	b := Read(ctx, strings.NewReader(long), Max, room)
	two := next(b)
	require.Len(t, one.Text, 100_000)
	require.Len(t, two.Text, 100_000)
	c := Read(ctx, strings.NewReader(long+short+long), Max, room)
	three := next(c)
	require.ErrorAs(t, three.Err, new(*LongError))
	require.ErrorContains(t, three.Err, "line is longer than 65536 bytes, for which there is no room now, and was skipped")
	four := next(c)
	require.Len(t, four.Text, free-1, "a line that is not long always has room")
	one.Done()
	two.Done()
	three.Done()
	four.Done()
	five := next(c) // which may have been read before there was room
	five.Done()
	require.ErrorIs(t, next(c).Err, io.EOF)
	require.ErrorIs(t, next(a).Err, io.EOF)
	require.ErrorIs(t, next(b).Err, io.EOF)
	require.EqualValues(t, 2*100_001-2*free, room.left.Load())
}

// I12: what all peers have not read shares one Budget. Who is a little behind is left alone.
func TestOutboxesShareABudget(t *testing.T) {
	room := NewBudget(3 << 20)
	text := make([]byte, 1<<20)
	boxes, ends, done := make([]*Outbox, 8), make([]net.Conn, 8), make(chan error, 8)
	for i := range boxes {
		here, there := net.Pipe()
		boxes[i], ends[i] = NewOutbox(here, false, room), there
		go func() { done <- boxes[i].Run() }()
	}
	failed := 0
	for _, b := range boxes {
		_, err := b.Write(text[:freeRoom])
		require.NoError(t, err)
	}
	for _, b := range boxes {
		if _, err := b.Write(text); err != nil {
			require.ErrorContains(t, err, "it does not read: 262144 bytes wait")
			failed++
		}
	}
	require.Equal(t, 5, failed)
	for i, b := range boxes {
		go func() { _, _ = io.Copy(io.Discard, ends[i]) }()
		b.End()
	}
	for range boxes {
		<-done
	}
	require.EqualValues(t, 3<<20, room.left.Load())
}
