//go:build !race

package joblife_test

const raceEnabled = false
