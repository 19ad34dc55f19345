//go:build !linux

package flux

import "net"

// newRaw returns the connection itself.
func newRaw(conn net.Conn) net.Conn { return conn }
