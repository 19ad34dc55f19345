package rset

// Break… break a ledger in one way each.

func BreakTwice(l *Ledger) { l.freed.Insert(0) }
func BreakLost(l *Ledger)  { l.held.Remove(0) }
func BreakCount(l *Ledger) { l.n-- }
func BreakFinal(l *Ledger) { l.final = true }
