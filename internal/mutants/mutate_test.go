package main

import (
	"go/format"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const source = `package p

const one = 1

func (t *T[K]) F(a, b int, c bool) (int, error) {
	for a < b && !c {
		a++
		if c {
			continue
		}
		g("+" + h)
	}
	if a == 0 {
		return 0, errEmpty
	}
	switch {
	case b+1 > a:
		panic(b - 1)
	}
	s := make([]int, 0, 1)
	s[b] -= 2
	return a, nil
}
`

func TestMutantsAreFound(t *testing.T) {
	found := ""
	for _, m := range mutants("dir", "p.go", source) {
		text := m.apply(source)
		_, err := format.Source([]byte(text))
		require.NoError(t, err, m.change)
		found += m.key() + "\t" + lineAt(text, m.from) + "\n"
	}
	require.Equal(t, `dir - 1 → 0	const one = 1	const one = 0
dir T.F drop s[b] -= 2	s[b] -= 2	if false { s[b] -= 2 }
dir T.F drop return a, nil	return a, nil	if false { return a, nil }
dir T.F negate a < b && !c	for a < b && !c {	for !(a < b && !c) {
dir T.F && → ||	for a < b && !c {	for a < b || !c {
dir T.F negate a < b	for a < b && !c {	for !(a < b) && !c {
dir T.F < → <=	for a < b && !c {	for a <= b && !c {
dir T.F negate !c	for a < b && !c {	for a < b && (c) {
dir T.F drop a++	a++	if false { a++ }
dir T.F drop g("+" + h)	g("+" + h)	if false { g("+" + h) }
dir T.F ++ → --	a++	a--
dir T.F negate c	if c {	if !(c) {
dir T.F drop continue	continue	if false { continue }
dir T.F == → !=	if a == 0 {	if a != 0 {
dir T.F 0 → 1	if a == 0 {	if a == 1 {
dir T.F drop return 0, errEmpty	return 0, errEmpty	if false { return 0, errEmpty }
dir T.F negate b+1 > a	case b+1 > a:	case !(b+1 > a):
dir T.F drop panic(b - 1)	panic(b - 1)	if false { panic(b - 1) }
dir T.F > → >=	case b+1 > a:	case b+1 >= a:
dir T.F + → -	case b+1 > a:	case b-1 > a:
dir T.F 1 → 0	case b+1 > a:	case b+0 > a:
dir T.F 0 → 1	s := make([]int, 0, 1)	s := make([]int, 1, 1)
dir T.F -= → +=	s[b] -= 2	s[b] += 2
`, found)
}

// A listed mutant that is no more says nothing: its line has changed, so look again.
func TestListedMutantsExist(t *testing.T) {
	t.Chdir("../..")
	readReasons()
	require.NotEmpty(t, reasons)
	exist := make(map[string]map[string]bool) // by folder
	for key := range reasons {
		dir, _, _ := strings.Cut(key, " ")
		if exist[dir] == nil {
			exist[dir] = make(map[string]bool)
			list, _ := all(dir)
			for _, m := range list {
				exist[dir][m.key()] = true
			}
		}
		assert.True(t, exist[dir][key], key)
	}
}
