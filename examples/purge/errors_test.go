package main

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/errpage"
	"github.com/joblife/joblife/purge/boltstore"
)

func TestErrorsAreLessons(t *testing.T) {
	made := func(change func(t *testing.T)) func(*testing.T) {
		return func(t *testing.T) {
			status, _, stderr := call("-store", "jobs.db", "-jobs", "5", "-force", "-age-limit", "1d", "-num-limit", "3")
			require.Zero(t, status, stderr)
			change(t)
		}
	}
	text := func(text string) func(*testing.T) {
		return func(t *testing.T) { require.NoError(t, os.WriteFile("jobs.db", []byte(text), 0o600)) }
	}
	open := func(t *testing.T) {
		s, err := boltstore.Open("jobs.db")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
	}
	cut := func(t *testing.T) {
		b, err := os.ReadFile("jobs.db")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile("jobs.db", b[:len(bytes.TrimRight(b, "\x00"))/2], 0o600))
	}
	without := func(t *testing.T) {
		s, err := boltstore.Open("jobs.db")
		require.NoError(t, err)
		require.NoError(t, s.Append([]joblife.Record{{Kind: joblife.RecordEvent, Job: 5, Data: []byte(`{"timestamp":1,"name":"start"}` + "\n")}}))
		require.NoError(t, s.Close())
	}
	errpage.Page{
		Name: "purge", Sources: []string{"."},
		Run: func(_ io.Reader, args ...string) (status int, stdout, stderr string) { return call(args...) },
		Cases: []errpage.Case{
			{When: "a flag that is not there", Args: "-fore", Status: 2},
			{When: "an id without its flag", Args: "ƒ2d", Status: 2},
			{When: "no id", Args: "-id x", Status: 2},
			{When: "an id and a limit", Args: "-id 5 -num-limit 3", Status: 2},
			{When: "a negative number", Args: "-num-limit -1", Status: 2},
			{When: "too large a number", Args: "-batch 1001", Status: 2},
			{When: "no number", Args: "-seed x", Status: 2},
			{When: "no duration", Args: "-age-limit soon", Status: 2},
			{When: "no yes and no no", Args: "-force=perhaps", Status: 2},
			{When: "jobs that stay", Args: "-jobs 5 -id 5 -id 6 -force", Status: 1},
			{When: "a store that is in use", Args: "-store jobs.db", Prepare: made(open), Status: 1},
			{When: "a store that was cut", Args: "-store jobs.db", Prepare: made(cut), Status: 1},
			{When: "a job that is damaged", Args: "-store jobs.db", Prepare: made(without)},
			{When: "a file that is no store", Args: "-store jobs.db", Prepare: text("{}\n"), Status: 1},
			{When: "an empty file", Args: "-store jobs.db", Prepare: text(""), Status: 1},
			{When: "a folder in the place of a store", Args: "-store .", Status: 1},
			{When: "a store in a folder that is not there", Args: "-store none/jobs.db", Status: 1},
		},
	}.Check(t, *update)
}
