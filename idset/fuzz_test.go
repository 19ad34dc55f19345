package idset_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
)

// FuzzParse: no panic; what is read is canonical, reads back and is within the
// bound on memory; what is refused is refused for one reason at a place in the
// text; brackets and a leading comma do as RFC 22 says of them.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "[]", "0-3,7", "[1-3,5-6,42]", "0-2147483647", "4294967296", "1,,2", "5-5", "007", "1,3,5,7,9,11,13,15,17,100-2147483647"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := idset.Parse(text)
		if err != nil {
			require.Nil(t, s)
			checkParseError(t, text, err)
			return
		}
		require.NoError(t, s.Check())
		require.LessOrEqual(t, s.Memory(), proportionate*len(text)+64)
		require.Zero(t, strings.Trim(text, "0123456789,-[]"))

		canonical := s.String()
		require.LessOrEqual(t, len(canonical), len(text))
		back, err := idset.Parse(canonical)
		require.NoError(t, err)
		require.True(t, back.Equal(s))
		require.Equal(t, canonical, back.String())

		// Every way to the same set ends in the same text.
		copied := new(idset.Set)
		for first, last := range s.Ranges() {
			require.True(t, copied.InsertRange(first, last))
		}
		require.Equal(t, canonical, copied.String())
		require.NoError(t, copied.Check())
		require.True(t, copied.SubtractWith(s) != s.IsEmpty())
		require.True(t, copied.IsEmpty())

		if !strings.HasPrefix(text, "[") {
			bracketed, err := idset.Parse("[" + text + "]")
			require.NoError(t, err)
			require.True(t, bracketed.Equal(s))
		}
		_, err = idset.Parse(text + ",")
		require.ErrorIs(t, err, idset.ErrSyntax)
		if last, ok := s.Max(); ok {
			_, err = idset.ParseLimit(text, last)
			require.NoError(t, err)
			if last > 0 {
				_, err = idset.ParseLimit(text, last-1)
				require.ErrorIs(t, err, idset.ErrRange)
			}
		}
	})
}

func checkParseError(t *testing.T, text string, err error) {
	var (
		syntax *idset.SyntaxError
		large  *idset.RangeError
		limit  *idset.LimitError
		offset int
		token  string
	)
	switch {
	case errors.As(err, &syntax):
		require.ErrorIs(t, err, idset.ErrSyntax)
		require.NotErrorIs(t, err, idset.ErrRange)
		offset, token = syntax.Offset, syntax.Token
	case errors.As(err, &large):
		require.ErrorIs(t, err, idset.ErrRange)
		require.NotErrorIs(t, err, idset.ErrSyntax)
		offset, token = large.Offset, large.Token
		require.True(t, strings.HasPrefix(text[offset:], token))
		require.NotEqual(t, byte('0'), token[0])
		require.GreaterOrEqual(t, len(token), 10)
	default:
		require.ErrorAs(t, err, &limit)
		require.Greater(t, len(text), idset.MaxText)
	}
	require.True(t, offset >= 0 && offset <= len(text))
	require.LessOrEqual(t, len(token), 64)
	require.Contains(t, text, token)
	require.True(t, strings.HasPrefix(err.Error(), "idset: "))
	require.NotContains(t, err.Error(), "\n")
	require.Less(t, len(err.Error()), 400)
}
