package idset_test

import (
	"encoding"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/idset"
)

var (
	_ encoding.TextAppender    = (*idset.Set)(nil)
	_ encoding.TextMarshaler   = (*idset.Set)(nil)
	_ encoding.TextUnmarshaler = (*idset.Set)(nil)
	_ fmt.Stringer             = (*idset.Set)(nil)
)

// drawSet returns a set of any shape, in either representation.
func drawSet(t *rapid.T, label string) *idset.Set {
	s := new(idset.Set)
	for range rapid.IntRange(0, 12).Draw(t, label+" parts") {
		first := drawID(t, label)
		switch rapid.IntRange(0, 3).Draw(t, label+" part") {
		case 0:
			s.Insert(first)
		case 1:
			s.InsertRange(first, min(first+rapid.Uint32Range(0, 300).Draw(t, label+" length"), idset.MaxID))
		case 2:
			for i := range rapid.Uint32Range(0, 500).Draw(t, label+" comb") {
				s.Insert(min(first+2*i, idset.MaxID))
			}
		default:
			s.RemoveRange(first, first+100)
		}
	}
	return drawRepresentation(t).force(s)
}

// One text, whichever way it is asked for,
// appended to what is there; and it reads back.
// ID-3.
func TestEveryWayToPrintASetAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSet(t, "id")
		text := s.String()
		require.Equal(t, text, fmt.Sprint(s))

		marshaled, err := s.MarshalText()
		require.NoError(t, err)
		require.NotNil(t, marshaled)
		require.Equal(t, text, string(marshaled))

		prefix := []byte("prefix ")
		for _, room := range []int{0, 1, 1 << 14} {
			dst := append(make([]byte, 0, len(prefix)+room), prefix...)
			out, err := s.AppendText(dst)
			require.NoError(t, err)
			require.Equal(t, "prefix "+text, string(out))
			require.Equal(t, "prefix ", string(dst))
			require.Equal(t, "prefix ", string(s.AppendBrackets(dst)[:len(prefix)]))
		}

		back := parse(t, text)
		require.True(t, back.Equal(s))
		require.True(t, s.Equal(back))
		require.Equal(t, text, back.String())
		require.True(t, parse(t, string(s.AppendBrackets(nil))).Equal(s))
		read := idset.Of(99)
		require.NoError(t, read.UnmarshalText(marshaled))
		require.True(t, read.Equal(s))
		require.NoError(t, read.Check())
	})
}

// ID-4: how many ids a set is expanded to is for the caller to say.
func TestExpandingASetIsBounded(t *testing.T) {
	for _, rep := range representations {
		s := rep.force(parse(t, "0-3,7"))
		got, err := s.Slice(5)
		require.NoError(t, err)
		require.Equal(t, []uint32{0, 1, 2, 3, 7}, got)
		for _, most := range []int{4, 0, -1} {
			got, err = s.Slice(most)
			require.Nil(t, got)
			require.ErrorIs(t, err, idset.ErrLimit)
		}
	}
	_, err := parse(t, "0-2147483646").Slice(1 << 20)
	require.EqualError(t, err, "idset: limit exceeded: 2147483647 ids, at most 1048576 are allowed")
	for _, most := range []int{0, -1} {
		got, err := new(idset.Set).Slice(most)
		require.NoError(t, err)
		require.Nil(t, got)
	}
}
