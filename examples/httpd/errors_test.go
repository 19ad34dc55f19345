//go:build unix

package main

import (
	"bytes"
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/errpage"
	"github.com/joblife/joblife/examples/internal/proctest"
	"github.com/joblife/joblife/purge/boltstore"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// The flags that are those of every program of package proc are on the page of command embed.
func TestErrorsAreLessons(t *testing.T) {
	d := begin(t, "{}")
	open := func(t *testing.T) {
		s, err := boltstore.Open("jobs.db")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
	}
	errpage.Page{
		Name: "httpd", Sources: []string{"."},
		Run: func(_ io.Reader, args ...string) (int, string, string) {
			if args[0] == "ask" {
				status, text := d.try(args[1], "/"+args[2], strings.Join(args[3:], " "))
				return status, "", "httpd: " + text
			}
			var stdout, stderr bytes.Buffer
			cmd := proctest.Command(&stdout, args...)
			cmd.Stderr = &stderr
			_ = cmd.Run() // the status says it
			return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
		},
		Elsewhere: map[string][]string{
			"TestBadRequestsChangeNothing": {"the jobspec, which may have %d bytes: %w"},
			"TestReadersOfLogsAreBounded":  {"%d logs are being read: ask again later"},
		},
		Cases: []errpage.Case{
			{When: "a command without its flag", Args: "jobs", Status: 2},
			{When: "no nodes", Args: "-nodes=0", Status: 2},
			{When: "a folder that is in use", Args: "-dir=.", Prepare: open, Status: 1},
			{When: "a folder that is a file", Args: "-dir=x", Prepare: func(t *testing.T) { require.NoError(t, os.WriteFile("x", nil, 0o600)) }, Status: 1},
			{When: "a folder that others may write", Args: "-dir=.", Prepare: func(t *testing.T) { require.NoError(t, os.Chmod(".", 0o777)) }, Status: 1},
			{When: "a folder with a long path", Args: "-dir=" + strings.Repeat("x", 100), Status: 1},
			{When: "a file in the place of the socket", Args: "-dir=.", Prepare: func(t *testing.T) { require.NoError(t, os.WriteFile("http", nil, 0o600)) }, Status: 1},
			{When: "a job without a jobspec", Args: "ask POST jobs", Status: 400},
			{When: "a jobspec that is none", Args: "ask POST jobs {}", Status: 400},
			{When: "a jobspec that is no JSON", Args: "ask POST jobs sleep", Status: 400},
			{When: "a job that is not there", Args: "ask GET jobs/ƒuZZybuNNy", Status: 404},
			{When: "the log of a job that is not there", Args: "ask GET jobs/ƒuZZybuNNy/log", Status: 404},
			{When: "a job that is not there, canceled", Args: "ask DELETE jobs/ƒuZZybuNNy", Status: 404},
			{When: "no id", Args: "ask GET jobs/x", Status: 400},
			{When: "a path that is not there", Args: "ask GET job", Status: 404},
			{When: "a method that is not there", Args: "ask PUT jobs", Status: 405},
		},
	}.Check(t, *update)
}
