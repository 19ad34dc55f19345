//go:build unix

package main

import (
	"bytes"
	"flag"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/errpage"
	"github.com/joblife/joblife/examples/internal/proctest"
	"github.com/joblife/joblife/purge/boltstore"
)

var update = flag.Bool("update", false, "rewrite the golden file")

func TestErrorsAreLessons(t *testing.T) {
	open := func(t *testing.T) {
		s, err := boltstore.Open("jobs.db")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
	}
	file := func(name string) func(t *testing.T) {
		return func(t *testing.T) { require.NoError(t, os.WriteFile(name, []byte("{}\n"), 0o600)) }
	}
	errpage.Page{
		Name: "embed", Sources: []string{".", "../internal/proc"},
		Run: func(_ io.Reader, args ...string) (int, string, string) {
			var stdout, stderr bytes.Buffer
			cmd := proctest.Command(&stdout, args...)
			cmd.Stderr = &stderr
			_ = cmd.Run() // the status says it
			return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
		},
		Elsewhere: map[string][]string{
			"tests of proc: damaged records, tasks that cannot start, jobs on nodes that are not there": {
				"the record is damaged, or of another version", "the record was not finished", "proc: %s.task: %w", "proc: %w", "proc: %v: %w",
				"the task %v is too long", "no command", "-nodes %d: job %v has node %d: give at least %d until it is over",
			},
			"the page of httpd": {"unexpected argument %q: give flags only"},
			"httpd and cluster: what a restart finds, and too much output": {
				"node %d is drained: %v was given up, and still runs", "job %v cannot be read, and keeps its nodes: %s", "it is limited to %d bytes",
			},
		},
		Cases: []errpage.Case{
			{When: "a flag that is not there", Args: "-directory=x", Status: 2},
			{When: "no node", Args: "-dir=. -n=0 true", Status: 2},
			{When: "a command that is no text", Args: "-dir=. a\xff", Status: 2},
			{When: "no nodes", Args: "-dir=. -nodes=0 true", Status: 2},
			{When: "too many cores", Args: "-dir=. -cores=1025 true", Status: 2},
			{When: "no number", Args: "-dir=. -nodes=many true", Status: 2},
			{When: "actions that are no JSON", Args: "-actions={", Status: 2},
			{When: "an action that is not there", Args: `-actions={"epilog":[]}`, Status: 2},
			{When: "an action without a command", Args: `-actions={"epilogs":[{"command":[]}]}`, Status: 2},
			{When: "actions of another kind", Args: "-actions=[]", Status: 2},
			{When: "two texts", Args: "-actions='{} {}'", Status: 2},
			{When: "a folder that is in use", Args: "-dir=. true", Prepare: open, Status: 1},
			{When: "a folder that is a file", Args: "-dir=x true", Prepare: file("x"), Status: 1},
			{When: "a folder that nobody can make", Args: "-dir=/proc/x true", Status: 1},
			{When: "a store that is a text", Args: "-dir=. true", Prepare: file("jobs.db"), Status: 1},
			{When: "a node that is a file", Args: "-dir=. true", Prepare: file("node-0"), Status: 1},
			{When: "an epilog that fails", Args: "-dir=. -nodes=1 -epilog='exit 1' true"},
		},
	}.Check(t, *update)
}
