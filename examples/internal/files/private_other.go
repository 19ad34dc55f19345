//go:build !unix

package files

// private does nothing: only Unix has owners and modes.
func private(string) error { return nil }
