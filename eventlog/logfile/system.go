package logfile

import "os"

// Lock locks an open file until it is closed, against every other open file of that
// name in this process and others. It does not wait: the error is [ErrLocked]. On
// Linux the error names the process that holds the lock. The lock ends with the
// process, also by kill -9. It uses flock, and LockFileEx on Windows; elsewhere it
// does nothing.
func Lock(f *os.File) error { return lockFile(f) }

// IsFull reports whether an error says that a disk or a quota is full. What failed
// so may work when something was removed. Where the errors of a system are not known
// it returns false.
func IsFull(err error) bool { return isFull(err) }
