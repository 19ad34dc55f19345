package logfile

import "os"

// Lock locks an open file of the operating system as [FS] says. On Linux the error names
// the process that holds the lock. Lock uses flock, and LockFileEx on Windows; on other
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
