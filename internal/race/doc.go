// Package race tells tests whether the race detector is on. It allocates, and everything
// takes many times as long.
//
// Only tests import this package.
package race

import "testing"

// Skip skips a test where the race detector is on: one that counts allocations, or a long one that
// starts no goroutine.
func Skip(t testing.TB) {
	t.Helper()
	if Enabled {
		t.Skip("the race detector allocates, is slow, and finds nothing here")
	}
}
