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

// Break… break a ledger in one way each.

func BreakTwice(l *Ledger) { l.freed.Insert(0) }
func BreakLost(l *Ledger)  { l.held.Remove(0) }
func BreakCount(l *Ledger) { l.n-- }
func BreakFinal(l *Ledger) { l.final = true }
