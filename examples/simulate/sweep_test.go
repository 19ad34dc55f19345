package main

import (
	"context"
	"io"
	"regexp"
	"strings"
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

// The waits at a load above 0.95 say how long the workload is, and the plot of them says so.
func TestThePlotOfASweepSaysWhereTheLoadIsTooGreat(t *testing.T) {
	for jobs, note := range map[string]string{"300": " At 5 % the load is above 0.95, and the waits say how long the workload is.", "1": ""} {
		s, text := page(t, "-jobs", jobs, "-seeds", "1", "-sweep", "-load", "0.8")
		require.Equal(t, "By the share of epilogs that are slow. Gray points: the difference may be chance."+note, s.figures()[len(s.figures())-1].Note)
		require.Contains(t, string(text), note)
		require.Equal(t, jobs == "1", strings.Contains(s.curves(false), "at once"), "there is no load")
	}
	out := good(t, "-jobs", "2", "-load", "0", "-arrival", "1", "-seeds", "5", "-html", "")
	require.Regexp(t, `load with prologs and epilogs: \d`, out, "with one seed both jobs come at once")
}
