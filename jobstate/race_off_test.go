//go:build !race

package jobstate_test

// raceEnabled tells that the race detector is off.
const raceEnabled = false
