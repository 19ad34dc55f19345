//go:build unix

package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/joblife/joblife/examples/internal/files"
	"github.com/joblife/joblife/perilog/exec"
)

// A Runner runs the tasks of one node. Any goroutine may use it, but for do.
type Runner struct {
	dir  string
	rank int
	said func(exec.Task)

	// Prepare, if set, says of a task before it starts what its command gets: Dir, Env, Stdout,
	// which is closed here, and SysProcAttr.Credential. The shim gets only the output, so that
	// the user of a job has no power over it.
	Prepare func(exec.Task, *osexec.Cmd) error
	// MaxOutput is how many bytes of the output of a job Prepare's Stdout gets, which is then its
	// standard error too; 0: all.
	MaxOutput int64

	damaged map[string]bool // records that stay, by name; of do

	mu    sync.Mutex
	tasks map[exec.Task]exec.TaskStatus
}

// NewRunner finds what runs in the folder of a node, and makes the folder if there is none.
// One runner at a time uses it. Said is called by a goroutine of the runner when a task has
// changed; last tells how.
//
// Warn gets each record that is damaged. It stays, so that its task does not start again, and
// what its shim runs is killed; if it has none, look what runs, and remove the file.
func NewRunner(dir string, rank int, said func(exec.Task), warn func(error)) (*Runner, error) {
	if err := files.MakeDir(dir); err != nil {
		return nil, err
	}
	r := &Runner{dir: dir, rank: rank, said: said, damaged: make(map[string]bool), tasks: make(map[exec.Task]exec.TaskStatus)}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	r.mu.Lock() // a task that was found may end at any time
	defer r.mu.Unlock()
	for _, file := range files {
		name, ok := strings.CutSuffix(filepath.Join(dir, file.Name()), ".task")
		if !ok {
			continue
		}
		err := r.find(name)
		if errors.Is(err, errTorn) || errors.Is(err, errDamaged) {
			r.damaged[name] = true
			warn(fmt.Errorf("proc: %s.task: %w", name, errors.Join(err, signal(name, syscall.SIGKILL))))
		} else if err != nil {
			return nil, fmt.Errorf("proc: %w", err)
		}
	}
	return r, nil
}

// find finds a task of an earlier life.
func (r *Runner) find(name string) error {
	f, err := os.OpenFile(name+".task", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	news, err := os.OpenFile(name+".news", os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, f.Close())
	}
	lives := shimLives(news)
	rec, err := read(f)
	for n := 0; lives && err != nil && n < 100; n++ { // the shim may be writing
		time.Sleep(time.Millisecond)
		rec, err = read(f)
	}
	if rec != nil && path(r.dir, rec.Task) != name {
		rec, err = nil, errDamaged
	}
	if rec != nil && err != nil {
		rec.state, err = stateRunning, nil // perhaps
	}
	switch {
	case !lives && (errors.Is(err, errTorn) || err == nil && rec.state == stateStarting):
		err = remove(name) // nothing was started
	case err == nil:
		st := rec.status()
		if r.tasks[rec.Task] = st; st.State == exec.TaskRunning {
			rec.news = news
			go r.watch(rec)
			return nil
		}
	}
	_ = news.Close() // there may be none
	return errors.Join(err, f.Close())
}

// shimLives reports whether a shim has the other end of its pipe of news.
func shimLives(news *os.File) bool {
	n := 0
	if conn, err := news.SyscallConn(); err == nil {
		_ = conn.Read(func(fd uintptr) bool {
			n, _ = syscall.Read(int(fd), make([]byte, maxLines))
			return true
		})
	}
	return n != 0 // it is -1 if nothing is new
}

// watch waits for control lines and for the end of a shim, which closes its pipe of news.
func (r *Runner) watch(rec *record) {
	defer rec.file.Close()
	defer rec.news.Close()
	for {
		_, err := rec.news.Read(make([]byte, maxLines))
		if errors.Is(err, io.EOF) || errors.Is(err, os.ErrInvalid) {
			break
		}
		if err == nil {
			err = rec.readLines()
		}
		if err != nil { // until then it runs, for all we know
			time.Sleep(10 * time.Millisecond)
			continue
		}
		r.change(rec.status())
	}
	if rec.shim != nil {
		_, _ = rec.shim.Wait() // now, since it takes a thread
	}
	if last, err := read(rec.file); err == nil && last.Task == rec.Task && last.Token == rec.Token {
		rec = last
	} else {
		rec.state = stateRunning // perhaps
	}
	st, err := bury(rec)
	if err != nil {
		st.Note = err.Error()
	}
	r.change(st)
}

// change notes what became of a task, and says so.
func (r *Runner) change(st exec.TaskStatus) {
	r.mu.Lock()
	r.tasks[st.Task] = st
	r.mu.Unlock()
	r.said(st.Task)
}

// bury returns what became of a task whose shim has ended. If it was killed, bury kills what
// is left of the task.
func bury(rec *record) (exec.TaskStatus, error) {
	var err error
	switch rec.state {
	case stateStarting:
		err = rec.set(stateFailed, int(syscall.EIO)) // the shim did not come so far
	case stateRunning:
		killAll(rec.Token)
		err = rec.set(stateLost, 0)
	case stateExited:
		killAll(rec.Token)
		err = rec.set(stateReleased, rec.n)
	}
	return rec.status(), err
}

// List returns all tasks that are not forgotten, in the order of their texts.
func (r *Runner) List() []exec.TaskStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.tasks), func(a, b exec.TaskStatus) int { return strings.Compare(a.Task.String(), b.Task.String()) })
}

// Last returns what became of a task, and false if there is no record of it.
func (r *Runner) Last(task exec.Task) (exec.TaskStatus, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	st, ok := r.tasks[task]
	return st, ok
}

// Do obeys a command for a node, one after the other, and may take long. Args are the program
// and its arguments, for a start. What cannot be started is said.
func (r *Runner) Do(c exec.Command, args []string) (err error) {
	switch c.Kind {
	case exec.CommandStart:
		err = r.start(c.Task, args)
	case exec.CommandSignal:
		err = signal(path(r.dir, c.Task), syscall.Signal(c.Signal))
	case exec.CommandForget:
		err = r.forget(c.Task)
	default:
		err = fmt.Errorf("%w: %v", errors.ErrUnsupported, c.Kind)
	}
	if err != nil {
		err = fmt.Errorf("proc: %v: %w", c.Task, err)
	}
	return err
}

func (r *Runner) start(task exec.Task, args []string) error {
	if _, ok := r.Last(task); ok {
		return nil
	}
	st := exec.TaskStatus{Task: task, State: exec.TaskRunning}
	rec, err := r.spawn(task, args)
	if err != nil {
		st.State, st.Note = exec.TaskFailed, err.Error()
	}
	r.change(st)
	if err == nil {
		go r.watch(rec)
	}
	return err
}

// spawn starts the shim of a task, and returns the record, to be watched.
func (r *Runner) spawn(task exec.Task, args []string) (watched *record, err error) {
	if len(args) == 0 {
		return nil, errors.New("no command")
	}
	self, err := files.Program()
	if err != nil {
		return nil, err
	}
	crash("before the record")
	rec, err := create(r.dir, task, args)
	if err != nil {
		return nil, err
	}
	crash("after the record")
	name := path(r.dir, task)
	delete(r.damaged, name) // somebody has removed it
	defer func() {
		if err != nil {
			_ = rec.news.Close() // there may be none
			err = errors.Join(err, rec.file.Close(), remove(name))
		}
	}()
	cmd := osexec.Command(self)
	cmd.Args = []string{shimName}
	cmd.Env = append(os.Environ(), "FLUX_JOB_ID="+task.Job.String(), fmt.Sprint("JOBLIFE_RANK=", r.rank)) // the command inherits it
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if r.Prepare != nil {
		if err := r.Prepare(task, cmd); err != nil {
			return nil, err
		}
		if out, ok := cmd.Stdout.(*os.File); ok && out != os.Stdout {
			defer out.Close()
		}
		var as strings.Builder
		text := json.NewEncoder(&as)
		text.SetEscapeHTML(false)           // a string of an environment may have 128 KiB
		environ := inJSON(cmd.Environ()...) // the last value of each name
		if err := text.Encode(commandAs{inJSON(cmd.Dir)[0], environ, cmd.SysProcAttr.Credential, r.MaxOutput}); err != nil {
			return nil, err
		}
		cmd.Dir, cmd.Env, cmd.SysProcAttr.Credential = "", append(os.Environ(), asEnv+"="+as.String()), nil
	}
	cmd.ExtraFiles = []*os.File{rec.file}
	for _, pipe := range []string{".signals", ".news"} {
		f, err := os.OpenFile(name+pipe, os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	if rec.news, err = os.OpenFile(name+".news", os.O_RDONLY|syscall.O_NONBLOCK, 0); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	crash("after the shim")
	rec.shim = cmd.Process
	return rec, nil
}

// signal writes to the pipe of a shim. A task that has ended has none that listens.
func signal(name string, sig syscall.Signal) error {
	f, err := os.OpenFile(name+".signals", os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		defer f.Close()
		_, err = f.Write([]byte{byte(sig)})
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENXIO) || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

func (r *Runner) forget(task exec.Task) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if st, ok := r.tasks[task]; !ok || st.State == exec.TaskRunning {
		return nil
	}
	var err error
	if name := path(r.dir, task); !r.damaged[name] {
		err = remove(name)
	}
	if err == nil {
		delete(r.tasks, task)
	}
	return err
}
