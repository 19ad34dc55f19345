package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/lines"
)

var update = flag.Bool("update", false, "rewrite the transcripts")

// transcripts returns the paths of all transcripts.
func transcripts(t *testing.T) []string {
	paths, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	return paths
}

func TestTranscriptsComeOutAsTheyAre(t *testing.T) {
	for _, path := range transcripts(t) {
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		var got bytes.Buffer
		require.NoError(t, lines.Transcribe(program, string(want), nil, &got))
		if *update {
			require.NoError(t, os.WriteFile(path, got.Bytes(), 0o644))
			continue
		}
		require.Equal(t, string(want), got.String(), "read the difference in %s, then run with -update", path)
	}
}

// marked returns the lines of a transcript that have a mark, without it.
func marked(script, mark string) string {
	var b strings.Builder
	for text := range strings.Lines(script) {
		if rest, ok := strings.CutPrefix(text, mark+" "); ok {
			b.WriteString(rest)
		}
	}
	return b.String()
}

// The command has the same conversations through pipes as the transcript, which
// is played without them.
func TestTranscriptsComeOutOfTheCommand(t *testing.T) {
	for _, path := range transcripts(t) {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, script := range strings.Split(string(b), "\n$ ")[1:] {
			command, script, _ := strings.Cut(script+"\n", "\n")
			want := lines.ExitOK
			if !strings.Contains(script, " 0 lines refused;") || strings.Contains(script, "! manager: -store: ") {
				want = lines.ExitFault
			}
			status, stdout, stderr := manager(strings.NewReader(marked(script, ">")), strings.Fields(command)[1:]...)
			require.Equal(t, want, status, path)
			require.Equal(t, marked(script, "<"), stdout, path)
			require.Equal(t, marked(script, "!"), stderr, path)
		}
	}
}

// The story has every request at least once, and the numbers of its answers.
func TestTheStoryIsComplete(t *testing.T) {
	b, err := os.ReadFile("testdata/story.txt")
	require.NoError(t, err)
	for _, topic := range []string{
		"submit", "getinfo", "events-journal", "events-journal-cancel", "sched-hello", "sched-ready", "resource-status",
		"alloc-query", "exec-hello", "raise", "raiseall", "kill", "killall", "urgency", "wait", "memo", "update", "drain",
		"idle", "queue-list", "queue-status", "queue-enable", "queue-start", "list", "getattr", "purge", "purge-id",
		"stats-get", "housekeeping-kill", "history.get", "post-event.post", "config-reload", "disconnect",
	} {
		require.Contains(t, string(b), `"topic":"job-manager.`+topic+`"`)
		if topic != "disconnect" && topic != "events-journal-cancel" {
			require.Contains(t, string(b), `< {"topic":"job-manager.`+topic+`"`)
		}
	}
	for _, want := range []string{
		`"errnum":1,`, `"errnum":10,`, `"errnum":22,`, `"errnum":38}`, `"errnum":61}`, `"errnum":71,`,
		`< {"topic":"sched.alloc"`, `< {"topic":"sched.free"`, `< {"topic":"sched.prioritize"`, `< {"topic":"sched.expiration"`,
		`< {"topic":"exec.start"`, `< {"topic":"exec.expiration"`, `< {"topic":"rexec.exec"`, `< {"topic":"rexec.kill"`,
		`< {"event":"job-exception"`, `< {"event":"shell-17.kill"`, `< {"event":"job-purge-inactive"`,
	} {
		require.Contains(t, string(b), want)
	}
}

// A request counts as one until it is answered, whatever is told of the job while the store
// is busy: a scheduler gives a job resources twice if it is asked twice.
func TestAJobIsAskedForOnce(t *testing.T) {
	b, err := os.ReadFile("testdata/kvs.txt")
	require.NoError(t, err)
	for _, id := range []string{"16", "17", "18"} {
		require.Equal(t, 1, strings.Count(string(b), `< {"topic":"sched.alloc","sender":"sched","payload":{"id":`+id+`,`))
	}
}

func TestTheSampleFitsATerminal(t *testing.T) {
	var played, quiet bytes.Buffer
	require.NoError(t, lines.PlaySample(program, []string{"-sample"}, &played))
	for text := range strings.Lines(played.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(text), 101, text)
	}
	require.Equal(t, sample, strings.ReplaceAll(played.String(), "\n    ", ""))
	require.NoError(t, lines.PlaySample(program, []string{"-sample", "-v=false"}, &quiet))
	require.Less(t, quiet.Len(), played.Len())
}
