//go:build race

package rset_test

// raceEnabled tells that allocations are not what they are otherwise.
const raceEnabled = true
