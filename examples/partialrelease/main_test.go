package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func command(line string) (status int, stdout, stderr string) {
	var out, errOut bytes.Buffer
	status = run(strings.Fields(line), &out, &errOut)
	return status, out.String(), errOut.String()
}

func good(t *testing.T, line string) string {
	t.Helper()
	status, stdout, stderr := command(line)
	require.Equal(t, 0, status, "%s: %s", line, stderr)
	require.Empty(t, stderr, line)
	return stdout
}

func TestOutputIsThatOfTheGoldenFiles(t *testing.T) {
	for name, line := range map[string]string{
		"default":            "",
		"hang":               "-hang 2",
		"crash":              "-hang 2 -crash 100s",
		"timeout":            "-stragglers 9 -timeout 100s",
		"housekeeping":       "-housekeeping -hang 1",
		"housekeeping-crash": "-housekeeping -hang 1 -crash 20s",
		"json":               "-nodes 8 -hang 1 -json",
		"large":              "-nodes 16384 -stragglers 40 -seed 7",
		"help":               "-h",
	} {
		got := good(t, line)
		path := filepath.Join("testdata", name+".golden")
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), got, "read the difference, then run with -update")
	}
}

// jobs are flags of all sorts of jobs.
func jobs() []string {
	var lines []string
	for _, size := range []string{
		"-nodes 1 -stragglers 0", "-nodes 1 -stragglers 1 -timeout 0", "-nodes 2 -stragglers 0 -hang 1", "-nodes 3 -stragglers 0 -hang 3",
		"-stragglers 0", "-nodes 100 -stragglers 20 -hang 5 -timeout 100s", "-stragglers 60 -timeout 121", "-nodes 500 -timeout 20", "-timeout 0",
	} {
		for seed := range 4 {
			for _, what := range []string{"", " -housekeeping", " -housekeeping -release-after 0", " -housekeeping -release-after infinity"} {
				lines = append(lines, fmt.Sprintf("%s -seed %d%s", size, seed, what))
			}
		}
	}
	return lines
}

func TestEveryLineFitsTheTerminal(t *testing.T) {
	lines := append(jobs(), "-h", "-crash 9d",
		"-nodes 16384 -stragglers 0 -hang 16384 -timeout 10d", "-nodes 16384 -hang 9000 -crash 15 -housekeeping")
	for _, line := range lines {
		rows := strings.Split(good(t, line), "\n")
		require.Less(t, len(rows), 30, "%s: a page", line)
		for _, row := range rows {
			require.LessOrEqual(t, utf8.RuneCountInString(row), 100, "%s: %s", line, row)
			require.Equal(t, strings.TrimRight(row, " "), row, line)
		}
	}
}

// times runs with -json and returns when each node went back, by mode. It checks
// that each node is in exactly one fragment, and that only the last one is final.
func times(t *testing.T, line string) (partial, whole []float64) {
	t.Helper()
	o, err := parse(strings.Fields(line), nil)
	require.NoError(t, err)
	all := idset.Range(0, uint32(o.nodes-1))
	back := map[string][]float64{"partial": make([]float64, o.nodes), "whole": make([]float64, o.nodes)}
	seen := map[string]*idset.Set{"partial": new(idset.Set), "whole": new(idset.Set)}
	last := map[string]fragment{}
	for row := range strings.Lines(good(t, line+" -json")) {
		var f fragment
		require.NoError(t, json.Unmarshal([]byte(row), &f), row)
		require.False(t, last[f.Mode].Final, "%s: a fragment after the final one: %s", line, row)
		require.False(t, seen[f.Mode].Intersects(f.Ranks), "%s: a node goes back twice: %s", line, row)
		require.GreaterOrEqual(t, f.Time, last[f.Mode].Time, "%s: the order of time: %s", line, row)
		seen[f.Mode].UnionWith(f.Ranks)
		require.Equal(t, []int{f.Ranks.Len(), seen[f.Mode].Len()}, []int{f.Nodes, f.Back}, line)
		for rank := range f.Ranks.All() {
			back[f.Mode][rank] = f.Time
		}
		last[f.Mode] = f
	}
	for mode, ranks := range seen {
		require.True(t, last[mode].Final, "%s: %s has a final fragment", line, mode)
		require.Equal(t, all.String(), ranks.String(), "%s: %s gives all nodes back", line, mode)
	}
	return back["partial"], back["whole"]
}

const killTimeout = 60 // of the library

// expected returns when each node is idle, and when it goes back in either mode, by
// arithmetic alone. A node that is drained goes back when the drain is confirmed.
func expected(o options) (idle, partial, whole []float64) {
	timeout := seconds(o.timeout)
	var ended []float64
	for _, n := range draw(o) {
		end, clean := n.takes, n.takes
		if timeout > 0 && n.takes > timeout {
			end = math.Min(n.takes, timeout+obeyTime)
			if math.IsInf(n.takes, 1) {
				end = timeout + killTimeout
			}
			clean = end + drainTime
		}
		ended, idle = append(ended, end), append(idle, clean)
	}
	for _, at := range idle {
		if !o.housekeeping {
			partial = append(partial, at)
		} else {
			collected := slices.Min(ended) + seconds(o.releaseAfter)
			partial = append(partial, min(slices.Max(idle), max(at, collected)))
		}
		whole = append(whole, slices.Max(idle))
	}
	return idle, partial, whole
}

func TestNodesGoBackWhenArithmeticSaysSo(t *testing.T) {
	for _, line := range jobs() {
		o, err := parse(strings.Fields(line), nil)
		require.NoError(t, err)
		idle, wantPartial, wantWhole := expected(o)
		gotPartial, gotWhole := times(t, line)
		require.InDeltaSlice(t, wantPartial, gotPartial, 1e-3, line)
		require.InDeltaSlice(t, wantWhole, gotWhole, 1e-3, line)

		report := strings.Join(strings.Fields(good(t, line)), " ")
		sum := func(of []float64) (sum float64) {
			for _, x := range of {
				sum += x
			}
			return sum
		}
		held, idleness := sum(gotPartial), sum(gotPartial)-sum(idle)
		require.Contains(t, report, fmt.Sprintf("held after the job %.1f %.1f %.1f saved", held, sum(gotWhole), sum(gotWhole)-held), line)
		require.Contains(t, report, fmt.Sprintf("of which idle %.1f %.1f ", idleness, sum(gotWhole)-sum(idle)), line)
		slices.Sort(gotPartial)
		slices.Sort(gotWhole)
		for _, percent := range []int{50, 95, 100} {
			i := int(math.Ceil(float64(percent*o.nodes)/100)) - 1
			require.Contains(t, report, fmt.Sprintf(" %d %% of the nodes are back %.1f s %.1f s ", percent, gotPartial[i], gotWhole[i]), line)
		}
	}
}

// Whenever the daemon dies, each node goes back once. What was back by then stays so.
// A node goes back earlier than without the crash only where nobody was there to send
// SIGTERM, and then not before its process ends. A node that hangs gets SIGTERM again.
func TestACrashLosesNothingWheneverItComes(t *testing.T) {
	for _, what := range []string{"", " -housekeeping"} {
		line := "-timeout 100s -stragglers 6 -hang 2 -nodes 40" + what
		var before, after [2][]float64
		o, err := parse(strings.Fields(line), nil)
		require.NoError(t, err)
		nodes := draw(o)
		before[0], before[1] = times(t, line)
		for crash := 0.0; crash < slices.Max(before[0])+5; crash += 1.7 {
			after[0], after[1] = times(t, fmt.Sprintf("%s -crash %.1f", line, crash))
			for mode := range before {
				for rank, at := range before[mode] {
					got := after[mode][rank]
					require.LessOrEqual(t, after[0][rank], after[1][rank]+1e-3, "%s, crash at %g: rank %d", line, crash, rank)
					require.GreaterOrEqual(t, got, min(at, nodes[rank].takes)-1e-3, "%s, crash at %g: rank %d", line, crash, rank)
					require.LessOrEqual(t, got, slices.Max(before[mode])+restartTime+killTimeout, "%s, crash at %g: rank %d", line, crash, rank)
					if at < crash-1e-3 {
						require.Equal(t, at, got, "%s, crash at %g: rank %d", line, crash, rank)
					}
				}
			}
		}
	}
}

// The drain is asked for at 160 s and is confirmed at 161 s, when nobody hears it.
// The daemon is back at 180.5 s and asks again.
func TestAnUnconfirmedDrainIsRequestedAgain(t *testing.T) {
	for _, what := range []string{"", " -housekeeping"} {
		line := "-nodes 1 -stragglers 0 -hang 1 -timeout 100s -crash 160.5" + what
		partial, whole := times(t, line)
		require.InDeltaSlice(t, []float64{181.5, 181.5}, []float64{partial[0], whole[0]}, 1e-3, line)
		require.Regexp(t, "of which idle +20.5 +20.5", good(t, line), "from the first drain on")
	}
}

func TestACrashThatCameTooLateIsTold(t *testing.T) {
	require.Contains(t, good(t, "-crash 1m"), "the daemon dies after 1m and is back 20 s later")
	require.Contains(t, good(t, "-crash 1h"), "the daemon does not die")
	require.Contains(t, good(t, "-crash infinity"), "seed 1\n\n", "nothing is told of it")
}

func TestNodesAreDrawnAsTheFlagsSay(t *testing.T) {
	for seed := range uint64(20) {
		var usual, slow, hung int
		for _, n := range draw(options{nodes: 50, stragglers: 4, hang: 3, seed: seed}) {
			switch {
			case math.IsInf(n.takes, 1):
				hung++
			case n.takes >= 4*epilogTime && n.takes <= 12*epilogTime:
				slow++
			case n.takes >= 0.75*epilogTime && n.takes <= 1.25*epilogTime:
				usual++
			}
		}
		require.Equal(t, []int{43, 4, 3}, []int{usual, slow, hung})
	}
}

// broken is an output that cannot be written.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestOutputThatIsLostIsAFault(t *testing.T) {
	for _, args := range [][]string{nil, {"-json"}} {
		var stderr bytes.Buffer
		require.Equal(t, 1, run(args, broken{}, &stderr))
		require.Contains(t, stderr.String(), "disk full")
	}
}
