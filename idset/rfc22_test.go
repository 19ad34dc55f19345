package idset_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
)

// syntaxError begins the errors about texts.
const syntaxError = "idset: syntax error"

// The clauses of RFC 22, in its order.

func parse(t require.TestingT, text string) *idset.Set {
	s, err := idset.Parse(text)
	require.NoError(t, err)
	require.NoError(t, s.Check())
	return s
}

func refuse(t require.TestingT, text string) {
	s, err := idset.Parse(text)
	require.ErrorContains(t, err, syntaxError, "%q", text)
	require.Nil(t, s)
}

func TestRFC22AnIdsetConsistsOfUniqueIds(t *testing.T) {
	for _, text := range []string{"1,1", "0,0", "1-3,3", "1-3,2", "1-3,1-3", "1-3,3-4", "2,1-3"} {
		refuse(t, text)
	}
	s := idset.Of(7, 3, 7, 3)
	require.Equal(t, "3,7", s.String())
}

func TestRFC22IdsAreNotNegative(t *testing.T) {
	for _, text := range []string{"-1", "-0", "-1-3", "1,-2", "1--2", "1-2-3", "[-1]", "-"} {
		refuse(t, text)
	}
}

func TestRFC22IdsAscendAndAreDelimitedByCommas(t *testing.T) {
	require.Equal(t, []uint32{1, 2, 3, 5, 6, 42}, ids(t, parse(t, "1,2,3,5,6,42")))
	for _, text := range []string{"2,1", "1,0", "5,6,4", "3-5,1", "3-1", "1;2", "1 2", "1, 2", "1.2", "1\n", "1,2\n"} {
		refuse(t, text)
	}
}

func TestRFC22IdsAreDecimal(t *testing.T) {
	for _, text := range []string{"0x1", "1e3", "a", "1a", "+1", "1_000", "١", "１", "inf"} {
		refuse(t, text)
	}
}

func TestRFC22IdsHaveNoLeadingZeroes(t *testing.T) {
	require.Equal(t, "0", parse(t, "0").String())
	for _, text := range []string{"00", "01", "1,02", "1-02", "01-2", "[00]", "0,00", "00000000000000000000"} {
		refuse(t, text)
	}
}

func TestRFC22ConsecutiveIdsMayBeCompressed(t *testing.T) {
	want := parse(t, "1,2,3,5,6,42")
	for _, text := range []string{"1-3,5-6,42", "1-2,3,5,6,42", "1,2-3,5-6,42"} {
		require.True(t, want.Equal(parse(t, text)), text)
	}
	require.Equal(t, "1-3,5-6,42", want.String())
	require.Equal(t, "0-9", parse(t, "0-4,5-9").String())
}

func TestRFC22BracketsMaySurroundTheString(t *testing.T) {
	require.Equal(t, "1-3,5-6,42", parse(t, "[1-3,5-6,42]").String())
	require.Equal(t, "7", parse(t, "[7]").String())
	require.True(t, parse(t, "[]").IsEmpty())
	for _, text := range []string{
		"[", "]", "[1", "1]", "[[1]]", "[[1]", "[1]]", "][", "1,[2]", "[1],2", "[1],[2]", "[1,[2]]", "[]1", "1[]", "[][]",
	} {
		refuse(t, text)
	}
}

func TestRFC22OnlyItsCharactersStandInAString(t *testing.T) {
	const allowed = "0123456789,-[]"
	for c := range 256 {
		if strings.IndexByte(allowed, byte(c)) >= 0 {
			continue
		}
		b := string([]byte{byte(c)})
		for _, text := range []string{b, b + "1", "1" + b, "1" + b + "2", "1-" + b + "2", "1-2" + b, "1," + b + "2", "[" + b + "1]", "[1" + b + "]"} {
			refuse(t, text)
		}
	}
}

func TestRFC22TheEmptyStringIsTheEmptySet(t *testing.T) {
	for _, text := range []string{"", "[]"} {
		s := parse(t, text)
		require.True(t, s.IsEmpty())
		require.Equal(t, "", s.String())
	}
}

// The RFC does not speak of empty elements and of ranges of one id. They are
// refused: the grammar of its examples has no place for the first, and its
// reference refuses the second.
func TestWhatRFC22LeavesOpenIsRefused(t *testing.T) {
	for _, text := range []string{",", ",,", "1,", ",1", "1,,2", "[,]", "[1,]", "[,1]", "5-5", "0-0", "1,5-5", "5-", "1-,3"} {
		refuse(t, text)
	}
}

func ids(t require.TestingT, s *idset.Set) []uint32 {
	all, err := s.Slice(1 << 20)
	require.NoError(t, err)
	return all
}
