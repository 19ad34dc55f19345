package idset_test

import (
	"errors"
	"regexp"
	"strconv"
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
	f.Add(comb(300, 3).String())                                   // more ranges than a list has,
	f.Add(comb(300, 3).String() + ",65535-65536,70000,2147483647") // and on beyond them
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
		require.ErrorContains(t, err, syntaxError)
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
	require.Less(t, len(err.Error()), 400)
	require.NotContains(t, err.Error(), "\n")
	if errors.Is(err, idset.ErrLimit) {
		require.Greater(t, len(text), idset.MaxText)
		return
	}
	// The position and the quoted token are the text's.
	m := position.FindStringSubmatch(err.Error())
	require.NotNil(t, m, "%v", err)
	offset, convErr := strconv.Atoi(m[2])
	require.NoError(t, convErr)
	token, convErr := strconv.Unquote(m[3])
	require.NoError(t, convErr)
	require.True(t, offset >= 0 && offset <= len(text))
	require.LessOrEqual(t, len(token), 64)
	require.Contains(t, text, token)
	if m[1] == "id out of range" {
		require.ErrorIs(t, err, idset.ErrRange)
		require.True(t, strings.HasPrefix(text[offset:], token))
		require.NotEqual(t, byte('0'), token[0])
		require.GreaterOrEqual(t, len(token), 10)
		return
	}
	require.ErrorContains(t, err, syntaxError)
	require.NotErrorIs(t, err, idset.ErrRange)
}

// position is the form of an error that has one.
var position = regexp.MustCompile(`^idset: (syntax error|id out of range): offset (\d+): [a-z ]*("(?:[^"\\]|\\.)*")(?: is above \d+)?$`)
