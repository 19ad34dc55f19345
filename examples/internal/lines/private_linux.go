package lines

import "syscall"

// private lets only this user connect to a socket, from before it has a name.
func private(_, _ string, c syscall.RawConn) error {
	var err error
	if bad := c.Control(func(fd uintptr) { err = syscall.Fchmod(int(fd), 0o600) }); bad != nil {
		return bad
	}
	return err
}
