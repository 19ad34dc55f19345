//go:build unix

package proc

import (
	"errors"
	"os"
	osexec "os/exec"
	ossignal "os/signal"
	"sync"
	"syscall"
	"time"
)

// The files that a shim has open.
const (
	recordFile  = 3
	signalsFile = 4
)

const grace = time.Second // from SIGTERM to SIGKILL, for what a command leaves

// Shim does not return if this process is a shim.
func Shim() {
	if len(os.Args) != 1 || os.Args[0] != shimName {
		return
	}
	syscall.CloseOnExec(recordFile)
	syscall.CloseOnExec(signalsFile)
	s := shim{}
	if err := s.run(os.NewFile(recordFile, "record"), os.NewFile(signalsFile, "signals")); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

type shim struct {
	mu    sync.Mutex // from a look at the processes to a signal for them
	group int        // the pid of the command
	ended bool       // it has, and its pid may be that of another process
	token string
}

func (s *shim) run(file, signals *os.File) error {
	defer file.Close()                                                                                         // which ends the lock
	ossignal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE) // which are for the command
	adoptOrphans()
	crash("shim before running")
	rec, err := read(file)
	if err != nil {
		return err
	}
	s.token = rec.Token
	if err := rec.set(stateRunning, 0); err != nil { // before the command runs
		return err
	}
	crash("shim after running")
	if err := s.start(rec); err != nil {
		errno := syscall.ENOENT
		_ = errors.As(err, &errno)
		return persist(func() error { return rec.set(stateFailed, int(errno)) })
	}
	crash("shim after start")
	go s.obey(signals)
	status := s.wait()
	crash("shim after exit")
	if err := persist(func() error { return rec.set(stateExited, status) }); err != nil {
		return err
	}
	crash("shim after status")
	s.clear()
	return persist(func() error { return rec.set(stateReleased, status) })
}

// persist repeats what a full or broken disk refuses. Until then the task runs, as others see
// it.
func persist(write func() error) error {
	for wait := time.Millisecond; ; wait = min(2*wait, time.Second) {
		if err := write(); err == nil {
			return nil
		}
		time.Sleep(wait)
	}
}

func (s *shim) start(rec *record) error {
	name, err := osexec.LookPath(rec.Args[0])
	if err != nil {
		return err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.group, err = syscall.ForkExec(name, rec.Args, &syscall.ProcAttr{
		Env: append(os.Environ(), env+"="+rec.Token), Files: []uintptr{null.Fd(), 1, 2}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	return err
}

// obey passes signals on: each byte is one.
func (s *shim) obey(signals *os.File) {
	var b [1]byte
	for {
		if _, err := signals.Read(b[:]); err != nil {
			return
		}
		s.kill(syscall.Signal(b[0]))
	}
}

// kill signals the group, and with SIGKILL all processes of the task.
func (s *shim) kill(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended || !findsAll {
		_ = syscall.Kill(-s.group, sig) // it may be gone
	}
	if s.ended || sig == syscall.SIGKILL {
		signalMarked(s.token, os.Getpid(), sig)
	}
}

// wait waits for the command, and reaps orphans.
func (s *shim) wait() int {
	children := make(chan os.Signal, 1)
	for ossignal.Notify(children, syscall.SIGCHLD); ; <-children {
		if status, _ := s.reap(); s.ended {
			return int(status)
		}
	}
}

// reap takes what has ended, until it is the command, and reports whether there are more
// children. No signal is on its way meanwhile: the pid may be that of another process then.
func (s *shim) reap() (ws syscall.WaitStatus, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil); {
		case err == nil && pid == s.group && !s.ended:
			s.ended = true
			return ws, true
		case err != syscall.EINTR && pid <= 0:
			return ws, err == nil
		}
	}
}

// clear ends what the command left.
func (s *shim) clear() {
	deadline := time.Now().Add(grace)
	s.kill(syscall.SIGTERM)
	for s.left() {
		if time.Now().After(deadline) {
			s.kill(syscall.SIGKILL)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// left reports whether something of the task is left.
func (s *shim) left() bool {
	_, more := s.reap()
	return more || !findsAll && syscall.Kill(-s.group, 0) == nil
}
