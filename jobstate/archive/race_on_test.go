//go:build race

package archive_test

// raceEnabled tells that the race detector runs, which allocates.
const raceEnabled = true
