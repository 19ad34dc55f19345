package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/cluster/auth"
	"github.com/joblife/joblife/examples/cluster/client"
	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/examples/internal/proctest"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/purge/boltstore"
)

// A fleet is an instance of processes that are killed.
type fleet struct {
	asker
	dir     string
	witness string
	file    file
	nodes   int

	mu    sync.Mutex
	procs map[string]*osexec.Cmd
}

// A fleetConfig says which processes there are.
type fleetConfig struct {
	nodes, managers int
	servers         int    // of a cluster; 0: one that is alone
	schedulers      int    // of processes of their own; 0: the managers schedule
	reads           bool   // there is a reader, which makes snapshots often
	store           string // as of the command up
	simulate        bool   // nodes run nothing, in one process
	prepare         func(dir string)
}

// freeURLs returns addresses that nobody has.
func freeURLs(t testing.TB, n int) (urls []string) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		urls = append(urls, "nats://"+l.Addr().String())
	}
	return urls
}

// launch begins an instance. What runs on a node writes down when it begins and ends.
func launch(t testing.TB, cfg fleetConfig) *fleet {
	dir, n := t.TempDir(), cfg.nodes
	f := &fleet{asker: asker{TB: t}, dir: dir, witness: filepath.Join(dir, "witness"), nodes: n, procs: make(map[string]*osexec.Cmd)}
	require.NoError(t, os.Mkdir(f.witness, 0o700))
	url := freeURLs(t, 1+2*cfg.servers)
	f.file = file{URL: url[0], Instance: "main", Owner: uint32(os.Getuid()), Store: cfg.store}
	if cfg.servers > 0 {
		f.file.URL, f.file.Replicas = "", cfg.servers
		for i := range cfg.servers {
			f.file.Servers = append(f.file.Servers, engine.Server{Name: fmt.Sprint("s", i), URL: url[1+i], Route: url[1+cfg.servers+i]})
			f.file.URL += strings.Repeat(",", min(i, 1)) + url[1+i]
		}
	}
	if cfg.schedulers > 0 {
		f.file.Sched = remote
	}
	var err error
	f.file.R, err = alike(n, 1)
	require.NoError(t, err)
	now := fsd.Duration(0)
	if !cfg.simulate {
		f.file.Actions = perilog.Config{
			Epilogs:      []perilog.ActionConfig{{Command: f.action("e", ".0$((RANDOM%9))"), PerRank: true}},
			Housekeeping: &perilog.HousekeepingConfig{Command: f.action("h", ".0$((RANDOM%9))"), ReleaseAfter: &now},
		}
	}
	require.NoError(t, (&program{file: f.file, dir: dir}).make(nil))
	if cfg.prepare != nil {
		cfg.prepare(dir)
	}
	for _, s := range f.file.Servers {
		f.start("nats " + s.Name)
	}
	if cfg.servers == 0 {
		f.start("nats")
	}
	for i := range cfg.managers {
		f.start(fmt.Sprint("manager ", i))
	}
	for i := range cfg.schedulers {
		f.start(fmt.Sprint("sched ", i))
	}
	if cfg.reads {
		f.start("reader -http= -snapshot-messages 100")
	}
	if cfg.simulate {
		f.start(fmt.Sprintf("node -simulate 0-%d", n-1))
	}
	for rank := range n {
		if !cfg.simulate {
			f.start(fmt.Sprint("node ", rank))
		}
	}
	require.Eventually(t, func() bool {
		f.Client, err = client.Open(f.file.URL, "main", f.file.Owner, f.options(auth.User(f.file.Owner))...)
		return err == nil
	}, 20*time.Second, 50*time.Millisecond)
	t.Cleanup(func() {
		if t.Failed() {
			f.logs()
		}
		f.Close()
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, p := range f.procs {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
	})
	return f
}

// options are those of a client.
func (f *fleet) options(id auth.ID) []nats.Option {
	options, err := auth.Options(filepath.Join(f.dir, "keys"), id, f.file.URL)
	require.NoError(f, err)
	return options
}

// action is a command that writes down when it begins and ends.
func (f *fleet) action(what, seconds string) []string {
	return []string{"bash", "-c", fmt.Sprintf(`w=%s/$JOBLIFE_RANK; echo $FLUX_JOB_ID %s begin >>$w; sleep %s; echo $FLUX_JOB_ID %s end >>$w`, f.witness, what, seconds, what)}
}

// start starts a process by its name: the arguments, of which a last number only tells managers
// and schedulers apart.
func (f *fleet) start(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	args := strings.Fields(name)
	if (args[0] == "manager" || args[0] == "sched") && len(args) == 2 {
		args = args[:1]
	}
	out, err := os.OpenFile(filepath.Join(f.dir, strings.NewReplacer(" ", "-", "/", "-").Replace(name)+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(f, err)
	defer out.Close()
	cmd := proctest.Command(out, append([]string{args[0], "-dir", f.dir}, args[1:]...)...)
	require.NoError(f, cmd.Start())
	f.procs[name] = cmd
}

// kill kills a process for good.
func (f *fleet) kill(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	require.NoError(f, f.procs[name].Process.Kill())
	_ = f.procs[name].Wait()
	delete(f.procs, name)
}

// signal signals a process; SIGKILL restarts it.
func (f *fleet) signal(name string, sig syscall.Signal) {
	f.mu.Lock()
	p := f.procs[name]
	f.mu.Unlock()
	require.NoError(f, p.Process.Signal(sig))
	if sig == syscall.SIGKILL {
		_ = p.Wait()
		f.start(name)
	}
}

// active is the name of the active manager.
func (f *fleet) active(ctx context.Context) string {
	answer := f.asks(ctx, "status", wire.Request{})
	fields := strings.Split(answer.Status.Holder, "-")
	pid, err := strconv.Atoi(fields[len(fields)-2])
	require.NoError(f, err)
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, p := range f.procs {
		if p.Process.Pid == pid {
			return name
		}
	}
	return ""
}

func (f *fleet) names(kind string) (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.procs {
		if strings.HasPrefix(name, kind) {
			names = append(names, name)
		}
	}
	return names
}

func (f *fleet) spec(nodes int64, command []string) []byte {
	spec, err := jobspec.New(jobspec.Job{Nodes: nodes, Exclusive: true, Command: command})
	require.NoError(f, err)
	text, err := spec.MarshalJSON()
	require.NoError(f, err)
	return text
}

// jobs runs n jobs, some of which are submitted twice, and returns how many nodes each has.
func (f *fleet) run(ctx context.Context, r *rand.Rand, n int) map[jobid.ID]int {
	jobs := make(map[jobid.ID]int)
	for i := range n {
		size := 1 + r.IntN(1+r.IntN(min(4, f.nodes)))
		request := wire.Request{Key: fmt.Sprint(f.Name(), i), Jobspec: f.spec(int64(size), f.action("j", ".0$((RANDOM%9))"))}
		answer := f.asks(ctx, "submit", request)
		if r.IntN(4) == 0 {
			again := f.asks(ctx, "submit", request)
			require.Equal(f, answer.ID, again.ID, "a repeated submission is another job")
		}
		require.NotContains(f, jobs, answer.ID)
		jobs[answer.ID] = size
		if r.IntN(3) == 0 {
			time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
		}
	}
	for id := range jobs {
		f.over(ctx, id)
	}
	return jobs
}

// check looks at the log and at what the nodes saw.
func (f *fleet) check(ctx context.Context, jobs map[jobid.ID]int) {
	f.idle(ctx)
	f.over(ctx, f.runAll(ctx))
	f.idle(ctx)

	m, left, logs := f.read(ctx)
	require.Empty(f, left.Jobs)
	require.Empty(f, left.Quarantined)
	n := 0
	for v := range m.Jobs(jobstate.StateInactive) {
		n++
		result, _ := v.Result()
		require.Equal(f, jobstate.ResultCompleted, result, "%v\n%s", v.ID(), logs[v.ID()])
	}
	require.Equal(f, len(jobs)+1, n, "jobs in the log")
	f.seen(jobs)
	if len(f.names("reader")) > 0 {
		f.served(ctx, m, logs)
	}
}

// served looks at what a reader serves: all jobs of the Manager that are over, and no others, with
// what the log has of them, if it has them whole.
func (f *fleet) served(ctx context.Context, m *joblife.Manager, logs map[jobid.ID]string) {
	var list []wire.JobInfo
	require.Eventually(f, func() (same bool) {
		var err error
		list, err = f.History(ctx, wire.Request{Limit: 10_000})
		return err == nil && len(list) == m.Stats().States[jobstate.StateInactive]
	}, 40*time.Second, 100*time.Millisecond, "the reader has not all jobs, or more")
	for _, listed := range list {
		v, ok := m.Job(listed.ID)
		require.True(f, ok)
		one, err := f.Archived(ctx, listed.ID)
		require.NoError(f, err)
		if log, ok := logs[listed.ID]; ok {
			require.Equal(f, log, one.Eventlog)
		}
		job, err := jobstate.Replay(listed.ID, []byte(one.Eventlog))
		require.NoError(f, err)
		one.Eventlog = ""
		require.Equal(f, listed, one)
		want := wire.Describe(job, nil, nil)
		want.Ranks, want.NNodes, want.NCores, want.Name = one.Ranks, one.NNodes, one.NCores, one.Name // which the log has not
		require.Equal(f, want, one)
		short := wire.Describe(v.Job(), nil, nil)
		require.Equal(f, short, wire.JobInfo{ID: one.ID, UserID: one.UserID, State: one.State, Result: one.Result, Urgency: short.Urgency,
			Started: one.Started, Submit: short.Submit, Run: short.Run, Cleanup: short.Cleanup, Inactive: one.Inactive, Status: short.Status}, "what the Manager keeps")
	}
}

// read restores a Manager from what is stored, and returns the logs of jobs as far as they are
// there.
func (f *fleet) read(ctx context.Context) (m *joblife.Manager, left joblife.Recovered, logs map[jobid.ID]string) {
	logs = make(map[jobid.ID]string)
	var follower joblife.Follower
	add := func(r joblife.Record) error {
		if r.Kind == joblife.RecordEvent {
			logs[r.Job] += string(r.Data)
		}
		return follower.Add(r)
	}
	if _, path, ok := strings.Cut(f.file.Store, ":"); ok {
		f.kill("manager 0")
		s, err := boltstore.Open(filepath.Join(f.dir, path))
		require.NoError(f, err)
		defer s.Close()
		for r, err := range s.Records() {
			require.NoError(f, err)
			require.NoError(f, add(r))
		}
	} else {
		e, err := engine.Open(ctx, engine.Config{URL: f.file.URL, Instance: "main", Name: "check", Options: f.options(auth.Manager())})
		require.NoError(f, err)
		defer e.Close()
		seq, err := e.Snapshot(ctx, add)
		require.NoError(f, err)
		end, err := e.Fence(ctx) // the managers end: they are not needed any more
		require.NoError(f, err)
		batches := make(chan engine.Batch)
		go func() { _ = e.Follow(ctx, seq, batches) }()
		for seq < end {
			b := <-batches
			for _, r := range b.Records {
				require.NoError(f, add(r))
			}
			seq = b.Seq
		}
	}
	m, left, err := follower.Restore(time.Now(), joblife.Config{Owner: f.file.Owner, Epoch: time.Unix(1_700_000_000, 0)})
	require.NoError(f, err)
	return m, left, logs
}

// idle waits until nothing is held.
func (f *fleet) idle(ctx context.Context) {
	var busy []wire.Node
	for range 300 {
		answer := f.asks(ctx, "nodes", wire.Request{})
		busy = slices.DeleteFunc(answer.Nodes, func(n wire.Node) bool { return len(n.Holders) == 0 && n.Up && n.Drained == "" })
		if len(busy) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	text, err := json.MarshalIndent(busy, "", " ")
	require.NoError(f, err)
	f.Fatalf("something is held, down or drained:\n%s", text)
}

// logs prints what the processes of a test that failed have written.
func (f *fleet) logs() {
	names, _ := filepath.Glob(filepath.Join(f.dir, "*.log"))
	for _, name := range names {
		text, _ := os.ReadFile(name)
		f.Logf("%s:\n%s", filepath.Base(name), text[max(0, len(text)-8<<10):])
	}
}

// runAll submits a job of all nodes.
func (f *fleet) runAll(ctx context.Context) jobid.ID {
	answer := f.asks(ctx, "submit", wire.Request{Key: "all", Jobspec: f.spec(int64(f.nodes), []string{"true"})})
	return answer.ID
}

// seen looks at what the nodes saw: each job once on each of its nodes, whole, and no other one
// between its begin and the end of its housekeeping there.
func (f *fleet) seen(jobs map[jobid.ID]int) {
	count := make(map[jobid.ID]int)
	for rank := range f.nodes {
		file, err := os.Open(filepath.Join(f.witness, fmt.Sprint(rank)))
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(f, err)
		var got []string
		for lines := bufio.NewScanner(file); lines.Scan(); {
			id, err := jobid.Parse(strings.Fields(lines.Text())[0])
			require.NoError(f, err)
			if _, ok := jobs[id]; ok {
				got = append(got, lines.Text())
			}
		}
		_ = file.Close()
		for i := 0; i < len(got); {
			text, _, _ := strings.Cut(got[i], " ")
			id, err := jobid.Parse(text)
			require.NoError(f, err)
			var want []string
			for _, what := range []string{"j begin", "j end", "e begin", "e end", "h begin", "h end"} {
				want = append(want, text+" "+what)
			}
			require.Equal(f, want, got[i:min(len(got), i+len(want))], "rank %d", rank)
			count[id]++
			i += len(want)
		}
	}
	require.Equal(f, jobs, count, "how many nodes each job ran on")
}

// eachRound runs rounds of faults: CLUSTER_ROUNDS, or one. Each has n jobs, or CLUSTER_JOBS, and
// time for them.
func eachRound(t *testing.T, n int, round func(ctx context.Context, t *testing.T, n int)) {
	n = number("CLUSTER_JOBS", n)
	for i := range number("CLUSTER_ROUNDS", 1) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			ctx := within(t, 3*time.Minute+time.Duration(n)*2*time.Second)
			round(ctx, t, n)
		})
	}
}

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// under runs n jobs under faults. Each returns after which time the next may come, which is later if
// there are many jobs: else most of a round is the time after faults.
func (f *fleet) under(ctx context.Context, t *testing.T, n int, fault func(r *rand.Rand) (pause time.Duration)) map[jobid.ID]int {
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	stop, done, times := make(chan struct{}), make(chan struct{}), 0
	go func() {
		defer close(done)
		r := rand.New(rand.NewPCG(seed, 1))
		for {
			pause := fault(r)
			times++
			select {
			case <-stop:
				return
			case <-time.After(pause + rand.N(time.Duration(n)*10*time.Millisecond)):
			}
		}
	}()
	jobs := f.run(ctx, rand.New(rand.NewPCG(seed, 0)), n)
	close(stop)
	<-done
	t.Log(times, "faults")
	return jobs
}

// Processes are killed at random while jobs run: nothing is lost, and nothing runs twice.
func TestNothingIsLostByKill9(t *testing.T) {
	if testing.Short() { // else it has the machine to itself
		t.Parallel()
	}
	kill9(t, fleetConfig{nodes: 6, managers: 3, reads: true}, 100*time.Millisecond)
}

// So it is with schedulers in processes of their own.
func TestNothingIsLostByKill9WithASchedulerApart(t *testing.T) {
	if testing.Short() { // else it has the machine to itself
		t.Parallel()
	}
	kill9(t, fleetConfig{nodes: 4, managers: 2, schedulers: 2}, 100*time.Millisecond)
}

// So it is with the records in a file, and one manager.
func TestNothingIsLostByKill9WithAFile(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	kill9(t, fleetConfig{nodes: 4, managers: 1, store: "bbolt:jobs.db"}, 100*time.Millisecond)
}

// Three servers keep the log, and each may be killed, its leader too.
func TestNothingIsLostByKill9OfThreeServers(t *testing.T) {
	if testing.Short() {
		t.Skip("an election of the servers takes up to 9 seconds")
	}
	kill9(t, fleetConfig{nodes: 4, managers: 2, servers: 3, reads: true}, 2*time.Second)
}

func kill9(t *testing.T, cfg fleetConfig, pause time.Duration) {
	n := 60
	if testing.Short() {
		n = 30
	}
	eachRound(t, n, func(ctx context.Context, t *testing.T, n int) {
		f := launch(t, cfg)
		f.check(ctx, f.under(ctx, t, n, func(r *rand.Rand) time.Duration {
			name := f.any(r)
			if (strings.HasPrefix(name, "reader") || strings.HasPrefix(name, "sched")) && r.IntN(2) == 0 {
				f.signal(name, syscall.SIGSTOP)
				time.Sleep(rand.N(10 * pause))
				f.signal(name, syscall.SIGCONT)
			} else {
				f.signal(name, syscall.SIGKILL)
			}
			return pause + rand.N(10*pause)
		}))
	})
}

// any returns a process that runs.
func (f *fleet) any(r *rand.Rand) string {
	for {
		if names := f.names([]string{"manager", "manager", "node", "node", "nats", "reader", "sched"}[r.IntN(7)]); len(names) > 0 {
			return names[r.IntN(len(names))]
		}
	}
}

// Nor does any process that is stopped and goes on, such as a node that was down meanwhile.
func TestNothingIsLostByAStoppedProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	eachRound(t, 20, func(ctx context.Context, t *testing.T, n int) {
		f := launch(t, fleetConfig{nodes: 4, managers: 2, schedulers: 2, reads: true})
		f.check(ctx, f.under(ctx, t, n, func(r *rand.Rand) time.Duration {
			name := f.any(r)
			f.signal(name, syscall.SIGSTOP)
			time.Sleep(rand.N(8 * time.Second))
			f.signal(name, syscall.SIGCONT)
			return 200 * time.Millisecond
		}))
	})
}

// A manager that was stopped and goes on does no harm.
func TestNothingIsLostByAStoppedManager(t *testing.T) {
	t.Parallel()
	eachRound(t, 20, func(ctx context.Context, t *testing.T, n int) {
		f := launch(t, fleetConfig{nodes: 4, managers: 3})
		f.check(ctx, f.under(ctx, t, n, func(*rand.Rand) time.Duration {
			name := f.active(ctx)
			f.signal(name, syscall.SIGSTOP)
			for f.active(ctx) == name {
				time.Sleep(50 * time.Millisecond)
			}
			f.signal(name, syscall.SIGCONT)
			return 200 * time.Millisecond
		}))
	})
}

// A manager that goes on after another one began orders nothing, not even to a node that knows no
// later epoch: it is another machine.
func TestAStoppedManagerOrdersNothing(t *testing.T) {
	t.Parallel()
	f := launch(t, fleetConfig{nodes: 1, managers: 2})
	ctx := within(t, time.Minute)
	name := f.active(ctx)
	f.kill("node 0")
	status := func() *wire.Status {
		answer := f.asks(ctx, "status", wire.Request{})
		return answer.Status
	}
	epoch := status().Epoch
	conn, err := nats.Connect(f.file.URL, f.options(auth.Node(0))...)
	require.NoError(t, err)
	defer conn.Close()
	orders, err := conn.SubscribeSync(f.file.Instance.Subject("do", 0))
	require.NoError(t, err)
	f.signal(name, syscall.SIGSTOP)
	for f.active(ctx) == name {
		time.Sleep(50 * time.Millisecond)
	}
	text, err := json.Marshal(wire.Up{Epoch: epoch, Session: "mine", Hello: true, // of which the manager lets it forget
		Tasks: []exec.TaskStatus{{Task: exec.Task{Job: 7}, State: exec.TaskReleased}}})
	require.NoError(t, err)
	require.NoError(t, conn.Publish(f.file.Instance.Subject("up", 0), text))
	require.NoError(t, conn.Flush())
	f.signal(name, syscall.SIGCONT)
	for len(status().Standbys) == 0 {
		time.Sleep(50 * time.Millisecond)
	}
	for n, _, _ := orders.Pending(); n > 0; n, _, _ = orders.Pending() {
		m, err := orders.NextMsg(time.Second)
		require.NoError(t, err)
		var d wire.Do
		require.NoError(t, json.Unmarshal(m.Data, &d))
		require.Greater(t, d.Epoch, epoch)
	}
}
