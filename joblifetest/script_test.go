package joblifetest

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
)

var update = flag.Bool("update", false, "rewrite the scripts")

// The stories of threads, as this library tells them.
func TestScripts(t *testing.T) {
	runScripts(t, "testdata/*.txt")
}

func TestAScriptThatChangesIsFound(t *testing.T) {
	text, err := os.ReadFile("testdata/core5345.txt")
	require.NoError(t, err)
	got, err := playScript(string(text), nil)
	require.NoError(t, err)
	require.NoError(t, difference(string(text), got))
	got, err = playScript(string(text), func() joblife.Config {
		return joblife.Config{Hooks: []joblife.Hooks{{Priority: func(*joblife.HookEvent) (uint32, bool) { return 77, false }}}}
	})
	require.NoError(t, err)
	require.ErrorContains(t, difference(string(text), got), `a: priority {"priority":77}`)
	require.ErrorContains(t, difference("a\n", "a\nb\n"), "line 2")
	require.ErrorContains(t, difference("a\nb\n", "a\n"), "line 2")
}

func TestAScriptThatIsWrongIsFound(t *testing.T) {
	got, err := playScript("submit a\nsubmit b\nsched hello\nsched ready\nsched alloc a 0\nsched alloc b 0\n", nil)
	require.ErrorContains(t, err, "double booking")
	require.Contains(t, got, "WRONG: ")
}

func TestTheActionsMayChangeWhileTheManagerIsDown(t *testing.T) {
	got, err := playScript(`config {"epilogs":[{"per-rank":true}]}
sched hello
sched ready
exec hello
submit a
sched alloc a 0
exec start a
crash
config {}
restore
sched hello
sched ready
exec hello
exec reattached a
exec finish a
exec release a final
`, nil)
	require.NoError(t, err, got)
	require.Contains(t, got, "final=true")
}
