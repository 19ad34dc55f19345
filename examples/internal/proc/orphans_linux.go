package proc

import (
	"bytes"
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

// marked returns the processes with a token in their environment. Those of other users are
// not found, unless this is root.
func marked(token string) []int {
	pids, _ := search(token)
	return pids
}

// search is marked, and reports whether a process has no environment at this time: one that
// is about to run another program has none.
func search(token string) (pids []int, unsure bool) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, false
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + name + "/environ")
		switch {
		case err != nil:
		case bytes.Contains(text, []byte(env+"="+token)):
			pids = append(pids, pid)
		case len(text) == 0:
			unsure = unsure || hasMemory(name)
		}
	}
	return pids, unsure
}

// hasMemory reports whether a process is neither a zombie nor a thread of the kernel.
func hasMemory(pid string) bool {
	text, err := os.ReadFile("/proc/" + pid + "/statm")
	return err == nil && !bytes.HasPrefix(text, []byte("0 "))
}

// killAll kills what is left of a task whose shim was killed, and waits for its end.
func killAll(token string) {
	for unsure := 0; unsure < 20; time.Sleep(2 * time.Millisecond) { // there may be programs without an environment
		left, more := search(token)
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone
		}
		if unsure++; len(left) > 0 {
			unsure = 0
		} else if !more {
			return
		}
	}
}
