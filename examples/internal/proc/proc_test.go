//go:build linux

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
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/proctest"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
)

// TestMain runs a shim, or a program that starts a task, where a test asks for it.
func TestMain(m *testing.M) {
	syscall.Umask(0o022) // others may not write a folder
	if at := os.Getenv("PROC_CRASH"); at != "" {
		crash = func(point string) {
			if point == at {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				time.Sleep(time.Minute)
			}
		}
	}
	Shim()
	proctest.Main(m, program)
}

// runs reports whether there is a process with a token.
func runs(token string) bool {
	some, _ := signalMarked(token, 0, 0)
	return some
}

var (
	task   = exec.Task{Job: 7}
	action = exec.Task{Job: 7, Action: jobstate.ActionKey{Kind: jobstate.ActionEpilog, Description: "e"}, Attempt: 1}
)

// runAction makes the task of a test an action.
func runAction(t *testing.T) {
	t.Setenv("PROC_ACTION", "1")
	shell := task
	task = action
	t.Cleanup(func() { task = shell })
}

// program starts a task, and waits to be killed.
func program() {
	if os.Getenv("PROC_ACTION") != "" {
		task = action
	}
	if os.Getenv("PROC_FULL") != "" { // for a record
		ossignal.Ignore(syscall.SIGXFSZ)
		_ = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: headLength + 9, Max: headLength + 9})
	}
	r, err := NewRunner(os.Getenv("PROC_DIR"), 0, func(exec.Task) {}, nil)
	if err == nil {
		err = r.Do(exec.Command{Kind: exec.CommandStart, Task: task}, []string{"sh", "-c", os.Getenv("PROC_COMMAND")})
	}
	if err == nil {
		fmt.Println("started")
		time.Sleep(20 * time.Second)
	}
	fmt.Println("failed", err)
}

// life runs the program until it has started the task, or has crashed, and kills it.
func life(t *testing.T, dir, command, crash string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	t.Setenv("PROC_DIR", dir)
	t.Setenv("PROC_COMMAND", command)
	t.Setenv("PROC_CRASH", crash)
	cmd := proctest.Start(t, out)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	await(t, "the program does not end", func() bool {
		if countLines(t, out) > 0 {
			_ = cmd.Process.Kill() // it may have been, and have ended
		}
		return len(ended) > 0
	})
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	require.NotContains(t, string(text), "failed")
}

// A node is a runner of the test's own process, and what has changed.
type node struct {
	*Runner
	t    *testing.T
	said chan exec.Task
	// What it was warned of.
	damaged []error
}

func open(t *testing.T, dir string) *node {
	t.Helper()
	n := &node{t: t, said: make(chan exec.Task, 100)}
	r, err := NewRunner(dir, 0, func(task exec.Task) { n.said <- task }, func(err error) { n.damaged = append(n.damaged, err) })
	require.NoError(t, err)
	n.Runner = r
	return n
}

func (n *node) start(command string) {
	n.t.Helper()
	require.NoError(n.t, n.Do(exec.Command{Kind: exec.CommandStart, Task: task}, []string{"sh", "-c", command}))
}

func (n *node) signal(signal int) {
	n.t.Helper()
	require.NoError(n.t, n.Do(exec.Command{Kind: exec.CommandSignal, Task: task, Signal: signal}, nil))
}

// ends waits for the end of the task, and forgets it.
func (n *node) ends() (last exec.TaskStatus) {
	n.t.Helper()
	for last, _ = n.Last(task); last.State == exec.TaskRunning || last.State == ""; last, _ = n.Last(task) {
		select {
		case <-n.said:
		case <-time.After(8 * time.Second):
			n.t.Fatal("the task does not end")
		}
	}
	require.NoError(n.t, n.Do(exec.Command{Kind: exec.CommandForget, Task: task}, nil))
	require.Empty(n.t, n.List())
	left, err := os.ReadDir(n.dir)
	require.NoError(n.t, err)
	require.Empty(n.t, left)
	return last
}

func (n *node) status(state exec.TaskState, status int32) {
	n.t.Helper()
	st := n.ends()
	require.Equal(n.t, exec.TaskStatus{Task: task, State: state, Status: status, Note: st.Note}, st)
}

func countLines(t *testing.T, name string) int {
	t.Helper()
	text, err := os.ReadFile(name)
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(t, err)
	}
	return strings.Count(string(text), "\n")
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 1600 {
		if is() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal(what)
}

func TestATaskTellsItsStatus(t *testing.T) {
	n := open(t, t.TempDir())
	n.start("exit 3")
	n.start("exit 4") // it has a record
	require.Equal(t, task, <-n.said)
	n.status(exec.TaskReleased, 3<<8)
	n.start("kill -9 $$")
	n.status(exec.TaskReleased, 9)
}

// Wherever the program is killed, the task runs once, and its status is found.
func TestATaskRunsOnceWhereverTheProgramIsKilled(t *testing.T) {
	for _, point := range []string{"before the record", "after the record", "after the shim", ""} {
		t.Run(point, func(t *testing.T) {
			dir, out := filepath.Join(t.TempDir(), "node"), filepath.Join(t.TempDir(), "out")
			command := "echo ran >>" + out + "; sleep .2; exit 3"
			life(t, dir, command, point)
			n := open(t, dir)
			if len(n.List()) == 0 {
				require.Zero(t, countLines(t, out))
				n.start(command)
			}
			n.status(exec.TaskReleased, 3<<8)
			require.Equal(t, 1, countLines(t, out))
		})
	}
}

// An action writes control lines before and after the program is killed. Each is there once.
func TestControlLinesOutliveTheProgram(t *testing.T) {
	runAction(t)
	dir := filepath.Join(t.TempDir(), "node")
	life(t, dir, "echo plain; echo perilog-control: 1; printf 'perilog-con'; sleep .05; echo trol: 2;"+
		"while ! test -e "+dir+".go; do sleep .01; done; echo perilog-control: 3; echo; printf 'perilog-control: 4'; exit 3", "")
	n := open(t, dir)
	var st exec.TaskStatus
	await(t, "there are no lines", func() bool {
		st, _ = n.Last(task)
		return len(st.Lines) == 2
	})
	require.Equal(t, exec.TaskRunning, st.State)
	require.Equal(t, []string{"perilog-control: 1", "perilog-control: 2"}, st.Lines)
	require.NoError(t, os.WriteFile(dir+".go", nil, 0o600))
	st = n.ends()
	require.Equal(t, exec.TaskReleased, st.State)
	require.Equal(t, []string{"perilog-control: 1", "perilog-control: 2", "perilog-control: 3", "perilog-control: 4"}, st.Lines)
}

// What an action writes is bounded, and what is beyond is not understood: it is a failure.
func TestControlLinesAreBounded(t *testing.T) {
	runAction(t)
	n := open(t, t.TempDir())
	n.start(`i=0; while test $i -lt 1100; do echo "perilog-control: $i"; i=$((i+1)); done; printf 'perilog-control:%05000d\n' 1`)
	st := n.ends()
	require.Len(t, st.Lines, maxLines)
	require.Equal(t, "perilog-control: 1022", st.Lines[maxLines-2])
	require.Equal(t, "perilog-control: too many lines", st.Lines[maxLines-1])
	n.start("printf 'perilog-control:%05000d\n' 1; head -c 3000000 /dev/zero; echo; echo perilog-control: 2")
	st = n.ends()
	require.Len(t, st.Lines, 2)
	require.Len(t, st.Lines[0], maxLine)
	var x exec.Executor
	_, err := x.Hello(0, []exec.TaskStatus{st})
	require.NoError(t, err)
	n.start("printf 'perilog-control:{}%5000s' x")
	st = n.ends()
	require.Len(t, st.Lines[0], maxLine)
	require.False(t, json.Valid([]byte(st.Lines[0][len(perilog.ControlPrefix):])), "it was cut")
	n.start("i=0; while test $i -lt 300; do printf 'perilog-control:%04080d\\n' 1; i=$((i+1)); done; echo perilog-control: 2")
	st = n.ends()
	require.Len(t, st.Lines, maxText/4096+1)
	require.Equal(t, "perilog-control: too many lines", st.Lines[len(st.Lines)-1])
}

// A control line is kept though nobody reads the output: what a task says counts before its end.
func TestControlLinesAreKeptWhoeverReads(t *testing.T) {
	runAction(t)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	n := open(t, t.TempDir())
	n.Prepare = func(_ exec.Task, cmd *osexec.Cmd) error { cmd.Stdout, cmd.Stderr = w, w; return nil }
	n.start("head -c 110000 /dev/zero; echo; echo perilog-control: 1")
	require.Equal(t, []string{"perilog-control: 1"}, n.ends().Lines)
}

// Of an environment with a name twice, programs take the first value or the last.
func TestAPreparedEnvironmentHasEachNameOnce(t *testing.T) {
	t.Setenv("FLUX_JOB_ID", "outer")
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	n := open(t, t.TempDir())
	n.Prepare = func(_ exec.Task, cmd *osexec.Cmd) error { cmd.Stdout = out; return nil }
	require.NoError(t, n.Do(exec.Command{Kind: exec.CommandStart, Task: task}, []string{"printenv", "FLUX_JOB_ID"}))
	n.status(exec.TaskReleased, 0)
	text, err := os.ReadFile(out.Name())
	require.NoError(t, err)
	require.Equal(t, "ƒ8\n", string(text))
	n.Prepare = func(_ exec.Task, cmd *osexec.Cmd) error {
		cmd.Env = append(cmd.Environ(), "X="+strings.Repeat("<", 100<<10)) // a string of an environment may have 128 KiB
		return nil
	}
	n.start("test ${#X} = 102400")
	n.status(exec.TaskReleased, 0)
}

// A command has the arguments, the environment and the folder that it was given, byte for byte.
func TestACommandHasAnyBytes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "\xff\u0107")
	require.NoError(t, os.Mkdir(dir, 0o700))
	n := open(t, t.TempDir())
	n.Prepare = func(_ exec.Task, cmd *osexec.Cmd) error {
		cmd.Dir, cmd.Env = dir, append(cmd.Environ(), "X=\xfe\u0107")
		return nil
	}
	n.start("printf '%s' \"$X\" '\xfd\u0107' >out")
	n.status(exec.TaskReleased, 0)
	text, err := os.ReadFile(filepath.Join(dir, "out"))
	require.NoError(t, err)
	require.Equal(t, "\xfe\u0107\xfd\u0107", string(text))
}

// A process that outlives the output of its action, and one that holds it for ever, delay no end.
func TestAnActionEndsWhoeverHoldsItsOutput(t *testing.T) {
	runAction(t)
	n := open(t, t.TempDir())
	n.start("exec >&-; exit 3")
	n.status(exec.TaskReleased, 3<<8)
	n.start("echo perilog-control: 1; setsid sleep 60 & exit 4")
	require.Equal(t, []string{"perilog-control: 1"}, n.ends().Lines)
}

func TestATaskThatEndedWhileNobodyLookedKeepsItsStatus(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "node")
	life(t, dir, "exit 5", "")
	await(t, "the shim does not end", func() bool {
		n := open(t, dir)
		list := n.List()
		return len(list) == 1 && list[0].State == exec.TaskReleased
	})
	open(t, dir).status(exec.TaskReleased, 5<<8)
}

// Wherever a shim is killed, nothing of its task is left when that is said, and a status
// that the shim knew is not lost.
func TestNothingIsLeftWhereverAShimIsKilled(t *testing.T) {
	for point, want := range map[string]struct {
		state  exec.TaskState
		status int32
	}{
		"shim before running": {exec.TaskFailed, 0}, "shim after running": {exec.TaskLost, 0}, "shim after start": {exec.TaskLost, 0},
		"shim after exit": {exec.TaskLost, 0}, "shim after status": {exec.TaskReleased, 3 << 8},
	} {
		t.Run(point, func(t *testing.T) {
			t.Setenv("PROC_CRASH", point)
			dir := t.TempDir()
			n := open(t, dir)
			long := "sleep 60 & "
			if point == "shim after start" {
				long = "sleep 60; "
			}
			n.start(long + "exit 3")
			rec := token(t, dir)
			n.status(want.state, want.status)
			require.False(t, runs(rec))
		})
	}
}

// token returns the token of the only task, while its record is there.
func token(t *testing.T, dir string) string {
	t.Helper()
	f, err := os.Open(path(dir, task) + ".task")
	require.NoError(t, err)
	defer f.Close()
	rec, err := read(f)
	for errors.Is(err, errTorn) {
		rec, err = read(f)
	}
	require.NoError(t, err)
	return rec.Token
}

func TestWhatACommandLeavesIsEnded(t *testing.T) {
	t.Parallel() // it waits
	dir := t.TempDir()
	n := open(t, dir)
	n.start("setsid sh -c 'trap \"\" TERM; sleep 60' & sleep 60 & exit 3")
	mark := token(t, dir)
	n.status(exec.TaskReleased, 3<<8)
	require.False(t, runs(mark))
}

func TestSignalsReachTheProcessesOfATask(t *testing.T) {
	t.Parallel() // it waits
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	n := open(t, dir)
	n.signal(15) // there is no task
	n.start("trap 'echo term >>" + out + "; exit 7' TERM; echo ready >>" + out + "; sleep 60 & wait")
	await(t, "the task does not start", func() bool { return countLines(t, out) == 1 })
	open(t, dir).signal(15) // of another life
	n.status(exec.TaskReleased, 7<<8)
	require.Equal(t, 2, countLines(t, out))

	n.start("trap '' TERM; setsid sleep 60 & echo ready >>" + out + "; wait; sleep 60")
	await(t, "the task does not start", func() bool { return countLines(t, out) == 3 })
	mark := token(t, dir)
	n.signal(15)
	n.signal(9)
	n.status(exec.TaskReleased, 9)
	require.False(t, runs(mark))
}

func TestASignalAtOnceIsNotLost(t *testing.T) {
	n := open(t, t.TempDir())
	n.start("sleep 60")
	n.signal(9)
	n.status(exec.TaskReleased, 9)
}

// The lock of a shim tells, not a pid: a record of a life before the last boot is lost.
func TestARecordWithoutAShimIsLost(t *testing.T) {
	t.Parallel() // it waits
	dir := t.TempDir()
	rec, err := create(dir, task, []string{"x"})
	require.NoError(t, err)
	require.NoError(t, rec.set(stateRunning, 0))
	require.NoError(t, rec.file.Close())
	open(t, dir).status(exec.TaskLost, 0)

	rec, err = create(dir, task, []string{"x"})
	require.NoError(t, err)
	require.NoError(t, rec.file.Close())
	require.Empty(t, open(t, dir).List(), "it was never started")
}

func TestAnyTaskHasARecord(t *testing.T) {
	dir := t.TempDir()
	n := open(t, dir)
	for _, key := range []jobstate.ActionKey{{}, {Kind: jobstate.ActionEpilog, Description: "a/../b\x00\n"}, perilog.Housekeeping()} {
		task := exec.Task{Job: 1 << 62, Action: key}
		if key.Kind != 0 {
			task.Attempt = 3
		}
		require.NoError(t, n.Do(exec.Command{Kind: exec.CommandStart, Task: task}, []string{"true"}))
		await(t, "the task does not end", func() bool {
			st, _ := n.Last(task)
			return st.State == exec.TaskReleased
		})
	}
	await(t, "another life finds other tasks", func() bool { return slices.Equal(words(n.List()), words(open(t, dir).List())) })
}

func words(list []exec.TaskStatus) (words []string) {
	for _, st := range list {
		words = append(words, fmt.Sprint(st))
	}
	return words
}

func TestATornRecordStartedNothing(t *testing.T) {
	dir := t.TempDir()
	rec, err := create(dir, task, []string{"x"})
	require.NoError(t, err)
	require.NoError(t, rec.file.Truncate(headLength+9))
	shim, err := os.OpenFile(path(dir, task)+".news", os.O_RDWR, 0)
	require.NoError(t, err)
	n := open(t, dir)
	require.Empty(t, n.List())
	require.ErrorIs(t, errors.Join(n.damaged...), errTorn, "it has a shim, so something may run")
	require.NoError(t, errors.Join(rec.file.Close(), shim.Close()))
	require.Empty(t, open(t, dir).List())
	_, err = os.Stat(path(dir, task) + ".task")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestWhatCannotBeStartedFails(t *testing.T) {
	n := open(t, t.TempDir())
	start := exec.Command{Kind: exec.CommandStart, Task: task}
	require.NoError(t, n.Do(start, []string{"/no/such/program"}))
	require.Equal(t, "no such file or directory", n.ends().Note)
	require.ErrorContains(t, n.Do(start, nil), "no command")
	require.Equal(t, "no command", n.ends().Note)
	require.ErrorContains(t, n.Do(start, []string{strings.Repeat("x", maxBody)}), "too long")
	n.status(exec.TaskFailed, 0)
	require.NoError(t, os.Remove(n.dir))
	require.Error(t, n.Do(start, []string{"true"}))
	require.ErrorIs(t, n.Do(exec.Command{Kind: "run"}, nil), errors.ErrUnsupported)
}

func TestAFullDiskDelaysAStatus(t *testing.T) {
	n := 0
	require.NoError(t, persist(func() error {
		if n++; n < 4 {
			return syscall.ENOSPC
		}
		return nil
	}))
	require.Equal(t, 4, n)
}

// A record that can be read is one that was written.
func FuzzRead(f *testing.F) {
	good := append(head(stateExited, 256), checked([]byte(`{"Task":{"Job":1},"Token":"`+strings.Repeat("x", minToken)+`","Args":["true"]}`))...)
	good = append(good, "\nperilog-control: x\n"...)
	f.Add(good)
	f.Add(good[:headLength])
	f.Add(append(head("no such state", -1), `{}`...))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := os.CreateTemp(t.TempDir(), "")
		require.NoError(t, err)
		defer file.Close()
		_, err = file.Write(text)
		require.NoError(t, err)
		rec, err := read(file)
		if err != nil {
			require.True(t, errors.Is(err, errTorn) || errors.Is(err, errDamaged), err)
			return
		}
		require.Equal(t, string(head(rec.state, rec.n)), string(text[:headLength]))
		require.NotEmpty(t, rec.status().State)
		require.Contains(t, states, rec.state)
		require.NotEmpty(t, rec.Args)
	})
}

// damage is what a disk did to a record of which no shim has the lock.
func damage(t *testing.T, state string, change func(f *os.File) error) string {
	t.Helper()
	dir := t.TempDir()
	rec, err := create(dir, task, []string{"x"})
	require.NoError(t, err)
	require.NoError(t, rec.set(state, 0))
	require.NoError(t, change(rec.file))
	require.NoError(t, rec.file.Close())
	return dir
}

// What may have run does not run again (I11): a record is removed if it was not finished, and
// for nothing else.
func TestADamagedRecordDoesNotStartATaskAgain(t *testing.T) {
	t.Parallel() // it waits
	open(t, damage(t, stateRunning, func(f *os.File) error {
		_, err := f.WriteAt([]byte("!"), 3)
		return err
	})).status(exec.TaskLost, 0)
	for name, change := range map[string]func(f *os.File) error{
		"the task is cut off": func(f *os.File) error { return f.Truncate(headLength + 9) },
		"another format": func(f *os.File) error {
			_, err := f.WriteAt(fmt.Appendf(nil, "%-*s", 300, `{"version":2}`), 0)
			return err
		},
		"the task is another one": func(f *os.File) error {
			text, err := io.ReadAll(io.NewSectionReader(f, headLength, maxBody))
			if err == nil {
				_, err = f.WriteAt(bytes.Replace(text, []byte(`"job":7`), []byte(`"job":6`), 1), headLength)
			}
			return err
		},
		"there is no token": func(f *os.File) error { // an empty one would be that of each task
			if err := f.Truncate(headLength); err != nil {
				return err
			}
			_, err := f.WriteAt(append(checked([]byte(`{"Task":{"job":7},"Args":["x"]}`)), '\n'), headLength)
			return err
		},
		"it is too long": func(f *os.File) error {
			_, err := f.WriteAt(bytes.Repeat([]byte(" "), maxBody+1), headLength)
			return err
		},
	} {
		dir := damage(t, stateRunning, change)
		n := open(t, dir)
		require.ErrorIs(t, errors.Join(n.damaged...), errDamaged, name)
		require.Empty(t, n.List())
		require.ErrorIs(t, n.Do(exec.Command{Kind: exec.CommandStart, Task: task}, []string{"true"}), os.ErrExist, name)
		require.NoError(t, n.Do(exec.Command{Kind: exec.CommandForget, Task: task}, nil), name)
		require.FileExists(t, path(dir, task)+".task", name)
		require.NoError(t, os.Remove(path(dir, task)+".task")) // while the node runs, or before
		if len(name)%2 == 0 {
			n = open(t, dir)
		}
		n.start("true")
		n.status(exec.TaskReleased, 0)
	}
	for _, text := range []string{"", string(head(stateStarting, 0)[:9]), strings.Repeat("\x00", 500)} {
		dir := damage(t, stateStarting, func(f *os.File) error {
			if err := f.Truncate(0); err != nil {
				return err
			}
			_, err := f.WriteAt([]byte(text), 0)
			return err
		})
		require.Empty(t, open(t, dir).List())
		require.NoFileExists(t, path(dir, task)+".task")
	}
}

// A status is told though the disk does not take it.
func TestABrokenDiskHidesNoEnd(t *testing.T) {
	t.Parallel() // it waits
	for state, want := range map[string]exec.TaskState{stateStarting: exec.TaskFailed, stateRunning: exec.TaskLost, stateExited: exec.TaskReleased} {
		rec, err := create(t.TempDir(), task, []string{"x"})
		require.NoError(t, err)
		require.NoError(t, rec.set(state, 0))
		require.NoError(t, rec.file.Close())
		st, err := bury(rec)
		require.Error(t, err)
		require.Equal(t, want, st.State)
	}
}

// A process without the token in its environment is found when the shim adopts it.
func TestWhatHidesItsTokenIsEnded(t *testing.T) {
	t.Parallel() // it waits
	n := open(t, t.TempDir())
	n.start("(env -i setsid sh -c 'trap \"\" TERM; sleep 60; sleep 60' &) ; exit 3")
	n.status(exec.TaskReleased, 3<<8)
	n.start("(env -i setsid sleep 60 &) ; sleep 60")
	time.Sleep(50 * time.Millisecond)
	n.signal(9)
	n.status(exec.TaskReleased, 9)
}

// A damaged record harms no other task of its node, and what runs for it is killed.
func TestADamagedRecordIsSetAside(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "node[1]*?")
	n := open(t, dir)
	n.start("sleep 60")
	other := exec.Task{Job: 8}
	require.NoError(t, n.Do(exec.Command{Kind: exec.CommandStart, Task: other}, []string{"sleep", "60"}))
	mark := token(t, dir)
	await(t, "it does not start", func() bool { return runs(mark) })
	require.NoError(t, os.Truncate(path(dir, task)+".task", headLength+9))
	next := open(t, dir)
	require.ErrorIs(t, errors.Join(next.damaged...), errDamaged)
	require.Len(t, next.List(), 1)
	await(t, "it is not killed", func() bool { return !runs(mark) })
	require.NoError(t, next.Do(exec.Command{Kind: exec.CommandSignal, Task: other, Signal: 9}, nil))
	require.Equal(t, other, <-next.said)
}

// A command may run as another user, who can have its shim write anything to the record: that
// says nothing of another task, and nothing that a manager does not take.
func TestARecordTellsOnlyOfItsTask(t *testing.T) {
	t.Parallel() // it waits
	for name, forge := range map[string]func(*record){
		"another task": func(r *record) { r.Task, r.state = exec.Task{Job: 8}, stateReleased },
		"no status":    func(r *record) { r.state, r.n = stateReleased, -1 },
		"lines":        func(r *record) { r.lines = []string{"x"} },
	} {
		n := open(t, t.TempDir())
		n.start("sleep 60")
		mark := token(t, n.dir)
		await(t, "it does not start", func() bool { return runs(mark) })
		f, err := os.OpenFile(path(n.dir, task)+".task", os.O_RDWR, 0)
		require.NoError(t, err)
		rec, err := read(f)
		require.NoError(t, err)
		forge(rec)
		text, err := json.Marshal(rec.body)
		require.NoError(t, err)
		text = append(append(head(rec.state, rec.n), checked(text)...), '\n')
		_, err = f.WriteAt(append(text, strings.Join(append(rec.lines, ""), "\n")...), 0)
		require.NoError(t, errors.Join(err, f.Close()))
		for _, st := range open(t, n.dir).List() {
			require.Equal(t, task, st.Task, name)
			require.Empty(t, st.Lines, name)
			require.GreaterOrEqual(t, st.Status, int32(0), name)
		}
		signalMarked(mark, 0, syscall.SIGKILL)
		await(t, name, func() bool {
			st, _ := n.Last(task)
			return st.State != exec.TaskRunning && len(n.List()) == 1 && len(st.Lines) == 0 && st.Status >= 0
		})
	}
}

// A task without a record on the disk does not start.
func TestAFullDiskStartsNothing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PROC_DIR", dir)
	t.Setenv("PROC_COMMAND", "touch "+dir+"/out")
	t.Setenv("PROC_FULL", "1")
	text, err := proctest.Command(nil).CombinedOutput()
	require.NoError(t, err)
	require.Contains(t, string(text), "failed proc: ƒ8: write "+path(dir, task)+".task: file too large")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// The user of a job knows its token, and can write it into the environment of another job: that of
// its shim has it then, as a part of a longer text.
func TestATokenInAnEnvironmentEndsNoShim(t *testing.T) {
	t.Parallel() // it waits
	n := open(t, t.TempDir())
	n.start("sleep 60")
	mark := token(t, n.dir)
	n.Prepare = func(_ exec.Task, cmd *osexec.Cmd) error {
		cmd.Env = append(cmd.Environ(), env+"="+mark)
		return nil
	}
	other, out := exec.Task{Job: 8}, filepath.Join(t.TempDir(), "out")
	ended := func(task exec.Task, status int32) func() bool {
		return func() bool { st, _ := n.Last(task); return st.State == exec.TaskReleased && st.Status == status }
	}
	require.NoError(t, n.Do(exec.Command{Kind: exec.CommandStart, Task: other}, []string{
		"env", "-i", "sh", "-c", "echo >" + out + "; until test -e " + out + ".go; do sleep .01; done; exit 5",
	}))
	await(t, "it does not start", func() bool { return countLines(t, out) == 1 })
	n.signal(9)
	await(t, "it is not killed", ended(task, 9))
	require.NoError(t, os.WriteFile(out+".go", nil, 0o600))
	await(t, "its shim was killed", ended(other, 5<<8))
}

// A task that leaves no child searches for nothing, however many processes the machine has.
func TestATaskThatLeavesNothingSearchesForNothing(t *testing.T) {
	t.Parallel() // it waits
	n := open(t, t.TempDir())
	stop := filepath.Join(t.TempDir(), "stop")
	n.start("until test -e " + stop + "; do sleep .01; done")
	other := osexec.Command("sleep", "60")
	other.Env = []string{env + "=" + token(t, n.dir)}
	require.NoError(t, other.Start())
	require.NoError(t, os.WriteFile(stop, nil, 0o600))
	n.status(exec.TaskReleased, 0)
	require.NoError(t, other.Process.Kill())
	require.EqualError(t, other.Wait(), "signal: killed")
}

// What a debugger has does not end by SIGKILL. The shim waits, and does not search all the time.
func TestAShimWaitsForWhatDoesNotEnd(t *testing.T) {
	t.Parallel() // it waits
	dir, pid := t.TempDir(), 0
	n := open(t, filepath.Join(dir, "node"))
	n.start("sleep 60 & echo $! >" + dir + "/pid; until test -e " + dir + "/go; do sleep .01; done; exit 3")
	await(t, "it does not start", func() bool {
		text, _ := os.ReadFile(dir + "/pid")
		k, _ := fmt.Sscanln(string(text), &pid)
		return k == 1
	})
	runtime.LockOSThread() // which is the debugger
	defer runtime.UnlockOSThread()
	if err := syscall.PtraceAttach(pid); err != nil {
		n.signal(9)
		n.ends()
		t.Skip(err)
	}
	_, err := syscall.Wait4(pid, nil, syscall.WALL, nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(dir+"/go", nil, 0o600))
	stat := func(pid string) []string {
		text, err := os.ReadFile("/proc/" + pid + "/stat")
		require.NoError(t, err)
		return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	}
	await(t, "it is not killed", func() bool { return stat(strconv.Itoa(pid))[0] == "Z" })
	shim := stat(strconv.Itoa(pid))[1]
	ticks := func() int { // of the CPU, 100 a second
		user, err := strconv.Atoi(stat(shim)[11])
		system, systemErr := strconv.Atoi(stat(shim)[12])
		require.NoError(t, errors.Join(err, systemErr))
		return user + system
	}
	was := ticks()
	time.Sleep(time.Second)
	require.Less(t, ticks()-was, 13)
	_, err = syscall.Wait4(pid, nil, syscall.WALL, nil) // now it has ended
	require.NoError(t, err)
	n.status(exec.TaskReleased, 3<<8)
}
