//go:build race

package joblifetest

// raceEnabled tells that all takes many times as long.
const raceEnabled = true
