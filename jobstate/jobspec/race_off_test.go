//go:build !race

package jobspec_test

// raceEnabled tells that the race detector runs, which allocates.
const raceEnabled = false
