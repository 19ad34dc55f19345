package flux

import (
	"io"
	"net"
	"syscall"
	"unsafe"
)

// A rawConn reads and writes a socket without the notice that the scheduler of Go gets of each
// system call. Such a call never waits here, since the socket does not block. But the notice wakes
// the thread that looks after calls which wait, and that costs more than all else of a message.
type rawConn struct {
	net.Conn
	raw syscall.RawConn
}

// newRaw returns the rawConn of a connection, or what is none itself.
func newRaw(conn net.Conn) net.Conn {
	if c, ok := conn.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			return rawConn{conn, raw}
		}
	}
	return conn
}

func (c rawConn) Read(b []byte) (n int, err error) {
	if n, err = transfer(c.raw.Read, syscall.SYS_READ, b); n == 0 && err == nil && len(b) > 0 {
		err = io.EOF
	}
	return n, err
}

func (c rawConn) Write(b []byte) (n int, err error) {
	for n < len(b) {
		some, err := transfer(c.raw.Write, syscall.SYS_WRITE, b[n:])
		if n += some; err != nil {
			return n, err
		}
	}
	return n, nil
}

// transfer makes a system call as soon as it does not have to wait.
func transfer(when func(func(fd uintptr) bool) error, call uintptr, b []byte) (int, error) {
	var n uintptr
	var errnum syscall.Errno
	err := when(func(fd uintptr) bool {
		for {
			n, _, errnum = syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
			if errnum != syscall.EINTR {
				return errnum != syscall.EAGAIN
			}
		}
	})
	switch {
	case err != nil:
		return 0, err
	case errnum != 0:
		return 0, errnum
	}
	return int(n), nil
}
