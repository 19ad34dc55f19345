package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/cluster/auth"
	"github.com/joblife/joblife/examples/cluster/client"
	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/manager"
	"github.com/joblife/joblife/examples/cluster/metrics"
	"github.com/joblife/joblife/examples/cluster/node"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/examples/internal/proctest"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/sched"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/proc"
)

func TestMain(m *testing.M) {
	syscall.Umask(0o022) // others may not write a folder
	proc.Shim()
	proctest.Main(m, func() { main() })
}

// A world is an instance in this process.
type world struct {
	asker
	url     string
	dir     string
	log     *slog.Logger
	cfg     joblife.Config
	n       uint32
	names   int
	remote  bool // the scheduler is not in the managers
	metrics *metrics.Set
}

func begin(t testing.TB, nodes uint32, actions perilog.Config) *world {
	dir := t.TempDir()
	s, err := engine.Serve(engine.Server{URL: "nats://127.0.0.1:0", Dir: filepath.Join(dir, "nats")}, "")
	require.NoError(t, err)
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	w := &world{asker: asker{TB: t}, url: s.ClientURL(), dir: dir, n: nodes, metrics: metrics.New()}
	w.log = slog.New(slog.NewTextHandler(testWriter{t}, nil))
	w.cfg = joblife.Config{Owner: uint32(os.Getuid()), Epoch: time.Unix(1_700_000_000, 0), Actions: actions}
	ctx := within(t, 20*time.Second)
	e, err := engine.Make(ctx, engine.Config{URL: w.url, Instance: "main", Name: "make"})
	require.NoError(t, err)
	e.Close()
	w.Client = w.open(w.cfg.Owner)
	return w
}

// An asker is a client whose errors end the test.
type asker struct {
	testing.TB
	*client.Client
}

// starts waits until a job has started, over until it is over; and asks asks the manager.
func (w *asker) starts(ctx context.Context, id jobid.ID) {
	_, err := w.Started(ctx, id)
	require.NoError(w, err)
}

func (w *asker) over(ctx context.Context, id jobid.ID) wire.JobInfo {
	job, err := w.Wait(ctx, id)
	require.NoError(w, err)
	return job
}

func (w *asker) asks(ctx context.Context, verb string, r wire.Request) wire.Answer {
	answer, err := w.Ask(ctx, verb, r)
	require.NoError(w, err, verb)
	return answer
}

// open connects as a user, and connect as whoever may do all.
func (w *world) open(uid uint32) *client.Client {
	c, err := client.Open(w.url, "main", uid)
	require.NoError(w, err)
	w.Cleanup(c.Close)
	return c
}

func (w *world) connect(options ...nats.Option) *nats.Conn {
	conn, err := nats.Connect(w.url, options...)
	require.NoError(w, err)
	w.Cleanup(conn.Close)
	return conn
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(b []byte) (int, error) {
	fmt.Fprint(os.Stderr, w.t.Name(), ": ", string(b))
	return len(b), nil
}

// start starts a role, and returns a function that ends it.
func (w *world) start(role string, run func(context.Context, *engine.Engine, *slog.Logger) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	w.names++
	name := fmt.Sprint(role, "-", w.names)
	done := make(chan struct{})
	go func() {
		defer close(done)
		e, err := engine.Open(ctx, engine.Config{URL: w.url, Instance: "main", Name: name})
		if err != nil {
			return
		}
		defer e.Close()
		_ = run(ctx, e, w.log.With("role", name))
	}()
	stop = func() { cancel(); <-done }
	w.Cleanup(stop)
	return stop
}

func (w *world) manager() func() {
	return w.start("manager", func(ctx context.Context, e *engine.Engine, log *slog.Logger) error {
		nodes, err := rset.New(rset.Config{Entries: []rset.Entry{{Ranks: idset.Range(0, w.n-1), Children: map[string]*idset.Set{"core": idset.Range(0, 1)}}}})
		require.NoError(w, err)
		return manager.Run(ctx, manager.Config{Engine: e, Manager: w.cfg, Policy: sched.EASY{}, Remote: w.remote, Nodes: nodes, Log: log, Metrics: w.metrics.Manager(e.Name()),
			NewHooks: func() []joblife.Hooks { return []joblife.Hooks{joblife.Dependencies()} }})
	})
}

func (w *world) node(rank uint32) func() {
	return w.start(fmt.Sprint("node", rank), func(ctx context.Context, e *engine.Engine, log *slog.Logger) error {
		return node.Run(ctx, node.Config{Engine: e, Rank: rank, Dir: filepath.Join(w.dir, fmt.Sprint("node-", rank)), Log: log})
	})
}

func (w *world) submit(ctx context.Context, key string, nodes int64, command string) jobid.ID {
	spec, err := jobspec.New(jobspec.Job{Nodes: nodes, Exclusive: true, Command: []string{"sh", "-c", command}})
	require.NoError(w, err)
	text, err := spec.MarshalJSON()
	require.NoError(w, err)
	answer, err := w.Ask(ctx, "submit", wire.Request{Key: key, Jobspec: text})
	require.NoError(w, err)
	return answer.ID
}

func TestAJobFromSubmitToItsOutput(t *testing.T) {
	w := begin(t, 4, perilog.Config{})
	w.nodes()
	ctx := within(t, 20*time.Second)
	id := w.submit(ctx, "a", 4, "echo $JOBLIFE_RANK; test $JOBLIFE_RANK != 3")
	require.Equal(t, id, w.submit(ctx, "a", 4, "other"))
	job := w.over(ctx, id)
	require.Equal(t, "FAILED", job.Result)
	for rank := range w.n {
		var out strings.Builder
		require.NoError(t, w.Client.Output(ctx, id, rank, ctx, &out))
		require.Equal(t, fmt.Sprintln(rank), out.String())
	}
}

// Who watches hears each event of a job once, in order; and of another job only if it watches all.
func TestAWatchHearsTheEvents(t *testing.T) {
	w := begin(t, 2, perilog.Config{})
	w.nodes()
	ctx := within(t, 20*time.Second)
	logs := make(map[jobid.ID]string)
	all, enough := context.WithCancel(ctx)
	submitted := make(chan struct{})
	go func() {
		defer close(submitted)
		for all.Err() == nil { // the first may come too early to be heard
			_, _ = w.Wait(ctx, w.submit(ctx, "", 1, "true"))
		}
	}()
	whole := 0
	err := w.Watch(all, 0, func(id jobid.ID, line []byte) {
		if logs[id] == "" && !strings.Contains(string(line), `"submit"`) {
			return // it was submitted before
		}
		if !strings.Contains(string(line), `"name":"annotations"`) { // which no log has
			logs[id] += string(line)
		}
		if strings.Contains(string(line), `"clean"`) {
			job, err := jobstate.Replay(id, []byte(logs[id]))
			require.NoError(t, err, logs[id])
			require.Equal(t, jobstate.StateInactive, job.State())
			if whole++; whole == 3 {
				enough()
			}
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	<-submitted

	one, over := context.WithCancel(ctx)
	id := w.submit(ctx, "", 1, "sleep 1")
	w.submit(ctx, "", 1, "true")
	err = w.Watch(one, id, func(of jobid.ID, line []byte) {
		require.Equal(t, id, of)
		if strings.Contains(string(line), `"clean"`) {
			over()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
}

// A node that runs as root runs a job as its user, who sees no job of another.
func TestAJobRunsAsItsUser(t *testing.T) {
	const nobody = 65534
	if os.Getuid() != 0 {
		t.Skip("only root can run a job as another user")
	}
	f := launch(t, fleetConfig{nodes: 1, managers: 1})
	ctx := within(t, time.Minute)
	require.NoError(t, auth.Add(filepath.Join(f.dir, "keys"), auth.User(nobody), 0))
	other, err := client.Open(f.file.URL, "main", nobody, f.options(auth.User(nobody))...)
	require.NoError(t, err)
	defer other.Close()
	owners := f.asks(ctx, "submit", wire.Request{Jobspec: f.spec(1, []string{"true"})})
	spec, err := jobspec.New(jobspec.Job{Nodes: 1, Exclusive: true, Command: []string{"sh", "-c", "kill -9 $PPID && echo killed; id -u"}, Cwd: "/"}) // its parent is the shim
	require.NoError(t, err)
	text, err := spec.MarshalJSON()
	require.NoError(t, err)
	answer, err := other.Ask(ctx, "submit", wire.Request{Jobspec: text})
	require.NoError(t, err)
	job, err := other.Wait(ctx, answer.ID)
	require.NoError(t, err)
	require.Equal(t, "COMPLETED", job.Result)
	var out strings.Builder
	require.NoError(t, other.Output(ctx, answer.ID, 0, ctx, &out))
	require.Regexp(t, "(?i)permitted\n+65534\n$", out.String())
	require.NoError(t, f.Client.Output(ctx, answer.ID, 0, nil, io.Discard), "the owner may")
	require.ErrorIs(t, other.Output(ctx, owners.ID, 0, nil, &out), client.ErrRefused)
	all, err := other.Ask(ctx, "jobs", wire.Request{All: true})
	require.NoError(t, err)
	require.Len(t, all.Jobs, 1)
	for _, verb := range []string{"job", "wait"} {
		_, err = other.Ask(ctx, verb, wire.Request{ID: owners.ID})
		require.ErrorIs(t, err, client.ErrRefused, verb)
	}
	for verb, r := range map[string]wire.Request{
		"cancel": {ID: owners.ID}, "drain": {Ranks: idset.Of(0)}, "purge": {All: true, Force: true}, "takeover": {},
	} {
		_, err := other.Ask(ctx, verb, r)
		require.ErrorIs(t, err, client.ErrRefused, verb)
	}
}

// A node that never comes back holds its job until the owner says that nothing runs there. Who
// follows the output of that hears of its end.
func TestALostNodeIsGivenUp(t *testing.T) {
	t.Parallel()
	w := begin(t, 2, perilog.Config{Epilogs: []perilog.ActionConfig{{Command: []string{"true"}, PerRank: true}}})
	w.manager()
	w.node(0)
	stop := w.node(1)
	ctx := within(t, time.Minute)
	id := w.submit(ctx, "", 2, "test $JOBLIFE_RANK = 0 || exec sleep 5") // it ends after the node's process
	w.starts(ctx, id)
	info, err := w.Job(ctx, id)
	require.NoError(t, err)
	followed := make(chan error, 1)
	go func() { followed <- new(program).outputs(ctx, w.Client, info, true, false) }()
	stop()
	_, err = w.Ask(ctx, "lost", wire.Request{Ranks: idset.Of(0)})
	require.ErrorContains(t, err, "node 0 is up")
	require.Eventually(t, func() bool {
		_, err := w.Ask(ctx, "lost", wire.Request{Ranks: idset.Of(1), Note: "burnt"})
		return err == nil
	}, 20*time.Second, 200*time.Millisecond, "the node is down at last")
	job := w.over(ctx, id)
	require.Equal(t, "FAILED", job.Result)
	next := w.submit(ctx, "", 1, "true")
	w.over(ctx, next)
	require.EqualError(t, <-followed, "cluster: no output of rank 1: the job is over, and the node does not answer")
}

// A node that is down when its epilog is due runs it when it is back, and is not drained.
func TestANodeThatComesBackRunsItsEpilog(t *testing.T) {
	t.Parallel()
	w := begin(t, 2, perilog.Config{Epilogs: []perilog.ActionConfig{{Command: []string{"true"}, PerRank: true}}})
	w.manager()
	w.node(0)
	stop := w.node(1)
	ctx := within(t, time.Minute)
	one := func() wire.Node {
		answer := w.asks(ctx, "nodes", wire.Request{})
		return answer.Nodes[1]
	}
	over := filepath.Join(w.dir, "over")
	id := w.submit(ctx, "", 2, "test $JOBLIFE_RANK = 1 || until test -e "+over+"; do sleep 0.1; done")
	w.starts(ctx, id)
	stop()
	require.Eventually(t, func() bool { return !one().Up }, 20*time.Second, 100*time.Millisecond)
	again := w.node(1) // what it knows of its shell comes before
	require.Eventually(t, func() bool { return one().Up }, 20*time.Second, 100*time.Millisecond)
	again()
	require.Eventually(t, func() bool { return !one().Up }, 20*time.Second, 100*time.Millisecond)
	require.NoError(t, os.WriteFile(over, nil, 0o600))
	require.Eventually(t, func() bool {
		job, err := w.Job(ctx, id)
		require.NoError(t, err)
		return job.State == "CLEANUP"
	}, 20*time.Second, 100*time.Millisecond)
	w.node(1)
	job := w.over(ctx, id)
	require.Equal(t, "COMPLETED", job.Result)
	require.Empty(t, one().Drained)
}

// A node that an operator drained, or where an epilog failed, gets no jobs, under the next manager
// too, until it is resumed.
func TestADrainOutlivesAManager(t *testing.T) {
	w := begin(t, 2, perilog.Config{Epilogs: []perilog.ActionConfig{{PerRank: true,
		Command: []string{"sh", "-c", `test $JOBLIFE_RANK = 0 || test -e "$0"`, "/no/such/file"}}}})
	stop := w.nodes()
	ctx := within(t, time.Minute)
	drained := func() (reasons []string) {
		answer := w.asks(ctx, "nodes", wire.Request{})
		for _, n := range answer.Nodes {
			reasons = append(reasons, n.Drained)
		}
		return reasons
	}
	_, err := w.Wait(ctx, w.submit(ctx, "", 2, "true")) // its epilog fails on node 1
	require.NoError(t, err)
	require.Equal(t, []string{"", "a prolog, an epilog or housekeeping failed"}, drained())
	w.asks(ctx, "drain", wire.Request{Ranks: idset.Of(0), Note: "bad"})
	waits := w.submit(ctx, "", 1, "true")

	stop()
	w.manager()
	require.Equal(t, []string{"bad", "a prolog, an epilog or housekeeping failed"}, drained())
	later := w.submit(ctx, "", 1, "true")
	for range 20 { // the nodes are up again, and what could start has
		answer := w.asks(ctx, "nodes", wire.Request{})
		if answer.Nodes[0].Up && answer.Nodes[1].Up {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	for _, id := range []jobid.ID{waits, later} {
		job, err := w.Job(ctx, id)
		require.NoError(t, err)
		require.Equal(t, "SCHED", job.State)
	}
	w.asks(ctx, "resume", wire.Request{Ranks: idset.Of(0)})
	for _, id := range []jobid.ID{waits, later} {
		job := w.over(ctx, id)
		require.Equal(t, "0", job.Ranks.String())
	}
}

// What an owner says of a lost node holds at once: its epilog is not launched there. The next
// manager has not heard of the node at all.
func TestALostNodeIsGivenUpAfterATakeover(t *testing.T) {
	t.Parallel()
	w := begin(t, 2, perilog.Config{
		Epilogs: []perilog.ActionConfig{{PerRank: true, Command: []string{"true"}}}, Housekeeping: &perilog.HousekeepingConfig{Command: []string{"true"}},
	})
	stop := w.manager()
	w.node(0)
	gone := w.node(1)
	ctx := within(t, 30*time.Second)
	id := w.submit(ctx, "", 2, "test $JOBLIFE_RANK = 0 || exec sleep 3") // it ends after the node's process
	w.starts(ctx, id)
	gone()
	stop()
	w.manager()
	w.asks(ctx, "lost", wire.Request{Ranks: idset.Of(1)})
	job := w.over(ctx, id)
	require.Equal(t, "FAILED", job.Result)
	_, err := w.Wait(ctx, w.submit(ctx, "", 1, "true")) // housekeeping holds no node for it
	require.NoError(t, err)
	answer := w.asks(ctx, "nodes", wire.Request{})
	require.False(t, answer.Nodes[1].Up)
	require.NotEmpty(t, answer.Nodes[1].Drained, "its epilog did not run there")
}

// A manager that has just begun gives up no node that may be up: it has had no time to say hello.
func TestANodeIsNotGivenUpEarly(t *testing.T) {
	t.Parallel()
	w := begin(t, 1, perilog.Config{})
	w.manager()
	ctx := within(t, 30*time.Second)
	w.asks(ctx, "status", wire.Request{})
	lost := make(chan error, 1)
	go func() {
		_, err := w.Ask(ctx, "lost", wire.Request{Ranks: idset.Of(0)})
		lost <- err
	}()
	time.Sleep(200 * time.Millisecond)
	w.node(0)
	require.ErrorContains(t, <-lost, "node 0 is up")
}

// A job and its housekeeping hold nodes that the inventory has no more, until the owner says that nothing
// runs there.
func TestANodeThatTheInventoryHasNoMoreIsGivenUp(t *testing.T) {
	t.Parallel()
	w := begin(t, 2, perilog.Config{Housekeeping: &perilog.HousekeepingConfig{Command: []string{"true"}}})
	stop := w.manager()
	w.node(0)
	gone := w.node(1)
	ctx := within(t, 30*time.Second)
	id := w.submit(ctx, "", 2, "test $JOBLIFE_RANK = 0 || exec sleep 1")
	w.starts(ctx, id)
	stop()
	gone()
	w.n = 1
	w.manager()
	_, err := w.Ask(ctx, "lost", wire.Request{Ranks: idset.Range(1, 2)})
	require.ErrorContains(t, err, "there is no node of rank 2")
	w.asks(ctx, "lost", wire.Request{Ranks: idset.Of(1)})
	job := w.over(ctx, id)
	require.Equal(t, "FAILED", job.Result)
	w.over(ctx, w.submit(ctx, "", 1, "true"))
	answer := w.asks(ctx, "status", wire.Request{})
	require.Zero(t, answer.Status.Down)
}
