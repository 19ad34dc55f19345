//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package logfile

import "os"

// lockFile does nothing: this system has no lock that is free when its process ends.
func lockFile(*os.File) error { return nil }
