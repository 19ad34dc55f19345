package proc

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"time"
)

const (
	findsAll            = true // what a command leaves
	prSetChildSubreaper = 36
)

// adoptOrphans makes this process the parent of what its descendants leave.
func adoptOrphans() { _, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0) }

// signalMarked signals the processes with a token in their environment, and the children of a
// parent, by handles that another process with the same pid does not get (pidfd). It reports
// whether there are some. Those of other users are not found, unless this is root. Unsure says
// that a process ended meanwhile, or has no environment at this time: one that is about to run
// another program has none.
func signalMarked(token string, parent int, sig syscall.Signal) (some, unsure bool) {
	dir, err := os.Open("/proc")
	if err != nil {
		return false, false
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	is := func(name string) (is, empty, gone bool) {
		text, err := os.ReadFile("/proc/" + name + "/environ")
		gone = errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
		has := bytes.Contains(append([]byte{0}, text...), []byte("\x00"+env+"="+token+"\x00")) // and not within the text of a shim
		return has || parent > 0 && hasParent(name, parent), err == nil && len(text) == 0, gone
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		switch has, empty, gone := is(name); {
		case gone: // it may have left a child
			unsure = true
		case has:
			p, _ := os.FindProcess(pid) // which has no error
			if has, _, _ := is(name); has {
				some = true
				_ = p.Signal(sig) // it may be gone
			}
			_ = p.Release()
		case empty:
			unsure = unsure || hasMemory(name)
		}
	}
	return some, unsure
}

func hasParent(pid string, parent int) bool {
	text, err := os.ReadFile("/proc/" + pid + "/stat") // "pid (name) state ppid ..."
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	return err == nil && len(fields) > 1 && string(fields[1]) == strconv.Itoa(parent)
}

// hasMemory reports whether a process is neither a zombie nor a thread of the kernel.
func hasMemory(pid string) bool {
	text, err := os.ReadFile("/proc/" + pid + "/statm")
	return err == nil && !bytes.HasPrefix(text, []byte("0 "))
}

// killAll kills what is left of a task whose shim was killed, and waits for its end.
func killAll(token string) {
	for unsure := 0; unsure < 100; time.Sleep(2 * time.Millisecond) { // there may be programs without an environment
		some, more := signalMarked(token, 0, syscall.SIGKILL)
		if unsure++; some {
			unsure = 0
		} else if !more {
			return
		}
	}
}
