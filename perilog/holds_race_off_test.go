//go:build !race

package perilog_test

const holdsRace = false
