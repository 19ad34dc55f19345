//go:build race

package fsd_test

// raceEnabled tells that the race detector is on, under which allocations can
// not be counted.
const raceEnabled = true
