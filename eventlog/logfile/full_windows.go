package logfile

import (
	"errors"

	"golang.org/x/sys/windows"
)

// IsFull reports whether an error says that a disk is full.
func IsFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}
