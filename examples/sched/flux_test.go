package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/flux"
	"github.com/joblife/joblife/examples/internal/fluxtest"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// The resources of the instance, and what a job has of it.
const (
	fluxR   = `{"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0"}}],"nodelist":["n[0-1]"]}}`
	rankR   = `{"version":1,"execution":{"R_lite":[{"rank":"%d","children":{"core":"0"}}],"nodelist":["n%[1]d"]}}`
	nobody  = 4711
	waitFor = 20 * time.Second
)

// An instance is a Flux with a job manager, resources and a KVS that the test plays, and sched.
type instance struct {
	*fluxtest.Broker
	t      *testing.T
	ctx    context.Context
	seen   chan flux.Message    // requests of sched, and what the manager gets
	acq    func(flux.Message)   // answers resource.acquire
	acqs   flux.Message         // that request
	hellos atomic.Value         // what the manager tells: a []string
	kvs    map[string]string    // values by key
	conn   *flux.Conn           // of the manager
	stop   func()               // sched
	end    func() (int, string) // waits for its end
}

// startInstance starts an instance and sched as a client of its broker.
func startInstance(t *testing.T, hellos []string, kvs map[string]string, args ...string) *instance {
	i := newInstance(t, hellos, kvs)
	i.run(append([]string{"-flux=" + i.URI()}, args...)...)
	return i
}

func newInstance(t *testing.T, hellos []string, kvs map[string]string) *instance {
	t.Setenv("LC_ALL", "C")
	ctx, cancel := context.WithTimeout(context.Background(), waitFor)
	t.Cleanup(cancel)
	i := &instance{Broker: fluxtest.Start(t), t: t, ctx: ctx, seen: make(chan flux.Message, 1000), kvs: kvs}
	i.hellos.Store(hellos)
	note := func(q flux.Message) { i.seen <- q }
	i.Serve("resource.acquire", func(q flux.Message, answer func(flux.Message)) {
		i.acqs, i.acq = q, answer
		note(q)
		answer(q.Respond(flux.Text(`{"resources":` + fluxR + `,"up":"0-1"}`)))
	})
	i.Serve("job-manager.sched-hello", func(q flux.Message, answer func(flux.Message)) {
		note(q)
		for _, h := range i.hellos.Load().([]string) {
			answer(q.Respond(flux.Text(h)))
		}
		answer(q.RespondError(errno.NoData, ""))
	})
	i.Serve("job-manager.sched-ready", func(q flux.Message, answer func(flux.Message)) {
		note(q)
		answer(q.Respond(flux.Text(`{"count":0}`)))
	})
	i.Serve("job-manager.raise", func(q flux.Message, answer func(flux.Message)) {
		note(q)
		answer(q.Respond(nil))
	})
	i.Serve("kvs.lookup", func(q flux.Message, answer func(flux.Message)) {
		var in struct{ Key string }
		i.decode(q, &in)
		value, ok := i.kvs[in.Key]
		if !ok {
			answer(q.RespondError(errno.NoEntry, ""))
			return
		}
		text, _ := json.Marshal(map[string]any{"val": treeObj{1, "val", []byte(value)}})
		answer(q.Respond(flux.Text(text)))
	})
	i.Serve("kvs.commit", func(q flux.Message, answer func(flux.Message)) {
		note(q)
		answer(q.Respond(flux.Text(`{"rootseq":1}`)))
	})
	i.connect()
	return i
}

// run runs sched.
func (i *instance) run(args ...string) {
	running, stop := context.WithCancel(i.ctx)
	var stderr bytes.Buffer
	status := make(chan int, 1)
	go func() { status <- lines.Run(running, program, args, strings.NewReader(""), io.Discard, &stderr) }()
	i.end = func() (int, string) { return <-status, stderr.String() }
	i.stop = stop
	i.t.Cleanup(stop)
}

// connect makes the manager a new client.
func (i *instance) connect() {
	conn, err := flux.Dial(i.ctx, flux.Config{URI: i.URI(), Handle: func(m flux.Message) { i.seen <- m }})
	require.NoError(i.t, err)
	i.t.Cleanup(func() { require.NoError(i.t, conn.Close()) })
	i.conn = conn
}

func (i *instance) decode(m flux.Message, out any) {
	text, err := m.JSON()
	require.NoError(i.t, err, "%s", m.Payload)
	require.NoError(i.t, json.Unmarshal(text, out))
}

// next returns the next message, which has to be of a topic, and its payload.
func (i *instance) next(topic string) (flux.Message, string) {
	select {
	case m := <-i.seen:
		require.Equal(i.t, topic, m.Topic, "%s", m.Payload)
		return m, strings.TrimSuffix(string(m.Payload), "\x00")
	case <-i.ctx.Done():
		require.FailNow(i.t, "no message", "%s; %v", topic, i.Log())
	}
	panic("unreachable")
}

// ready waits for a session.
func (i *instance) ready() {
	i.next("job-manager.sched-hello")
	i.next("job-manager.sched-ready")
}

// say sends a request of the manager, as flux-core does: nothing waits for it by its matchtag.
func (i *instance) say(topic, payload string) {
	require.NoError(i.t, i.conn.Send(flux.NewRequest(topic, flux.Text(payload))))
}

func (i *instance) alloc(id int) {
	i.say("sched.alloc", fmt.Sprintf(`{"id":%d,"priority":16,"userid":1,"t_submit":1,"jobspec":%s}`, id, oneCore))
}

// call sends a request that is answered.
func (i *instance) call(topic, payload string) (string, error) {
	m, err := i.conn.Call(i.ctx, topic, flux.NodeidAny, flux.Text(payload))
	return strings.TrimSuffix(string(m.Payload), "\x00"), err
}

// committed returns the keys and values of the next commit.
func (i *instance) committed() map[string]string {
	m, _ := i.next("kvs.commit")
	var in struct {
		Namespace string
		Ops       []op
	}
	i.decode(m, &in)
	require.Equal(i.t, "primary", in.Namespace)
	values := make(map[string]string)
	for _, o := range in.Ops {
		require.Equal(i.t, []any{1, "val"}, []any{o.Dirent.Version, o.Dirent.Type})
		values[o.Key] = string(o.Dirent.Data)
	}
	return values
}

// logged waits for a text in the log: nothing answers those that are written.
func (i *instance) logged(text string) {
	require.Eventually(i.t, func() bool { return strings.Contains(strings.Join(i.Log(), "\n"), text) }, waitFor, time.Millisecond, text)
}

func helloOf(id int, rest string) string {
	return fmt.Sprintf(`{"id":%d,"priority":16,"userid":1,"t_submit":1.5%s}`, id, rest)
}

func TestAJobOfARunningFlux(t *testing.T) {
	i := startInstance(t, nil, nil, "-queue-depth=7", "-policy=easy")
	q, _ := i.next("resource.acquire")
	require.True(t, q.Flags.Has(flux.FlagStreaming))
	q, text := i.next("job-manager.sched-hello")
	require.True(t, q.Flags.Has(flux.FlagStreaming))
	require.Equal(t, `{"partial-ok":true}`, text)
	_, text = i.next("job-manager.sched-ready")
	require.Equal(t, `{"mode":"limited","limit":7}`, text)

	// What the job gets is stored before the manager learns of it.
	release := i.Hold("kvs.commit")
	i.alloc(5)
	text, err := i.call("feasibility.check", `{"jobspec":`+oneCore+`}`)
	require.NoError(t, err)
	require.Empty(t, text)
	require.Empty(t, i.seen)
	release()
	values := i.committed()
	m, text := i.next("sched.alloc")
	require.Equal(t, flux.TypeResponse, m.Type)
	require.Contains(t, text, `{"id":5,"type":0,"annotations":{"sched":{"resource_summary":"rank0/core0"}},"R":`+values["job.0000.0000.0000.0005.R"])

	// Two more: one waits, and is canceled; its note comes by the same route.
	i.alloc(6)
	i.committed()
	i.next("sched.alloc")
	i.alloc(7)
	_, text = i.next("sched.alloc")
	require.Contains(t, text, `{"id":7,"type":1,`)
	i.say("sched.prioritize", `{"jobs":[[7,20]]}`)
	i.say("sched.cancel", `{"id":7}`)
	_, text = i.next("sched.alloc")
	require.Equal(t, `{"id":7,"type":3}`, text)
	i.say("sched.alloc", strings.Replace(fmt.Sprintf(`{"id":8,"priority":16,"userid":1,"t_submit":1,"jobspec":%s}`, oneCore), `"count":1`, `"count":3`, 1))
	_, text = i.next("sched.alloc")
	require.Contains(t, text, `{"id":8,"type":2,"note":"unsatisfiable`)

	_, err = i.call("sched.expiration", `{"id":5,"expiration":9e9}`)
	require.NoError(t, err)
	_, err = i.call("sched.expiration", `{"id":99,"expiration":9e9}`)
	require.EqualValues(t, errno.NoEntry, flux.Errnum(err))
	_, err = i.call("feasibility.check", `{"jobspec":`+strings.Replace(oneCore, `"count":1`, `"count":3`, 1)+`}`)
	require.ErrorContains(t, err, "unsatisfiable request for 3 slots")
	require.EqualValues(t, errno.Overflow, flux.Errnum(err))

	// A rank that goes down is used no more; one that is freed is.
	i.acq(i.acqs.Respond(flux.Text(`{"down":"0"}`)))
	i.say("sched.free", `{"id":5,"R":`+fmt.Sprintf(rankR, 0)+`,"final":true}`)
	i.say("sched.free", `{"id":6,"R":`+fmt.Sprintf(rankR, 1)+`,"final":true}`)
	i.alloc(9)
	require.Contains(t, i.committed()["job.0000.0000.0000.0009.R"], `"rank":"1"`)
	i.next("sched.alloc")
	text, err = i.call("sched.resource-status", "{}")
	require.NoError(t, err)
	require.Contains(t, text, `"down":{"version":1,"execution":{"R_lite":[{"rank":"0",`)
	text, err = i.call("sched-simple.stats-get", "{}") // the broker routes the name of a module to it
	require.EqualValues(t, errno.NoSys, flux.Errnum(err), "a client has no name: %s", text)

	i.stop()
	status, stderr := i.end()
	require.Equal(t, lines.ExitOK, status, stderr)
	i.logged("3 jobs allocated, 1 denied, 1 canceled")
	require.Contains(t, strings.Join(i.Log(), "\n"), "ready: queue-depth=7 log-level=info policy=easy rank[0-1]/core0")
}

// The manager tells which jobs hold resources, and the KVS what. No job ends because of what
// is only odd: it holds its resources, and a sched.free will come. One whose nodes have all left ends.
func TestJobsOfAHello(t *testing.T) {
	kvs := map[string]string{
		"job.0000.0000.0000.0001.R": fmt.Sprintf(rankR, 0),
		"job.0000.0000.0000.0003.R": fmt.Sprintf(rankR, 7), // left the inventory
		"job.0000.0000.0000.0004.R": strings.Replace(fmt.Sprintf(rankR, 1), "n1", "renamed", 1),
	}
	i := startInstance(t, []string{helloOf(1, ""), helloOf(2, `,"R":`+fmt.Sprintf(rankR, 1)), helloOf(3, ""), helloOf(4, "")}, kvs, "-log-level=debug")
	i.next("resource.acquire")
	i.next("job-manager.sched-hello")
	_, text := i.next("job-manager.raise")
	require.Contains(t, text, `{"id":3,"note":"the scheduler cannot take over what the job holds: pool: resources are not in the inventory: job ƒ4: rank7/core0",`)
	i.next("job-manager.sched-ready")
	log := strings.Join(i.Log(), "\n")
	require.Contains(t, log, "hello: id=f2 priority=16 userid=1 t_submit=1.5")
	require.Contains(t, log, "hello: job f5 runs on: pool: resources are held twice: jobs f5 and f3 both hold rank1/core0")
	i.alloc(5)
	i.say("sched.free", `{"id":3,"R":`+kvs["job.0000.0000.0000.0003.R"]+`,"final":true}`)
	i.say("sched.free", `{"id":2,"R":`+fmt.Sprintf(rankR, 1)+`,"final":true}`)
	text, err := i.call("sched.resource-status", "{}")
	require.NoError(t, err)
	require.Contains(t, text, `"allocated":{"version":1,"execution":{"R_lite":[{"rank":"0-1"`)
	i.say("sched.free", `{"id":4,"R":`+kvs["job.0000.0000.0000.0004.R"]+`,"final":true}`)
	m := <-i.seen
	for m.Topic == "sched.alloc" { // when job 5 is to start
		m = <-i.seen
	}
	require.Contains(t, string(m.Payload), "job.0000.0000.0000.0005.R")
}

// What is asked during a hello is answered when it is known what jobs hold.
func TestAStatusDuringTheHello(t *testing.T) {
	i := newInstance(t, []string{helloOf(1, "")}, map[string]string{"job.0000.0000.0000.0001.R": fmt.Sprintf(rankR, 0)})
	release := i.Hold("kvs.lookup")
	i.run("-flux=" + i.URI())
	i.next("resource.acquire")
	i.next("job-manager.sched-hello")
	said := make(chan flux.Message, 1)
	_, err := i.conn.Start(flux.NewRequest("sched.resource-status", flux.Text("{}")), func(m flux.Message, _ error) { said <- m })
	require.NoError(t, err)
	_, err = i.call("feasibility.check", `{"jobspec":`+oneCore+`}`) // it comes behind
	require.NoError(t, err)
	require.Empty(t, said)
	release()
	require.Contains(t, string((<-said).Payload), `"allocated":{"version":1,"execution":{"R_lite":[{"rank":"0"`)
}

// While nobody knows what a job holds, nothing starts, and it gets one exception.
func TestAJobWhoseRIsNotThere(t *testing.T) {
	i := startInstance(t, []string{helloOf(1, "")}, nil)
	i.next("resource.acquire")
	i.next("job-manager.sched-hello")
	_, text := i.next("job-manager.raise")
	require.Contains(t, text, `"id":1`)
	i.next("job-manager.sched-hello")
	i.next("job-manager.sched-hello")
	require.NotContains(t, strings.Join(i.Log(), "\n"), "ready: queue-depth")
}

// An exception that was not raised is raised in the next session: without it none would be ready.
func TestAnExceptionThatFailsIsRaisedAgain(t *testing.T) {
	i := newInstance(t, []string{helloOf(1, "")}, nil)
	i.Fail("job-manager.raise", errno.NoSys, "")
	i.run("-flux=" + i.URI())
	i.next("resource.acquire")
	i.next("job-manager.sched-hello")
	i.logged("job f2: no exception raised: flux: job-manager.raise: errno 38")
	i.Fail("job-manager.raise", 0, "")
	require.Eventually(t, func() bool { return (<-i.seen).Topic == "job-manager.raise" }, waitFor, time.Millisecond)
}

// A broker that is gone may have had nothing to schedule; what else the change says counts.
func TestChangesOfTheInventory(t *testing.T) {
	i := startInstance(t, nil, nil)
	i.next("resource.acquire")
	i.ready()
	i.acq(i.acqs.Respond(flux.Text(`{"shrink":"1,5"}`)))
	i.acq(i.acqs.Respond(flux.Text(`{"up":"7"}`)))
	i.acq(i.acqs.Respond(flux.Text(`{"expiration":2000000000.5}`)))
	i.logged("resource.acquire: pool: ")
	i.logged("resource expiration updated to 2000000000.50")
	text, err := i.call("sched.resource-status", "{}")
	require.NoError(t, err)
	require.Contains(t, text, `{"all":{"version":1,"execution":{"R_lite":[{"rank":"0",`)
}

// An R that is not stored starts no job: the manager learns that the session is over, and the
// job gets its resources in the next.
func TestAnRThatIsNotStored(t *testing.T) {
	i := startInstance(t, nil, nil)
	i.next("resource.acquire")
	i.ready()
	i.Fail("kvs.commit", 28, "no space")
	i.alloc(5)
	m, _ := i.next("sched.alloc")
	require.EqualValues(t, 28, m.Errnum)
	i.Fail("kvs.commit", 0, "")
	i.ready()
	i.alloc(5)
	i.committed()
	_, text := i.next("sched.alloc")
	require.Contains(t, text, `{"id":5,"type":0,`)
	require.Contains(t, strings.Join(i.Log(), "\n"), "R is not stored: flux: kvs.commit: no space (errno 28); another begins in 50ms")
}

// What still comes for a session that is over ends no program: another commit that fails, a
// request that is refused, the end of the manager.
func TestASessionEndsOnce(t *testing.T) {
	i := startInstance(t, nil, nil)
	i.next("resource.acquire")
	i.ready()
	fails := make(chan func(), 2)
	i.Serve("kvs.commit", func(q flux.Message, answer func(flux.Message)) {
		fails <- func() { answer(q.RespondError(28, "no space")) }
	})
	var commits []func()
	for id := 5; id <= 6; id++ {
		i.alloc(id)
		commits = append(commits, <-fails)
	}
	for _, fail := range commits {
		fail()
	}
	m, _ := i.next("sched.alloc")
	require.EqualValues(t, 28, m.Errnum)
	i.ready()

	for range 3 {
		i.say("sched.alloc", `{"id":7}`)
	}
	i.next("sched.alloc")
	require.NoError(t, i.conn.Close())
	i.connect()
	i.ready()
}

// A manager that is gone has left nothing. The next one tells what is held.
func TestTheManagerIsReloaded(t *testing.T) {
	i := startInstance(t, nil, nil, "-policy=easy")
	i.next("resource.acquire")
	i.ready()
	i.alloc(5)
	i.committed()
	i.next("sched.alloc")
	i.alloc(6)
	i.committed()
	i.next("sched.alloc")
	i.alloc(7)
	i.next("sched.alloc")                       // it waits
	_, err := i.call("feasibility.check", "{}") // so both services hear of its end
	require.Error(t, err)
	i.hellos.Store([]string{helloOf(5, `,"R":`+fmt.Sprintf(rankR, 1))})
	require.NoError(t, i.conn.Close())
	i.connect()
	i.say("sched.alloc", `{"id":8,"priority":16,"userid":1,"t_submit":1,"jobspec":`+oneCore+`}`) // before it knows a scheduler
	i.ready()
	i.alloc(7)
	require.Contains(t, i.committed()["job.0000.0000.0000.0007.R"], `"rank":"0"`)
	_, text := i.next("sched.alloc")
	require.Contains(t, text, `"id":7,"type":0`)
	text, err = i.call("sched.resource-status", "{}")
	require.NoError(t, err)
	require.Contains(t, text, `"allocated":{"version":1,"execution":{"R_lite":[{"rank":"0-1"`)
}

// A manager that only gave back what a job of the hello had is known as well.
func TestAManagerThatOnlyFreedIsReloaded(t *testing.T) {
	r := fmt.Sprintf(rankR, 0)
	i := startInstance(t, []string{helloOf(1, `,"R":`+r)}, nil)
	i.next("resource.acquire")
	i.ready()
	i.say("sched.free", `{"id":1,"R":`+r+`,"final":true}`)
	require.NoError(t, i.conn.Close())
	i.connect()
	i.ready()
}

// One that sent something in the session before, and nothing in this one, is known as well.
func TestAManagerOfTheSessionBeforeIsReloaded(t *testing.T) {
	i := startInstance(t, nil, nil)
	i.next("resource.acquire")
	i.ready()
	i.say("sched.alloc", `{"id":5}`)
	i.next("sched.alloc") // refused, which ends the session
	i.ready()
	require.NoError(t, i.conn.Close())
	i.connect()
	i.ready()
}

// The next one may speak before the scheduler hears that the last one is gone, which may have been
// silent in this session.
func TestAManagerSpeaksBeforeTheLastIsGone(t *testing.T) {
	for _, silent := range []bool{false, true} {
		i := startInstance(t, nil, nil)
		i.next("resource.acquire")
		i.ready()
		if silent {
			i.say("sched.alloc", `{"id":5}`)
			i.next("sched.alloc") // refused, which ends the session
			i.ready()
		} else {
			i.alloc(5)
			i.committed()
			i.next("sched.alloc")
		}
		last := i.conn
		i.connect()
		i.alloc(6)
		i.committed()
		i.next("sched.alloc")
		require.NoError(t, last.Close())
		i.ready()
	}
}

// An answer that is lost ends a session, and no program waits for it for ever.
func TestAnAnswerIsLost(t *testing.T) {
	for _, topic := range []string{"job-manager.sched-hello", "job-manager.sched-ready", "kvs.lookup", "kvs.commit"} {
		t.Run(topic, func(t *testing.T) {
			i := newInstance(t, []string{helloOf(1, "")}, map[string]string{"job.0000.0000.0000.0001.R": fmt.Sprintf(rankR, 0)})
			i.Hold(topic)
			o := new(options)
			p := o.program()
			_, ok := p.Parse([]string{"-flux=" + i.URI()}, io.Discard, io.Discard)
			require.True(t, ok)
			o.patience = 50 * time.Millisecond
			ctx, cancel := context.WithCancel(i.ctx)
			done := make(chan error, 1)
			go func() { done <- p.Attach(ctx, io.Discard) }()
			if topic == "kvs.commit" {
				i.logged("ready: queue")
				i.alloc(5)
			}
			i.logged(topic + ": no answer within 50ms")
			i.Fail(topic, 0, "")
			require.Eventually(t, func() bool {
				log := strings.Join(i.Log(), "\n")
				return strings.LastIndex(log, "ready: queue") > strings.LastIndex(log, "no answer")
			}, waitFor, time.Millisecond)
			cancel()
			require.NoError(t, <-done)
		})
	}
}

// What is allocated is stored though the messages have no end.
func TestMessagesWithoutEnd(t *testing.T) {
	i := newInstance(t, nil, nil)
	b := &broker{ctx: i.ctx, conn: i.conn, in: make(chan func() error, inbox), s: newSession(options{policy: "fifo"}, nil, nil)}
	r, err := rset.Parse([]byte(fluxR))
	require.NoError(t, err)
	b.later(alloc.Response{ID: 5, R: r})
	handled := 0
	var again func() error
	again = func() error { handled++; b.in <- again; return nil }
	b.in <- again
	b.in <- again
	require.NoError(t, b.run(func() bool { return len(b.starts) == 0 || handled > 4*inbox }))
	require.LessOrEqual(t, handled, inbox)
}

// A manager that comes later is waited for; a request for an allocation that is refused ends a
// session, since flux-core's does then.
func TestASessionBeginsAgain(t *testing.T) {
	i := startInstance(t, nil, nil)
	i.next("resource.acquire")
	i.ready()
	i.Fail("job-manager.sched-hello", errno.NoSys, "")
	i.say("sched.alloc", `{"id":5}`)
	m, _ := i.next("sched.alloc")
	require.EqualValues(t, errno.Protocol, m.Errnum)
	i.logged("sched-hello: errno 38")
	i.Fail("job-manager.sched-hello", 0, "")
	i.ready()
}

func TestStrangersGetNothing(t *testing.T) {
	i := startInstance(t, nil, nil)
	i.next("resource.acquire")
	i.ready()
	for _, topic := range []string{"sched.alloc", "sched.free", "sched.resource-status", "feasibility.check"} {
		q := flux.NewRequest(topic, flux.Text(`{"id":5,"jobspec":{}}`))
		q.UserID, q.Rolemask = nobody, flux.RoleUser
		answered := make(chan error, 1)
		_, err := i.conn.Start(q, func(_ flux.Message, err error) { answered <- err })
		require.NoError(t, err)
		err = <-answered
		require.EqualValues(t, errno.Perm, flux.Errnum(err), topic)
		require.ErrorContains(t, err, "owner")
	}
	bye := flux.NewRequest("sched.disconnect", nil)
	bye.UserID, bye.Rolemask = nobody, flux.RoleUser
	require.NoError(t, i.conn.Send(bye))
	_, err := i.call("sched.nosuch", "{}")
	require.EqualValues(t, errno.NoSys, flux.Errnum(err))
	_, err = i.call("sched.holders", "{}")
	require.EqualValues(t, errno.Protocol, flux.Errnum(err))
	_, err = i.call("feasibility.check", "[]")
	require.EqualValues(t, errno.Protocol, flux.Errnum(err))
	_, err = i.call("sched.resource-status", "{}")
	require.NoError(t, err)
	require.Empty(t, i.seen, "the session goes on")
}

// The owner's disconnect that is not the manager's changes nothing.
func TestAFrontEndComesAndGoes(t *testing.T) {
	i := startInstance(t, nil, nil)
	i.next("resource.acquire")
	i.ready()
	i.alloc(5)
	i.committed()
	i.next("sched.alloc")
	c, err := flux.Dial(i.ctx, flux.Config{URI: i.URI()})
	require.NoError(t, err)
	require.NoError(t, c.CallJSON(i.ctx, "sched.resource-status", flux.NodeidAny, map[string]int{}, nil))
	require.NoError(t, c.Close())
	_, err = i.call("sched.resource-status", "{}")
	require.NoError(t, err)
	require.Empty(t, i.seen)
}

func TestABrokerThatIsGone(t *testing.T) {
	i := startInstance(t, nil, nil)
	i.next("resource.acquire")
	i.ready()
	i.Cut()
	i.connect()
	i.next("resource.acquire")
	i.ready() // a client comes again

	i.acq(i.acqs.RespondError(errno.NoData, ""))
	status, stderr := i.end()
	require.Equal(t, lines.ExitFault, status)
	require.Contains(t, stderr, "no more is known of the resources")
}

func TestAnInstanceThatCannotHaveThisScheduler(t *testing.T) {
	for what, want := range map[string]string{
		"rank": "a scheduler belongs on rank 0", "service.add": "the instance has a scheduler",
	} {
		b := fluxtest.Start(t)
		if what == "rank" {
			b.SetAttr("rank", "3")
		} else {
			b.Fail("service.add", errno.Exists, "")
		}
		var stderr bytes.Buffer
		status := lines.Run(context.Background(), program, []string{"-flux=" + b.URI()}, strings.NewReader(""), io.Discard, &stderr)
		require.Equal(t, lines.ExitFault, status)
		require.Contains(t, stderr.String(), want)
	}
}

// A broker that accepts each connection and closes it is not asked without a pause.
func TestABrokerThatClosesIsNotAskedWithoutPause(t *testing.T) {
	t.Parallel() // it waits
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			_, _ = conn.Write([]byte{0}) // the user is welcome
			_ = conn.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var stderr bytes.Buffer
	require.Equal(t, lines.ExitOK, lines.Run(ctx, program, []string{"-flux=local://" + path}, strings.NewReader(""), io.Discard, &stderr))
	require.Regexp(t, "^(sched: .* \\(it tries again\\)\n){2,8}$", stderr.String())
}

func TestArgumentsOfSchedSimple(t *testing.T) {
	var o options
	p := o.program()
	_, ok := p.Parse(flags([]string{"-policy", "easy", "queue-depth=9", "log-level=debug", "mode=unlimited", "test-hello-nopartial"}), io.Discard, io.Discard)
	require.True(t, ok)
	require.Equal(t, options{Options: o.Options, policy: "easy", level: flux.LogDebug, whole: true,
		depth: defaultDepth, period: time.Second, patience: o.patience}, o)
	for _, bad := range []string{"queue-depth=0", "queue-depth=x", "mode=foobar", "mode=5", "mode=limited=-1", "log-level=loud", "log_level=debug", "forecast-period=0"} {
		_, ok := new(options).program().Parse(flags([]string{bad}), io.Discard, io.Discard)
		require.False(t, ok, bad)
	}
}
