// Package race tells tests whether the race detector is on. It allocates, and everything
// takes many times as long.
//
// Only tests import this package.
package race

import "testing"

// Skip skips a test that counts allocations where the race detector makes some.
func Skip(t testing.TB) {
	t.Helper()
	if Enabled {
		t.Skip("the race detector allocates")
	}
}
