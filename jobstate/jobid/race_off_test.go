//go:build !race

package jobid_test

// raceEnabled tells that the race detector is off.
const raceEnabled = false
