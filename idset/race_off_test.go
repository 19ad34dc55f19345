//go:build !race

package idset_test

const raceEnabled = false
