//go:build race

package dirstore_test

// raceEnabled: the race detector allocates.
const raceEnabled = true
