//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/flux"
	"github.com/joblife/joblife/examples/internal/service"
	"github.com/joblife/joblife/jobstate/jobid"
)

// begins plays a job from its submission until it has started, and returns its start request.
func (in *instance) begins(id int) flux.Message {
	in.t.Helper()
	in.submits(id)
	return in.starts(id, in.request("sched.alloc"))
}

// starts plays a job from its alloc request until it has started.
func (in *instance) starts(id int, q flux.Message) flux.Message {
	in.t.Helper()
	in.mu.Lock()
	in.kvs.keys[jobid.ID(id).KVSPath()+keyR] = fmt.Sprintf(resources, 0)
	in.mu.Unlock()
	in.respond(q, givesR(id, 0))
	start := in.request("my-exec.start")
	in.respond(start, saysOf(id, "start", `{}`))
	in.logs(id, "start")
	return start
}

// logs waits until the log of a job ends with an event.
func (in *instance) logs(id int, event string) {
	in.t.Helper()
	for range 5000 {
		if strings.HasSuffix(in.log(id), event) {
			return
		}
		time.Sleep(time.Millisecond)
	}
	require.FailNow(in.t, "no "+event, "%s: %s: %s", in.log(id), in.said, in.broker.Log())
}

const slow = 1 << 24

// A job that has finished, and is not released yet, ends.
func TestAJobIsReleasedAfterTheCrash(t *testing.T) {
	for name, gap := range map[string]bool{"in the gap": true, "later": false} {
		t.Run(name, func(t *testing.T) {
			in := newInstance(t)
			in.attach()
			in.greet()
			start := in.begins(slow)
			in.respond(start, saysOf(slow, "finish", `{"status":0}`))
			in.logs(slow, "finish")
			in.lose(gap)
			if gap {
				in.respond(start, saysOf(slow, "release", `{"ranks":"all","final":true}`))
				time.Sleep(20 * time.Millisecond)
			}
			in.kill()
			in.lose(false)
			if !gap {
				in.ask("nosuch", `{}`)
				in.respond(start, saysOf(slow, "release", `{"ranks":"all","final":true}`))
			}
			in.logs(slow, "clean")
			require.Equal(t, wholeLife, in.log(slow))
		})
	}
}

// The scheduler has not said whether it takes a request back when the next worker is killed too.
// It is asked once at a time, and what it gives for a worker that has ended it gets back.
func TestAWorkerIsKilledTwiceWhileAJobWaits(t *testing.T) {
	in := newInstance(t)
	in.attach()
	in.greet()
	in.submits(slow)
	q := in.request("sched.alloc")
	in.kill()
	in.hear("sched.cancel")
	in.ask("nosuch", `{}`)
	in.kill()
	in.respond(q, fmt.Sprintf(`{"id":%d,"type":3}`, slow))
	in.mu.Lock()
	in.kvs.keys[jobid.ID(slow).KVSPath()+keyR] = fmt.Sprintf(resources, 0)
	in.mu.Unlock()
	start, asked := flux.Message{}, false
	for start.Topic == "" {
		switch m := next(t, in.heard); m.Topic {
		case "sched.alloc":
			require.False(t, asked, "the scheduler is asked twice for one job")
			asked = true
			in.respond(m, givesR(slow, 0))
		case "sched.free":
			asked = false
		case "my-exec.start":
			start = m
		}
	}
	in.respond(start, saysOf(slow, "start", `{}`))
	in.respond(start, saysOf(slow, "finish", `{"status":0}`))
	in.respond(start, saysOf(slow, "release", `{"ranks":"all","final":true}`))
	in.logs(slow, "clean")
}

// The broker is gone, and so are the keeper and its worker.
func TestTheBrokerEnds(t *testing.T) {
	in := newInstance(t)
	in.attach()
	in.broker.Stop()
	require.ErrorIs(t, in.wait(), flux.ErrLost)
	require.Empty(t, workers(t))
}

// Who asked gets an answer when the manager ends.
func TestWhoWaitsIsTold(t *testing.T) {
	in := newInstance(t)
	in.attach()
	in.greet()
	in.begins(slow)
	wait := in.stream(in.conn, "drain", `{}`)
	in.ask("nosuch", `{}`)
	require.NoError(t, in.stop())
	require.Contains(t, next(t, wait), "errno")
}

// A terminal interrupts the worker as well as its keeper, which asks it to end then. It stores what is left.
func TestAWorkerIsInterrupted(t *testing.T) {
	in := newInstance(t)
	in.attach()
	in.submits(slow)
	release := in.broker.Hold(topicCommit)
	answer := in.stream(in.conn, "memo", fmt.Sprintf(`{"id":%d,"memo":{"a":1}}`, slow))
	time.Sleep(20 * time.Millisecond)
	require.NoError(t, syscall.Kill(workers(t)[0], syscall.SIGINT))
	time.Sleep(20 * time.Millisecond)
	time.AfterFunc(50*time.Millisecond, release)
	require.NoError(t, in.stop())
	require.Empty(t, next(t, answer))
}

// The end is in order, and at once, though there is no worker.
func TestTheManagerIsStoppedInTheGap(t *testing.T) {
	for _, module := range []bool{false, true} {
		in := newInstance(t)
		if module {
			in.loads(serviceName)
			in.ask("nosuch", `{}`)
		} else {
			in.attach()
		}
		defer in.broker.Hold(topicCommit)()
		require.NoError(t, syscall.Kill(workers(t)[0], syscall.SIGKILL))
		require.Eventually(t, func() bool { return strings.Contains(in.said.String(), "another one begins") }, 5*time.Second, time.Millisecond)
		if module {
			end := flux.NewRequest(topicShutdown, nil)
			end.Flags |= flux.FlagNoResponse
			require.NoError(t, in.conn.Send(end))
		} else {
			require.NoError(t, in.stop())
		}
		require.NoError(t, in.wait())
	}
}

// Nor has a worker to serve.
func TestTheManagerIsStoppedBeforeItServes(t *testing.T) {
	for pause := range 10 {
		in := newInstance(t)
		in.launch()
		in.broker.Await(serviceName)
		time.Sleep(time.Duration(pause) * time.Millisecond)
		require.NoError(t, in.stop(), pause)
	}
}

// The numbers of a broker's states are those of one version.
func TestAnotherVersionIsTold(t *testing.T) {
	in := newInstance(t)
	in.broker.SetAttr("version", "0.89.0")
	in.attach()
	require.Contains(t, in.said.String(), "manager: warning: flux-core 0.89.0")
	require.Contains(t, fmt.Sprint(in.broker.Log()), "flux-core 0.89.0") // flux dmesg
}

// The instance has a job manager. Another one leaves its jobs alone.
func TestTheServiceIsTaken(t *testing.T) {
	in := newInstance(t)
	in.attach()
	in.greet()
	in.submits(slow)
	in.request("sched.alloc")
	before := in.log(slow)
	in.launch()
	require.ErrorContains(t, in.wait(), "the instance has a job manager: remove its module first (flux: service.add: errno 17)")
	require.Empty(t, in.said.String(), "nothing of a configuration")
	require.Equal(t, before, in.log(slow))
	require.Eventually(t, func() bool { return strings.Contains(fmt.Sprint(in.broker.Log()), "remove its module first") }, 5*time.Second, time.Millisecond)
}

// An executor says hello while a worker is killed, and is told once that all is well.
func TestAnExecutorSaysHelloInTheGap(t *testing.T) {
	in := newInstance(t)
	in.attach()
	ctx := t.Context()
	for _, service := range []string{"sched", "my-exec"} {
		require.NoError(t, in.conn.Register(ctx, service))
	}
	require.Equal(t, "errno 61", next(t, in.stream(in.conn, "sched-hello", `{"partial-ok":true}`)))
	in.ask("sched-ready", `{"mode":"unlimited"}`)
	require.Empty(t, in.ask("exec-hello", `{"service":"my-exec"}`))
	in.begins(slow)
	in.kill()
	other := in.dial()
	require.NoError(t, other.Register(ctx, "other-exec"))
	hello := in.stream(other, "exec-hello", `{"service":"other-exec"}`)
	require.Equal(t, "errno 22", next(t, hello))
	in.kill()
	in.ask("nosuch", `{}`)
}

// A file takes the place of the broker's configuration until that changes.
func TestTheConfigurationOfAFileStays(t *testing.T) {
	in := newInstance(t)
	file := filepath.Join(t.TempDir(), "flux.toml")
	require.NoError(t, os.WriteFile(file, []byte("[queues.batch]\n"), 0o600))
	in.attach("-config=" + file)
	require.NoError(t, os.Remove(file)) // it is read once
	in.kill()
	require.Contains(t, in.ask("queue-list", `{}`), "batch")
	in.broker.SetConfig(`{"queues":{"other":{}}}`)
	require.Eventually(t, func() bool { return strings.Contains(in.ask("queue-list", `{}`), "other") }, 5*time.Second, time.Millisecond)
	in.kill()
	require.Contains(t, in.ask("queue-list", `{}`), "other")
}

// Guests whose requests a worker does not read end neither it nor the keeper.
func TestGuestsAskMoreThanAWorkerReads(t *testing.T) {
	in := newInstance(t)
	in.attach()
	guest := in.dial()
	in.stopped(func() {
		for tag := range uint32(6) {
			m := flux.NewRequest(serviceName+".memo", bytes.Repeat([]byte("x"), 15<<20))
			m.UserID, m.Rolemask, m.Matchtag = 1001, flux.RoleUser, tag+1
			require.NoError(t, guest.Send(m))
			require.Eventually(t, func() bool { return guest.Behind() == 0 }, 5*time.Second, time.Millisecond)
		}
		for range 5 {
			require.EqualValues(t, errno.Again, in.request(serviceName+".memo").Errnum)
		}
	})
	require.EqualValues(t, errno.Protocol, in.request(serviceName+".memo").Errnum)
	require.NotContains(t, in.said.String(), "does not read")
}

// Messages that cannot be read, which guests send too, do not fill the log.
func TestSkippedMessagesDoNotFillTheLog(t *testing.T) {
	said := new(lockedBuffer)
	k := &keeper{stderr: said}
	for range 1000 {
		k.skipped(flux.ErrMessage)
	}
	require.Equal(t, 10, strings.Count(said.String(), "malformed message\n"))
}

// A guest's good-bye says nothing of one who waits for nothing, and nothing but that.
func TestAGuestSaysGoodBye(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	k := &keeper{open: make(bySender[*request]), told: make(map[asked]told)}
	k.worker = &worker{conn: flux.New(ours, flux.Config{}), serving: true, gone: make(chan struct{})}
	defer k.worker.conn.Close()
	say := func(method string) {
		m := flux.NewRequest(serviceName+"."+method, flux.Text(`{}`))
		m.UserID, m.Rolemask, m.Matchtag, m.Route = 1001, flux.RoleUser, 1, []string{"a", "b"}
		k.forward(m)
	}
	say("disconnect")
	require.Zero(t, k.worker.conn.Behind())
	say("memo")
	say("disconnect")
	require.Empty(t, k.open)
	r := flux.NewReader(theirs, 0)
	_, err := r.Read()
	require.NoError(t, err)
	m, err := r.Read()
	require.NoError(t, err)
	require.Equal(t, topicDisconnect, m.Topic)
	require.Nil(t, m.Payload)
	require.True(t, m.Flags.Has(flux.FlagNoResponse))
}

// Who says good-bye costs the same, however many others wait.
func TestManySayGoodBye(t *testing.T) {
	k := &keeper{open: make(bySender[*request]), told: make(map[asked]told)}
	const n = 20_000
	began := time.Now()
	for i := range uint32(2 * n) {
		q := flux.NewRequest(serviceName+".memo", flux.Text(`{}`))
		q.UserID, q.Rolemask, q.Matchtag, q.Route = 1001, flux.RoleUser, i%n+1, []string{fmt.Sprint(i % n)}
		if i >= n {
			q.Topic = topicDisconnect
		}
		k.forward(q)
	}
	require.Empty(t, k.open)
	require.Less(t, time.Since(began), 2*time.Second)
}

// What waits for a worker is counted as long as it is, whatever makes it so.
func TestARequestTakesItsRoom(t *testing.T) {
	m := flux.NewRequest(serviceName+"."+strings.Repeat("x", 900), flux.Text(`{}`))
	for range flux.MaxHops {
		m.Route = append(m.Route, strings.Repeat("h", flux.MaxHop))
	}
	text, err := flux.AppendFrame(nil, &m)
	require.NoError(t, err)
	require.GreaterOrEqual(t, sizeOf(&m), len(text))
}

// A request whose answer would find no way back is refused, and takes no room.
func TestARequestThatNothingAnswers(t *testing.T) {
	in := newInstance(t)
	in.attach()
	m := flux.NewRequest(serviceName+".urgency", flux.Text(`{"id":1,"urgency":5}`))
	m.UserID, m.Rolemask, m.Matchtag = 1001, flux.RoleUser, untagged
	require.NoError(t, in.conn.Send(m))
	require.EqualValues(t, errno.Protocol, in.request(m.Topic).Errnum)

	k := &keeper{broker: in.conn, open: make(bySender[*request])}
	m = flux.NewRequest(serviceName, nil) // a broker may pass on the name alone
	m.Rolemask, m.Matchtag = flux.RoleUser, 1
	k.forward(m)
	require.Empty(t, k.open)
}

// Guests leave room for the owner's requests while the KVS is slow.
func TestGuestsAskMuchDuringACommit(t *testing.T) {
	in := newInstance(t)
	in.attach()
	in.submits(slow)
	defer in.broker.Hold(topicCommit)()
	in.stream(in.conn, "urgency", fmt.Sprintf(`{"id":%d,"urgency":5}`, slow))
	m := flux.NewRequest(serviceName+".memo", flux.Text(`{"id":1,"memo":{"a":"`+strings.Repeat("x", 15<<20)+`"}}`))
	m.UserID, m.Rolemask = 1001, flux.RoleUser
	for m.Matchtag = firstTag; m.Matchtag < firstTag+6; m.Matchtag++ {
		require.NoError(t, in.conn.Send(m))
		in.request(m.Topic)
	}
	require.Contains(t, in.ask("raise", `{"id":1,"severity":0,"type":"cancel"}`), "errno 2)")
}

// A reader of events cancels its stream in the gap.
func TestAStreamIsCanceledInTheGap(t *testing.T) {
	in := newInstance(t)
	in.attach()
	answers := make(chan string, 10)
	m := flux.NewRequest(topicJournal, flux.Text(`{}`))
	m.Flags |= flux.FlagStreaming
	tag, err := in.conn.Start(m, func(m flux.Message, err error) { answers <- fmt.Sprint(flux.Errnum(err)) })
	require.NoError(t, err)
	require.Equal(t, "0", next(t, answers))
	in.stopped(func() {
		require.NoError(t, in.conn.Post(topicJournal+"-cancel", map[string]uint32{"matchtag": tag}))
		time.Sleep(20 * time.Millisecond)
	})
	require.Equal(t, "61", next(t, answers))
}

// A worker is killed when the scheduler has heard what is held, and is not ready yet.
func TestASchedulerIsReadyAfterTheCrash(t *testing.T) {
	in := newInstance(t)
	in.attach()
	require.NoError(t, in.conn.Register(t.Context(), "sched"))
	require.Equal(t, "errno 61", next(t, in.stream(in.conn, "sched-hello", `{"partial-ok":true}`)))
	in.kill()
	require.Equal(t, `{"count":0}`, in.ask("sched-ready", `{"mode":"unlimited"}`))
}

// A hello that is refused ends no session that the keeper knows of.
func TestAHelloIsRefused(t *testing.T) {
	in := newInstance(t)
	in.attach()
	in.greet()
	start := in.begins(slow)
	require.Contains(t, in.ask("exec-hello", `{"service":"my-exec"}`), "errno 22")
	require.Contains(t, in.ask("sched-hello", `{"partial-ok":true}`), "errno 71") // not a stream
	in.kill()
	in.respond(start, saysOf(slow, "finish", `{"status":0}`))
	in.respond(start, saysOf(slow, "release", `{"ranks":"all","final":true}`))
	require.Contains(t, in.hear("sched.free"), `"final":true`)
	in.logs(slow, "clean")
	in.submits(2 * slow)
	in.run(2 * slow)
}

// A request that wants no answer comes in the gap.
func TestARequestWithoutAnAnswerInTheGap(t *testing.T) {
	in := newInstance(t)
	in.attach()
	in.greet()
	in.submits(slow)
	release := in.broker.Hold("kvs.commit") // of the keeper too: there is no worker until then
	before := workers(t)
	require.NoError(t, syscall.Kill(before[0], syscall.SIGKILL))
	require.Eventually(t, func() bool { return len(workers(t)) == 0 }, 5*time.Second, time.Millisecond)
	time.Sleep(10 * time.Millisecond)
	require.NoError(t, in.conn.Post(serviceName+".raise", map[string]any{"id": slow, "type": "cancel", "severity": 0}))
	time.Sleep(10 * time.Millisecond)
	release()
	in.logs(slow, "clean")
}

// What an executor said before the crash, and in the gap, counts once in every store, though a user
// says something like it, and though the log cuts its note.
func TestAnExecutorSaidItBefore(t *testing.T) {
	for _, store := range []string{"lines", "bolt:" + filepath.Join(t.TempDir(), "jobs")} {
		t.Run(strings.SplitN(store, ":", 2)[0], func(t *testing.T) {
			in := newInstance(t)
			in.attach("-store=" + store)
			journal := in.stream(in.conn, "events-journal", `{}`)
			in.greet()
			in.submits(slow)
			q := in.request("sched.alloc")
			in.mu.Lock()
			in.kvs.keys[jobid.ID(slow).KVSPath()+keyR] = fmt.Sprintf(resources, 0)
			in.mu.Unlock()
			in.respond(q, givesR(slow, 0))
			start := in.request("my-exec.start")
			said := func(typ string) {
				in.respond(start, saysOf(slow, "exception", fmt.Sprintf(`{"type":%q,"severity":1,"note":%q}`, typ, "n"+strings.Repeat("é", 3000))))
			}
			in.respond(start, saysOf(slow, "start", `{}`))
			said("a")
			said("b")
			said("a")
			require.Empty(t, in.ask("raise", fmt.Sprintf(`{"id":%d,"type":"c","severity":1,"note":"a user's"}`, slow)))
			for n := 0; n < 4; { // they are stored
				n += strings.Count(next(t, journal), `"name":"exception"`)
			}
			in.stopped(func() { said("b"); said("c"); time.Sleep(10 * time.Millisecond) })
			in.respond(start, saysOf(slow, "finish", `{"status":0}`))
			in.respond(start, saysOf(slow, "release", `{"ranks":"all","final":true}`))
			var told strings.Builder
			for !strings.Contains(told.String(), `"name":"clean"`) {
				told.WriteString(next(t, journal))
			}
			require.Equal(t, 2, strings.Count(told.String(), `"name":"exception"`), "those of the gap")
		})
	}
}

// Workers that end again and again end the keeper, which says why, and answers who waits.
func TestWorkersEndAgainAndAgain(t *testing.T) {
	defer func(d time.Duration) { restartWait = d }(restartWait)
	restartWait /= 100
	in := newInstance(t)
	in.attach()
	in.greet()
	in.begins(slow)
	wait := in.stream(in.conn, "drain", `{}`)
	in.ask("nosuch", `{}`)
	for range maxRestarts {
		in.kill()
	}
	require.NoError(t, syscall.Kill(workers(t)[0], syscall.SIGKILL))
	require.ErrorContains(t, in.wait(), "the manager ended 11 times in less than 1m0s: signal: killed")
	require.Equal(t, "errno 38", next(t, wait))
}

// A machine without room for a worker may have some later.
func TestAWorkerThatCannotStartIsTriedAgain(t *testing.T) {
	in := newInstance(t)
	in.attach()
	in.greet()
	in.begins(slow)
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	pid := workers(t)[0]
	none := limit
	none.Cur = 3
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	restore := sync.OnceFunc(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit) })
	defer restore()
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	require.Eventually(t, func() bool { return strings.Count(in.said.String(), "too many open files") > 2 }, 10*time.Second, time.Millisecond)
	restore()
	in.ask("nosuch", `{}`)
	require.NotEqual(t, pid, workers(t)[0])
}

// The broker shuts down. The next worker hears of it, at the latest when it has read the jobs, whether
// the one before had stored that the job finished or not.
func TestTheBrokerShutsDownInTheGap(t *testing.T) {
	for _, when := range []string{"finish is stored", "finish is not stored", "the jobs are read"} {
		t.Run(when, func(t *testing.T) {
			in := newInstance(t)
			r := in.rexec()
			in.broker.SetConfig(`{"job-manager":{"epilog":{"command":["sleep","inf"]}}}`)
			in.attach()
			in.greet()
			start := in.begins(slow)
			ends := func() {
				in.broker.SetState(flux.StateCleanup)
				in.respond(start, saysOf(slow, "finish", `{"status":0}`))
			}
			releases := func() { in.respond(start, saysOf(slow, "release", `{"ranks":"all","final":true}`)) }
			if when == "finish is stored" {
				ends()
				in.logs(slow, "finish")
			}
			read := func() {}
			in.stopped(func() {
				switch when {
				case "the jobs are read":
					read = in.broker.Hold("kvs.lookup")
					return
				case "finish is not stored":
					ends()
				}
				releases()
				time.Sleep(10 * time.Millisecond)
			})
			if when == "the jobs are read" {
				ends()
				releases()
			}
			read()
			in.logs(slow, "clean")
			require.Equal(t, wholeLife, in.log(slow), "no epilog begins")
			require.Empty(t, r.runs)
		})
	}
}

// A raise that is stored, and that nobody answers since the worker dies, is not made again. One
// in other words is.
func TestARaiseIsMadeOnce(t *testing.T) {
	in := newInstance(t)
	in.attach()
	in.greet()
	in.begins(slow)
	stored := make(chan struct{})
	in.broker.Serve("kvs.commit", func(q flux.Message, answer func(flux.Message)) {
		in.mu.Lock()
		defer in.mu.Unlock()
		text, _ := q.JSON()
		in.kvs.commit(text)
		if strings.Contains(string(text), "joblife.fence") || isClosed(stored) {
			answer(q.Respond(flux.Text(`{}`)))
			return
		}
		close(stored)
	})
	done := make(chan error, 2)
	for _, note := range []string{"hello", "good-bye"} {
		m := flux.NewRequest(topicRaise, flux.Text(fmt.Sprintf(`{"id":%d,"severity":2,"type":"note","note":%q}`, slow, note)))
		_, err := in.conn.Start(m, func(_ flux.Message, err error) { done <- err })
		require.NoError(t, err)
		<-stored
	}
	in.kill()
	require.NoError(t, next(t, done))
	require.NoError(t, next(t, done))
	require.Regexp(t, " start exception exception$", in.log(slow))
	require.Equal(t, 1, strings.Count(in.key(jobid.ID(slow).KVSPath()+keyEventlog), "hello"))
}

// A request that has one answer is over with it, though its sender wants a stream: the next worker
// does not carry it out again.
func TestOneAnswerEndsARequest(t *testing.T) {
	in := newInstance(t)
	in.attach()
	in.submits(slow)
	require.Contains(t, next(t, in.stream(in.conn, "urgency", fmt.Sprintf(`{"id":%d,"urgency":5}`, slow))), `"old_urgency":16`)
	require.Contains(t, in.ask("urgency", fmt.Sprintf(`{"id":%d,"urgency":9}`, slow)), `"old_urgency":5`)
	in.kill()
	require.Contains(t, in.ask("list", `{"max_entries":0}`), `"urgency":9`)

	ours, theirs := net.Pipe()
	defer theirs.Close()
	go io.Copy(io.Discard, theirs)
	b := &broker{conn: flux.New(ours, flux.Config{}), routes: make(bySender[*flux.Message])}
	defer b.conn.Close()
	for tag, topic := range []string{serviceName + ".urgency", topicJournal} {
		m := flux.NewRequest(topic, nil)
		m.Flags |= flux.FlagStreaming
		b.routes.set(asked{"s", uint32(tag)}, &m)
		sender := "s"
		b.send(output{Topic: topic, Sender: &sender, Matchtag: uint32(tag)})
	}
	require.Len(t, b.routes["s"], 1)
}

// A countedStore counts what is looked up.
type countedStore struct {
	memory
	lookups int
}

func (s *countedStore) lookup(id jobid.ID) (service.Stored, error) {
	s.lookups++
	return s.memory.lookup(id)
}

// Raises that come again have the log of each job read once, whatever order they are in. Each is
// that of one exception, and of none that was there before it came.
func TestALogIsReadOnceForAllThatComesAgain(t *testing.T) {
	const log = `{"timestamp":%d.0,"name":"exception","context":{"type":"t","severity":7,"note":"n","userid":%d}}` + "\n"
	s := &countedStore{memory: memory{1: new(service.Stored), 2: new(service.Stored)}}
	for id, j := range s.memory {
		for at := range 5 {
			j.Eventlog = fmt.Appendf(j.Eventlog, log, at+1, uint64(id))
		}
	}
	b := &broker{p: begin(t).p, seed: maphash.MakeSeed()}
	b.p.store = s
	for n := range 10 {
		id := uint32(n%2 + 1)
		payload := fmt.Appendf(nil, `{"id":%d,"severity":7,"type":"t","note":"n"}`, id)
		came := eventlog.Timestamp(3 + n/4) // so the second of two may not take the exception of the first
		require.Equal(t, n < 6, b.isRaised(&flux.Message{UserID: id}, payload, came), "%d", n)
		require.False(t, b.isRaised(&flux.Message{UserID: 3}, payload, 0))
	}
	require.Equal(t, 2, s.lookups)
	b.receive(&flux.Message{Type: flux.TypeResponse})
	require.Empty(t, b.logged, "nothing comes again any more")
}

// An exception in the words of an earlier one is not lost with a worker that did not store it.
func TestASecondExceptionIsRaised(t *testing.T) {
	in := newInstance(t)
	in.attach()
	in.submits(slow)
	raise := fmt.Sprintf(`{"id":%d,"severity":7,"type":"gpu","note":"ecc"}`, slow)
	require.Empty(t, in.ask("raise", raise))
	var answer <-chan string
	in.stopped(func() {
		answer = in.stream(in.conn, "raise", raise)
		time.Sleep(20 * time.Millisecond)
	})
	require.Empty(t, next(t, answer))
	require.Equal(t, 2, strings.Count(in.log(slow), "exception"), in.log(slow))
}

// What changed in a worker alone is so in the next one.
func TestAConfigurationAndStopsOutliveAWorker(t *testing.T) {
	file := t.TempDir() + "/c.json"
	require.NoError(t, os.WriteFile(file, []byte(`{"queues":{"a":{}}}`), 0o600))
	in := newInstance(t)
	in.attach("-config", file)
	in.greet()
	require.Empty(t, in.ask("config-reload", `{"queues":{"a":{},"b":{},"c":{}}}`))
	require.Contains(t, in.ask("config-reload", `{"queues":7}`), "errno", "it is refused, and changes nothing")
	require.Empty(t, in.ask("queue-start", `{"start":false,"all":true,"nocheckpoint":true}`))
	require.Empty(t, in.ask("queue-start", `{"start":true,"all":false,"name":"a"}`))
	in.kill()
	require.Equal(t, `{"queues":["a","b","c"]}`, in.ask("queue-list", `{}`))
	require.Equal(t, `{"enable":true,"start":true}`, in.ask("queue-status", `{"name":"a"}`))
	require.Equal(t, `{"enable":true,"start":false}`, in.ask("queue-status", `{"name":"b"}`))
	require.Empty(t, in.ask("queue-start", `{"start":true,"all":true}`))
	in.kill()
	require.Equal(t, `{"enable":true,"start":true}`, in.ask("queue-status", `{"name":"b"}`))
}

// Plugins that were loaded and removed are so in the next worker.
func TestPluginsOutliveAWorker(t *testing.T) {
	in := newInstance(t)
	in.attach()
	for _, payload := range []string{
		`{"load":"/lib/perilog.so"}`, `{"remove":"p*"}`, `{"load":"perilog.so"}`, `{"load":"alloc-bypass.so"}`, `{"remove":".update-queue"}`,
		`{"remove":".history"}`, `{"load":".history"}`, `{"load":".update-duration","conf":{"owner-allow-any":0}}`, `{"remove":"alloc*"}`,
	} {
		require.Empty(t, in.ask("jobtap", payload))
	}
	plugins, query := in.ask("jobtap", `{"query_only":true}`), in.ask("jobtap-query", `{"name":".update-duration"}`)
	require.Contains(t, plugins, "perilog.so")
	in.kill()
	require.Equal(t, plugins, in.ask("jobtap", `{"query_only":true}`))
	require.Equal(t, query, in.ask("jobtap-query", `{"name":".update-duration"}`))

	k := new(keeper)
	for i := range 2 * maxPlugins {
		k.loads(fmt.Appendf(nil, `{"remove":"p%d*","load":"perilog.so"}`, i))
	}
	require.Len(t, k.plugins, maxPlugins)
	k.loads([]byte(`{"remove":"all","load":"perilog.so"}`))
	require.Len(t, k.plugins, 2)
}

// Who reads what the keeper says may go. The keeper serves on.
func TestNobodyReadsWhatTheKeeperSays(t *testing.T) {
	in := newInstance(t)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	c := exec.Command(os.Args[0], "-flux="+in.broker.URI())
	c.Env, c.Stderr = append(os.Environ(), "MANAGER_RUN=1"), w
	require.NoError(t, c.Start())
	t.Cleanup(func() { _, _ = c.Process.Kill(), c.Wait() })
	in.broker.Await(serviceName)
	require.NoError(t, errors.Join(r.Close(), w.Close()))
	in.broker.SetConfig(`{"queues":7}`) // it says that this is refused
	in.broker.SetConfig(`{"queues":{"a":{}}}`)
	require.Eventually(t, func() bool { return in.ask("queue-list", `{}`) == `{"queues":["a"]}` }, 5*time.Second, time.Millisecond)
}

// A configuration that a worker refuses ends no worker, now or later, though the broker has it. One
// that changes in the gap is loaded.
func TestARefusedConfigurationChangesNothing(t *testing.T) {
	in := newInstance(t)
	in.broker.SetConfig(`{"queues":{"a":{}}}`)
	in.attach()
	becomes := func(name string) {
		t.Helper()
		require.Eventually(t, func() bool { return in.ask("queue-list", `{}`) == `{"queues":["`+name+`"]}` }, 5*time.Second, time.Millisecond)
	}
	require.Contains(t, in.ask("config-reload", `{"queues":7}`), "errno", "as a module is told")
	in.broker.SetConfig(`{"queues":7}`)
	require.Eventually(t, func() bool { return strings.Contains(in.said.String(), "the configuration stays as it was: ") }, 5*time.Second, time.Millisecond)
	for _, name := range []string{"b", "c"} {
		in.kill()
		becomes(string(name[0] - 1))
		in.stopped(func() { in.broker.SetConfig(`{"queues":{"` + name + `":{}}}`) })
		becomes(name)
		in.broker.SetConfig(`{"queues":8}`)
	}
	require.NotContains(t, in.said.String(), "exit status")
}

// An answer of the scheduler that is no JSON object is refused as any other that is malformed:
// its session ends, and nothing waits for ever.
func TestAnAnswerThatIsNoObjectEndsTheSession(t *testing.T) {
	in := newInstance(t)
	in.attach()
	in.greet()
	in.submits(slow)
	in.respond(in.request("sched.alloc"), `{"id":16777216,"type":0,`)
	require.Eventually(t, func() bool {
		return in.ask("alloc-query", `{}`) == `{"queue_length":1,"alloc_pending":0,"running":0}`
	}, 10*time.Second, 10*time.Millisecond)
	require.Contains(t, fmt.Sprint(in.broker.Log()), "sched.alloc: ")
}

func TestWhoMayNotEndTheKeeperIsTold(t *testing.T) {
	in := newInstance(t)
	in.attach()
	done := make(chan error, 1)
	for _, user := range []struct{ rolemask, errnum uint32 }{{flux.RoleUser, errno.Perm}, {flux.RoleOwner, errno.NoSys}} {
		m := flux.NewRequest(topicShutdown, nil)
		m.UserID, m.Rolemask = 1001, user.rolemask
		_, err := in.conn.Start(m, func(_ flux.Message, err error) { done <- err })
		require.NoError(t, err)
		require.Equal(t, user.errnum, flux.Errnum(next(t, done)))
	}
}
