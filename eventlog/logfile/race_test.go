//go:build race

package logfile_test

// raceEnabled: the race detector allocates.
const raceEnabled = true
