// Package linestest has what the tests of the programs that speak in JSON lines share: it
// runs a program on an input, a socket or its transcripts.
package linestest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/lines"
)

// A Program makes the program that is tested.
type Program func() *lines.Program

// Run runs a program on an input.
func (p Program) Run(input io.Reader, args ...string) (status int, stdout, stderr string) {
	var out, errOut bytes.Buffer
	status = lines.Run(context.Background(), p, args, input, &out, &errOut)
	return status, out.String(), errOut.String()
}

// Help runs a program that has nothing to read, and expects that it tells how to use it. It
// has flags beside those of every program, and the conversation that it shows is true.
func (p Program) Help(t *testing.T, flags ...string) {
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer func() { require.NoError(t, null.Close()) }()
	status, usage, stderr := p.Run(null)
	require.Equal(t, lines.ExitOK, status)
	require.Empty(t, stderr)
	status, help, _ := p.Run(strings.NewReader(""), "-h")
	require.Equal(t, lines.ExitOK, status)
	require.Equal(t, usage, help)
	require.Contains(t, help, p().Name+" -sample")
	for _, flag := range append(flags, "-listen", "-now", "-sample", "-v") {
		require.Contains(t, help, "\n  "+flag)
	}
	_, shown, _ := strings.Cut(help, "\n\n  ") // what is indented
	shown = strings.ReplaceAll(shown, "\n  ", "\n")
	status, stdout, _ := p.Run(strings.NewReader(Marked(shown, ">")), "-now=1")
	require.Equal(t, lines.ExitOK, status)
	require.Equal(t, Marked(shown, "<"), stdout)
}

// Streams runs a program whose input breaks off or is interrupted, whose output nobody reads,
// and which gets lines that are too long or that a terminal would obey. Its topics begin with
// prefix, and with -now=1 it answers begin, which may be "" if it speaks first.
func (p Program) Streams(t *testing.T, prefix, begin string) {
	t.Run("the input breaks off", func(t *testing.T) {
		status, _, stderr := p.Run(io.MultiReader(strings.NewReader("{}\n"), iotest.ErrReader(errors.New("cable cut"))))
		require.Equal(t, lines.ExitFault, status)
		require.Contains(t, stderr, "line 2: input: cable cut")
	})
	t.Run("nobody reads", func(t *testing.T) {
		in, feed := io.Pipe() // no more input comes, and it does not end
		defer func() { _ = feed.Close() }()
		out, w := io.Pipe()
		require.NoError(t, out.CloseWithError(errors.New("nobody reads")))
		var stderr bytes.Buffer
		status := lines.Run(context.Background(), p, nil, io.MultiReader(strings.NewReader("{}\n"), in), w, &stderr)
		require.Equal(t, lines.ExitFault, status)
		require.Contains(t, stderr.String(), "output: nobody reads")
	})
	t.Run("an interrupt", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		in, feed := io.Pipe() // never ends
		defer func() { require.NoError(t, feed.Close()) }()
		out, w := io.Pipe()
		var stderr bytes.Buffer
		status := make(chan int)
		go func() {
			status <- lines.Run(ctx, p, []string{"-now=1"}, io.MultiReader(strings.NewReader(begin), in), w, &stderr)
		}()
		_, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		cancel()
		require.Equal(t, lines.ExitOK, <-status)
		require.Contains(t, stderr.String(), "0 lines refused")
	})
	t.Run("a long line", func(t *testing.T) {
		long := io.MultiReader(strings.NewReader(`{"topic":"`), io.LimitReader(zeros{}, lines.Max), strings.NewReader("\"}\n"))
		status, stdout, stderr := p.Run(io.MultiReader(long, strings.NewReader(`{"topic":"`+prefix+`.nosuch"}`)))
		require.Equal(t, lines.ExitFault, status, "a line was refused")
		require.Contains(t, stdout, `{"topic":"`+prefix+`.error","errnum":90,"errstr":"line is longer than 16777216 bytes and was skipped"}`+"\n"+
			`{"topic":"`+prefix+`.nosuch","errnum":38`)
		require.Contains(t, stderr, "line 1: line is longer")
		require.NotContains(t, stderr, "0 lines refused")
	})
	t.Run("a topic for a terminal", func(t *testing.T) {
		_, stdout, stderr := p.Run(strings.NewReader(`{"topic":"\u001b[2J"}`))
		require.Contains(t, stdout, `"errnum":`)
		require.Contains(t, stderr, `line 1: \x1b[2J: `)
		require.NotContains(t, stderr, "\x1b")
	})
}

// Transcripts plays the transcripts in testdata, or rewrites them. The command itself has the
// same conversations.
func (p Program) Transcripts(t *testing.T, rewrite bool) {
	paths, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var got bytes.Buffer
		require.NoError(t, lines.Transcribe(p, string(text), nil, &got))
		if rewrite {
			require.NoError(t, os.WriteFile(path, got.Bytes(), 0o644))
			continue
		}
		require.Equal(t, string(text), got.String(), "read the difference in %s, then run with -update", path)
		for _, script := range strings.Split("\n"+string(text), "\n$ ")[1:] {
			command, script, _ := strings.Cut(script+"\n", "\n")
			want := lines.ExitOK
			if !strings.Contains(script, " 0 lines refused;") || strings.Contains(script, ": -store: ") {
				want = lines.ExitFault
			}
			status, stdout, stderr := p.Run(strings.NewReader(Marked(script, ">")), strings.Fields(command)[1:]...)
			require.Equal(t, want, status, path)
			require.Equal(t, Marked(script, "<"), stdout, path)
			require.Equal(t, Marked(script, "!"), stderr, path)
		}
	}
}

// Marked returns the lines of a transcript that have a mark, without it.
func Marked(script, mark string) string {
	var b strings.Builder
	for text := range strings.Lines(script) {
		if rest, ok := strings.CutPrefix(text, mark+" "); ok {
			b.WriteString(rest)
		}
	}
	return b.String()
}

// Sample plays a program's sample and returns it.
func (p Program) Sample(t *testing.T, args ...string) string {
	var played bytes.Buffer
	require.NoError(t, lines.PlaySample(p, append([]string{"-sample"}, args...), &played))
	return played.String()
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '0'
	}
	return len(b), nil
}

// SocketPath returns a path that is short enough for a socket, in a folder of its own: the
// test goes there.
func SocketPath(t *testing.T) string {
	t.Chdir(t.TempDir())
	return "s"
}

// Start runs a program on a socket, which is its user's alone, by the time of the day, until
// the function that it returns is called, which returns the exit status and standard error.
// Then there is none.
func (p Program) Start(t *testing.T, path string, args ...string) (stop func() (int, string)) {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	out, w := io.Pipe()
	status := make(chan int, 1)
	var stderr bytes.Buffer
	go func() {
		status <- lines.Run(ctx, p, append([]string{"-listen=unix:" + path}, args...), strings.NewReader(""), w, &stderr)
		_ = w.Close()
	}()
	text, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, &stderr)
	require.Equal(t, p().Name+": listening on unix:"+path+"\n", text)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	return func() (int, string) {
		cancel()
		s := <-status
		_, err := os.Lstat(path)
		require.ErrorIs(t, err, os.ErrNotExist, "the socket is removed")
		return s, stderr.String()
	}
}

// Dial connects, and returns what says a text and what reads a line, "" at the end.
func Dial(t *testing.T, path string) (conn net.Conn, say func(string), read func() string) {
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	br := bufio.NewReader(conn)
	say = func(text string) {
		t.Helper()
		_, err := io.WriteString(conn, text)
		require.NoError(t, err)
	}
	return conn, say, func() string {
		t.Helper()
		text, err := br.ReadString('\n')
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
		}
		return text
	}
}

// A Script is what a fuzz test makes lines of: some bytes for each.
type Script []byte

// Next returns a number below n, 0 after the end.
func (s *Script) Next(n int) int {
	if len(*s) == 0 {
		return 0
	}
	b := int((*s)[0])
	*s = (*s)[1:]
	return b % n
}
