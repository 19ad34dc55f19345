package main

import (
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/errpage"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// badLines are lines of SWF, of which one is a job: number, submitted, waited, ran, processors.
const badLines = `1 9 0 60 1
2 9 0 0 1 -1 -1 1 30 -1 5
3 9 0 60
4 9 0 long 1
5 9 0 -2 1
6 9 0 -1 1
7 9 0 60 -1
8 9 0 60 5
9 -9 0 60 1
10 9 0 4e9 1
11 9 0 60 2e9
12 9 0 60 1 -1 -1 1 30
`

func file(name, text string) func(*testing.T) {
	return func(t *testing.T) { require.NoError(t, os.WriteFile(name, []byte(text), 0o644)) }
}

func TestErrorsAreLessons(t *testing.T) {
	errpage.Page{
		Name: "simulate", Sources: []string{"."},
		Run: func(_ io.Reader, args ...string) (status int, stdout, stderr string) { return command(t, args...) },
		Elsewhere: map[string][]string{
			"TestAnInterruptBeforeTheFirstJobLeavesTheOldPage": {"simulate: interrupted"},
			"it takes four million lines":                      {"line %d: more than %d jobs"},
			"a fault of the program":                           {"nothing happens any more, and %d jobs are left", "job %v cannot be read after a restart: %w"},
		},
		Cases: []errpage.Case{
			{When: "a flag that is not there", Args: "-node 5", Status: 2},
			{When: "a trace without -swf", Args: "LOG.swf", Status: 2},
			{When: "a policy that is not there", Args: "-policy best", Status: 2},
			{When: "no nodes", Args: "-nodes 0", Status: 2},
			{When: "a share of more than all", Args: "-straggle 2", Status: 2},
			{When: "no duration", Args: "-epilog soon", Status: 2},
			{When: "too short a duration", Args: "-runtime 0", Status: 2},
			{When: "no seed", Args: "-seed one", Status: 2},
			{When: "a depth for fifo", Args: "-policy fifo -depth 3", Status: 2},
			{When: "reservations for another policy", Args: "-reservations 3", Status: 2},
			{When: "gpus of whole nodes", Args: "-gpus 4", Status: 2},
			{When: "jobs with gpus where there are none", Args: "-gpu-jobs 0.3", Status: 2},
			{When: "more gpus than cores", Args: "-share -cores 8 -gpus 9", Status: 2},
			{When: "a limit below the median", Args: "-max-runtime 1m", Status: 2},
			{When: "a flag of made-up jobs for a trace", Args: "-swf LOG -fail 0.1", Status: 2},
			{When: "arrivals that -load moves", Args: "-arrival 5m", Status: 2},
			{When: "shares of no epilogs", Args: "-sweep -epilog 0", Status: 2},
			{When: "two outputs with one name", Args: "-csv jobs -json ./jobs", Status: 2},
			{When: "a table in the place of a log", Args: "-log d -csv d/whole.jsonl", Status: 2},
			{When: "a table in the place of a plot", Args: "-svg d -csv d/free.svg", Status: 2},
			{When: "a table in the place of the trace", Args: "-swf LOG -csv ./LOG", Prepare: file("LOG", "1 0 0 60 4\n"), Status: 2},
			{When: "a trace in the place of the trace", Args: "-swf partial.swf -swf-out .", Status: 2},
			{When: "jobs larger than the machine", Args: "-max-size 300", Status: 2},
			{When: "a trace that is not there", Args: "-swf LOG.swf", Status: 1},
			{When: "a trace that is a folder", Args: "-swf .", Status: 1},
			{When: "a trace that is something else", Args: "-swf LOG", Prepare: file("LOG", "{}\n"), Status: 1},
			{When: "a trace that is binary", Args: "-swf LOG", Prepare: file("LOG", strings.Repeat("x", maxLine+1)), Status: 1},
			{When: "a trace that was cut", Args: "-swf LOG.gz", Prepare: file("LOG.gz", "\x1f\x8b\x08\x00"), Status: 1},
			{When: "a trace with lines that are no jobs", Args: "-html= -seeds 1 -nodes 4 -swf LOG", Prepare: file("LOG", badLines)},
			{When: "a trace that was cut within a line", Args: "-html= -seeds 1 -nodes 4 -swf LOG", Prepare: file("LOG", "1 9 0 60 1\n2 9 0 60 1")},
			{When: "a trace with parts of a job", Args: "-html= -seeds 1 -nodes 4 -swf LOG", Prepare: file("LOG", "1 9 0 60 1 -1 -1 1 90 -1 1\n1 9 0 60 1 -1 -1 1 90 -1 3\n")},
			{When: "a trace of a larger machine", Args: "-nodes 1 -cores 1 -swf LOG", Prepare: file("LOG", "1 0 0 60 4\n"), Status: 1},
			{When: "a trace of nodes with more cores than an R can have", Args: "-swf LOG", Prepare: file("LOG", "; MaxNodes: 3\n; MaxProcs: 4194302\n1 0 0 60 4\n"), Status: 1},
			{When: "a page in a folder that is not there", Args: "-html none/x.html", Status: 1},
			{When: "a folder in the place of a file", Args: "-csv .", Status: 1},
			{When: "a file in the place of a folder", Args: "-log x", Prepare: file("x", ""), Status: 1},
			{When: "a load that takes ages", Args: "-html= -jobs 50 -load 1e-300", Status: 1},
			{When: "a run that takes ages", Args: "-html= -seeds 1 -jobs 9 -nodes 1 -load 0 -runtime 36500d -max-runtime 36500d", Status: 1},
			{When: "nodes that fail all the time", Args: "-html= -seeds 1 -jobs 50 -nodes 8 -max-size 8 -mtbf 1h -repair 30d", Status: 1},
			{When: "a full disk", Args: "-jobs 2 -seeds 1 -html= -csv /dev/full", Status: 1},
		},
	}.Check(t, *update)
}
