package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/jobid"
)

// seedLines are lines that scanRecording reads, and lines that it leaves.
var seedLines = struct{ read, left []string }{
	read: []string{
		`{}`, ` { "id" : 7 } ` + "\r\n", `{"eventlog":""}`, `{"id":18446744073709551615,"R":null,"jobspec":null}`,
		`{"eventlog":"a\"b\\c\/d\b\f\n\r\t\u0041\u00e9\u20ACé\u0000"}`, `{"R":{"a":[1,-2.5e+7,0,1E0,true,false,{},[] ]},"jobspec":[]}`,
		`{"x":[{"eventlog":1,"eventlog":2}],"y":"\ud800","z":"` + "\xff" + `","R":0}`, `{"ids":1,"r2":{},"jobspecs":"","i":0}`,
		`{"id":0,"eventlog":"","eventlog":"x","R":"s","jobspec":-0}`, `{"x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`,
	},
	left: []string{
		``, `null`, `[]`, `{`, `{"id":1`, `{"id":1,}`, `{,}`, `{"id" 1}`, `{"id":1}}`, `{"id":1 "R":2}`, `{"x":01}`, `{"x":1.}`, `{"x":1e}`, `{"x":-}`, `{"x":+1}`,
		`{"x":tru}`, `{"x":nul`, `{"x":[1,]}`, `{"x":[1 2]}`, `{"x":{"a"}}`, `{"x":{"a":}}`, `{"x":"\x"}`, `{"x":"\u00g0"}`, `{"x":"\u00` + "\x10" + `0"}`, `{"x":"\`, `{"x":"\u00"`,
		"{\"x\":\"\x01\"}", "{\"eventlog\":\"\n\"}", "\ufeff{}", `{"id":-1}`, `{"id":1.0}`, `{"id":"1"}`, `{"id":null}`, `{"id":18446744073709551616}`,
		`{"ID":1}`, `{"r":1}`, `{"Eventlog":"x"}`, `{"joB\u0073pec":{}}`, `{"job` + "\u017f" + `pec":{}}`, `{"id":1,"id":2}`, `{"R":{},"R":{}}`, `{"eventlog":"x","eventlog":""}`,
		`{"eventlog":null}`, `{"eventlog":7}`, `{"eventlog":"\ud800\udc00"}`, `{"eventlog":"\ud800"}`, "{\"eventlog\":\"\xff\"}", `{"eventlog":"\q"}`, `{"eventlog":"`,
		`{"x":` + strings.Repeat("[", 101) + strings.Repeat("]", 101) + `}`,
	},
}

// requireSameReading requires that a line that scanRecording reads is what
// parseRecording reads, and reports whether it reads it.
func requireSameReading(t *testing.T, line []byte, log *[]byte) bool {
	t.Helper()
	before := bytes.Clone(line)
	got, ok := scanRecording(line, log)
	require.Equal(t, before, line)
	if !ok {
		return false
	}
	want, err := parseRecording(line)
	require.NoError(t, err, "%q", line)
	for _, b := range []*[]byte{&want.eventlog, &got.eventlog} {
		*b = append([]byte{}, *b...)
	}
	require.Equal(t, want, got, "%q", line)
	return true
}

func TestScanReadsWhatEncodingJSONReads(t *testing.T) {
	var log []byte
	for _, line := range seedLines.read {
		require.True(t, requireSameReading(t, []byte(line), &log), "%q", line)
	}
	for _, line := range seedLines.left {
		require.False(t, requireSameReading(t, []byte(line), &log), "%q", line)
	}
	for line := range bytes.Lines(gunzip(t)) {
		require.True(t, requireSameReading(t, line, &log), "%q", line)
	}
	// Each cut of a line, and a byte changed at each place.
	line := bytes.SplitAfter(gunzip(t), []byte("\n"))[0]
	for i := range line {
		requireSameReading(t, line[:i], &log)
		mutant := bytes.Clone(line)
		mutant[i] = "\"\\{}[]:,0e-.\x00 \xc3"[i%15]
		requireSameReading(t, mutant, &log)
	}
}

func FuzzScan(f *testing.F) {
	for _, line := range append(seedLines.read, seedLines.left...) {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		log := make([]byte, 3)
		requireSameReading(t, line, &log)
	})
}

func TestAScanAllocatesNothing(t *testing.T) {
	lines := bytes.SplitAfter(gunzip(t), []byte("\n"))
	log := make([]byte, 0, 1<<16)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		for _, line := range lines[:25] {
			if _, ok := scanRecording(line, &log); !ok {
				t.Fatal("a line is left")
			}
		}
	}))
}

// plainly replays JSON lines one after the other, read by encoding/json.
func plainly(name string, text []byte, p printer, stderr io.Writer) {
	s := newSession(p, stderr)
	n := 0
	for line := range bytes.Lines(text) {
		n++
		var out result
		in, err := parseRecording(line)
		if err != nil {
			out.faults = []string{fmt.Sprintf("%s: line %d: %v", name, n, err)}
		} else {
			in.label = fmt.Sprintf("%s:%d", name, n)
			s.replay(name, in, &out)
		}
		s.take(out)
	}
}

// manyLines returns the jobs of the sample under new ids, and a few bad lines.
func manyLines(t testing.TB, n int) []byte {
	t.Helper()
	lines := bytes.SplitAfter(gunzip(t), []byte("\n"))
	var b bytes.Buffer
	for i := range n {
		_, rest, _ := bytes.Cut(lines[i%25], []byte(","))
		switch {
		case i%97 == 5:
			b.WriteString("{oops\n")
		case i%97 == 6:
			b.WriteString("\n")
		case i%97 == 7:
			fmt.Fprintf(&b, `{"ID":%d,%s`, i, rest)
		case i%397 == 8:
			fmt.Fprintf(&b, `{"pad":"%s",%s`, strings.Repeat("x", pieceBytes), rest)
		default:
			fmt.Fprintf(&b, `{"id":%d,%s`, 1<<40+uint64(i), rest)
		}
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// TestManyAtOncePrintWhatOneDoes compares the output of all workers with that of the
// plain reader, byte by byte.
func TestManyAtOncePrintWhatOneDoes(t *testing.T) {
	text := manyLines(t, 450)
	path := t.TempDir() + "/jobs.jsonl"
	require.NoError(t, os.WriteFile(path, text, 0o644))
	for mode, p := range map[string]func(io.Writer) printer{
		"-json":     func(w io.Writer) printer { return &plain{w: w, make: renderJSON} },
		"-events":   func(w io.Writer) printer { return &plain{w: w, make: renderTimeline} },
		"-validate": func(w io.Writer) printer { return &findings{w: w} },
		"":          func(w io.Writer) printer { return &table{w: w, form: jobTable()} },
	} {
		var out, errOut bytes.Buffer
		one := p(&out)
		plainly("standard input", text, one, &errOut)
		require.NoError(t, one.close())
		args := []string{mode, "-"}
		if mode == "" {
			args = args[1:]
		}
		status, stdout, stderr := replay(t, io.MultiReader(bytes.NewReader(text[:7]), bytes.NewReader(text[7:])), args...)
		require.Equal(t, exitFault, status)
		require.True(t, out.String() == stdout, mode)
		require.Equal(t, errOut.String(), stderr)
	}
}

// TestAnArchivePrintsWhatItsLinesDo makes a dump archive of the jobs of JSON lines,
// the last of them without a jobspec.
func TestAnArchivePrintsWhatItsLinesDo(t *testing.T) {
	var b, lines bytes.Buffer
	w := tar.NewWriter(&b)
	const n = 200
	for i := range n {
		_, rest, _ := bytes.Cut(bytes.SplitAfter(gunzip(t), []byte("\n"))[i%25], []byte(","))
		line := fmt.Appendf(nil, `{"id":%d,%s`, 1<<40+uint64(i), rest)
		in, err := parseRecording(line)
		require.NoError(t, err)
		for _, f := range []struct {
			key   string
			value []byte
		}{{"R", in.r}, {"eventlog", in.eventlog}, {"guest/output", []byte("x")}, {"jobspec", in.jobspec}} {
			if f.value == nil || i == n-1 && f.key == "jobspec" {
				continue
			}
			path := "job/" + strings.ReplaceAll(in.id.Format(jobid.FormatDotHex), ".", "/") + "/" + f.key
			require.NoError(t, w.WriteHeader(&tar.Header{Name: path, Size: int64(len(f.value)), Mode: 0o644}))
			_, err = w.Write(f.value)
			require.NoError(t, err)
		}
		if i < n-1 {
			lines.Write(line)
		}
	}
	require.NoError(t, w.Close())
	for _, mode := range []string{"-json", "-validate"} {
		_, want, _ := replay(t, &lines, mode, "-")
		status, stdout, stderr := replay(t, bytes.NewReader(b.Bytes()), mode, "-")
		require.Equal(t, exitFault, status)
		require.Equal(t, "replay: standard input: archive: \"job/0000/0100/0000/00c7\": no jobspec\n", stderr)
		require.True(t, mode != "-json" || want == stdout)
		require.NotEmpty(t, stdout)
	}
}

// archiveOf returns an archive of jobs with a large R, and calls each before every job.
func archiveOf(jobs, large int, each func()) io.ReadCloser {
	r, pipe := io.Pipe()
	go func() {
		w := tar.NewWriter(pipe)
		put := func(id int, key, value string) error {
			err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("job/0000/0000/%04x/%04x/%s", id>>16, id&0xffff, key), Size: int64(len(value)), Mode: 0o644})
			_, writeErr := io.WriteString(w, value)
			return errors.Join(err, writeErr)
		}
		value := strings.Repeat("x", large)
		for id := range jobs {
			each()
			const log = `{"timestamp":1.5,"name":"submit","context":{"userid":1,"urgency":16,"flags":0}}` + "\n"
			if errors.Join(put(id, "R", value), put(id, "eventlog", log), put(id, "jobspec", "")) != nil {
				return // nobody reads
			}
		}
		_ = pipe.CloseWithError(w.Close())
	}()
	return r
}

func TestAnArchiveIsNotKept(t *testing.T) {
	const jobs, large = 48, 1 << 20
	most := uint64(0)
	r := archiveOf(jobs, large, func() {
		runtime.GC() // garbage does not count
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapAlloc)
	})
	status, stdout, stderr := replay(t, r, "-json", "-")
	require.Equal(t, exitOK, status, stderr)
	require.Equal(t, jobs, strings.Count(stdout, "\n"))
	require.Less(t, most, uint64(jobs*large*2/3))
}

func TestABrokenOutputEndsReadingAnArchive(t *testing.T) {
	r := archiveOf(math.MaxInt32, 1, func() {})
	var stderr bytes.Buffer
	require.Equal(t, exitFault, run([]string{"-json", "-"}, r, brokenWriter{}, &stderr))
	require.NoError(t, r.Close())
	require.Contains(t, stderr.String(), "disk is full")
	require.NotContains(t, stderr.String(), "standard input")
}

// TestAReadErrorComesAfterTheLinesBeforeIt reads up to a fault amid a line.
func TestAReadErrorComesAfterTheLinesBeforeIt(t *testing.T) {
	text := gunzip(t)
	lines := bytes.SplitAfter(text, []byte("\n"))
	cut := len(lines[0]) + len(lines[1]) + 100
	for _, size := range []int{cut, pieceBytes, 3 * pieceBytes} {
		text := bytes.Repeat(text, size/len(text)+1)[:size]
		r := io.MultiReader(bytes.NewReader(text), brokenReader{})
		status, stdout, stderr := replay(t, r, "-json", "-")
		require.Equal(t, exitFault, status)
		require.Equal(t, bytes.Count(text, []byte("\n")), strings.Count(stdout, "\n"))
		require.Equal(t, "replay: standard input: the disk is gone\n", stderr)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, fmt.Errorf("the disk is gone") }

// TestTheLongestLine reads lines around the limit.
func TestTheLongestLine(t *testing.T) {
	line := func(n int, end string) io.Reader {
		const head, tail = `{"id":1,"eventlog":"","x":"`, `"}`
		return io.MultiReader(strings.NewReader(head), io.LimitReader(letters{}, int64(n-len(head)-len(tail)-len(end))), strings.NewReader(tail+end))
	}
	const short = `{"id":2,"eventlog":""}` + "\n"
	for _, c := range []struct {
		length int
		end    string
		want   string
	}{
		{maxLine, "\n", "has no submit event"}, {maxLine + 1, "\n", "longer than 64 MiB"}, {maxLine, "", "has no submit event"},
	} {
		_, _, stderr := replay(t, io.MultiReader(strings.NewReader(short), line(c.length, c.end)), "-")
		require.Contains(t, stderr, "ƒ3: the log has no submit event")
		require.Contains(t, strings.SplitAfter(stderr, "\n")[1], c.want)
	}
}

type letters struct{}

func (letters) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

// BenchmarkScan reads the lines of the sample, and in turn does so with
// encoding/json. times-json is how many times longer that takes.
func BenchmarkScan(b *testing.B) {
	lines := bytes.SplitAfter(manyLines(b, 4), []byte("\n"))
	var log []byte
	compare(b, "times-json", func() {
		for _, line := range lines {
			if _, ok := scanRecording(line, &log); !ok {
				b.Fatal("a line is left")
			}
		}
	}, func() {
		for _, line := range lines {
			if _, err := parseRecording(line); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkReplay replays 3000 jobs to a table, and in turn does so line by line
// with encoding/json. times-plain is how many times longer that takes.
func BenchmarkReplay(b *testing.B) {
	text := manyLines(b, 3000)
	compare(b, "times-plain", func() {
		run([]string{"-"}, bytes.NewReader(text), io.Discard, io.Discard)
	}, func() {
		p := &table{w: io.Discard, width: 80, form: jobTable()}
		plainly("standard input", text, p, io.Discard)
		_ = p.close()
	})
}

// compare reports how many times longer the second takes than the first, the best
// of each in one run.
func compare(b *testing.B, unit string, fast, plain func()) {
	best := [2]time.Duration{time.Hour, time.Hour}
	for b.Loop() {
		for i, f := range []func(){fast, plain} {
			before := b.Elapsed()
			f()
			best[i] = min(best[i], b.Elapsed()-before)
		}
	}
	b.ReportMetric(float64(best[1])/float64(best[0]), unit)
}
