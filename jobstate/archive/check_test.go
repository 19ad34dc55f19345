package archive_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/archive"
)

// Lines of a log that the quick reader reads, and lines that it leaves.
var (
	quickLines = []string{
		submitted, ` {"name":"submit","context":{"version":null}} `, `{"name":"\u0073ubmit","context":{"\u0076ersion":1,"x":[{"Version":1}]}}`, `{"context":{},"timestamp":"x"}`,
	}
	slowLines = []string{
		``, `null`, validated, `{"name":"submit"}`, `{"Name":"submit","context":{}}`, `{"name":"submit","context":{"Version":1}}`, `{"name":"submit","context":{"ver\u017fion":1}}`,
		`{"name":7,"context":{}}`, `{"name":null,"context":{}}`, `{"name":"a","name":"b","context":{}}`, `{"name":"submit","context":{"version":1,"version":null}}`,
		`{"name":"submit","context":[]}`, `{"name":"submit","context":{}}x`, "{\"name\":\"\xff\",\"context\":{}}", `{"name":"submit","context":{},"more":1}`,
	}
)

// requireSameEvent requires that what the quick reader reads is what
// encoding/json reads, and reports whether it reads it.
func requireSameEvent(t *testing.T, line []byte) bool {
	t.Helper()
	name, context, versioned, ok := archive.QuickEvent(line)
	if !ok {
		return false
	}
	wantName, wantContext, wantVersioned, err := archive.PlainEvent(line)
	require.NoError(t, err, "%q", line)
	require.Equal(t, []any{wantName, wantContext, wantVersioned}, []any{name, context, versioned}, "%q", line)
	return true
}

func TestQuickEventsAreThoseOfEncodingJSON(t *testing.T) {
	for _, line := range quickLines {
		require.True(t, requireSameEvent(t, []byte(line)), "%q", line)
	}
	for _, line := range slowLines {
		require.False(t, requireSameEvent(t, []byte(line)), "%q", line)
	}
}
