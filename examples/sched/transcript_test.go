package main

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/linestest"
)

var update = flag.Bool("update", false, "rewrite the transcripts")

// prog is the command.
var prog = linestest.Program(program)

func TestTranscriptsComeOutAsTheyAre(t *testing.T) { prog.Transcripts(t, *update) }

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
	require.Equal(t, sample, prog.Sample(t))
	starts := func(transcript string) (ids []string) {
		for text := range strings.Lines(linestest.Marked(transcript, "<")) {
			if id, rest, ok := strings.Cut(strings.TrimPrefix(text, `{"topic":"sched.alloc","payload":{"id":`), ","); ok && strings.HasPrefix(rest, `"type":0`) {
				ids = append(ids, id)
			}
		}
		return ids
	}
	require.Equal(t, []string{"2", "4", "6", "3"}, starts(sample))
	fifo := starts(prog.Sample(t, "-policy=fifo"))
	require.True(t, slices.IsSorted(fifo), "first come, first served: %v", fifo)
}
