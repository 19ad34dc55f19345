//go:build unix

package flux

import "syscall"

// dup returns another number of an open file: what reads it can be closed, and the file stays.
func dup(fd int) (int, error) { return syscall.Dup(fd) }
