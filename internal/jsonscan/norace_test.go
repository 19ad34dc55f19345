//go:build !race

package jsonscan

// raceEnabled: the race detector allocates.
const raceEnabled = false
