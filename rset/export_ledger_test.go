package rset

import (
	"fmt"
	"maps"
	"slices"
)

// String returns the state in words.
func (l *Ledger) String() string {
	var held, freed []string
	for _, name := range slices.Sorted(maps.Keys(l.named)) {
		if l.named[name] {
			held = append(held, name)
		} else {
			freed = append(freed, name)
		}
	}
	s := fmt.Sprintf("held %v; freed %v; named held %q; named freed %q", &l.held, &l.freed, held, freed)
	if l.final {
		s += "; final"
	}
	return s
}
