//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package logfile

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

func lockFile(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch err {
		case syscall.EINTR:
		case syscall.EWOULDBLOCK:
			return fmt.Errorf("%w%s", ErrLocked, holder(f))
		default:
			return err
		}
	}
}

// holder returns " by process " and the number of the one that holds the lock on a file, or ""
// if the system does not say, or names several: files of several disks may have one number.
func holder(f *os.File) string {
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return ""
	}
	defer func() { _ = locks.Close() }() // it was only read
	found := ""
	inode := ":" + strconv.FormatUint(uint64(stat.Ino), 10)
	// 1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[1] != "FLOCK" || !strings.HasSuffix(fields[5], inode) {
			continue
		}
		if pid, err := strconv.Atoi(fields[4]); err != nil || pid <= 0 {
			continue
		}
		text := " by process " + fields[4]
		if found != "" && found != text {
			return ""
		}
		found = text
	}
	return found
}
