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
	require.Equal(t, "\r\x1b[K\x1b[?7l7 jobs\x1b[?7h", b.String(), "not more often than the eye can see, and on one row")
	l.Clear()
	require.True(t, strings.HasSuffix(b.String(), "\r\x1b[K"))
}
