//go:build !race

package perilog_test

// hkRace tells that allocations are not what they are otherwise.
const hkRace = false
