//go:build unix

package proc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	ossignal "os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
)

// The files that a shim has open.
const (
	recordFile  = 3
	signalsFile = 4
	newsFile    = 5
)

const grace = time.Second // from SIGTERM to SIGKILL, for what a command leaves

// Shim does not return if this process is a shim.
func Shim() {
	if len(os.Args) != 1 || os.Args[0] != shimName {
		return
	}
	for fd := recordFile; fd <= newsFile; fd++ {
		syscall.CloseOnExec(fd)
	}
	s := shim{news: os.NewFile(newsFile, "news"), told: make(chan struct{}), lines: make(chan struct{}), late: make(chan struct{}), room: maxText}
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
	news  *os.File      // a byte for each control line
	told  chan struct{} // is closed at the end of the output that the shim passes on
	out   *os.File      // of an action, to read; nil: there is none
	lines chan struct{} // is closed when its control lines are kept
	late  chan struct{} // is closed when nobody seems to read our output
	room  int           // for control lines, in bytes; below 0: there are too many
}

func (s *shim) run(file, signals *os.File) error {
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
	time.AfterFunc(grace, func() { close(s.late) })
	if s.out != nil {
		_ = s.out.SetReadDeadline(time.Now().Add(grace)) // somebody may hold it who has nothing to say
		<-s.lines
	}
	select {
	case <-s.told:
	case <-s.late:
	}
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

// commandAs is how a command runs, if Runner.Prepare says so. Its texts are inJSON.
type commandAs struct {
	Dir        string
	Env        []string
	Credential *syscall.Credential
	MaxOutput  int64
}

func (s *shim) start(rec *record) error {
	as := commandAs{Env: os.Environ()}
	if text := os.Getenv(asEnv); text != "" {
		if err := json.Unmarshal([]byte(text), &as); err != nil {
			return err
		}
		as.Dir, as.Env = fromJSON(as.Dir)[0], fromJSON(as.Env...)
		for _, v := range as.Env { // the last one counts
			if path, ok := strings.CutPrefix(v, "PATH="); ok {
				if err := os.Setenv("PATH", path); err != nil {
					return err
				}
			}
		}
	}
	args := fromJSON(rec.Args...)
	name := args[0]
	if !strings.Contains(name, "/") { // else it is one of Dir, if it is relative
		var err error
		if name, err = osexec.LookPath(name); err != nil {
			return err
		}
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	out, errOut, action := os.Stdout, os.Stderr, rec.Task.Action != (jobstate.ActionKey{})
	if action || as.MaxOutput > 0 {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		defer w.Close()
		if out = w; action {
			s.out = r
			go s.relay(rec)
		} else {
			errOut = w
			go s.keep(r, as.MaxOutput)
		}
	} else {
		close(s.told)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.group, err = syscall.ForkExec(name, args, &syscall.ProcAttr{
		Dir: as.Dir, Env: append(as.Env, env+"="+rec.Token), Files: []uintptr{null.Fd(), out.Fd(), errOut.Fd()},
		Sys: &syscall.SysProcAttr{Setpgid: true, Credential: as.Credential},
	})
	return err
}

// relay passes the output of an action on, and keeps its control lines first, however long a full
// disk or a reader of the output takes. A line that is cut is not understood, and neither is the
// last one that there is room for.
func (s *shim) relay(rec *record) {
	defer close(s.lines)
	passed := make(chan []byte)
	defer close(passed)
	go func() {
		defer close(s.told)
		for b := range passed {
			_, _ = os.Stdout.Write(b)
		}
	}()
	line := []byte(nil)
	for late := 0; ; {
		buf := make([]byte, 32<<10)
		n, err := s.out.Read(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) && late < 4 { // what a pipe holds is read all the same
			_ = s.out.SetReadDeadline(time.Now().Add(grace / 10))
			n, err = s.out.Read(buf)
			late++
		}
		for _, part := range bytes.SplitAfter(buf[:n], []byte{'\n'}) {
			text, whole := bytes.CutSuffix(part, []byte{'\n'})
			line = append(line, text[:min(len(text), maxLine+1-len(line))]...)
			if whole || err != nil {
				s.control(rec, string(line))
				line = line[:0]
			}
		}
		select {
		case passed <- buf[:n]:
		case <-s.late:
		}
		if err != nil {
			return
		}
	}
}

// keep passes at most limit bytes of the output of a job on, and then says that the rest is
// dropped. The job never waits for a reader, and never hears of a full disk.
func (s *shim) keep(out *os.File, limit int64) {
	defer close(s.told)
	_, err := io.CopyN(os.Stdout, out, limit)
	if err == nil {
		err = fmt.Errorf("it is limited to %d bytes", limit)
		if n, _ := out.Read(make([]byte, 1)); n == 0 {
			return
		}
	}
	if !errors.Is(err, io.EOF) {
		fmt.Fprintf(os.Stdout, "\njoblife: the rest of the output is dropped: %v\n", err)
		_, _ = io.Copy(io.Discard, out)
	}
}

func (s *shim) control(rec *record, line string) {
	if !strings.HasPrefix(line, perilog.ControlPrefix) || s.room < 0 {
		return
	}
	if len(line) > maxLine {
		line = line[:maxLine-1] + "!" // what is left may be a line by itself
	}
	if s.room -= len(line); s.room < 0 || len(rec.lines) == maxLines-1 {
		line, s.room = perilog.ControlPrefix+" too many lines", -1
	}
	_ = persist(func() error { return rec.writeLine(line) })
	_, _ = s.news.Write([]byte{0}) // there is room for all of them
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

// clear ends what the command left, if there is a child: all that it left are children, or theirs.
// A search takes the longer the more processes there are, so what does not end, such as one that
// waits for a disk, is searched for in a small part of the time.
func (s *shim) clear() {
	if !s.left() {
		return
	}
	next := time.Now().Add(grace)
	for s.kill(syscall.SIGTERM); s.left(); time.Sleep(5 * time.Millisecond) {
		if began := time.Now(); began.After(next) {
			s.kill(syscall.SIGKILL)
			next = time.Now().Add(20 * time.Since(began))
		}
	}
}

// left reports whether something of the task is left.
func (s *shim) left() bool {
	_, more := s.reap()
	return more || !findsAll && syscall.Kill(-s.group, 0) == nil
}
