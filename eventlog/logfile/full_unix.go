//go:build unix

package logfile

import (
	"errors"
	"syscall"
)

// IsFull reports whether an error says that a disk or a quota is full. What failed
// so may work when something was removed.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
