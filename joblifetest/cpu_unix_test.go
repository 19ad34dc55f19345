//go:build unix

package joblifetest

import (
	"syscall"
	"time"
)

// cpuTime returns how long the processor has worked for this process: on a busy machine
// that is fairer than the clock.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
