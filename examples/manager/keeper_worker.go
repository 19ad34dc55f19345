//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/joblife/joblife/examples/internal/files"
	"github.com/joblife/joblife/examples/internal/flux"
)

// A worker is a process that manages jobs.
type worker struct {
	cmd     *osexec.Cmd
	conn    *flux.Conn
	ready   chan struct{} // closed when it can serve requests
	serving bool          // it knows what goes on
	said    atomic.Uint64 // how many messages it has sent
	late    chan struct{} // closed when nobody waits for what it has sent
	gone    chan struct{} // closed when it has ended, with err
	err     error
}

// start starts a worker.
func (k *keeper) start() (*worker, error) {
	syscall.ForkLock.RLock() // no other child gets the pair
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(pair[0])
		syscall.CloseOnExec(pair[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "worker"), os.NewFile(uintptr(pair[1]), "keeper")
	defer ours.Close()
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, err
	}
	self, err := files.Program()
	if err != nil {
		return nil, err
	}
	w := &worker{cmd: osexec.Command(self, os.Args[1:]...), ready: make(chan struct{}), late: make(chan struct{}), gone: make(chan struct{})}
	w.cmd.Args[0] = os.Args[0]
	w.cmd.ExtraFiles = []*os.File{theirs}
	w.cmd.Stderr = k.stderr
	k.mu.Lock()
	defer k.mu.Unlock()
	state := "1"
	if k.closing {
		state = workerEnding
	}
	w.cmd.Env = append(os.Environ(), flux.ModuleURI+"=fd://3", workerVariable+"="+state)
	if err := w.cmd.Start(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	w.conn = flux.New(conn, link("", func(m flux.Message) {
		w.said.Add(1)
		k.fromWorker(w, m)
	}, k.skipped))
	k.worker, k.commits = w, 0
	for id := range k.sched.stale { // the one before asked, and nobody goes on with that
		k.sched.stale[id] = nil
	}
	go func() {
		<-w.conn.Done() // all that it sent was handled
		k.mu.Lock()
		k.worker = nil
		k.mu.Unlock()
		if w.err = w.cmd.Wait(); w.err == nil {
			w.err = errors.New("status 0")
		}
		close(w.gone)
	}()
	return w, nil
}

// A worker that serves requests says so each second. One that is silent for maxSilent looks hangs.
// Looks are counted, not seconds, so that a machine that was suspended ends no worker.
var lookEvery = 5 * time.Second

const maxSilent = 12

// await tells a worker what it has to know when it serves requests, and waits for its end. It
// kills one that hangs. It reports whether the keeper itself is to end, and why.
func (k *keeper) await(ctx context.Context, w *worker) (asked bool, why error) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	said, silent := uint64(0), 0
	for ready := w.ready; ; {
		select {
		case <-look.C:
			now := w.said.Load()
			// How long it reads the jobs nobody knows, and it waits for a broker that does not read.
			if silent++; now != said || ready != nil || k.broker.Behind() > fullBehind {
				said, silent = now, 0
			}
			if silent == maxSilent {
				fmt.Fprintf(k.stderr, "manager: error: the worker hangs: it said nothing for %v\n", maxSilent*lookEvery)
				_ = w.cmd.Process.Kill()
			}
		case <-ready:
			ready = nil
			k.mu.Lock()
			err := k.welcome(w)
			k.mu.Unlock()
			if err != nil {
				fmt.Fprintln(k.stderr, "manager:", err)
				_ = w.cmd.Process.Kill() // it has no complete story
			}
		case <-w.gone:
			return ctx.Err() != nil, nil
		case <-ctx.Done():
			return true, nil
		case <-k.broker.Done():
			return true, fmt.Errorf("-flux: %w", k.broker.Err())
		}
	}
}

// stopWait is how long a worker may take to store what is left, and to tell who waits.
const stopWait = 20 * time.Second

// stop ends a worker.
func (k *keeper) stop(w *worker) error {
	_ = w.cmd.Process.Signal(syscall.SIGTERM) // it may be gone
	select {
	case <-w.gone:
	case <-time.After(stopWait):
		_ = w.cmd.Process.Kill()
		close(w.late)
		<-w.gone
	}
	if w.cmd.ProcessState.Success() || !isClosed(w.ready) { // it had nothing to store
		return nil
	}
	return w.err
}

// clearWait is how long the processes of a worker may take to end.
var clearWait = startWait

// clear waits until nothing of the worker before is under way: what it wrote, and the processes
// that it had started, which would run on beside those of the next. One that nobody can kill, or
// whose node is silent, holds the jobs of all others up for no longer than clearWait.
func (k *keeper) clear(ctx context.Context) error {
	var running []*calling
	k.mu.Lock()
	for _, c := range k.calls {
		if c.topic == topicRun {
			running = append(running, c)
		}
	}
	k.mu.Unlock()
	limit, cancel := context.WithTimeout(ctx, clearWait)
	defer cancel()
	var all sync.WaitGroup
	for _, c := range running {
		all.Go(func() { k.kill(limit, c) })
	}
	all.Wait()
	ctx, cancel = context.WithTimeout(ctx, startWait)
	defer cancel()
	return k.broker.CallJSON(ctx, topicCommit, flux.NodeidAny, commitOf(op{Key: "joblife.fence", Dirent: value([]byte{})}), nil)
}

// kill kills a process as soon as it has started, and waits for its end.
func (k *keeper) kill(ctx context.Context, c *calling) {
	select {
	case <-c.started:
		kill := struct {
			PID    int `json:"pid"`
			Signum int `json:"signum"`
		}{c.pid, int(syscall.SIGKILL)}
		_ = k.broker.CallJSON(ctx, "rexec.kill", c.rank, kill, nil) // it may have ended
	case <-c.done:
	case <-ctx.Done():
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		fmt.Fprintf(k.stderr, "manager: error: process %d on rank %d does not end, and its rerun may run beside it\n", c.pid, c.rank)
	}
}
