package lines

import "sync/atomic"

// A Budget is room in bytes that many share: what all peers together have not read, or have
// not written to the end. Each has a little beside it, so that none waits for others. The
// nil Budget has no end.
type Budget struct{ left atomic.Int64 }

// NewBudget returns a Budget.
func NewBudget(n int64) *Budget {
	b := new(Budget)
	b.left.Store(n)
	return b
}

// A share is what one of many has taken of a Budget.
type share struct {
	of    *Budget
	free  int // bytes beside it
	taken int
}

// hold sets how many bytes one has in all, and reports whether there was room. It can
// always have less.
func (s *share) hold(n int) bool {
	n = max(0, n-s.free)
	if s.of != nil && s.of.left.Add(int64(s.taken-n)) < 0 && n > s.taken {
		s.of.left.Add(int64(n - s.taken))
		return false
	}
	s.taken = n
	return true
}
