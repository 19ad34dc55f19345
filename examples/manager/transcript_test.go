package main

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/linestest"
)

var update = flag.Bool("update", false, "rewrite the transcripts")

// prog is the command.
var prog = linestest.Program(program)

func TestTranscriptsComeOutAsTheyAre(t *testing.T) { prog.Transcripts(t, *update) }

// The story has every request at least once, and the numbers of its answers.
func TestTheStoryIsComplete(t *testing.T) {
	b, err := os.ReadFile("testdata/story.txt")
	require.NoError(t, err)
	for _, topic := range []string{
		"submit", "getinfo", "events-journal", "events-journal-cancel", "sched-hello", "sched-ready", "resource-status",
		"alloc-query", "exec-hello", "raise", "raiseall", "kill", "killall", "urgency", "wait", "memo", "update", "drain",
		"idle", "queue-list", "queue-status", "queue-enable", "queue-start", "list", "getattr", "purge", "purge-id",
		"stats-get", "housekeeping-kill", "history.get", "post-event.post", "config-reload", "disconnect", "broker-shutdown",
	} {
		require.Contains(t, string(b), `"topic":"job-manager.`+topic+`"`)
		if topic != "disconnect" && topic != "events-journal-cancel" {
			require.Contains(t, string(b), `< {"topic":"job-manager.`+topic+`"`)
		}
	}
	for _, want := range []string{
		`"errnum":1,`, `"errnum":10,`, `"errnum":22,`, `"errnum":38`, `"errnum":61}`, `"errnum":71,`,
		`< {"topic":"sched.alloc"`, `< {"topic":"sched.free"`, `< {"topic":"sched.prioritize"`, `< {"topic":"sched.expiration"`,
		`< {"topic":"exec.start"`, `< {"topic":"exec.expiration"`, `< {"topic":"rexec.exec"`, `< {"topic":"rexec.kill"`,
		`< {"event":"job-exception"`, `< {"event":"shell-17.kill"`, `< {"event":"job-purge-inactive"`,
	} {
		require.Contains(t, string(b), want)
	}
}

func TestTheSampleTakesOtherFlags(t *testing.T) {
	require.Equal(t, sample, prog.Sample(t))
	require.Less(t, len(prog.Sample(t, "-v=false")), len(sample))
}
