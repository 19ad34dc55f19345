package rset

import "fmt"

// String returns the state in words.
func (l *Ledger) String() string {
	s := fmt.Sprintf("held %v; freed %v; named held %q; named freed %q", &l.held, &l.freed, l.heldNamed, l.freedNamed)
	if l.final {
		s += "; final"
	}
	return s
}
