package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// call runs the command.
func call(args ...string) (status int, stdout, stderr string) {
	var out, errs strings.Builder
	status = run(args, &out, &errs)
	return status, out.String(), errs.String()
}

func golden(t *testing.T, name, got string) {
	file := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestTheOutputIsThatOfTheGoldenFiles(t *testing.T) {
	for name, args := range map[string]string{
		"dryrun": "-jobs 500 -age-limit 10d",
		"force":  "-jobs 500 -force",
		"count":  "-jobs 500 -num-limit 495 -min-age 1h -pin 1",
	} {
		status, stdout, stderr := call(strings.Fields(args)...)
		require.Zero(t, status, stderr)
		require.Empty(t, stderr)
		for line := range strings.Lines(stdout) {
			require.LessOrEqual(t, len([]rune(line)), 101, line)
		}
		golden(t, name, stdout)
	}
}

// count returns the number in a row of the table with a title.
func count(t *testing.T, stdout, title, row string) string {
	at := strings.Index(stdout, " "+title)
	require.GreaterOrEqual(t, at, 0, stdout)
	m := regexp.MustCompile(regexp.QuoteMeta(row) + ` +(\d+)`).FindStringSubmatch(stdout[at:])
	require.NotNil(t, m, stdout)
	return m[1]
}

func TestARestartKnowsWhatWasPurged(t *testing.T) {
	where := []string{"-store", filepath.Join(t.TempDir(), "jobs.db"), "-jobs", "60"}
	status, stdout, stderr := call(append(where, "-force", "-num-limit", "40")...)
	require.Zero(t, status, stderr)
	require.Equal(t, "60", count(t, stdout, "BEFORE", "inactive"))
	require.Equal(t, "20", count(t, stdout, "AFTER", "purged now"))
	status, stdout, stderr = call(where...)
	require.Zero(t, status, stderr)
	require.Equal(t, "40", count(t, stdout, "BEFORE", "inactive"))
	require.Equal(t, "0", count(t, stdout, "BEFORE", "purged now"))
	require.Equal(t, "20", count(t, stdout, "BEFORE", "tombstones"))
}

func TestJobsGoByID(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.db")
	_, stdout, _ := call("-store", file, "-jobs", "30", "-age-limit", "0", "-pin", "1")
	ids := regexp.MustCompile(`ƒ\w+`).FindAllString(stdout, -1)
	require.Len(t, ids, 9, "eight that are shown, and one that is pinned")
	free, pinned := ids[0], ids[8]
	status, stdout, _ := call("-store", file, "-pin", "1", "-id", free)
	require.Zero(t, status)
	require.Contains(t, stdout, free+": would be purged")
	status, stdout, stderr := call("-store", file, "-force", "-pin", "1", "-id", free, "-id", pinned, "-id", free, "-id", "12345")
	require.Equal(t, 1, status)
	require.Contains(t, stdout, free+": purged")
	require.Contains(t, stdout, pinned+": stays: job is pinned")
	require.Contains(t, stdout, free+": stays: job was purged")
	require.Contains(t, stdout, "stays: no such job")
	require.Equal(t, "purge: 3 of 4 jobs stay: standard output says why\n", stderr)
}

func TestTheHelp(t *testing.T) {
	status, stdout, stderr := call("-h")
	require.Zero(t, status)
	require.Empty(t, stderr)
	require.Contains(t, stdout, "Usage: purge [flags]")
}
