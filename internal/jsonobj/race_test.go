//go:build race

package jsonobj_test

// raceEnabled: the race detector allocates.
const raceEnabled = true
