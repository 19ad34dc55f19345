//go:build race

package perilog_test

const raceEnabled = true
