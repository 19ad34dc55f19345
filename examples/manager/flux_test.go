//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/flux"
	"github.com/joblife/joblife/examples/internal/fluxtest"
	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset/alloc"
)

// An instance is a broker with a KVS, a job-ingest, a scheduler of one node and an executor,
// which a test plays.
type instance struct {
	t      *testing.T
	broker *fluxtest.Broker
	uri    string     // "" for a module
	conn   *flux.Conn // of all that the test plays

	mu  sync.Mutex
	kvs *peer
	cut bool // commits do not arrive, but for the keeper's

	heard chan flux.Message // requests without matchtag, and events
	stop  func() error
	wait  func() error  // until the manager ends by itself
	said  *lockedBuffer // on standard error
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(text)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func newInstance(t *testing.T) *instance {
	in := &instance{t: t, broker: fluxtest.Start(t), kvs: newPeer(t), heard: make(chan flux.Message, 1000), said: new(lockedBuffer)}
	in.uri = in.broker.URI()
	in.broker.SetAttr("rank", "0")
	in.broker.SetAttr("security.owner", "100")
	in.broker.Serve("kvs.lookup", func(q flux.Message, answer func(flux.Message)) {
		in.mu.Lock()
		defer in.mu.Unlock()
		text, err := q.JSON()
		require.NoError(t, err)
		payload, errnum := in.kvs.lookup(text)
		if errnum != 0 {
			answer(q.RespondError(uint32(errnum), ""))
			return
		}
		b, err := json.Marshal(payload)
		require.NoError(t, err)
		answer(q.Respond(flux.Text(b)))
	})
	in.broker.Serve("kvs.commit", func(q flux.Message, answer func(flux.Message)) {
		in.mu.Lock()
		defer in.mu.Unlock()
		text, err := q.JSON()
		require.NoError(t, err)
		if in.cut && !bytes.Contains(text, []byte("joblife.fence")) {
			return
		}
		in.kvs.commit(text)
		answer(q.Respond(flux.Text(`{}`)))
	})
	in.broker.Serve("kvs-watch.lookup", func(flux.Message, func(flux.Message)) {}) // nothing is there
	in.conn = in.dial()
	return in
}

// dial returns a connection that tells what is asked of its services.
func (in *instance) dial() *flux.Conn {
	c, err := flux.Dial(context.Background(), link(in.broker.URI(), func(m flux.Message) { in.heard <- m }, nil))
	require.NoError(in.t, err)
	in.t.Cleanup(func() { _ = c.Close() })
	return c
}

// attach runs manager -flux until the test ends, or stop is called.
func (in *instance) attach(flags ...string) {
	in.launch(flags...)
	in.broker.Await(serviceName)
	in.ask("nosuch", `{}`) // when the jobs are read
}

// launch is attach without a wait.
func (in *instance) launch(flags ...string) {
	in.t.Setenv("MANAGER_FLAGS", strings.Join(flags, " "))
	o := new(options)
	p := o.program()
	_, ok := p.Parse(append([]string{"-flux=" + in.uri}, flags...), in.said, in.said)
	require.True(in.t, ok, in.said)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Attach(ctx, in.said) }()
	wait := sync.OnceValue(func() error {
		select {
		case err := <-done:
			return err
		case <-time.After(10 * time.Second):
			return errors.New("the manager does not end")
		}
	})
	stop := func() error {
		cancel()
		return wait()
	}
	in.wait, in.stop = wait, stop
	in.t.Cleanup(func() { _ = stop() })
}

// ask asks the manager, and returns what it answers.
func (in *instance) ask(method, payload string) string {
	in.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	m, err := in.conn.Call(ctx, serviceName+"."+method, flux.NodeidAny, flux.Text(payload))
	if err != nil {
		return err.Error()
	}
	text, _ := m.JSON()
	return string(text)
}

// stream begins a stream, and returns its answers.
func (in *instance) stream(c *flux.Conn, method, payload string) <-chan string {
	answers := make(chan string, 1000)
	m := flux.NewRequest(serviceName+"."+method, flux.Text(payload))
	m.Flags |= flux.FlagStreaming
	_, err := c.Start(m, func(m flux.Message, err error) {
		if err != nil {
			answers <- fmt.Sprint("errno ", flux.Errnum(err))
			return
		}
		text, _ := m.JSON()
		answers <- string(text)
	})
	require.NoError(in.t, err)
	return answers
}

func next[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(10 * time.Second):
		require.FailNow(t, "nothing comes")
	}
	return v
}

// hear waits for a message of a topic, and returns its payload.
func (in *instance) hear(topic string) string {
	in.t.Helper()
	for {
		if m := next(in.t, in.heard); m.Topic == topic {
			text, _ := m.JSON()
			return string(text)
		}
	}
}

// say responds for a scheduler or an executor.
func (in *instance) respond(q flux.Message, payload string) {
	require.NoError(in.t, in.conn.Send(q.Respond(flux.Text(payload))))
}

// request waits for a request of a topic.
func (in *instance) request(topic string) flux.Message {
	in.t.Helper()
	for {
		if m := next(in.t, in.heard); m.Topic == topic {
			return m
		}
	}
}

// submits submits a job as job-ingest does.
func (in *instance) submits(id int) {
	in.t.Helper()
	in.mu.Lock()
	in.kvs.keys[jobid.ID(id).KVSPath()+keyJobspec] = sleep
	in.mu.Unlock()
	text := in.ask("submit", fmt.Sprintf(`{"jobs":[{"id":%d,"urgency":16,"userid":100,"t_submit":1000.0,"flags":0,"jobspec":%s}]}`, id, sleep))
	require.Equal(in.t, `{"errors":[]}`, text)
}

func (in *instance) key(name string) string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.kvs.keys[name]
}

// log returns the names of the events in the log of a job.
func (in *instance) log(id int) string {
	var list []string
	for line := range strings.Lines(in.key(jobid.ID(id).KVSPath() + keyEventlog)) {
		var e struct{ Name string }
		require.NoError(in.t, json.Unmarshal([]byte(line), &e))
		list = append(list, e.Name)
	}
	return strings.Join(list, " ")
}

// greet begins the sessions of a scheduler and an executor.
func (in *instance) greet() {
	ctx := context.Background()
	for _, service := range []string{"sched", "my-exec"} {
		require.NoError(in.t, in.conn.Register(ctx, service))
	}
	require.Equal(in.t, "errno 61", next(in.t, in.stream(in.conn, "sched-hello", `{"partial-ok":true}`)))
	require.Equal(in.t, `{"count":0}`, in.ask("sched-ready", `{"mode":"unlimited"}`))
	require.Empty(in.t, in.ask("exec-hello", `{"service":"my-exec"}`))
}

func givesR(id, rank int) string {
	_, payload, _ := strings.Cut(gives(id, rank), `"payload":`)
	return payload
}

func saysOf(id int, kind, data string) string {
	return fmt.Sprintf(`{"id":%d,"type":"%s","data":%s}`, id, kind, data)
}

// run plays a job from its request to its end.
func (in *instance) run(id int) {
	q := in.request("sched.alloc")
	in.mu.Lock()
	in.kvs.keys[jobid.ID(id).KVSPath()+keyR] = fmt.Sprintf(resources, 0)
	in.mu.Unlock()
	in.respond(q, givesR(id, 0))
	q = in.request("my-exec.start")
	in.respond(q, saysOf(id, "start", `{}`))
	in.respond(q, saysOf(id, "finish", `{"status":0}`))
	in.respond(q, saysOf(id, "release", `{"ranks":"all","final":true}`))
	require.Contains(in.t, in.hear("sched.free"), `"final":true`)
}

const wholeLife = "submit validate depend priority alloc start finish release free clean"

func TestAJobInARunningFlux(t *testing.T) {
	in := newInstance(t)
	in.attach()
	journal := in.stream(in.conn, "events-journal", `{}`)
	require.Equal(t, `{"id":-1,"events":[]}`, next(t, journal))
	in.greet()
	in.submits(1 << 24)
	in.run(1 << 24)
	in.ask("drain", `{}`)
	require.Equal(t, wholeLife, in.log(1<<24))
	require.Contains(t, next(t, journal), `"name":"submit"`)
	require.Equal(t, "flux: job-manager.nosuch: Unknown service method 'job-manager.nosuch' (errno 38)", in.ask("nosuch", `{}`))
	require.Contains(t, in.ask("raise", `[]`), "errno 71")
	require.Regexp(t, `^{"seq":7,"route":".*!job-manager",.*"rank":0}$`, in.ask("ping", `{"seq":7}`))
	require.Contains(t, in.ask("ping", `null`), "errno 71")
	require.Empty(t, in.key(keyCheckpoint))
	require.NoError(t, in.stop())
	require.Eventually(t, func() bool { return in.key(keyCheckpoint) == `{"version":1,"max_jobid":16777216,"queue":[]}` }, 5*time.Second, time.Millisecond)
}

// Nobody but the owner has a session, ends one, or answers for one.
func TestAGuestPlaysTheScheduler(t *testing.T) {
	in := newInstance(t)
	in.attach()
	in.greet()
	in.submits(1 << 24)
	q := in.request("sched.alloc")
	spied := make(chan flux.Message, 1)
	in.broker.Serve("spy.me", func(q flux.Message, answer func(flux.Message)) { spied <- q; answer(q.Respond(nil)) })
	require.NoError(t, in.conn.CallJSON(context.Background(), "spy.me", flux.NodeidAny, nil, nil))
	me := next(t, spied)

	guest := in.dial()
	say := func(m flux.Message, hops []string) {
		m.UserID, m.Rolemask, m.Route = 1001, flux.RoleUser, hops
		require.NoError(t, guest.Send(m))
	}
	gone := flux.NewRequest(topicDisconnect, nil)
	gone.Flags |= flux.FlagNoResponse
	say(gone, []string{me.Sender()})
	hello := flux.NewRequest(alloc.TopicHello, flux.Text(`{"partial-ok":true}`))
	hello.Matchtag, hello.Flags = 77, hello.Flags|flux.FlagStreaming
	say(hello, []string{me.Sender()})
	forged := q.Respond(flux.Text(givesR(1<<24, 1)))
	say(forged, q.Route)
	m := in.request(alloc.TopicHello) // its answer
	require.EqualValues(t, errno.Perm, m.Errnum)

	in.kill() // the keeper still knows what the scheduler was asked
	require.JSONEq(t, fmt.Sprintf(`{"id":%d}`, 1<<24), in.hear("sched.cancel"))
	in.respond(q, fmt.Sprintf(`{"id":%d,"type":3}`, 1<<24))
	q = in.request("sched.alloc")
	in.respond(q, givesR(1<<24, 0))
	require.Contains(t, in.hear("my-exec.start"), `"rank":"0"`)
}

// What a guest says of others who are gone is refused, and takes no memory.
func TestAGuestSaysThatOthersAreGone(t *testing.T) {
	here, there := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, there) }()
	b := &broker{p: begin(t).p, routes: make(bySender[*flux.Message]), conn: flux.New(here, flux.Config{Handle: func(flux.Message) {}})}
	defer b.conn.Close()
	b.c = b.p.only(nil)
	b.c.put, b.c.receive = b.send, b.receive
	b.p.start()
	for n := range 10 {
		gone := flux.NewRequest(topicDisconnect, nil)
		gone.UserID, gone.Rolemask, gone.Matchtag, gone.Route = 1001, flux.RoleUser, 1, []string{fmt.Sprint(n)}
		b.p.take(input{client: b.c, flux: &gone})
	}
	require.Empty(t, b.routes)
}

// workers returns the processes that this one has started.
func workers(t *testing.T) (list []int) {
	files, err := filepath.Glob("/proc/self/task/*/children")
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skip("this system does not tell the children of a process")
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		for _, word := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(word)
			require.NoError(t, err)
			list = append(list, pid)
		}
	}
	return list
}

// lose has commits lost on the way from now on, or not.
func (in *instance) lose(cut bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.cut = cut
}

// kill kills the worker, and waits for the next one.
func (in *instance) kill() { in.stopped(func() {}) }

// stopped is kill, with a worker that does nothing any more while f runs.
func (in *instance) stopped(f func()) {
	in.t.Helper()
	before := workers(in.t)
	require.Len(in.t, before, 1)
	require.NoError(in.t, syscall.Kill(before[0], syscall.SIGSTOP))
	time.Sleep(5 * time.Millisecond) // until all its threads have stopped
	f()
	require.NoError(in.t, syscall.Kill(before[0], syscall.SIGKILL))
	require.Eventually(in.t, func() bool {
		now := workers(in.t)
		return len(now) == 1 && now[0] != before[0]
	}, 20*time.Second, time.Millisecond)
}

// A worker that does nothing any more is replaced. One that has nothing to do is not.
func TestAWorkerHangs(t *testing.T) {
	if os.Getenv("JOBLIFE_DEEP") == "" {
		t.Skip("takes eight seconds: set JOBLIFE_DEEP=1")
	}
	defer func(d time.Duration) { lookEvery = d }(lookEvery)
	lookEvery = 200 * time.Millisecond
	in := newInstance(t)
	in.mu.Lock() // the KVS is slow: a worker that reads the jobs is silent for long, and does not hang
	in.launch()
	time.Sleep(maxSilent*lookEvery + 2*lookEvery)
	in.mu.Unlock()
	in.broker.Await(serviceName)
	in.greet()
	start := in.begins(slow)
	idle := workers(t)
	time.Sleep(maxSilent*lookEvery + 2*lookEvery) // longer than one that hangs has
	require.Equal(t, idle, workers(t))
	require.NoError(t, syscall.Kill(idle[0], syscall.SIGSTOP))
	require.Eventually(t, func() bool {
		now := workers(t)
		return len(now) == 1 && now[0] != idle[0]
	}, 20*time.Second, time.Millisecond)
	in.respond(start, saysOf(slow, "finish", `{"status":0}`))
	in.respond(start, saysOf(slow, "release", `{"ranks":"all","final":true}`))
	in.logs(slow, "clean")
}

// The scheduler, the executor and those who wait notice nothing of a worker that is killed.
func TestAWorkerIsKilled(t *testing.T) {
	const running, waiting, given, last = 1 << 24, 2 << 24, 3 << 24, 4 << 24
	in := newInstance(t)
	in.attach()
	journal := in.stream(in.conn, "events-journal", `{}`)
	require.Equal(t, `{"id":-1,"events":[]}`, next(t, journal))
	in.greet()
	in.submits(running)
	q := in.request("sched.alloc")
	in.mu.Lock()
	in.kvs.keys[jobid.ID(running).KVSPath()+keyR] = fmt.Sprintf(resources, 0)
	in.mu.Unlock()
	in.respond(q, givesR(running, 0))
	start := in.request("my-exec.start")
	in.respond(start, saysOf(running, "start", `{}`))
	require.Eventually(t, func() bool { return strings.HasSuffix(in.log(running), " start") }, 20*time.Second, time.Millisecond)
	in.submits(waiting)
	asked := in.request("sched.alloc")
	in.respond(asked, fmt.Sprintf(`{"id":%d,"type":1,"annotations":{"sched":{"reason_pending":"x"}}}`, waiting)) // it still waits
	in.submits(given)
	gave := in.request("sched.alloc")
	wait := in.stream(in.conn, "drain", `{}`)

	in.lose(true)
	in.respond(gave, givesR(given, 1))
	in.respond(start, saysOf(running, "finish", `{"status":256}`))
	time.Sleep(50 * time.Millisecond)
	in.kill()
	in.lose(false)

	// The scheduler takes back what was asked, and what it had given comes back: nobody knows of it.
	require.JSONEq(t, fmt.Sprintf(`{"id":%d}`, waiting), in.hear("sched.cancel"))
	in.respond(asked, fmt.Sprintf(`{"id":%d,"type":3}`, waiting))
	free := in.hear("sched.free")
	require.Contains(t, free, fmt.Sprintf(`"id":%d,"R":`, given))
	require.Contains(t, free, `"final":true`)
	again := map[string]flux.Message{}
	for range 2 {
		q := in.request("sched.alloc")
		text, err := q.JSON()
		require.NoError(t, err)
		again[string(text[:bytes.IndexByte(text, ',')])] = q
	}
	require.Len(t, again, 2)
	in.respond(start, saysOf(running, "release", `{"ranks":"all","final":true}`))
	require.Contains(t, in.hear("sched.free"), fmt.Sprintf(`"id":%d,`, running))
	for _, id := range []int{waiting, given} {
		in.mu.Lock()
		in.kvs.keys[jobid.ID(id).KVSPath()+keyR] = fmt.Sprintf(resources, 0)
		in.mu.Unlock()
		in.respond(again[fmt.Sprintf(`{"id":%d`, id)], givesR(id, 0))
		q := in.request("my-exec.start")
		in.respond(q, saysOf(id, "start", `{}`))
		in.respond(q, saysOf(id, "finish", `{"status":0}`))
		in.respond(q, saysOf(id, "release", `{"ranks":"all","final":true}`))
		require.Contains(t, in.hear("sched.free"), fmt.Sprintf(`"id":%d,`, id))
	}
	in.submits(last)
	in.run(last)
	require.Equal(t, "", next(t, wait))
	require.Equal(t, "submit validate depend priority alloc start finish release free clean", in.log(running))
	require.Equal(t, "submit validate depend priority flux-restart priority alloc start finish release free clean", in.log(waiting))
	require.Equal(t, wholeLife, in.log(last))
	require.NoError(t, in.stop())

	// The stream of events has each event once, in the order of the logs.
	told := map[int64][]string{}
	for len(journal) > 0 {
		var a struct {
			ID     int64
			Events []struct{ Name string }
		}
		text := <-journal
		if strings.HasPrefix(text, "errno") {
			continue
		}
		require.NoError(t, json.Unmarshal([]byte(text), &a))
		require.Positive(t, a.ID)
		for _, e := range a.Events {
			if e.Name != "annotations" {
				told[a.ID] = append(told[a.ID], e.Name)
			}
		}
	}
	for _, id := range []int{running, waiting, given, last} {
		require.Equal(t, in.log(id), strings.Join(told[int64(id)], " "))
	}
}

// fills submits a job, and fills its log.
func (in *instance) fills(id int) {
	in.submits(id)
	for n := range 16 {
		require.Empty(in.t, in.ask("memo", fmt.Sprintf(`{"id":%d,"memo":{"m":"%d%s"}}`, id, n, strings.Repeat("x", 1_040_000))))
	}
}

// The longest log passes through in an answer of the KVS, which has it in base64, and in those to
// others. What a guest asks has a lower limit.
func TestTheLongestLogPassesThrough(t *testing.T) {
	race.Skip(t) // other tests cross the same goroutines, in less than a hundred seconds
	if os.Getenv("JOBLIFE_DEEP") == "" {
		t.Skip("takes six seconds: set JOBLIFE_DEEP=1")
	}
	const id = 1 << 24
	in := newInstance(t)
	in.attach()
	in.fills(id)
	require.Contains(t, in.ask("memo", fmt.Sprintf(`{"id":%d,"memo":{"m":"%s"}}`, id, strings.Repeat("x", 1_000_000))), "errno 11")
	in.kill()
	require.Greater(t, len(in.ask("getattr", fmt.Sprintf(`{"id":%d,"attrs":["eventlog"]}`, id))), flux.Max*99/100)
	require.Greater(t, len(next(t, in.stream(in.conn, "events-journal", `{"full":true}`))), flux.Max*99/100)

	long := flux.NewRequest(serviceName+".memo", flux.Text(`{"x":"`+strings.Repeat("x", flux.Max)+`"}`))
	long.UserID, long.Rolemask = 1001, flux.RoleUser
	done := make(chan error, 1)
	_, err := in.dial().Start(long, func(_ flux.Message, err error) { done <- err })
	require.NoError(t, err)
	require.EqualValues(t, errno.Size, flux.Errnum(next(t, done)))
	long.Payload = make([]byte, maxOpen) // of the owner: it never has room
	long.UserID, long.Rolemask = 0, flux.RoleOwner
	_, err = in.dial().Start(long, func(_ flux.Message, err error) { done <- err })
	require.NoError(t, err)
	require.EqualValues(t, errno.Size, flux.Errnum(next(t, done)))
	require.NoError(t, in.stop())
	require.NotContains(t, in.said.String(), "skipped")
}

// A worker that has more to say than the broker reads waits, and so does the keeper: nothing is
// lost, and what comes meanwhile is heard.
func TestABrokerThatDoesNotReadForAWhile(t *testing.T) {
	if os.Getenv("JOBLIFE_DEEP") == "" {
		t.Skip("takes six seconds: set JOBLIFE_DEEP=1")
	}
	const id, streams = 1 << 24, 12
	in := newInstance(t)
	in.attach()
	in.fills(id)
	before := workers(t)
	reads := make(chan bool)
	in.broker.Serve("log.append", func(flux.Message, func(flux.Message)) { <-reads })
	in.stream(in.conn, "config-reload", `{"job-manager":{"housekeeping":{"command":["x"],"use-systemd-unit":true}}}`) // is logged
	var list []<-chan string
	for range streams {
		list = append(list, in.stream(in.conn, "events-journal", `{}`))
	}
	time.Sleep(3 * time.Second)
	close(reads)
	for _, c := range list {
		require.Greater(t, len(next(t, c)), flux.Max*99/100)
		require.Equal(t, `{"id":-1,"events":[]}`, next(t, c))
	}
	require.Equal(t, before, workers(t))
	require.Empty(t, in.said.String())
}
