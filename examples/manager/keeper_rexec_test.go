//go:build unix

package main

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/flux"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A runner is what runs processes for the manager, and a test plays.
type runner struct {
	runs, kills chan flux.Message
	answer      func(flux.Message)
}

// rexec plays the service of processes: it tells what it was asked.
func (in *instance) rexec() *runner {
	r := &runner{runs: make(chan flux.Message, 10), kills: make(chan flux.Message, 10)}
	in.broker.SetConfig(`{"job-manager":{"prolog":{"command":["sleep","inf"]}}}`)
	in.broker.Serve("rexec.exec", func(q flux.Message, answer func(flux.Message)) {
		r.answer = answer
		r.runs <- q
	})
	in.broker.Serve("rexec.kill", func(q flux.Message, answer func(flux.Message)) {
		r.kills <- q
		answer(q.Respond(nil))
	})
	return r
}

// prolog plays a job until its prolog is asked for.
func (in *instance) prolog(id int, r *runner) flux.Message {
	in.t.Helper()
	in.greet()
	in.submits(id)
	q := in.request("sched.alloc")
	in.mu.Lock()
	in.kvs.keys[jobid.ID(id).KVSPath()+keyR] = fmt.Sprintf(resources, 0)
	in.mu.Unlock()
	in.respond(q, givesR(id, 0))
	return next(in.t, r.runs)
}

// A prolog that starts when its worker is gone does not run beside the next one.
func TestAProcessStartsAfterItsWorkerIsKilled(t *testing.T) {
	in := newInstance(t)
	r := in.rexec()
	in.attach("-lost", "rerun")
	q := in.prolog(slow, r)
	require.NotRegexp(t, workerVariable+"|"+flux.ModuleURI, string(q.Payload), "what it starts is no worker")
	killed := make(chan bool)
	go func() { in.kill(); close(killed) }()
	time.Sleep(50 * time.Millisecond)
	r.answer(q.Respond(flux.Text(`{"type":"started","pid":4711}`)))
	kill := next(t, r.kills)
	text, err := kill.JSON()
	require.NoError(t, err)
	require.JSONEq(t, `{"pid":4711,"signum":9}`, string(text))
	select {
	case <-killed:
		require.Fail(t, "the next worker is there, and the process too")
	case <-time.After(50 * time.Millisecond):
	}
	r.answer(q.RespondError(errno.NoData, ""))
	<-killed
	next(t, r.runs)
}

// A process that does not end holds the next worker up for a while.
func TestAProcessThatDoesNotEnd(t *testing.T) {
	defer func(d time.Duration) { clearWait = d }(clearWait)
	clearWait = 50 * time.Millisecond
	in := newInstance(t)
	r := in.rexec()
	in.attach("-lost", "rerun")
	q := in.prolog(slow, r)
	r.answer(q.Respond(flux.Text(`{"type":"started","pid":4711}`)))
	in.ask("nosuch", `{}`)
	in.kill()
	next(t, r.kills)
	next(t, r.runs)
	require.Contains(t, in.said.String(), "process 4711")
}

// loads runs the manager as a module of that name, and returns its states.
func (in *instance) loads(name string) <-chan string {
	states := make(chan string, 10)
	in.broker.Load(name, func(q flux.Message) {
		text, _ := q.JSON()
		states <- string(text)
	})
	defer func(args []string) { in.t.Cleanup(func() { os.Args = args }) }(os.Args)
	os.Args, in.uri = []string{name}, ""
	in.launch()
	return states
}

// A module of the broker says that it serves, and ends when it is asked to.
func TestAKeeperIsAModule(t *testing.T) {
	in := newInstance(t)
	states := in.loads(serviceName)
	require.JSONEq(t, `{"status":1,"errnum":0}`, next(t, states))

	end := flux.NewRequest(serviceName+".shutdown", nil)
	end.Flags |= flux.FlagNoResponse
	require.Contains(t, in.ask("nosuch", `{}`), "errno 38")
	require.NoError(t, in.conn.Send(end))
	require.NoError(t, in.conn.Send(end))
	require.JSONEq(t, `{"status":2,"errnum":0}`, next(t, states))
	require.JSONEq(t, `{"status":3,"errnum":0}`, next(t, states))
	require.NoError(t, in.wait())
}

// A module of another name is not the service, and leaves the jobs to who is.
func TestAModuleOfAnotherName(t *testing.T) {
	in := newInstance(t)
	states := in.loads("manager")
	require.JSONEq(t, `{"status":2,"errnum":0}`, next(t, states))
	require.JSONEq(t, `{"status":3,"errnum":22}`, next(t, states))
	require.EqualError(t, in.wait(), "-flux: the module is manager: name it job-manager, by --name or in os.execv")
}
