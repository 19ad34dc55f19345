package main

import (
	"context"
	"io"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// A point of the sweep is what its share alone gives, and the sizes add up to all jobs.
func TestASweepIsItsRuns(t *testing.T) {
	args := []string{"-jobs", "150", "-nodes", "32", "-seeds", "2", "-html", ""}
	swept := good(t, append(args, "-sweep")...)
	for share, row := range map[string]string{"0.005": `0\.5 %`, "0.05": `5 %`} {
		alone, err := parse(append(args, "-straggle", share), io.Discard)
		require.NoError(t, err)
		s := newStudy(alone, io.Discard)
		require.NoError(t, s.play(context.Background()))
		whole := s.compare(worth, 1, maxNodes)
		want := `(?m)^ ` + row + ` .*`
		for _, l := range whole {
			want += " " + l.text(l.Whole) + " → " + l.text(l.Partial) + " .*"
		}
		require.Regexp(t, regexp.MustCompile(want), swept)
		idle := 0.0
		for _, p := range s.sizes() {
			idle += p.lines[2].Whole
		}
		require.InDelta(t, whole[2].Whole, idle, 1e-6)
	}
}
