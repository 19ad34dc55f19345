package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/cluster/auth"
	"github.com/joblife/joblife/examples/internal/errpage"
	"github.com/joblife/joblife/examples/internal/proctest"
	"github.com/joblife/joblife/purge/boltstore"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// execute runs a command, and returns its exit status.
func execute(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	cmd := proctest.Command(&out, args...)
	cmd.Stderr = &errs
	_ = cmd.Run() // the status says it
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// Commands go to an instance that is up, unless they name another folder or server.
func TestErrorsAreLessons(t *testing.T) {
	instance := filepath.Join(t.TempDir(), "i")
	require.NoError(t, os.Mkdir(instance, 0o700))
	begins(t, instance, 2)
	t.Setenv("CLUSTER_DIR", instance)
	status, job, stderr := execute("submit", "-urgency=0", "true")
	require.Zero(t, status, stderr)
	status, _, stderr = execute("nodes") // and they are up
	require.Zero(t, status, stderr)

	text, err := os.ReadFile(instance + "/cluster.json")
	require.NoError(t, err)
	var made file
	require.NoError(t, json.Unmarshal(text, &made))
	makes := func(args ...string) func(*testing.T) {
		return func(t *testing.T) {
			status, _, stderr := execute(append([]string{"init", "-dir=."}, args...)...)
			require.Zero(t, status, stderr)
		}
	}
	write := func(name, text string) func(*testing.T) {
		return func(t *testing.T) { require.NoError(t, os.WriteFile(name, []byte(text), 0o600)) }
	}
	then := func(list ...func(*testing.T)) func(*testing.T) {
		return func(t *testing.T) {
			for _, f := range list {
				f(t)
			}
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	busy := l.Addr().String()
	open := func(t *testing.T) {
		s, err := boltstore.Open("jobs.db")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
	}
	with := func(member string) func(*testing.T) { // an instance whose file has it
		return then(makes("-nodes=1"), func(t *testing.T) {
			text, err := os.ReadFile("cluster.json")
			require.NoError(t, err)
			write("cluster.json", "{"+member+","+string(text[1:]))(t)
		})
	}
	errpage.Page{
		Name: "cluster", Sources: []string{".", "auth", "client"},
		Run: func(_ io.Reader, args ...string) (status int, stdout, stderr string) {
			for i := range args {
				args[i] = strings.NewReplacer("@", strings.TrimSpace(job), "BUSY", busy, "NATS", made.URL).Replace(args[i])
			}
			status, stdout, stderr = execute(args...)
			return status, stdout, strings.ReplaceAll(stderr, instance, "INSTANCE")
		},
		Elsewhere: map[string][]string{
			"reader_test.go: no reader, or none that answers": {
				"no reader runs: cluster reader starts one, if the records are in JetStream", "cluster: a reader does not answer: %w",
				"cluster: %v; of jobs that are over, the manager knows little\n", "cluster: %v; of a job that is over, the manager knows little\n",
				"the page shows no nodes and active jobs: that needs the credential of the owner", "%s is empty: remove it, and the reader makes another",
			},
			"client's tests: a credential that has expired, or a forged answer": {
				"cluster: an answer lacks what was asked for",
				"cluster: %w by the server: %w: if the credential has expired, the owner of the instance makes another with cluster user add %d",
			},
			"cluster_test.go: a node that is lost": {"cluster: no output of rank %d: the job is over, and the node does not answer"},
			"chaos_test.go: no manager, or one that ended": {
				"cluster: nobody answers on %s: there is no active manager, or it does not serve this instance",
				"cluster: no answer: whether the request counts is not known: %w",
			},
			"quota_test.go: too much of a guest": {
				"user %d has %d jobs that are not over, and may have no more",
				"the jobspec has %d bytes, and those of the jobs of user %d that are not over have %d: together they may have %d",
			},
			"roles_test.go: no server, or one that refuses a role": {"connection to the server"},
			"it begins those that are here":                        {"auth: %w", "auth: init %s: %w", "auth: add %s: %w", "auth: credential: %w", "auth: options of server: %w"},
			"auth's tests, and what no command can say": {
				"%s has no certificate", "auth: address of server: %w", "auth: a limit of requests must be above zero",
				"name of instance %.64q: want letters, digits and \"-\"", "nodes and cores: want numbers from 1 to %d",
			},
		},
		Cases: []errpage.Case{
			{When: "no command", Status: 2},
			{When: "a command that is not there", Args: "what", Status: 2},
			{When: "a flag that is not there", Args: "submit -nodes=2 true", Status: 2},
			{When: "a word behind the flags of a command that takes none", Args: "purge -all now -dry-run", Status: 2},
			{When: "a flag behind a word", Args: "cancel @ -m why", Status: 2},
			{When: "a word too many", Args: "nats a b", Status: 2},
			{When: "a jobspec and a command", Args: "submit -jobspec=- true", Status: 2},
			{When: "a folder without an instance", Args: "jobs -dir=.", Status: 1},
			{When: "a file of an instance that is no JSON", Args: "jobs -dir=.", Prepare: write("cluster.json", "{"), Status: 1},
			{When: "a file of an instance that lacks something", Args: "jobs -dir=.", Prepare: write("cluster.json", `{"url":"nats://127.0.0.1:1","instance":"main"}`), Status: 1},
			{When: "an instance that is there", Args: "init -dir=.", Prepare: makes("-nodes=1"), Status: 1},
			{When: "a flag of a new instance, for one that is there", Args: "up -nodes=4", Status: 2},
			{When: "the server of a new instance, for one that is there", Args: "up -nats=nats://127.0.0.1:1", Status: 2},
			{When: "a folder with old keys", Args: "init -dir=.", Prepare: then(makes("-nodes=1"), func(t *testing.T) { require.NoError(t, os.Remove("cluster.json")) }), Status: 1},
			{When: "a folder that is a file", Args: "init -dir=x", Prepare: write("x", ""), Status: 1},
			{When: "a server without a port", Args: "up -dir=. -nats=nats://localhost", Status: 2},
			{When: "a server without a host", Args: "init -dir=. -nats=nats://:4222", Status: 2},
			{When: "a port that no server can have", Args: "init -dir=. -nats=nats://10.0.0.1:4222,nats://10.0.0.2:0", Status: 2},
			{When: "a comma too many", Args: "init -dir=. -nats=nats://10.0.0.1:4222,", Status: 2},
			{When: "no nodes", Args: "init -dir=. -nodes=0", Status: 2},
			{When: "a host with a port", Args: "init -dir=. -hosts=10.0.0.1:4222", Status: 1},
			{When: "actions that are no JSON", Args: "init -dir=. -actions={", Status: 2},
			{When: "actions with a key that is not there", Args: `init -dir=. -actions={"epilog":[]}`, Status: 2},
			{When: "a scheduler that is not there", Args: "init -dir=. -sched=slurm", Status: 2},
			{When: "a store that is not there", Args: "init -dir=. -store=tape", Status: 2},
			{When: "a store without a file", Args: "manager -dir=.", Prepare: with(`"store":"bbolt:"`), Status: 1},
			{When: "no user", Args: "user add bob", Status: 2},
			{When: "an action without a command", Args: `init -dir=. -actions={"epilogs":[{"command":[]}]}`, Status: 2},
			{When: "a life that is over", Args: "user -life=-1s add 7", Status: 1},
			{When: "a user that is there", Args: "user add 7", Prepare: func(*testing.T) { execute("user", "add", "7") }, Status: 1},
			{When: "a server that is not there", Args: "jobs -nats=nats://127.0.0.1:1", Status: 1},
			{When: "a server of another instance", Args: "jobs -dir=. -nats=NATS", Prepare: makes("-nodes=1"), Status: 1},
			{When: "a user without a credential", Args: "jobs -dir=.", Prepare: then(makes("-nodes=1"), func(t *testing.T) { require.NoError(t, os.RemoveAll("keys")) }), Status: 1},
			{When: "no command of a job", Args: "submit", Status: 2},
			{When: "a negative number of nodes", Args: "submit -N=-1 true", Status: 2},
			{When: "a jobspec that is not there", Args: "submit -jobspec=x", Status: 1},
			{When: "a jobspec that is no JSON", Args: "submit -jobspec=x", Prepare: write("x", "version: 1\n"), Status: 1},
			{When: "a jobspec without an end", Args: "submit -jobspec=x", Prepare: write("x", "{"), Status: 1},
			{When: "a jobspec that is none", Args: "submit -jobspec=x", Prepare: write("x", "{}"), Status: 1},
			{When: "a jobspec that is too long", Args: "submit -jobspec=x", Prepare: write("x", `"`+strings.Repeat("x", auth.UserMaxPayload)+`"`), Status: 1},
			{When: "more nodes than there are", Args: "run -N=3 true", Status: 1},
			{When: "a program that is not there", Args: "run none", Status: 1},
			{When: "no id", Args: "job", Status: 2},
			{When: "an id that is none", Args: "job 0l", Status: 2},
			{When: "a job that is not there", Args: "job ƒuZZybuNNy", Status: 1},
			{When: "a job that is not there, waited for", Args: "wait ƒuZZybuNNy", Status: 1},
			{When: "the output of a job that waits", Args: "log @", Status: 1},
			{When: "jobs that are not there, canceled", Args: "cancel ƒuZZybuNNy ƒuZZybuNNz", Status: 1},
			{When: "a cancel of nothing", Args: "cancel", Status: 2},
			{When: "no urgency", Args: "urgency @", Status: 2},
			{When: "an urgency that is no number", Args: "urgency @ high", Status: 2},
			{When: "too high an urgency", Args: "urgency @ 32", Status: 1},
			{When: "a wait that is too long", Args: "wait -timeout=100ms @", Status: 1},
			{When: "no ranks", Args: "drain", Status: 2},
			{When: "ranks that are none", Args: "drain node7", Status: 2},
			{When: "a node that is not there", Args: "drain 7", Status: 1},
			{When: "a node that is up, given up", Args: "lost 0", Status: 1},
			{When: "a purge of nothing", Args: "purge", Status: 2},
			{When: "a purge of all, and of what is old", Args: "purge -all -age=7d", Status: 1},
			{When: "a purge of all but a negative number", Args: "purge -all -keep=-5", Status: 2},
			{When: "looks without a time between", Args: "top -d=0", Status: 2},
			{When: "no number of jobs", Args: "jobs -limit=0", Status: 2},
			{When: "a user that no system has", Args: "jobs -a -user=4294967296", Status: 2},
			{When: "jobs of another user, without -a", Args: "jobs -user=7", Status: 2},
			{When: "a negative user", Args: "jobs -a -user=-7", Status: 2},
			{When: "jobs that end in the future", Args: "jobs -a -since=-1h", Status: 2},
			{When: "a result that is none", Args: "jobs -a -result=DONE", Status: 2},
			{When: "a node that the instance does not have", Args: "node 7", Status: 2},
			{When: "no node", Args: "node []", Status: 2},
			{When: "a negative number of bytes", Args: "node -output=-1 0", Status: 2},
			{When: "a node that runs", Args: "node 0", Status: 1},
			{When: "a scheduler of an instance that has its own", Args: "sched", Status: 1},
			{When: "a port that is in use", Args: "nats -nats=nats://BUSY", Status: 1},
			{When: "an address of a server without a port", Args: "nats -nats=nats://localhost", Status: 1},
			{When: "a server that the instance does not have", Args: "nats -dir=. b", Prepare: with(`"servers":[{"name":"a"}]`), Status: 2},
			{When: "a port for metrics that is in use", Args: "manager -http=BUSY", Status: 1},
			{When: "a port for the page that is in use", Args: "reader -http=BUSY", Status: 1},
			{When: "a reader of an instance with a file", Args: "reader -dir=.", Prepare: makes("-nodes=1", "-store=bbolt:jobs.db"), Status: 1},
			{When: "a file of records that is in use", Args: "manager -dir=.", Prepare: then(makes("-nodes=1", "-store=bbolt:jobs.db"), open), Status: 1},
			{When: "a file of records that is none", Args: "manager -dir=.", Prepare: then(makes("-nodes=1", "-store=bbolt:jobs.db"), write("jobs.db", "{}\n")), Status: 1},
		},
	}.Check(t, *update)
}
