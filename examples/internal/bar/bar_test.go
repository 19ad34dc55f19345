package bar

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheLineGoesAway(t *testing.T) {
	var b bytes.Buffer
	text := func(time.Duration) string { return "7 jobs" }
	l := New(&b, text)
	l.Show()
	l.Clear()
	require.Empty(t, b.String(), "it is not a terminal")
	l = &Line{w: &b, text: text}
	l.Show()
	l.Show()
	require.Equal(t, 1, strings.Count(b.String(), "7 jobs"), "not more often than the eye can see")
	l.Clear()
	require.True(t, strings.HasSuffix(b.String(), "\r\x1b[K"))
}
