//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/proctest"
)

func TestMain(m *testing.M) { proctest.Main(m, main) }

// figures are what a report says of node-seconds.
var figures = regexp.MustCompile(`node-seconds: (\S+) with partial release, (\S+) all or nothing`)

// The epilog of node 0 waits for the jobs on the other nodes: there is no end without partial release.
func TestJobsStartWhileANodeIsInItsEpilog(t *testing.T) {
	t.Parallel() // it waits
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace")
	epilog := fmt.Sprintf("echo e$JOBLIFE_RANK >>%s; test $JOBLIFE_RANK != 0 || until test $(wc -l <%s) -ge 6; do sleep .01; done; sleep .3", trace, trace)
	var out bytes.Buffer
	require.NoError(t, proctest.Command(&out, "-dir", dir, "-nodes", "3", "-epilog", epilog).Run(), out.String())
	require.Regexp(t, `(?s)start.*perilog-release.*start.*start.*free`, out.String())
	rows := regexp.MustCompile(`(?m)^ +\S+ s  █*·*  (\S+)$`).FindAllStringSubmatch(out.String(), -1)
	require.Equal(t, "0", rows[len(rows)-1][1], out.String())
	sum := figures.FindStringSubmatch(out.String())
	require.NotNil(t, sum, out.String())
	partial, err := strconv.ParseFloat(sum[1], 64)
	require.NoError(t, err)
	whole, err := strconv.ParseFloat(sum[2], 64)
	require.NoError(t, err)
	require.Less(t, partial, whole)
}

// The program is killed while the epilog of node 0 runs, and its next start tells the same.
func TestAReportSurvivesKill9(t *testing.T) {
	t.Parallel() // it waits
	dir := t.TempDir()
	trace, done, log := filepath.Join(dir, "trace"), filepath.Join(dir, "done"), filepath.Join(dir, "out")
	args := []string{"-dir", filepath.Join(dir, "m"), "-nodes", "3", "-epilog",
		fmt.Sprintf("echo e$JOBLIFE_RANK >>%s; test $JOBLIFE_RANK != 0 || until test -e %s; do sleep .01; done", trace, done)}
	first := proctest.Start(t, log, args...)
	proctest.Await(t, log, "perilog-release", 2)
	proctest.Await(t, log, " free\n", 1) // of a job behind it
	require.NoError(t, first.Process.Kill())
	_ = first.Wait() // it was killed
	require.NoError(t, os.WriteFile(done, nil, 0o600))
	var out bytes.Buffer
	require.NoError(t, proctest.Command(&out, args...).Run(), out.String())
	require.Regexp(t, figures, out.String())
	require.Regexp(t, `(?m)^ +\S+ s  █+  0$`, out.String(), "node 0 was held longest")
	report := out.String()[strings.Index(out.String(), "\njob "):]
	out.Reset()
	require.NoError(t, proctest.Command(&out, args...).Run(), out.String())
	require.Equal(t, report, out.String(), "nothing is left to do")
	text, err := os.ReadFile(trace)
	require.NoError(t, err)
	require.Equal(t, 6, strings.Count(string(text), "e"), "one epilog a node and job: %s", text)
}
