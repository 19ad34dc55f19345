package guard_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/guard"
)

func TestTextsFromOutsideAreCut(t *testing.T) {
	long := strings.Repeat("x", 65)
	require.Equal(t, long[:64], guard.Clip(long))
	require.Equal(t, long[:63], guard.Clip(long[:63]+"é"))
	require.Equal(t, `"`+long[:64]+`"`, guard.Quote([]byte(long)))
	require.Equal(t, `"a\nb\xff"`, guard.Quote("a\nb\xff"))
	require.Equal(t, "", guard.Clip([]byte(nil)))

	require.Equal(t, []string{"aé", "aé", "a", "a", ""}, []string{guard.Cut("aé", 4), guard.Cut("aé", 3), guard.Cut("aé", 2), guard.Cut("aé", 1), guard.Cut("aé", 0)})
	require.Equal(t, "\x80\x80\x80\x80\x80", guard.Cut("\x80\x80\x80\x80\x80\x80", 5), "not UTF-8")

	text := []byte("abc")
	clipped := guard.Clip(text)
	clear(text)
	require.Equal(t, "abc", clipped)
}

func TestSecondsAreRoundedAndCut(t *testing.T) {
	for seconds, want := range map[float64]time.Duration{
		0: 0, 1e-300: 1, 1.5: 1500 * time.Millisecond, 0.1: 100 * time.Millisecond, 1e9 + 0.25: 1_000_000_000_250_000_000,
		9223372036.854774: 9223372036854774475, 9223372036.854776: math.MaxInt64, math.Inf(1): math.MaxInt64,
	} {
		require.Equal(t, want, guard.Duration(seconds), seconds)
	}
}

func TestACauseHasItsOwnTextAndACategory(t *testing.T) {
	category := errors.New("category")
	err := guard.Cause(category, "text")
	require.ErrorIs(t, err, category)
	require.EqualError(t, err, "text")
}

func TestAValueWithoutANamePrintsAsItsNumber(t *testing.T) {
	for n, want := range []string{"Kind(0)", "a", "Kind(2)", "b", "Kind(4)"} {
		require.Equal(t, want, guard.Name("Kind", uint8(n), "a", "", "b"))
	}
}
