//go:build unix

package proc

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/joblife/joblife/perilog/exec"
)

// What a record says. Its state is overwritten in place, which takes no room on a full disk.
const (
	stateStarting = "starting" // the command was not started
	stateRunning  = "running"  // it was, or will be at once
	stateExited   = "exited"   // with its wait status; something of it may be left
	stateReleased = "released" // likewise, and nothing is left
	stateFailed   = "failed"   // with the errno of its start
	stateLost     = "lost"     // its shim was killed
)

var states = []string{stateStarting, stateRunning, stateExited, stateReleased, stateFailed, stateLost}

const (
	lineLength = 64 // of the state, with its newline
	minToken   = 26 // which crypto/rand.Text gives
	maxRecord  = 1 << 20
)

// A record is the file of a task: its state, then the task.
type record struct {
	file  *os.File
	state string
	n     int // what the state is with
	body
}

type body struct {
	Task  exec.Task
	Token string
	Args  []string
}

// path returns where the files of a task are, without their suffix.
func path(dir string, task exec.Task) string {
	return filepath.Join(dir, fmt.Sprintf("%x", sha256.Sum256([]byte(task.String())))[:32])
}

func line(state string, n int) []byte {
	text := fmt.Sprintf("%s %d", state, n)
	return fmt.Appendf(nil, "%-*s\n", lineLength-1, fmt.Sprintf("%08x %s", crc32.ChecksumIEEE([]byte(text)), text))
}

// create makes the record of a new task, durably. The error is os.ErrExist if there is one.
func create(dir string, task exec.Task, args []string) (*record, error) {
	r := &record{state: stateStarting, body: body{task, rand.Text(), args}}
	text, err := json.Marshal(r.body)
	if err != nil {
		return nil, err
	}
	if len(text) > maxRecord-lineLength {
		return nil, fmt.Errorf("the task %v is too long", task)
	}
	name := path(dir, task)
	if r.file, err = os.OpenFile(name+".task", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return nil, err
	}
	if err = r.lock(); err == nil {
		_, err = r.file.Write(append(line(r.state, 0), text...))
	}
	if err == nil {
		err = r.file.Sync()
	}
	if err == nil {
		err = syscall.Mkfifo(name+".signals", 0o600)
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return nil, errors.Join(err, r.file.Close(), remove(name))
	}
	return r, nil
}

var (
	errTorn    = errors.New("the record was not finished") // so its task was not started
	errDamaged = errors.New("the record is damaged, or of another version")
)

// read reads a record. If only its state is damaged, it returns the record and errDamaged.
func read(f *os.File) (*record, error) {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, maxRecord+1))
	if err != nil {
		return nil, err
	}
	r := &record{file: f}
	head := text[:min(lineLength, len(text))]
	if len(head) < lineLength || bytes.Count(head, []byte{0}) == lineLength {
		return nil, errTorn
	}
	if len(text) <= maxRecord {
		err = json.Unmarshal(text[lineLength:], &r.body)
	}
	whole := err == nil && len(r.Token) >= minToken && len(r.Args) > 0
	_, err = fmt.Sscanf(strings.TrimSpace(string(head[9:])), "%s %d", &r.state, &r.n)
	switch known := err == nil && bytes.Equal(line(r.state, r.n), head) && slices.Contains(states, r.state); {
	case whole && known:
		return r, nil
	case whole:
		return r, errDamaged
	case known && r.state == stateStarting:
		return nil, errTorn
	}
	return nil, errDamaged
}

// set changes the state, durably. After an error, only this record has the new state.
func (r *record) set(state string, n int) error {
	r.state, r.n = state, n
	if _, err := r.file.WriteAt(line(state, n), 0); err != nil {
		return err
	}
	return r.file.Sync()
}

// lock locks the record, and returns syscall.EWOULDBLOCK if it is locked.
func (r *record) lock() error {
	return again(func() error { return syscall.Flock(int(r.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) })
}

// await waits until the record can be locked, and locks it.
func (r *record) await() error {
	return again(func() error { return syscall.Flock(int(r.file.Fd()), syscall.LOCK_EX) })
}

func again(call func() error) error {
	for {
		if err := call(); err != syscall.EINTR {
			return err
		}
	}
}

// status is what a node says of the task.
func (r *record) status() exec.TaskStatus {
	st := running(r.Task)
	switch r.state {
	case stateReleased:
		st.State, st.Status = exec.TaskReleased, int32(r.n)
	case stateFailed:
		st.State, st.Note = exec.TaskFailed, syscall.Errno(r.n).Error()
	case stateLost:
		st.State = exec.TaskLost
	}
	return st
}

// remove removes the files of a task. The record goes last.
func remove(name string) error {
	for _, suffix := range []string{".signals", ".task"} {
		if err := os.Remove(name + suffix); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
