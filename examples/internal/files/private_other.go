//go:build !unix

package files

// Private does nothing: only Unix has owners and modes.
func Private(string) error { return nil }
