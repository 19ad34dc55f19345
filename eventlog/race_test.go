//go:build race

package eventlog_test

// raceEnabled: the race detector allocates.
const raceEnabled = true
