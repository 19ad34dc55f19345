//go:build unix

package bomb

import (
	"syscall"
	"time"
)

// ProcessorTime returns the time that the process has had of all processors. It does
// not grow while others have them.
func ProcessorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
