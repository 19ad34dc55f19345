//go:build race

package perilog

// runRace tells that allocations are not what they are otherwise.
const runRace = true
