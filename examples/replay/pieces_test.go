package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/jobstate/jobid"
)

func plainly(name string, text []byte, p printer, stderr io.Writer) {
	s := newSession(p, stderr)
	printed, ok := p.(*plain)
	s.any = ok && printed.counts
	src, n := &source{name: name}, 0
	for line := range bytes.Lines(text) {
		n++
		var out result
		s.replayLine(src, line, n, &out)
		s.take(out)
	}
	if ok {
		printed.unreadable = s.faults
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

func TestManyAtOncePrintWhatOneDoes(t *testing.T) {
	text := manyLines(t, 450)
	path := t.TempDir() + "/jobs.jsonl"
	require.NoError(t, os.WriteFile(path, text, 0o644))
	for mode, p := range map[string]func(io.Writer) printer{
		"-json":     func(w io.Writer) printer { return &plain{w: w, make: renderListing} },
		"-events":   func(w io.Writer) printer { return &plain{w: w, make: renderTimeline} },
		"-validate": func(w io.Writer) printer { return &plain{w: w, make: renderFindings, counts: true} },
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
		stdout, stderr := fails(t, io.MultiReader(bytes.NewReader(text[:7]), bytes.NewReader(text[7:])), args...)
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
		stdout, stderr := fails(t, bytes.NewReader(b.Bytes()), mode, "-")
		require.Equal(t, "replay: standard input: archive: job ƒVtB5Vb4: \"job/0000/0100/0000/00c7\": no jobspec\n", stderr)
		require.Equal(t, mode == "-validate", strings.HasSuffix(stdout, ", unreadable 1\n"))
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
	stdout := good(t, r, "-json", "-")
	require.Equal(t, jobs, strings.Count(stdout, "\n"))
	require.Less(t, most, uint64(jobs*large*2/3))
}

// folderOfALog returns a folder with a folder with a log.
func folderOfALog(t *testing.T) string {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "a"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a", "eventlog"), []byte(life), 0o600))
	return dir
}

// What is beside a log counts: else 64 jobs would be in memory with an R of 64 MiB each.
func TestALargeFileBesideALogFillsAPiece(t *testing.T) {
	for _, name := range []string{"R", "jobspec"} {
		dir := folderOfALog(t)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a", name), make([]byte, pieceBytes), 0o600))
		s := newSession(&plain{w: io.Discard, make: renderListing}, io.Discard)
		s.readFile(dir)
		require.Empty(t, s.batch)
		require.Len(t, s.order, 1)
	}
}

func TestABrokenOutputEndsReading(t *testing.T) {
	for _, args := range [][]string{{samplePath}, {"-json", "-"}} {
		r := archiveOf(math.MaxInt32, 1, func() {})
		var stderr bytes.Buffer
		require.Equal(t, lines.ExitFault, run(args, r, brokenWriter{}, &stderr))
		require.NoError(t, r.Close())
		require.Contains(t, stderr.String(), "disk is full")
		require.NotContains(t, stderr.String(), "standard input")
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("disk is full") }

func TestAReadErrorComesAfterTheLinesBeforeIt(t *testing.T) {
	text := gunzip(t)
	lines := bytes.SplitAfter(text, []byte("\n"))
	cut := len(lines[0]) + len(lines[1]) + 100
	for _, size := range []int{cut, pieceBytes, 3 * pieceBytes} {
		text := bytes.Repeat(text, size/len(text)+1)[:size]
		r := io.MultiReader(bytes.NewReader(text), brokenReader{})
		stdout, stderr := fails(t, r, "-json", "-")
		require.Equal(t, bytes.Count(text, []byte("\n")), strings.Count(stdout, "\n"))
		require.Equal(t, "replay: standard input: the disk is gone\n", stderr)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, fmt.Errorf("the disk is gone") }

func TestTheLongestLine(t *testing.T) {
	line := func(n int, end string) io.Reader {
		const head, tail = `{"id":1,"eventlog":"","x":"`, `"}`
		return io.MultiReader(strings.NewReader(head), io.LimitReader(letters{}, int64(n-len(head)-len(tail)-len(end))), strings.NewReader(tail+end))
	}
	_, stderr := fails(t, line(maxLine+1, "\n"), "-")
	require.Contains(t, stderr, "longer than 64 MiB")
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
