package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/lines"
)

// line returns a job on the nodes fluke0 to fluke2, as JSON lines have it.
func line(id int, first int, events ...string) string {
	log := ""
	for i, e := range append([]string{
		`"submit","context":{"userid":7,"urgency":16,"flags":0,"version":1}`, `"validate"`, `"depend"`,
		`"priority","context":{"priority":16}`, `"alloc"`,
	}, events...) {
		log += fmt.Sprintf(`{"timestamp":%d.0,"name":%s}`+"\n", 1_600_000_000+10*i, e)
	}
	r := fmt.Sprintf(`{"version":1,"execution":{"R_lite":[{"rank":"%d-%d","children":{"core":"0-3"}}],"starttime":0,"expiration":0,"nodelist":["fluke[%d-%d]"]}}`,
		first, first+2, first, first+2)
	return fmt.Sprintf(`{"id":%d,"eventlog":%q,"R":%s}`+"\n", id, log, r)
}

func TestWhoHeldWhichNode(t *testing.T) {
	slow := line(1, 3,
		`"start"`, // at 50
		`"finish","context":{"status":0}`,
		`"epilog-start","context":{"description":"cleanup"}`,
		`"release","context":{"ranks":"all","final":true}`,
		`"perilog-release","context":{"description":"cleanup","kind":"epilog","ranks":"3,5","status":0}`, // at 90
		`"epilog-finish","context":{"description":"cleanup","status":0}`,                                 // at 100
		`"free"`, `"clean"`)
	runs := line(2, 0, `"prolog-start","context":{"description":"mount","ranks":"1"}`)
	noR := strings.Replace(line(3, 0), `"R":`, `"S":`, 1)
	pending := strings.Replace(line(4, 0), `\"alloc\"`, `\"x\"`, 1)
	path := filepath.Join(t.TempDir(), "jobs.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(slow+runs+noR+pending), 0o644))
	at := func(seconds int, more ...string) string {
		return good(t, nil, append(more, "-at", fmt.Sprint(1_600_000_000+seconds), path)...)
	}
	status, stdout, stderr := replay(t, nil, "-at", "1600000039", path)
	require.Equal(t, lines.ExitOK, status)
	require.Empty(t, stdout)
	require.Equal(t, "replay: no job held a node at 2020-09-13 12:27:19 UTC\n", stderr)
	require.Equal(t, `NODES       RANKS  JOBID  USER  NAME  ST  SINCE (UTC)          HOLDER
fluke1      1      ƒ3        7  -     R   2020-09-13 12:27:30  prolog mount
fluke[0,2]  0,2    ƒ3        7  -     R   2020-09-13 12:27:20  job
fluke[3-5]  3-5    ƒ2        7  -     C   2020-09-13 12:27:50  epilog cleanup
?           ?      ƒ4        7  -     R   -                    not known: there is no R
`, at(80))
	require.Contains(t, at(50), "fluke[3-5]  3-5    ƒ2        7  -     R   2020-09-13 12:27:30  executor\n")
	require.Contains(t, at(99), "fluke4      4      ƒ2        7  -     C   2020-09-13 12:27:50  epilog cleanup\n")
	require.Contains(t, at(45), "fluke[3-5]  3-5    ƒ2        7  -     R   2020-09-13 12:27:20  job\n")
	require.NotContains(t, at(110), "fluke[3")
	require.Equal(t, at(90), good(t, nil, "-at", "2020-09-13 12:28:10", path))
}

func TestATimeIsReadAsPeopleWriteIt(t *testing.T) {
	for _, s := range []string{"2020-09-13 12:26:40", "2020-09-13T12:26:40Z", "2020-09-13T14:26:40+02:00", "1600000000", "1600000000.0"} {
		at, err := parseTime(s)
		require.NoError(t, err)
		require.EqualValues(t, 1_600_000_000, at, s)
	}
	for _, s := range []string{"", "noon", "-1", "NaN", "Inf", "2020-13-01"} {
		_, err := parseTime(s)
		require.Error(t, err, s)
	}
	status, _, _ := replay(t, nil, "-at", "0", "-json", samplePath)
	require.Equal(t, lines.ExitUsage, status)
}

func TestFailedLeavesTheJobsThatDidNotComplete(t *testing.T) {
	_, all, _ := replay(t, nil, samplePath)
	stdout := good(t, nil, "-failed", samplePath)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	want := 0
	for _, word := range []string{"FAILED", "CANCELED", "TIMEOUT"} {
		want += strings.Count(all, word)
	}
	require.Len(t, lines, 1+want)
	require.NotContains(t, stdout, "COMPLETED")
	require.Contains(t, stdout, "prolog timed out on fluke1 (rank 1)")
	_, stdout, _ = replay(t, nil, "-failed", "-json", samplePath)
	require.Equal(t, want, strings.Count(stdout, "\n"))
}

// A job that returns to a state was there twice. Of the state that a job is in, the end is
// not known.
func TestTheTimeInEachStateHasAllStays(t *testing.T) {
	back := line(1, 0, `"start"`, `"finish","context":{"status":0}`, `"release","context":{"ranks":"all","final":true}`, `"free"`, `"clean"`)
	back = strings.Replace(back, `\"alloc\"`, `\"urgency\",\"context\":{\"userid\":7,\"urgency\":8}}\n`+
		`{\"timestamp\":1600000042.0,\"name\":\"priority\",\"context\":{\"priority\":8}}\n`+
		`{\"timestamp\":1600000047.5,\"name\":\"alloc\"`, 1)
	stdout := good(t, strings.NewReader(back+line(2, 0, `"start"`)), "-waits", "-")
	require.Equal(t, `JOBID  USER  NAME  ST  NEW  DEPEND  PRIORITY  SCHED    RUN  CLEANUP   ALL
ƒ2        7  -     I   10s     10s       12s  15.5s  12.5s      30s  1.5m
ƒ3        7  -     R   10s     10s       10s    10s      -        -     -
`, stdout)
}
