//go:build race

package jobstate_test

// raceEnabled tells that the race detector is on, under which allocations can
// not be counted.
const raceEnabled = true
