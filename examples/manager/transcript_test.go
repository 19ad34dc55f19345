package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
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
		require.NoError(t, transcribe(string(want), nil, &got))
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
		want := exitOK
		if !strings.Contains(script, " 0 lines refused;") {
			want = exitFault
		}
		require.Equal(t, want, run(context.Background(), args, in, out, &stderr), path)
		require.NoError(t, out.Close())
		require.NoError(t, <-drained)
		require.Equal(t, marked(script, "<"), stdout.String(), path)
		require.Equal(t, marked(script, "!"), stderr.String(), path)
	}
}

func TestTheSampleFitsATerminal(t *testing.T) {
	var played, quiet bytes.Buffer
	require.NoError(t, playSample([]string{"-sample"}, &played))
	for text := range strings.Lines(played.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(text), columns+1, text)
	}
	require.Equal(t, sample, strings.ReplaceAll(played.String(), "\n"+indent, ""))
	require.NoError(t, playSample([]string{"-sample", "-v=false"}, &quiet))
	require.Less(t, quiet.Len(), played.Len())
}
