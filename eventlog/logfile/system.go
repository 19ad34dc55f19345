package logfile

import "os"

// Lock locks an open file of the operating system until it is closed, against every other
// open file of that name in this process and others. Lock does not wait: the error is
// [ErrLocked]. On Linux it names the process that holds the lock. The lock ends when the
// process ends, even by kill -9. Lock uses flock, and LockFileEx on Windows; on other
// systems it does nothing.
func Lock(f File) error {
	file, ok := f.(*os.File)
	if !ok {
		return errNotOS
	}
	return lockFile(file)
}

// IsFull reports whether an error says that a disk or a quota is full. The operation
// may succeed after something was removed. On systems whose errors this package does
// not know, IsFull returns false.
func IsFull(err error) bool { return isFull(err) }
