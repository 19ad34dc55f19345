package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/examples/internal/lines"
)

const life = `{"timestamp":1.0,"name":"submit","context":{"userid":1,"urgency":16,"flags":0,"version":1}}
{"timestamp":1.5,"name":"validate"}
{"timestamp":1.5,"name":"validate"}
{"timestamp":2.0,"name":"exception","context":{"type":"cancel","severity":0,"note":""}}
{"timestamp":2.5,"name":"clean"}
`

func TestEventsAreFollowedUntilTheJobIsInactive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eventlog")
	history := strings.Index(life, `,"name":"exc`) // amid a line
	require.NoError(t, os.WriteFile(path, []byte(life[:history]), 0o600))
	var out strings.Builder
	waits := 0
	require.NoError(t, follow(path, &out, func() {
		if waits++; waits == 2 {
			require.Equal(t, 3, strings.Count(out.String(), "\n"), "what is complete is printed")
			require.NoError(t, os.WriteFile(path, []byte(life), 0o600))
		}
	}))
	require.Equal(t, 2, waits)
	require.Equal(t, "job "+path+`  1970-01-01T00:00:01Z
    0.000000  NEW       submit            {"userid":1,"urgency":16,"flags":0,"version":1}
    0.500000  DEPEND    validate
    1.000000  CLEANUP   exception         {"type":"cancel","severity":0,"note":""}
    1.500000  INACTIVE  clean
`, out.String())

	status, stdout, stderr := replay(t, nil, "-follow", path)
	require.Equal(t, lines.ExitOK, status, stderr)
	require.Equal(t, out.String(), stdout)
}

// Nothing follows the event invalidate.
func TestAJobThatIsInvalidIsFollowedToItsEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eventlog")
	submit, _, _ := strings.Cut(life, "\n")
	require.NoError(t, os.WriteFile(path, []byte(submit+"\n"+`{"timestamp":2.0,"name":"invalidate"}`+"\n"), 0o600))
	var out strings.Builder
	require.NoError(t, follow(path, &out, func() { t.Fatal("it waits for ever") }))
	require.Contains(t, out.String(), "invalidate")
}

func TestALogThatCannotBeFollowedIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eventlog")
	require.NoError(t, os.WriteFile(path, []byte(life[:strings.Index(life, `{"timestamp":2.0`)]), 0o600))
	err := follow(path, new(strings.Builder), func() { require.NoError(t, os.Truncate(path, 10)) })
	require.ErrorIs(t, err, logfile.ErrChanged)
	require.NoError(t, os.WriteFile(path, []byte("no event\n"), 0o600))
	require.True(t, errors.Is(follow(path, new(strings.Builder), nil), logfile.ErrDamaged))
}

// A file's name may be any bytes, and only a name that is an id tells which job's log it is.
func TestAFollowedJobIsNamedAsItsFileSays(t *testing.T) {
	dir := t.TempDir()
	bad := strings.Replace(life, `"urgency":16,`, "", 1)
	for name, want := range map[string]string{"ƒ2d.eventlog": "ƒ2d", "a\x1b[2J\nb": dir + `/a\x1b[2J b`} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(life), 0o600))
		require.Contains(t, good(t, nil, "-follow", path), "job "+want+"  1970")

		require.NoError(t, os.WriteFile(path, []byte(bad), 0o600))
		_, stderr := fails(t, nil, "-follow", path)
		require.Contains(t, stderr, `"submit" in NEW: `)
		require.NotContains(t, stderr, "job ƒ1")
		require.NotContains(t, stderr, "\x1b")
		require.Equal(t, 1, strings.Count(stderr, "\n"))

		_, stderr = fails(t, nil, "-follow", path+"x")
		require.NotContains(t, stderr, "\x1b")
	}
}
