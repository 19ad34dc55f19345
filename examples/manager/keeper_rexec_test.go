//go:build unix

package main

import (
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
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

// loaded runs the manager as a module of that name. It returns the broker's end of the connection, how
// to send there, the states of the module, and how it ends.
func loaded(t *testing.T, name string) (broker *flux.Conn, answer func(flux.Message), states chan string, done chan error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	syscall.CloseOnExec(pair[0])
	syscall.CloseOnExec(pair[1])
	f := os.NewFile(uintptr(pair[0]), "broker")
	socket, err := net.FileConn(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	states = make(chan string, 10)
	peer := newPeer(t)
	made := make(chan bool)
	answer = func(m flux.Message) {
		if m.Type == flux.TypeResponse {
			m.UserID, m.Rolemask = 100, flux.RoleOwner
		}
		require.NoError(t, broker.Send(m))
	}
	broker = flux.New(socket, flux.Config{Handle: func(m flux.Message) {
		<-made
		text, _ := m.JSON()
		switch m.Topic {
		case "attr.get":
			value := map[bool]string{true: "0", false: "100"}[strings.Contains(string(text), "rank")]
			answer(m.Respond(flux.Text(fmt.Sprintf(`{"value":%q}`, value))))
		case "config.get":
			answer(m.Respond(flux.Text(`{}`)))
		case "state-machine.monitor":
			answer(m.Respond(flux.Text(`{"state":5}`)))
		case "kvs.lookup":
			_, errnum := peer.lookup(text)
			answer(m.RespondError(uint32(errnum), ""))
		case topicStatus:
			states <- string(text)
			if !m.Flags.Has(flux.FlagNoResponse) {
				answer(m.Respond(nil))
			}
		}
	}})
	close(made)
	t.Cleanup(func() { _ = broker.Close() })
	defer func(args []string) { t.Cleanup(func() { os.Args = args }) }(os.Args)
	os.Args = append([]string{name}, os.Args[1:]...)
	t.Setenv(flux.ModuleURI, fmt.Sprintf("fd://%d", pair[1]))
	t.Setenv("MANAGER_FLAGS", "")
	o, said := new(options), new(lockedBuffer)
	p := o.program()
	_, ok := p.Parse([]string{"-flux"}, said, said)
	require.True(t, ok)
	done = make(chan error, 1)
	go func() { done <- p.Attach(t.Context(), said) }()
	return broker, answer, states, done
}

// A module of the broker says that it serves, and ends when it is asked to.
func TestAKeeperIsAModule(t *testing.T) {
	broker, answer, states, done := loaded(t, serviceName)
	require.JSONEq(t, `{"status":1,"errnum":0}`, next(t, states))

	end := flux.NewRequest(serviceName+".shutdown", nil)
	end.Flags |= flux.FlagNoResponse
	end.UserID, end.Rolemask = 1001, flux.RoleUser
	answer(end) // a guest's
	answer(end)
	_, err := broker.Call(t.Context(), serviceName+".nosuch", flux.NodeidAny, flux.Text(`{}`))
	require.EqualValues(t, errno.NoSys, flux.Errnum(err))
	require.Empty(t, done)
	end.UserID, end.Rolemask = 100, flux.RoleOwner
	answer(end)
	answer(end)
	require.JSONEq(t, `{"status":2,"errnum":0}`, next(t, states))
	require.JSONEq(t, `{"status":3,"errnum":0}`, next(t, states))
	require.NoError(t, next(t, done))
}

// A module of another name is not the service, and leaves the jobs to who is.
func TestAModuleOfAnotherName(t *testing.T) {
	_, _, states, done := loaded(t, "manager")
	require.JSONEq(t, `{"status":2,"errnum":0}`, next(t, states))
	require.JSONEq(t, `{"status":3,"errnum":22}`, next(t, states))
	require.EqualError(t, next(t, done), "-flux: the module is manager: name it job-manager, by --name or in os.execv")
}
