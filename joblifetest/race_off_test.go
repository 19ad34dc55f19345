//go:build !race

package joblifetest

const raceEnabled = false
