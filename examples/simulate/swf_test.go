package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/bomb"
	"github.com/joblife/joblife/internal/refdata"
)

const sampleTrace = `; Version: 2.2
; MaxNodes: 4
; MaxProcs: 8

    1        0     -1   1451    8     -1    -1   -1     -1    -1  1   1   1  -1 -1 -1 -1 -1
    2     1460     -1    100    2     -1    -1    3   3600    -1  0   9   1  -1 -1 -1 -1 -1
    3     1460     -1    100    2
    4     1461     -1    100    2     -1    -1    3     60    -1  1   9   1  -1 -1 -1 -1 -1
`

func TestReadTrace(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(sampleTrace))
	require.NoError(t, z.Close())
	for _, text := range []string{sampleTrace, zipped.String(), strings.ReplaceAll(sampleTrace, "\n", "\r\n")} {
		got, err := readTrace(strings.NewReader(text))
		require.NoError(t, err)
		require.Equal(t, &trace{
			nodes: 4, procs: 8, raised: 1,
			jobs: []arrival{
				{submit: 0, run: 1451, size: 8, user: 1},
				{submit: 1460, run: 100, limit: 3600, size: 3, user: 9, fails: true},
				{submit: 1460, run: 100, size: 2},
				{submit: 1461, run: 100, limit: 100, size: 3, user: 9},
			},
			lines: []int{5, 6, 7, 8},
		}, got)
	}
}

func TestBadLinesAreNamedAndSkipped(t *testing.T) {
	const good = "1 10 -1 5 2 -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1\n"
	for line, want := range map[string]string{
		"hello": "fields: 1, want 18",
		"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19": "fields: 19",
		"1 20 -1 x 2":                `field 4, "x", is not a number`,
		"1 20 -1 NaN 2":              "is not a number",
		"1 20 -1 1_0 2":              "is not a number",
		"1 20 -1 0x1p9 2":            "is not a number",
		"1 20 -1 inf 2":              "is not a number",
		"1 -20 -1 5 2":               "submitted at -20",
		"1 1e300 -1 5 2":             "submitted at 1e+300",
		"1 20 -1 -1 2":               "the runtime is unknown",
		"1 20 -1 1e30 2":             "a runtime of 1e+30",
		"1 20 -1 5 -1":               "the number of processors is unknown",
		"1 20 -1 5 1e9":              "1e+09 processors",
		"1 20 -1 -7 2":               "field 4 is negative: -7",
		"1 20 -1 5 2 0 0 0 -5 0 0":   "field 9 is negative: -5",
		"1 20 -1 0 2 -1 -1 2 9 -1 5": "canceled before it ran",
		"1 20 -1 5 2 0 0 0 1e11 0 0": "a runtime of 5 seconds, of 1e+11",
		"1 20 -1 5 2 -1 -1 2 9 -1 2": "status 2: a part of a job",
		"1 -1 50 5 2 0 0 2 9 -1 3":   "status 3: a part of a job",
		"1 -1 50 5 2 0 0 2 9 -1 4":   "status 4: a part of a job",
	} {
		got, err := readTrace(strings.NewReader(good + line + "\n" + good))
		require.NoError(t, err)
		require.Len(t, got.jobs, 2, line)
		require.Len(t, got.skipped, 1, line)
		require.Contains(t, got.skipped[0], "line 2: ")
		require.Contains(t, got.skipped[0], want)
	}
}

// Else the last job of a log that was cut had a part of its runtime or size.
func TestALineWithoutAnEnd(t *testing.T) {
	const whole = "1 10 -1 5 2 -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1"
	for text, jobs := range map[string]int{whole + "\n" + whole: 2, whole + "\n" + whole[:11]: 1, whole + "\n; end": 1} {
		got, err := readTrace(strings.NewReader(text))
		require.NoError(t, err)
		require.Len(t, got.jobs, jobs)
	}
}

func TestAFileThatIsNoTrace(t *testing.T) {
	for _, text := range []string{"", "; only a header\n", "a b c\n", strings.Repeat("x", maxLine+1), "\x1f\x8bxxxx"} {
		_, err := readTrace(strings.NewReader(text))
		require.Error(t, err)
	}
	_, err := readTrace(strings.NewReader("a b c"))
	require.ErrorIs(t, err, errNoTrace)
}

func TestSkippedLinesAreTold(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.swf")
	for unknown, told := range map[int]int{8: 9, 12: 10} {
		text := sampleTrace + strings.Repeat("5 2000 -1 -1 2\n", unknown) + "6 2000 -1 10 9\n"
		require.NoError(t, os.WriteFile(name, []byte(text), 0o666))
		status, out, errs := command(t, "-swf", name, "-html", "", "-seeds", "1")
		require.Zero(t, status, errs)
		require.Equal(t, told+2, strings.Count(errs, "\n"), errs)
		require.Contains(t, errs, "1 job ran longer than asked for")
		require.Contains(t, errs, "x.swf: line 9: the runtime is unknown\n")
		require.Equal(t, unknown == 8, strings.Contains(errs, "x.swf: line 17: 5 nodes, more than the machine has\n"))
		require.Contains(t, errs, fmt.Sprintf("%d skipped, 4 jobs left\n", unknown+1))
		require.Contains(t, out, "4 jobs on 4 nodes")
	}
}

// The terminal obeys no name of a file, and no flag.
func TestNoEscapeSequenceIsPrinted(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "x\x1b[2J")
	require.NoError(t, os.WriteFile(name+".swf", []byte(sampleTrace+"bad\n"), 0o666))
	args := []string{"-seeds", "1", "-swf", name + ".swf", "-html", name + ".html"}
	status, out, errs := command(t, args...)
	require.Zero(t, status, errs)
	require.Contains(t, out, `x\x1b[2J.swf: 4 jobs`)
	require.Contains(t, out, `x\x1b[2J.html`)
	require.Contains(t, errs, `x\x1b[2J.swf: line 9`)
	for _, args := range [][]string{args, {"-swf", name}, {"-\x1b[2J"}, append(args, "-nodes", "1", "-cores", "1")} {
		_, out, errs := command(t, args...)
		require.NotContains(t, out+errs, "\x1b")
	}
}

// The machine has room for all processors that the trace says, also on -nodes of its own.
func TestATraceWithoutMaxNodes(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log.swf")
	require.NoError(t, os.WriteFile(name, []byte("; MaxProcs: 200\n1 0 0 100 200\n2 9 0 100 4\n"), 0o666))
	for _, nodes := range []string{"128", "3"} {
		status, out, errs := command(t, "-html=", "-seeds=1", "-nodes", nodes, "-swf", name)
		require.Zero(t, status)
		require.Empty(t, errs)
		require.Contains(t, out, "2 jobs on "+nodes+" nodes")
		require.Contains(t, good(t, "-html=", "-seeds=1", "-nodes", nodes, "-swf", name, "-jobs", "1"), "1 job on "+nodes+" nodes")
	}
}

// One line with a wrong time takes no other job away.
func TestATraceThatIsNotInOrder(t *testing.T) {
	got, err := readTrace(strings.NewReader("1 900 -1 5 1\n2 20 -1 6 1\n3 10 -1 7 9\n4 20 -1 8 1\n5 15 -1 9 1\n"))
	require.NoError(t, err)
	var runs []seconds
	for _, j := range fromTrace(got, &options{nodes: 4, cores: 1}) {
		runs = append(runs, j.run)
	}
	require.Equal(t, []seconds{9, 6, 8, 5}, runs)
	require.Equal(t, []string{"line 3: 9 nodes, more than the machine has"}, got.skipped)
}

// The standard has the nodes of each partition in parentheses.
func TestAHeaderWithPartitions(t *testing.T) {
	for header, nodes := range map[string]int{"430 (336 batch, 94 interactive)": 430, "430(336)": 430, "(336)": 0, "1,152": 0, "": 0} {
		got, err := readTrace(strings.NewReader("; MaxNodes: " + header + "\n1 0 -1 5 1\n"))
		require.NoError(t, err)
		require.Equal(t, nodes, got.nodes, header)
	}
}

func TestRescale(t *testing.T) {
	for _, load := range []float64{0.1, 0.9, 2} {
		jobs := []arrival{{submit: 100, run: 3000, size: 2}, {submit: 1000, run: 5000, size: 4}, {submit: 5100, run: 1000, size: 1}}
		o := &options{nodes: 4, load: load}
		require.NoError(t, rescale(jobs, o))
		require.Zero(t, jobs[0].submit)
		require.InDelta(t, load, loadOf(jobs, o), 0.001)
	}
}

func FuzzTrace(f *testing.F) {
	f.Add([]byte(sampleTrace))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := readTrace(bytes.NewReader(text))
		if err != nil {
			return
		}
		work := fromTrace(got, &options{nodes: maxProcs, cores: 1, estimate: 1})
		require.Len(t, work, len(got.jobs))
		require.True(t, slices.IsSortedFunc(work, func(a, b arrival) int { return int(a.submit - b.submit) }))
		for _, j := range got.jobs {
			require.True(t, j.submit >= 0 && j.run >= 0 && j.size > 0 && j.size <= maxProcs && (j.limit == 0 || j.limit >= j.run), fmt.Sprint(j))
		}
	})
}

func TestNoTraceTakesFarMoreThanItsLength(t *testing.T) {
	plain := []bomb.Bomb{
		bomb.Fill("no jobs", "", "a\n", ""),
		bomb.Fill("times that fall", "1 99999999 0 1 1\n", "1 0 0 1 1\n", ""),
		bomb.Fill("short jobs", "", "1 # 0 1 1\n", ""),
		bomb.Fill("empty lines", "", "\n", ""),
		bomb.Fill("comments", "", ";\n", ""),
		bomb.Fill("headers", "", "; MaxNodes: 7\n", ""),
		bomb.Fill("a long line", "", "1 ", ""),
		bomb.Fill("long numbers", "", "9999999999999999999999999999999999 ", "\n"),
		bomb.Fill("long fields", "1 0 ", "x", "\n"),
	}
	zipped := []bomb.Bomb{
		bomb.Gzip("zipped long lines", "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n"),
		bomb.Gzip("zipped jobs that differ", "1 # 0 1 1\n"),
		bomb.Gzip("zipped jobs", "1 0 0 1 1\n"),
		bomb.Gzip("zipped lines that are no jobs", "a\n"),
		bomb.Gzip("zipped empty lines", "\n"),
		bomb.Gzip("zipped comments", ";\n"),
		bomb.Gzip("zipped zeros", "\x00"),
	}
	if os.Getenv("JOBLIFE_DEEP") == "" {
		plain, zipped = plain[:2], zipped[:2]
	}
	bomb.Defuse(t, func(text []byte) { _, _ = readTrace(bytes.NewReader(text)) }, append(plain, zipped...)...)
}

// A log of the Parallel Workloads Archive.
func TestRecordedTrace(t *testing.T) {
	name := refdata.Path(t, "traces/NASA-iPSC-1993-3.1-cln.swf.gz")
	got, err := openTrace(name)
	require.NoError(t, err)
	require.Len(t, got.jobs, 18239)
	require.Empty(t, got.skipped)
	require.Equal(t, 128, got.nodes)
	out := good(t, "-swf", name, "-html", "", "-seeds", "1", "-jobs", "1000", "-load", "0.9")
	require.Contains(t, out, "1000 jobs on 128 nodes, load 0.90, easy")
}
