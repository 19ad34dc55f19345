//go:build !race

package hostlist_test

const raceEnabled = false
