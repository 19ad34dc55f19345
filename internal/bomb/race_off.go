//go:build !race

package bomb

// raceEnabled tells that everything takes many times as long.
const raceEnabled = false
