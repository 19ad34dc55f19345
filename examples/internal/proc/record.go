//go:build unix

package proc

import (
	"bytes"
	"cmp"
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

	"github.com/joblife/joblife/examples/internal/files"
	"github.com/joblife/joblife/jobstate"
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
	headLength = 64 // of the state, with its newline
	minToken   = 26 // which crypto/rand.Text gives
	maxBody    = 1 << 20

	maxLines = 1 << 10 // control lines, as package exec takes them
	maxLine  = 4 << 10 // bytes
	maxText  = 1 << 20 // bytes of all control lines: as JSON, a message has room for it
)

// A record is the file of a task: a line with its state, one with the task, and the control
// lines of an action. The user of a job can have its shim write anything to it.
type record struct {
	file  *os.File
	news  *os.File    // from its shim; nil: there is none
	shim  *os.Process // a child of this process; nil: it is of an earlier life
	state string
	n     int // what the state is with
	body
	lines []string
	size  int64 // where the next line begins
}

type body struct {
	Task  exec.Task
	Token string
	Args  []string // inJSON
}

// inJSON returns texts of any bytes with a character for each byte, since JSON has no other.
func inJSON(texts ...string) (list []string) {
	for _, text := range texts {
		var b strings.Builder
		for i := range len(text) {
			b.WriteRune(rune(text[i]))
		}
		list = append(list, b.String())
	}
	return list
}

// fromJSON returns what inJSON had.
func fromJSON(texts ...string) (list []string) {
	for _, text := range texts {
		var b []byte
		for _, c := range text {
			b = append(b, byte(c))
		}
		list = append(list, string(b))
	}
	return list
}

// path returns where the files of a task are, without their suffix.
func path(dir string, task exec.Task) string {
	return filepath.Join(dir, fmt.Sprintf("%x", sha256.Sum256([]byte(task.String())))[:32])
}

func head(state string, n int) []byte {
	return fmt.Appendf(nil, "%-*s\n", headLength-1, checked(fmt.Appendf(nil, "%s %d", state, n)))
}

// checked returns a text with check digits: another task or token would be those of other
// processes.
func checked(text []byte) []byte { return fmt.Appendf(nil, "%08x %s", crc32.ChecksumIEEE(text), text) }

// create makes the record of a new task, durably. The error is os.ErrExist if there is one.
func create(dir string, task exec.Task, args []string) (*record, error) {
	r := &record{state: stateStarting, body: body{task, rand.Text(), inJSON(args...)}}
	text, err := json.Marshal(r.body)
	if err != nil {
		return nil, err
	}
	if text = checked(text); len(text) > maxBody {
		return nil, fmt.Errorf("the task %v is too long", task)
	}
	text = append(append(head(r.state, 0), text...), '\n')
	r.size = int64(len(text))
	name := path(dir, task)
	if r.file, err = os.OpenFile(name+".task", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return nil, err
	}
	_, _ = os.Remove(name+".signals"), os.Remove(name+".news") // of a damaged record that somebody removed
	_, err = r.file.Write(text)
	err = cmp.Or(err, r.file.Sync(), syscall.Mkfifo(name+".signals", 0o600), syscall.Mkfifo(name+".news", 0o600), files.SyncDir(dir))
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
	text, err := io.ReadAll(io.NewSectionReader(f, 0, headLength+maxBody+1))
	if err != nil {
		return nil, err
	}
	r := &record{file: f}
	first := text[:min(headLength, len(text))]
	if len(first) < headLength || bytes.Count(first, []byte{0}) == headLength {
		return nil, errTorn
	}
	body, _, whole := bytes.Cut(text[headLength:], []byte{'\n'})
	_, task, _ := bytes.Cut(body, []byte{' '})
	whole = whole && bytes.Equal(checked(task), body) && json.Unmarshal(task, &r.body) == nil && len(r.Token) >= minToken && len(r.Args) > 0
	_, err = fmt.Sscanf(strings.TrimSpace(string(first[9:])), "%s %d", &r.state, &r.n)
	known := err == nil && bytes.Equal(head(r.state, r.n), first) && slices.Contains(states, r.state) && r.n >= 0 && r.n <= 0xffff && r.n&0x7f != 0x7f
	switch {
	case !whole && known && r.state == stateStarting:
		return nil, errTorn
	case !whole:
		return nil, errDamaged
	}
	r.size = int64(headLength + len(body) + 1)
	if err := r.readLines(); err != nil || known {
		return r, err
	}
	return r, errDamaged
}

// readLines reads the control lines of an action that are new. A line that is being written has no end yet.
func (r *record) readLines() error {
	if r.Task.Action == (jobstate.ActionKey{}) {
		return nil
	}
	text, err := io.ReadAll(io.NewSectionReader(r.file, r.size, maxLines*(maxLine+1)))
	for err == nil {
		line, rest, whole := bytes.Cut(text, []byte{'\n'})
		if !whole || len(line) > maxLine || len(r.lines) == maxLines {
			break
		}
		r.lines, r.size, text = append(r.lines, string(line)), r.size+int64(len(line)+1), rest
	}
	return err
}

// writeLine writes a control line. It can be repeated after an error.
func (r *record) writeLine(line string) error {
	_, err := r.file.WriteAt([]byte(line+"\n"), r.size)
	if err == nil {
		r.lines, r.size = append(r.lines, line), r.size+int64(len(line)+1)
	}
	return err
}

// set changes the state, durably. After an error, only this record has the new state.
func (r *record) set(state string, n int) error {
	r.state, r.n = state, n
	if _, err := r.file.WriteAt(head(state, n), 0); err != nil {
		return err
	}
	return r.file.Sync()
}

// status is what a node says of the task.
func (r *record) status() exec.TaskStatus {
	st := exec.TaskStatus{Task: r.Task, State: exec.TaskRunning, Lines: r.lines}
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
	for _, suffix := range []string{".signals", ".news", ".task"} {
		if err := os.Remove(name + suffix); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}
