//go:build !race

package purge_test

const raceEnabled = false
