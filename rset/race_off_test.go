//go:build !race

package rset_test

const raceEnabled = false
