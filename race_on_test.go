//go:build race

package joblife_test

// raceEnabled tells that allocations are not what they are otherwise.
const raceEnabled = true
