package main

import (
	"bytes"
	"container/heap"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/fsd"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// command runs the command with flags separated by spaces.
func command(line string) (status int, stdout, stderr string) {
	var out, errOut bytes.Buffer
	status = run(strings.Fields(line), nil, &out, &errOut)
	return status, out.String(), errOut.String()
}

// good runs the command, which is to succeed.
func good(t *testing.T, line string) string {
	t.Helper()
	status, stdout, stderr := command(line)
	require.Equal(t, exitOK, status, "%s: %s", line, stderr)
	require.Empty(t, stderr, line)
	return stdout
}

func TestTheOutputOfRunsThatShowSomething(t *testing.T) {
	for name, line := range map[string]string{
		"default.golden":            "",
		"hang.golden":               "-hang 2",
		"crash.golden":              "-hang 2 -crash 20s",
		"housekeeping.golden":       "-housekeeping -hang 1",
		"housekeeping-crash.golden": "-housekeeping -crash 50s",
		"slow.golden":               "-nodes 500 -timeout 22.5s",
		"json.golden":               "-nodes 8 -json",
		"large.golden":              "-nodes 16384 -stragglers 40 -seed 7",
	} {
		got := good(t, line)
		path := filepath.Join("testdata", name)
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), got, "read the difference, then run with -update")
		require.Equal(t, got, good(t, line), "the same flags give the same output")
	}
	require.NotEqual(t, good(t, "-seed 1"), good(t, "-seed 2"))
}

// scenarios are flags of all sorts of runs.
func scenarios() []string {
	var lines []string
	for _, size := range []string{"-nodes 1", "-nodes 2 -hang 1", "-nodes 3 -hang 3", "", "-nodes 100 -stragglers 20 -timeout 100s -hang 5",
		"-stragglers 0", "-epilog 1h -timeout 2h", "-epilog 1 -timeout 1 -hang 1", "-timeout 0", "-timeout 22.5 -nodes 500", "-stragglers 60 -timeout 121"} {
		for seed := range 4 {
			for _, what := range []string{"", " -housekeeping", " -housekeeping -release-after 0", " -housekeeping -release-after 10d"} {
				lines = append(lines, fmt.Sprintf("%s -seed %d%s", size, seed, what))
			}
		}
	}
	return lines
}

func TestEveryLineFitsTheTerminal(t *testing.T) {
	lines := append(scenarios(), "-nodes 16384 -hang 9999 -epilog 24h -timeout 9d", "-nodes 16384 -stragglers 16000", "-crash 1", "-crash 33 -hang 40 -nodes 99",
		"-crash 9d", "-nodes 16384 -hang 9000 -crash 15 -housekeeping")
	for _, line := range lines {
		rows := strings.Split(good(t, line), "\n")
		for _, row := range rows {
			require.LessOrEqual(t, utf8.RuneCountInString(row), width, "%s: %s", line, row)
			require.True(t, utf8.ValidString(row), row)
			require.Equal(t, strings.TrimRight(row, " "), row)
		}
		require.Less(t, len(rows), 50, line)
		last := 0.0
		for _, row := range rows {
			if m := regexp.MustCompile(`^ *([0-9]+\.[0-9])  `).FindStringSubmatch(row); m != nil {
				at, err := strconv.ParseFloat(m[1], 64)
				require.NoError(t, err)
				require.GreaterOrEqual(t, at, last, "%s: the order of time: %s", line, row)
				last = at
			}
		}
	}
}

// object is a line of -json.
type object struct {
	Mode  string
	T     float64
	Ranks string
	Nodes int
	Final bool
	Back  int
}

// fragments runs with -json and returns when each node went back, by mode, and
// checks that each did once and that the last fragment alone is final.
func fragments(t *testing.T, line string) map[string][]float64 {
	t.Helper()
	o, err := parse(strings.Fields(line), nil)
	require.NoError(t, err)
	times := map[string][]float64{}
	seen := map[string]*idset.Set{"partial": new(idset.Set), "whole": new(idset.Set)}
	ended := map[string]bool{}
	for mode := range seen {
		times[mode] = make([]float64, o.nodes)
	}
	last := 0.0
	for _, row := range strings.Split(strings.TrimSpace(good(t, line+" -json")), "\n") {
		var f object
		require.NoError(t, json.Unmarshal([]byte(row), &f), row)
		require.GreaterOrEqual(t, f.T, last, "%s: in the order of time", line)
		last = f.T
		ranks, err := idset.Parse(f.Ranks)
		require.NoError(t, err)
		require.False(t, ended[f.Mode], "%s: something after the final fragment: %s", line, row)
		require.False(t, seen[f.Mode].Intersects(ranks), "%s: a node goes back twice: %s", line, row)
		seen[f.Mode].UnionWith(ranks)
		ended[f.Mode] = f.Final
		require.Equal(t, ranks.Len(), f.Nodes)
		require.Equal(t, seen[f.Mode].Len(), f.Back)
		for rank := range ranks.All() {
			times[f.Mode][rank] = f.T
		}
	}
	all := new(idset.Set)
	all.InsertRange(0, uint32(o.nodes-1))
	for mode, ranks := range seen {
		require.True(t, ended[mode], "%s: %s has a final fragment", line, mode)
		require.Equal(t, all.String(), ranks.String(), "%s: %s gives all nodes back", line, mode)
	}
	return times
}

// expected returns when each node is clean and when it goes back in both modes,
// by arithmetic alone. Of a crash it knows where nothing has a timeout.
func expected(o options) (clean, partial, whole []float64) {
	ended := make([]float64, o.nodes)
	clean, partial, whole = make([]float64, o.nodes), make([]float64, o.nodes), make([]float64, o.nodes)
	timeout := o.timeout.Seconds()
	for i, d := range draw(o) {
		d := d.Seconds()
		switch {
		case timeout == 0 || d <= timeout:
			ended[i], clean[i] = d, d
		case math.IsInf(d, 1):
			ended[i], clean[i] = timeout+60, timeout+60+drainTime
		default:
			ended[i] = math.Min(d, timeout+obeyTime)
			clean[i] = ended[i] + drainTime
		}
		partial[i] = clean[i]
		if crash := o.crash.Seconds(); crash >= 0 && d >= crash && d < crash+restartTime {
			partial[i] = crash + restartTime
		}
	}
	last := slices.Max(partial)
	if o.housekeeping {
		release := slices.Min(ended) + o.releaseAfter.Seconds()
		for i := range partial {
			partial[i] = math.Min(last, math.Max(partial[i], release))
		}
	}
	for i := range whole {
		whole[i] = last
	}
	return clean, partial, whole
}

func TestNodesGoBackWhenArithmeticSaysSo(t *testing.T) {
	lines := scenarios()
	for _, crash := range []string{"0", "17.3", "20", "23", "100", "230"} {
		lines = append(lines, "-timeout 0 -nodes 200 -crash "+crash)
	}
	for _, line := range lines {
		o, err := parse(strings.Fields(line), nil)
		require.NoError(t, err)
		clean, partial, whole := expected(o)
		times := fragments(t, line)
		require.InDeltaSlice(t, partial, times["partial"], 1e-3, line)
		require.InDeltaSlice(t, whole, times["whole"], 1e-3, line)

		var sums [5]float64 // held, idle and saved
		for i := range clean {
			sums[0] += partial[i]
			sums[1] += whole[i]
			sums[2] += partial[i] - clean[i]
			sums[3] += whole[i] - clean[i]
		}
		sums[4] = sums[1] - sums[0]
		slices.Sort(partial)
		report := good(t, line)
		row := func(label string) []float64 {
			_, rest, found := strings.Cut(report, label)
			require.True(t, found, "%s: %s", line, label)
			rest, _, _ = strings.Cut(rest, "\n")
			var numbers []float64
			for _, s := range regexp.MustCompile(`[0-9.]+`).FindAllString(rest, -1) {
				n, err := strconv.ParseFloat(s, 64)
				require.NoError(t, err)
				numbers = append(numbers, n)
			}
			return numbers
		}
		const near = 0.06 // one digit is printed
		require.InDeltaSlice(t, sums[:2], row("held after the job"), near, line)
		require.InDeltaSlice(t, sums[2:4], row("of which idle"), near, line)
		require.InDeltaSlice(t, sums[4:], row("node-seconds saved"), near, line)
		for _, percent := range []int{50, 95, 100} {
			at := partial[(percent*o.nodes+99)/100-1]
			require.InDeltaSlice(t, []float64{at, whole[0]}, row(fmt.Sprintf("\n%d %% of the nodes are back after", percent)), near, line)
		}
	}
}

// Whenever the daemon dies, each node goes back once, and none earlier than it
// would have.
func TestACrashLosesNothingWheneverItComes(t *testing.T) {
	for _, base := range []string{"-timeout 100s -stragglers 6 -hang 2 -nodes 40", "-timeout 100s -stragglers 6 -hang 2 -nodes 40 -housekeeping"} {
		before := fragments(t, base)
		latest := slices.Max(before["partial"])
		for crash := 0.0; crash < latest+5; crash += 1.7 {
			after := fragments(t, fmt.Sprintf("%s -crash %.1f", base, crash))
			for mode := range before {
				for rank, at := range before[mode] {
					require.GreaterOrEqual(t, after[mode][rank], at-1e-3, "%s, crash at %g: rank %d", base, crash, rank)
					require.LessOrEqual(t, after[mode][rank], latest+restartTime+60, "%s, crash at %g: rank %d", base, crash, rank)
					if at < crash-1e-3 {
						require.InDelta(t, at, after[mode][rank], 1e-3)
					}
				}
			}
		}
	}
}

func TestADaemonThatComesBackWhenAllIsOverGivesNothingBackAgain(t *testing.T) {
	for _, housekeeping := range []bool{false, true} {
		o := options{nodes: 9, hang: 1, epilog: 20, timeout: 60, crash: -1, housekeeping: housekeeping}
		w, err := newWorld(o, draw(o), false)
		require.NoError(t, err)
		require.NoError(t, w.play())
		before := len(w.history.fragments)
		require.NoError(t, w.restart())
		require.NoError(t, w.daemon.act())
		require.True(t, w.daemon.over())
		require.Len(t, w.history.fragments, before)
		if d, ok := w.daemon.(*jobDaemon); ok {
			require.True(t, d.ledger.IsFinal())
			require.Empty(t, d.job.Unresolved())
		}
	}
}

func TestWhatHappensAtOneTimeHappensInItsOrder(t *testing.T) {
	w := &world{now: 1000}
	var got, want []int
	for i := range 100 {
		w.after(fsd.Duration(i%3), func() error { got = append(got, i); return nil })
	}
	for rest := range 3 {
		for i := rest; i < 100; i += 3 {
			want = append(want, i)
		}
	}
	for len(w.queue) > 0 {
		require.NoError(t, heap.Pop(&w.queue).(event).happen())
	}
	require.Equal(t, want, got)
}

func TestACrashIsToldAndSoIsOneThatCameTooLate(t *testing.T) {
	require.Contains(t, good(t, "-crash 20s"), "20.0  the daemon dies\n")
	late := good(t, "-crash 1h")
	require.NotContains(t, late, "the daemon dies")
	require.Contains(t, late, "The daemon did not die")
}

func TestNodesAreDrawnAsTheFlagsSay(t *testing.T) {
	for seed := range uint64(20) {
		o := options{nodes: 50, stragglers: 4, hang: 3, seed: seed, epilog: 10}
		usual, slow, hung := 0, 0, 0
		for _, d := range draw(o) {
			switch {
			case d == never:
				hung++
			case d >= 40 && d <= 120:
				slow++
			case d >= 7.5 && d <= 12.5:
				usual++
			}
		}
		require.Equal(t, []int{43, 4, 3}, []int{usual, slow, hung})
		require.Equal(t, draw(o), draw(o))
	}
	require.Equal(t, fsd.Infinity(), draw(options{nodes: 1, hang: 1, epilog: 1})[0])
}

func TestUsageErrorsTellWhatToFix(t *testing.T) {
	for line, want := range map[string]string{
		"-no-such-flag":                "not defined: -no-such-flag",
		"file":                         `unexpected argument "file": there are only flags`,
		"-nodes 0":                     "from 1 to 16384",
		"-nodes 16385":                 "from 1 to 16384",
		"-nodes many":                  "from 1 to 16384",
		"-stragglers -1":               "from 0 to 16384",
		"-hang 65":                     "-stragglers 0 and -hang 65 are more than -nodes 64: lower one of them",
		"-nodes 4 -stragglers 5":       "lower one of them",
		"-epilog 0":                    "want a duration from 1s to 1d, as 90s or 1.5m",
		"-epilog inf":                  "want a duration",
		"-timeout -1":                  "want a duration from 0s to 10d",
		"-crash soon":                  "want a duration",
		"-hang 1 -timeout 0":           "give a timeout",
		"-release-after 1":             "add -housekeeping",
		"-housekeeping -release-after": "flag needs an argument",
		"-seed x":                      "-seed",
	} {
		status, stdout, stderr := command(line)
		require.Equal(t, exitUsage, status, line)
		require.Empty(t, stdout, line)
		require.Contains(t, stderr, want, line)
		require.Contains(t, stderr, "partialrelease -h", line)
	}
	require.Contains(t, good(t, "-h"), "usage: partialrelease")
}

// broken is an output that can not be written.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestOutputThatIsLostIsAFault(t *testing.T) {
	for _, args := range [][]string{nil, {"-json"}} {
		var stderr bytes.Buffer
		require.Equal(t, exitFault, run(args, nil, broken{}, &stderr))
		require.Contains(t, stderr.String(), "disk full")
	}
}
