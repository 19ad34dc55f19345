package perilog

// Break breaks one invariant of h, for the test that Check finds it. It returns
// false for a number that stands for none.
func (h *Holds) Break(which int) bool {
	broken := []func(){
		func() { h.left.Insert(h.heldRank()) },
		func() { h.executor.Insert(1 << 20) },
		func() { h.actions[0].ranks.Insert(1 << 20) },
		func() { h.dropped.Insert(0) },
		func() { h.fresh.Insert(0) },
		func() { h.failed.Insert(0); h.dropped.Insert(0) },
		func() { h.finalRelease = true },
		func() { h.ended.Insert(0) },
		func() { h.over = true },
		func() { h.named[0].name = "z" },
		func() { h.named[h.actions[0].names[0]].acted = false },
		func() { h.named[h.actions[0].names[0]].left = true },
		func() { h.actions[0].names = nil; h.named[0].left = true },
		func() { h.named[0].ended = true },
		func() { // all ranks have left, but no named resource
			h.cleanup, h.finalRelease, h.actions = true, true, nil
			h.executor.SubtractWith(&h.all)
			h.left.UnionWith(&h.all)
			h.over = true
		},
	}
	if which >= len(broken) {
		return false
	}
	broken[which]()
	return true
}

func (h *Holds) heldRank() uint32 {
	rank, _ := h.Held().Min()
	return rank
}

// Unfed returns how many ranks the next Feed of the same ledger looks at.
func (h *Holds) Unfed() int { return h.fresh.Len() }
