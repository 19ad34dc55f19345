//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/flux"
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
	require.Eventually(in.t, func() bool { return strings.HasSuffix(in.log(id), event) }, 5*time.Second, time.Millisecond,
		"the log of %d has no %s: %s", id, event, in.said)
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

// The instance has a job manager.
func TestTheServiceIsTaken(t *testing.T) {
	in := newInstance(t)
	require.NoError(t, in.conn.Register(t.Context(), serviceName))
	in.launch()
	require.ErrorContains(t, in.wait(), "errno 17")
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
