//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package logfile

import "os"

// Lock does nothing: this system has no lock that is free when its process ends.
func Lock(*os.File) error { return nil }
