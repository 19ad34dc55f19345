package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// trace runs a command to its end, and calls note with each call of it that changed files,
// and each text that it wrote to file 3. Names are relative to the folder; what it does
// elsewhere is not noted.
func trace(cmd *exec.Cmd, dir string, note func(Call)) error {
	runtime.LockOSThread() // which is the tracer
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	tr := tracer{pid: cmd.Process.Pid, dir: dir, within: make(map[int]*Call)}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(tr.pid, &status, 0, nil); err != nil || !status.Stopped() {
		return fmt.Errorf("it did not stop at its begin: %v, %w", status, err)
	}
	const exitKill = 0x100000 // PTRACE_O_EXITKILL
	err := syscall.PtraceSetOptions(tr.pid, syscall.PTRACE_O_TRACESYSGOOD|syscall.PTRACE_O_TRACECLONE|exitKill)
	for pid, signal := tr.pid, 0; err == nil; {
		if err = syscall.PtraceSyscall(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			break
		}
		if pid, err = syscall.Wait4(-tr.pid, &status, syscall.WALL, nil); errors.Is(err, syscall.EINTR) {
			err = nil
		}
		signal = 0
		switch {
		case err != nil:
		case !status.Stopped() && pid == tr.pid:
			if status.ExitStatus() != 0 {
				err = fmt.Errorf("its status is %#x", int(status))
			}
			_ = cmd.Wait() // it knows of no process any more
			return err
		case !status.Stopped(): // a thread ended
		case status.StopSignal() == syscall.SIGTRAP|0x80:
			err = tr.call(pid, note)
		case status.StopSignal() == syscall.SIGTRAP, status.StopSignal() == syscall.SIGSTOP: // of a new thread
		default:
			signal = int(status.StopSignal())
		}
	}
	_ = cmd.Process.Kill()
	for { // the process is not over before each of its threads is waited for
		pid, err := syscall.Wait4(-tr.pid, &status, syscall.WALL, nil)
		if err != nil && !errors.Is(err, syscall.EINTR) || pid == tr.pid && !status.Stopped() {
			break
		}
	}
	_ = cmd.Wait()
	return err
}

// The calls that package syscall has no name for.
const (
	renameat2     = 316
	copyFileRange = 326
)

type tracer struct {
	pid    int
	dir    string
	within map[int]*Call // by thread: what its call is about to do; nil if that is nothing
}

// call looks at a thread that begins or ends a call.
func (tr tracer) call(tid int, note func(Call)) error {
	var regs syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(tid, &regs); errors.Is(err, syscall.ESRCH) {
		return nil // another thread has ended the process
	} else if err != nil {
		return err
	}
	c, ends := tr.within[tid]
	if !ends {
		c, err := tr.enter(&regs)
		tr.within[tid] = c
		return err
	}
	delete(tr.within, tid)
	result := int(regs.Rax)
	if c == nil || result < 0 {
		return nil
	}
	if c.Op == opWrite {
		c.Data = c.Data[:result]
	}
	note(*c)
	return nil
}

// enter returns what a call is about to do.
func (tr tracer) enter(regs *syscall.PtraceRegs) (*Call, error) {
	first, second, third, fourth := regs.Rdi, regs.Rsi, regs.Rdx, regs.R10
	var c *Call
	switch regs.Orig_rax {
	case syscall.SYS_OPENAT:
		name, err := tr.at(first, second)
		info, missing := os.Lstat(name)
		switch {
		case err != nil:
			return nil, err
		case third&syscall.O_CREAT != 0 && missing != nil:
			c = &Call{Op: opCreate, Name: name}
		case third&syscall.O_TRUNC != 0 && missing == nil && info.Mode().IsRegular():
			c = &Call{Op: opTruncate, Name: name}
		}
	case syscall.SYS_WRITE, syscall.SYS_PWRITE64:
		c = &Call{Op: opWrite, Name: tr.file(first), At: int(fourth), Data: make([]byte, third)}
		if first == 3 {
			c.Op, c.Name = opSay, tr.dir
		} else if !tr.inside(c.Name) {
			return nil, nil
		}
		if regs.Orig_rax == syscall.SYS_WRITE && first != 3 {
			at, err := tr.position(first, c.Name)
			if err != nil {
				return nil, err
			}
			c.At = at
		}
		if n, err := tr.read(c.Data, second); n < len(c.Data) {
			return nil, err
		}
	case syscall.SYS_FTRUNCATE:
		c = &Call{Op: opTruncate, Name: tr.file(first), At: int(second)}
	case syscall.SYS_FSYNC, syscall.SYS_FDATASYNC:
		c = &Call{Op: opSync, Name: tr.file(first)}
		if info, err := os.Lstat(c.Name); err == nil && info.IsDir() {
			c.Op = opSyncDir
		}
	case syscall.SYS_MKDIRAT, syscall.SYS_UNLINKAT:
		name, err := tr.at(first, second)
		if err != nil {
			return nil, err
		}
		c = &Call{Op: opMkdir, Name: name}
		if regs.Orig_rax == syscall.SYS_UNLINKAT {
			c.Op = opRemove
		}
	case syscall.SYS_RENAMEAT, renameat2, syscall.SYS_LINKAT:
		name, err := tr.at(first, second)
		to, err2 := tr.at(third, fourth)
		if err = errors.Join(err, err2); err != nil {
			return nil, err
		}
		c = &Call{Op: opRename, Name: name, To: tr.relative(to)}
		if regs.Orig_rax == syscall.SYS_LINKAT {
			c.Op = opLink
		}
	case syscall.SYS_TRUNCATE:
		name, err := tr.at(1<<64-100, first)
		if err != nil {
			return nil, err
		}
		c = &Call{Op: opTruncate, Name: name, At: int(second)}
	case syscall.SYS_WRITEV, syscall.SYS_PWRITEV, syscall.SYS_FALLOCATE, syscall.SYS_SYMLINKAT,
		syscall.SYS_OPEN, syscall.SYS_CREAT, syscall.SYS_RENAME, syscall.SYS_UNLINK, syscall.SYS_RMDIR, syscall.SYS_MKDIR:
		return nil, fmt.Errorf("call %d is not known", regs.Orig_rax)
	case copyFileRange:
		if tr.inside(tr.file(third)) {
			return nil, errors.New("copy_file_range is not known")
		}
	}
	if c == nil || !tr.inside(c.Name) {
		return nil, nil
	}
	c.Name = tr.relative(c.Name)
	return c, nil
}

func (tr tracer) inside(name string) bool {
	return name == tr.dir || strings.HasPrefix(name, tr.dir+string(filepath.Separator))
}

func (tr tracer) relative(name string) string {
	name, _ = filepath.Rel(tr.dir, name)
	return name
}

// file returns the name of an open file.
func (tr tracer) file(fd uint64) string {
	name, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", tr.pid, int32(fd)))
	return name
}

// at returns the name that a call has, from a folder or from the working directory.
func (tr tracer) at(fd, address uint64) (string, error) {
	text := make([]byte, 4096)
	n, err := tr.read(text, address)
	name, _, whole := bytes.Cut(text[:n], []byte{0})
	if !whole {
		return "", fmt.Errorf("a name has no end: %w", err)
	}
	switch {
	case filepath.IsAbs(string(name)):
		return string(name), nil
	case int32(fd) == -100: // AT_FDCWD
		dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", tr.pid))
		return filepath.Join(dir, string(name)), err
	}
	return filepath.Join(tr.file(fd), string(name)), nil
}

// position returns where a write to an open file goes.
func (tr tracer) position(fd uint64, name string) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", tr.pid, int32(fd)))
	if err != nil {
		return 0, err
	}
	var at, flags int
	if _, err = fmt.Sscanf(string(text), "pos: %d\nflags: %o", &at, &flags); err != nil || flags&syscall.O_APPEND == 0 {
		return at, err
	}
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // it has no name any more
	} else if err != nil {
		return 0, err
	}
	return int(info.Size()), nil
}

// read reads memory, less than p only if it ends there.
func (tr tracer) read(p []byte, address uint64) (int, error) {
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", tr.pid))
	if err != nil {
		return 0, err
	}
	defer mem.Close() // it was only read
	return mem.ReadAt(p, int64(address))
}
