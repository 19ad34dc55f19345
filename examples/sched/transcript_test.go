package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
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
	require.GreaterOrEqual(t, len(paths), 2)
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

// The command has the same conversation through pipes as the transcript, which
// is played without them.
func TestTranscriptsComeOutOfTheCommand(t *testing.T) {
	for _, path := range transcripts(t) {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		script := string(b)
		args := strings.Fields(marked(script, "$"))[1:]
		in, feed := io.Pipe()
		drain, out := io.Pipe()
		go func() {
			_, err := io.WriteString(feed, marked(script, ">"))
			_ = feed.CloseWithError(err)
		}()
		var stdout bytes.Buffer
		drained := make(chan error)
		go func() {
			_, err := stdout.ReadFrom(drain)
			drained <- err
		}()
		var stderr bytes.Buffer
		want := lines.ExitOK
		if !strings.Contains(script, " 0 lines refused;") {
			want = lines.ExitFault
		}
		require.Equal(t, want, lines.Run(context.Background(), program, args, in, out, &stderr), path)
		require.NoError(t, out.Close())
		require.NoError(t, <-drained)
		require.Equal(t, marked(script, "<"), stdout.String(), path)
		require.Equal(t, marked(script, "!"), stderr.String(), path)
	}
}

// The story has every message and every answer at least once.
func TestTheStoryIsComplete(t *testing.T) {
	b, err := os.ReadFile("testdata/story.txt")
	require.NoError(t, err)
	story := string(b)
	for _, want := range []string{
		`> {"topic":"resource.acquire","payload":{"resources"`, `"down":`, `"shrink":`, `"property-add":`,
		`> {"topic":"job-manager.sched-hello","payload"`, `"free":"0"`, `"errnum":61`, `> {"topic":"job-manager.sched-ready"`,
		`> {"topic":"sched.alloc"`, `> {"topic":"sched.cancel"`, `> {"topic":"sched.prioritize"`, `> {"topic":"sched.free"`,
		`"final":false`, `"final":true`, `> {"topic":"sched.expiration"`, `> {"topic":"feasibility.check"`,
		`"type":0`, `"type":2`, `"type":3`, `"mode":"limited"`,
		`"errnum":2,`, `"errnum":11,`, `"errnum":17,`, `"errnum":22,`, `"errnum":38,`, `"errnum":71,`,
	} {
		require.Contains(t, story, want)
	}
	require.Contains(t, sample, `"type":1`)
}

func TestTheSampleTakesOtherFlags(t *testing.T) {
	var easy, fifo bytes.Buffer
	require.NoError(t, lines.PlaySample(program, []string{"-sample"}, &easy))
	for text := range strings.Lines(easy.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(text), 101, text)
	}
	unfold := func(text string) string { return strings.ReplaceAll(text, "\n    ", "") }
	require.Equal(t, sample, unfold(easy.String()))
	require.NoError(t, lines.PlaySample(program, []string{"-sample", "-policy=fifo"}, &fifo))
	starts := func(transcript string) (ids []string) {
		for text := range strings.Lines(marked(transcript, "<")) {
			if id, rest, ok := strings.Cut(strings.TrimPrefix(text, `{"topic":"sched.alloc","payload":{"id":`), ","); ok && strings.HasPrefix(rest, `"type":0`) {
				ids = append(ids, id)
			}
		}
		return ids
	}
	require.Equal(t, []string{"2", "4", "6", "3"}, starts(unfold(easy.String())))
	require.True(t, slices.IsSorted(starts(unfold(fifo.String()))), "first come, first served: %v", starts(unfold(fifo.String())))
}
