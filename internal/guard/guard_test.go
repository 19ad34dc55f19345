package guard_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/guard"
)

func TestTextsFromOutsideAreCut(t *testing.T) {
	long := strings.Repeat("x", 65)
	require.Equal(t, long[:64], guard.Clip(long))
	require.Equal(t, `"`+long[:64]+`"`, guard.Quote([]byte(long)))
	require.Equal(t, `"a\nb\xff"`, guard.Quote("a\nb\xff"))
	require.Equal(t, "", guard.Clip([]byte(nil)))

	text := []byte("abc")
	clipped := guard.Clip(text)
	clear(text)
	require.Equal(t, "abc", clipped)
}
