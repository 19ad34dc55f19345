package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/bomb"
)

func TestNoInputTakesFarMoreThanItsLength(t *testing.T) {
	const (
		submit = `{"timestamp":1,"name":"submit","context":{"userid":1,"urgency":16,"flags":0,"version":1}}` + "\n"
		job    = `{"id":1,"eventlog":"{\"timestamp\":1,\"name\":\"submit\"}\n"}` + "\n"
	)
	bombs := []bomb.Bomb{
		bomb.Fill("lines that are no jobs", job, "\n", ""),
		bomb.Fill("short lines", job, "{}\n", ""),
		bomb.Fill("jobs", "", `{"eventlog":""}`+"\n", ""),
		bomb.Fill("jobs with a log", "", job, ""),
		bomb.Fill("events", submit, `{"timestamp":#1,"name":"x"}`+"\n", ""),
		bomb.Fill("bad events", submit, "x\n", ""),
		bomb.Fill("memos", submit, `{"timestamp":#1,"name":"memo","context":{"k#":1}}`+"\n", ""),
		bomb.Fill("prologs", submit, `{"timestamp":#1,"name":"prolog-start","context":{"description":"#"}}`+"\n", ""),
		bomb.Gzip("zipped jobs", job),
		bomb.Gzip("zipped bad lines", job+"\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"),
		bomb.Gzip("a zipped log", submit),
		bomb.Gzip("a zipped long line", `{"eventlog":"`),
		bomb.Gzip("zipped zeros", "\x00"),
		bomb.Bzip2("zeros in bzip2"),
	}
	few := 2
	if os.Getenv("JOBLIFE_DEEP") != "" {
		few = 0
	}
	bomb.DefuseProgram(t, func(text []byte) {
		run([]string{"-json"}, bytes.NewReader(text), io.Discard, io.Discard)
	}, few, bombs,
		"@\n", `{"id":1,"eventlog":@}`+"\n", `{"id":1,"eventlog":"","R":@}`+"\n", `{"id":1,"eventlog":"","jobspec":@}`+"\n",
		submit+`{"timestamp":1,"name":"x","context":@}`+"\n")
}

// A piece that is slow stands before the bad lines, which other workers read at once.
func TestGoodLinesBeforeTooManyBadOnesAreTold(t *testing.T) {
	const (
		submit = `{\"timestamp\":1,\"name\":\"submit\",\"context\":{\"userid\":1,\"urgency\":16,\"flags\":0,\"version\":1}}\n`
		event  = `{\"timestamp\":2,\"name\":\"x\"}\n`
		small  = 100
	)
	for bad, why := range map[string]string{"x\n": "invalid character", "{}\n": errNoJob.Error()} {
		for _, between := range []string{"", bad} {
			text := `{"id":1,"eventlog":"` + submit + strings.Repeat(event, (8<<20-20<<10)/len(event)) + `"}` + "\n" + between +
				strings.Repeat(`{"id":2,"eventlog":"`+submit+`"}`+"\n", small) + strings.Repeat(bad, 4*maxBad)
			var out, errs bytes.Buffer
			run([]string{"-json"}, strings.NewReader(text), &out, &errs)
			require.Equal(t, 1+small, bytes.Count(out.Bytes(), []byte("\n")))
			require.Equal(t, 1, strings.Count(errs.String(), errBad.Error()))
			require.Equal(t, maxBad, strings.Count(errs.String(), why))
		}
	}
}
