//go:build race

package perilog

// RaceEnabled tells that the race detector runs, which allocates and is slow.
const RaceEnabled = true
