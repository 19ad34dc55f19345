//go:build !unix && !windows

package logfile

func isFull(error) bool { return false }
