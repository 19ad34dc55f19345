//go:build race

package purge_test

// raceEnabled tells that allocations are not what they are otherwise.
const raceEnabled = true
