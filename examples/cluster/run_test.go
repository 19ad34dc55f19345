package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/cluster/auth"
	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/examples/internal/proctest"
)

// Who interrupts a run ends its job, though the manager dies that was asked first.
func TestAnInterruptedRunCancelsItsJob(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	status, _, stderr := execute("init", "-dir", dir, "-nodes=1")
	require.Zero(t, status, stderr)
	p := &program{dir: dir}
	require.NoError(t, p.read())
	s, err := engine.Serve(engine.Server{URL: p.URL, Dir: filepath.Join(dir, "nats")}, p.keys())
	require.NoError(t, err)
	t.Cleanup(s.Shutdown)
	options, err := auth.Options(p.keys(), auth.Manager(), p.URL)
	require.NoError(t, err)
	conn, err := nats.Connect(p.URL, options...)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	started, once := make(chan struct{}), new(sync.Once)
	var cancels atomic.Int64
	_, err = conn.Subscribe("jl.main.req.*.*", func(m *nats.Msg) {
		answer := wire.Answer{ID: 7, Jobs: []wire.JobInfo{{ID: 7, State: "SCHED"}}}
		if cancels.Load() > 1 {
			answer.Jobs[0].Result = "CANCELED"
		}
		switch verb := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]; {
		case verb == "cancel" && cancels.Add(1) == 1:
			return
		case verb == "job":
			once.Do(func() { close(started) })
		}
		text, err := wire.Marshal(answer)
		require.NoError(t, err)
		require.NoError(t, m.Respond(text))
	})
	require.NoError(t, err)
	require.NoError(t, conn.Flush())
	run := proctest.Start(t, dir+"/run.log", "run", "-dir", dir, "true")
	<-started
	require.NoError(t, run.Process.Signal(os.Interrupt))
	defer time.AfterFunc(15*time.Second, func() { _ = run.Process.Kill() }).Stop()
	require.Error(t, run.Wait())
	require.Equal(t, 1, run.ProcessState.ExitCode())
	proctest.Await(t, dir+"/run.log", "CANCELED", 1)
}
