package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/errpage"
)

// file has a case prepared by a file of that name.
func file(name, text string) func(*testing.T) {
	return func(t *testing.T) { require.NoError(t, os.WriteFile(name, []byte(text), 0o644)) }
}

// zipped returns a text that was compressed so many times.
func zipped(t *testing.T, text string, times int) string {
	for range times {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		_, err := io.WriteString(z, text)
		require.NoError(t, err)
		require.NoError(t, z.Close())
		text = out.String()
	}
	return text
}

func TestErrorsAreLessons(t *testing.T) {
	const (
		submit = `{"timestamp":1,"name":"submit","context":{"userid":1,"urgency":16,"flags":0,"version":1}}` + "\n"
		early  = submit + `{"timestamp":2,"name":"start"}` + "\n"
		alloc  = `{"timestamp":1.5,"name":"validate"}` + "\n" + `{"timestamp":1.6,"name":"depend"}` + "\n" + `{"timestamp":2,"name":"priority","context":{"priority":16}}` + "\n" + `{"timestamp":2,"name":"alloc"}` + "\n"
	)
	line := func(id, log, more string) string {
		return `{"id":` + id + `,"eventlog":"` + strings.NewReplacer(`"`, `\"`, "\n", `\n`).Replace(log) + `"` + more + "}\n"
	}
	whole := line("1", submit, "")
	errpage.Page{
		Name: "replay", Sources: []string{".", "../internal/unpack"},
		Run: func(in io.Reader, args ...string) (status int, stdout, stderr string) { return replay(t, in, args...) },
		Elsewhere: map[string][]string{
			"it takes many lines, or many MiB": {
				"has more than %d lines that are no jobs", "is a log longer than %d MiB", "has a line longer than %d MiB",
			},
			"TestNothingToReadShowsTheSample": {"replay: no FILE: this is a recorded sample (replay -h for help)"},
			"it is never told":                {"no output"},
		},
		Cases: []errpage.Case{
			{When: "a flag that is not there", Args: "-fail", Status: 2},
			{When: "two forms of output", Args: "-json -events", Status: 2},
			{When: "a file beside the one that is followed", Args: "-follow x file", Status: 2},
			{When: "failed jobs of one that is followed", Args: "-failed -follow x", Status: 2},
			{When: "no file to follow", Args: "-follow=", Status: 2},
			{When: "no time", Args: "-at noon", Status: 2},
			{When: "a file that is not there", Args: "none.log", Status: 1},
			{When: "a file that is not there, to be followed", Args: "-follow none.log", Status: 1},
			{When: "a file of another kind", Args: "x.log", Prepare: file("x.log", "nonsense\n"), Status: 1},
			{When: "an empty file", Args: "x.log", Prepare: file("x.log", ""), Status: 1},
			{When: "nothing on standard input", Args: "-", Status: 1},
			{When: "a folder without logs", Args: ".", Status: 1},
			{When: "an R that is no file", Args: ".", Prepare: func(t *testing.T) { file("eventlog", submit)(t); require.NoError(t, os.Mkdir("R", 0o700)) }, Status: 1},
			{When: "a file that was cut", Args: "x.jsonl.gz", Prepare: file("x.jsonl.gz", zipped(t, whole, 1)[:50]), Status: 1},
			{When: "a file that gzip does not know", Args: "x.gz", Prepare: file("x.gz", "\x1f\x8bxxxxxxxxxxxx"), Status: 1},
			{When: "a file that was compressed again and again", Args: "x.gz", Prepare: file("x.gz", zipped(t, whole, 3)), Status: 1},
			{When: "a small file that would fill the memory", Args: "x.gz", Prepare: file("x.gz", zipped(t, whole+strings.Repeat("x", 1<<23), 1)), Status: 1},
			{When: "an archive that was cut", Args: "x.tar", Prepare: file("x.tar", strings.Repeat("\x00", 257)+"ustar"), Status: 1},
			{When: "JSON lines that are no jobs", Args: "-", Stdin: whole + "{\n" + `{"id":-1,"eventlog":""}` + "\n" + `{"eventlog":7}` + "\n" + `{"R":{}}` + "\n" + `{"id":1,"id":2}` + "\n", Status: 1},
			{When: "a job without a log", Args: "-", Stdin: whole + `{"id":2}` + "\n", Status: 1},
			{When: "a log that breaks the rules", Args: "-", Stdin: line("2", early, ""), Status: 1},
			{When: "a log without an id that breaks the rules", Args: "x.log", Prepare: file("x.log", early), Status: 1},
			{When: "the same, followed", Args: "-follow x.log", Prepare: file("x.log", early), Status: 1},
			{When: "a log that was cut", Args: "x.log", Prepare: file("x.log", submit+`{"times`), Status: 1},
			{When: "a jobspec that is none", Args: "-", Stdin: line("2", submit, `,"jobspec":{"version":9}`), Status: 1},
			{When: "an R that is none", Args: "-", Stdin: line("2", submit+alloc, `,"R":{"version":2}`), Status: 1},
			{When: "a time at which nothing ran", Args: "-at 2026-11-21 -", Stdin: whole},
			{When: "a time at which nothing ran yet", Args: "-at 0 -", Stdin: whole},
		},
	}.Check(t, *update)
}
