//go:build race

package pool_test

// raceEnabled tells that allocations are not what they are otherwise.
const raceEnabled = true
