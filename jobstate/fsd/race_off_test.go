//go:build !race

package fsd_test

// raceEnabled tells that the race detector is off.
const raceEnabled = false
