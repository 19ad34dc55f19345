package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	osexec "os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/cluster/client"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/examples/internal/proctest"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
)

// begins starts an instance in a folder, and has it end in order with the test.
func begins(t *testing.T, dir string, nodes int, flags ...string) {
	up := proctest.Start(t, dir+"/up.log", append([]string{"up", "-dir", dir, "-nodes", fmt.Sprint(nodes)}, flags...)...)
	t.Cleanup(func() {
		require.NoError(t, up.Process.Signal(os.Interrupt))
		require.NoError(t, up.Wait(), "an orderly end")
	})
	proctest.Await(t, dir+"/up.log", fmt.Sprint(nodes, " nodes at"), 1)
}

// Each command, as a user types it, and what it prints. @ stands for the job submitted last, @0
// for the first one.
func TestCommands(t *testing.T) {
	dir := t.TempDir()
	begins(t, dir, 4)
	var seen bytes.Buffer
	watch := proctest.Command(&seen, "watch", "-dir", dir, "-json")
	require.NoError(t, watch.Start())
	var ids []string
	for _, c := range []struct {
		args string
		code int
		want string // a regular expression for all that is printed
	}{
		{"jobs -json", 0, `\[\]\n`},
		{"run -N 2 -l echo hi", 0, `(\d: hi\n){2}`},
		{"run -json -N 1 printf a\\nb", 0, `\{"rank":\d,"data":"a\\n"\}\n\{"rank":\d,"data":"b"\}\n`},
		{"run false", 1, `cluster: job ƒ\w+: FAILED: cluster job ƒ\w+ says why\n`},
		{"submit -N 4 sleep 60", 0, `ƒ\w+\n`},
		{"jobs", 0, `JOBID +USER +NAME +ST +NNODES +TIME +INFO\n@ +\d+ +sleep +[RS] (.|\n)*`},
		{"submit -N 1 -urgency 0 true", 0, `ƒ\w+\n`},
		{"job @", 0, `(.|\n)*state +SCHED\nwaits for +release of the hold\n(.|\n)*submit(.|\n)*`},
		{"urgency @ 16", 0, "it was 0\n"},
		{"job -json @", 0, `\{"id":\d+,(.|\n)*"state":"SCHED"(.|\n)*`},
		{"cancel -m enough @", 0, ``},
		{"wait @", 1, `cluster: job @: CANCELED: cluster job @ says why\n`},
		{"wait -json @", 1, `cluster: job @: CANCELED: cluster job @ says why\n\{"id":\d+,.*"state":"INACTIVE","result":"CANCELED".*\}\n`},
		{"wait -json ƒuZZybuNNy", 1, `cluster: .*unknown.*\n`},
		{"drain -reason bad 3", 0, ``},
		{"nodes", 0, `RANK +HOST +STATE +HELD BY\n0 (.|\n)*3 +up, drained since .*: bad(.|\n)*`},
		{"resume 3", 0, ``},
		{"status", 0, `active +\S+, epoch \d+\nstandby +\S+, \d+ messages behind\n(.|\n)*`},
		{"takeover", 0, `\S+ is active after \d+ms\n`},
		{"status", 0, `active +\S+, epoch \d+\n(standby +\S+, \d+ messages behind\n)?nodes +\d up, \d down, 0 drained\n(.|\n)*`},
		{"purge -all -dry-run", 0, "4 jobs\n"},
		{"purge -all", 0, "4 jobs\n"},
		{"jobs -a -json", 0, `\[\{.*"name":"sleep".*\}\]\n`},
		{"top -json -d 1h -timeout 2s", 0, `\{"jobs":\[\{.*\}\],"status":\{.*\}\}\n`},
		{"init -json -nodes 1 -dir " + dir + "/other", 0, `"` + dir + `/other"\n`},
		{"cancel @0", 0, ""},
		{"wait @0", 143, `cluster: job @0: CANCELED: cluster job @0 says why\n`},
	} {
		names := strings.NewReplacer("@0", first(ids), "@", last(ids))
		fields := strings.Fields(names.Replace(c.args))
		fields = append([]string{fields[0], "-dir", dir}, fields[1:]...)
		var printed bytes.Buffer
		cmd := proctest.Command(&printed, fields...)
		began := time.Now()
		_ = cmd.Run()
		require.Equal(t, c.code, cmd.ProcessState.ExitCode(), "%s: %s", c.args, &printed)
		require.Regexp(t, "^"+names.Replace(c.want)+"$", printed.String(), c.args)
		require.Less(t, time.Since(began), 20*time.Second, c.args)
		if fields[0] == "submit" {
			ids = append(ids, strings.TrimSpace(printed.String()))
		}
	}
	p := &program{FlagSet: flag.NewFlagSet("cluster wait", flag.ContinueOnError), dir: dir}
	require.NoError(t, p.read())
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	require.Equal(t, exitCode(130), p.asks(0, func(ctx context.Context, _ *client.Client) error { return ctx.Err() })(interrupted))

	require.NoError(t, watch.Process.Signal(os.Interrupt))
	require.NoError(t, watch.Wait())
	names := make(map[string]bool)
	for lines := json.NewDecoder(&seen); lines.More(); {
		var line struct {
			ID    jobid.ID
			Event struct{ Name string }
		}
		require.NoError(t, lines.Decode(&line))
		require.NotZero(t, line.ID)
		names[line.Event.Name] = true
	}
	require.True(t, names["clean"], "the last of many events: %v", names)
}

// A line of output has one label, and one that is long does not wait for its end.
func TestALabelIsBeforeEachLine(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/out")
	require.NoError(t, err)
	defer f.Close()
	stdout := os.Stdout
	os.Stdout = f
	defer func() { os.Stdout = stdout }()
	w, long := &labeled{mu: new(sync.Mutex), label: "0: "}, strings.Repeat("x", maxLine)
	for _, text := range []string{"a", "b\nc\n", "", "d", long, long, long[1:], "e\nf", "\n\ng"} {
		_, err := w.Write([]byte(text))
		require.NoError(t, err)
		require.LessOrEqual(t, len(w.rest), maxLine)
	}
	w.end()
	out, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	require.Equal(t, "0: ab\n0: c\n0: d"+long+long+long[1:]+"e\n0: f\n0: \n0: g", string(out))
}

func first(list []string) string { return append(list, "")[0] }

func last(list []string) string { return append([]string{""}, list...)[len(list)] }

// The completion knows commands, and the flags of each; and leaves files to the shell.
func TestTheShellCompletes(t *testing.T) {
	bash, err := osexec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	for words, want := range map[string]string{"dr": "drain", "no": "node nodes", "drain -re": "-reason", "run -jobs": "-jobspec", "submit ./a": "", "jobs -zz": ""} {
		var out bytes.Buffer
		cmd := proctest.Command(&out)
		cmd.Path, cmd.Args = bash, append([]string{bash, "-c", `eval "$("$0" completion)"
			COMP_WORDS=("$0" "$@") COMP_CWORD=$#
			_cluster
			echo "${COMPREPLY[*]}"
			complete -p cluster`, os.Args[0]}, strings.Fields(words)...)
		require.NoError(t, cmd.Run(), &out)
		require.Equal(t, want+"\ncomplete -o default -F _cluster cluster\n", out.String(), words)
	}
}

// Columns are aligned whatever takes two columns of a terminal or none, the head alone is bold, and
// what somebody wrote into a cell controls nothing.
func TestATableIsAligned(t *testing.T) {
	rows := [][]string{{"NAME", "ST", "INFO"}, {"日本、ｶﾅ", "R", ""}, {"か\u3099🚀🚀e\u0301", "", "x"}, {"a\tb", "S", "c\x1b[2J\nd"}}
	var out bytes.Buffer
	text.EnableColors() // whatever the environment says
	require.NoError(t, printTable(&out, true, rows))
	require.Equal(t, "\x1b[1mNAME\x1b[0m      \x1b[1mST\x1b[0m  \x1b[1mINFO\x1b[0m\n日本、ｶﾅ  R\nか\u3099🚀🚀e\u0301       x\na?b       S   c?[2J?d\n", out.String())
	out.Reset()
	require.NoError(t, printTable(&out, false, rows[:1]))
	require.Equal(t, "NAME  ST  INFO\n", out.String())
}

// A node that is drained may be down too, and an operator sees since when.
func TestTheStateOfANodeIsWhole(t *testing.T) {
	since := time.Now().Add(-time.Hour)
	for want, n := range map[string]wire.Node{
		"^up$": {Up: true}, "^down$": {}, `^down, drained since [0-9:]+ \(1h0m0s ago\): disk$`: {Drained: "disk", Since: since},
	} {
		require.Regexp(t, want, stateOf(n))
	}
}

// A job is followed for ever, unless -timeout says how long; what there is of its output is printed
// within 30 seconds.
func TestALogIsFollowedForEver(t *testing.T) {
	for args, want := range map[string]string{"": "30s", "-f": "0s", "-f -timeout=30s": "30s", "-timeout=5s -f": "5s", "-f=false": "30s"} {
		p := &program{FlagSet: flag.NewFlagSet("log", flag.ContinueOnError), dir: t.TempDir()}
		run := output(p)
		require.NoError(t, p.Parse(strings.Fields(args)))
		require.ErrorContains(t, run(t.Context()), "credential")
		require.Equal(t, want, p.Lookup("timeout").Value.String(), args)
	}
}

// To follow a job that has not started is to wait for that.
func TestALogIsFollowedFromTheSubmission(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	begins(t, dir, 1, "-actions", `{"prologs":[{"command":["sleep","1"],"per-rank":true}]}`)
	_, id, _ := execute("submit", "-dir", dir, "echo", "hello")
	status, stdout, stderr := execute("log", "-dir", dir, "-f", strings.TrimSpace(id))
	require.Zero(t, status, stderr)
	require.Equal(t, "hello\n", stdout)
}

// A list of jobs has those that its flags ask for, whether they run or are over.
func TestFlagsOfJobsAreOfThoseThatRunToo(t *testing.T) {
	w := begin(t, 1, perilog.Config{})
	known := []wire.JobInfo{
		{ID: 1, UserID: 7, Name: "a"}, {ID: 2, UserID: 5, Name: "a"}, {ID: 3, UserID: 5, Name: "b"}, {ID: 4, UserID: 5, Name: "a", Result: "FAILED", Inactive: 9},
	}
	user := uint32(5)
	for _, c := range []struct {
		r    wire.Request
		want []jobid.ID
	}{
		{wire.Request{}, []jobid.ID{1, 2, 3, 4}}, {wire.Request{User: &user}, []jobid.ID{2, 3, 4}}, {wire.Request{User: &user, Name: "a"}, []jobid.ID{2, 4}},
		{wire.Request{Result: "FAILED"}, []jobid.ID{1, 2, 3, 4}}, {wire.Request{Since: 10}, []jobid.ID{1, 2, 3}},
	} {
		c.r.Limit = 100
		list, err := history(t.Context(), w.Client, c.r, known)
		require.NoError(t, err)
		var ids []jobid.ID
		for _, j := range list {
			ids = append(ids, j.ID)
		}
		require.Equal(t, c.want, ids)
	}
}

// A list may have a job without a state: who can forge an answer ends no command.
func TestAJobMayHaveNoState(t *testing.T) {
	require.Empty(t, short(wire.JobInfo{}))
}
