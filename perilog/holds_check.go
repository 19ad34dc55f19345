package perilog

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/joblife/joblife/idset"
)

// AppendText appends the state in one line: who holds what since when, what has
// left, failed and was dropped, and what has happened. Holds of one R in the
// same state have the same text, whatever led there. The error is always nil.
func (h *Holds) AppendText(dst []byte) ([]byte, error) {
	for x := range h.Holders() {
		dst = append(dst, x.Kind.String()...)
		if x.Description != "" || x.Kind >= HolderProlog {
			dst = strconv.AppendQuote(append(dst, ' '), x.Description)
		}
		dst, _ = x.Ranks.AppendText(append(dst, ' '))
		dst = appendNames(dst, x.Named)
		dst, _ = x.Since.AppendText(append(dst, " @"...))
		dst = append(dst, "; "...)
	}
	dst, _ = h.left.AppendText(append(dst, "left "...))
	dst = appendNames(dst, h.ReadyNamed())
	for _, s := range []struct {
		word string
		set  *idset.Set
	}{{"failed", &h.failed}, {"dropped", &h.dropped}} {
		if !s.set.IsEmpty() {
			dst, _ = s.set.AppendText(append(append(append(dst, "; "...), s.word...), ' '))
		}
	}
	for _, s := range []struct {
		word string
		is   bool
	}{
		{"allocated", h.allocated}, {"revoked", h.revoked}, {"started", h.started}, {"prolog failed", h.prologFailed},
		{"cleanup", h.cleanup}, {"finished", h.finished}, {"released", h.finalRelease}, {"over", h.over}, {"closed", h.closed},
	} {
		if s.is {
			dst = append(append(dst, "; "...), s.word...)
		}
	}
	if h.dataOut != 0 {
		dst, _ = h.dataOut.AppendText(append(dst, "; data out @"...))
	}
	return dst, nil
}

func appendNames(dst []byte, names []string) []byte {
	for _, name := range names {
		dst = strconv.AppendQuote(append(dst, ' '), name)
	}
	return dst
}

// String returns the text that AppendText appends.
func (h *Holds) String() string {
	b, _ := h.AppendText(nil)
	return string(b)
}

// Check returns an error if an invariant is broken, which only a fault of this
// package can do: what has left is held by nobody, all that is held is the
// job's, what was dropped has failed, and nothing is kept back when everything
// has left. It costs by the ranges of all holders.
func (h *Holds) Check() error {
	if both := idset.Intersect(&h.left, h.Held()); !both.IsEmpty() {
		return fmt.Errorf("perilog: I3: ranks %q have left and are held", clip(both.String()))
	}
	sets := []*idset.Set{&h.left, &h.fresh, &h.executor, &h.earlyReleased, &h.failed, &h.dropped}
	for _, a := range h.actions {
		sets = append(sets, &a.ranks)
	}
	for _, s := range sets {
		if x := beyond(s, &h.all); x != nil {
			return fmt.Errorf("perilog: I1: ranks %q are not the job's", clip(x.String()))
		}
	}
	switch {
	case !h.failed.ContainsAll(&h.dropped):
		return fmt.Errorf("perilog: ranks %q were dropped and have not failed", clip(idset.Difference(&h.dropped, &h.failed).String()))
	case !h.left.ContainsAll(&h.fresh):
		return fmt.Errorf("perilog: ranks %q are to be fed and have not left", clip(idset.Difference(&h.fresh, &h.left).String()))
	case h.executor.Intersects(&h.dropped):
		return fmt.Errorf("perilog: the executor holds ranks %q, which were dropped", clip(idset.Intersect(&h.executor, &h.dropped).String()))
	case !h.executing() && !h.executor.IsEmpty():
		return fmt.Errorf("perilog: the executor holds ranks %q and does not run", clip(h.executor.String()))
	case !h.ended.IsEmpty() || !h.both.IsEmpty():
		return fmt.Errorf("perilog: ranks %q are left over from an event", clip(idset.Union(&h.ended, &h.both).String()))
	case h.over && !h.left.Equal(&h.all):
		return fmt.Errorf("perilog: I1: everything has left but ranks %q", clip(idset.Difference(&h.all, &h.left).String()))
	}
	return h.checkNames()
}

// checkNames is Check of the named resources.
func (h *Holds) checkNames() error {
	for i, n := range h.named {
		holder := slices.ContainsFunc(h.actions, func(a *activeAction) bool { return a.hasName(i) })
		switch {
		case i > 0 && h.named[i-1].name >= n.name:
			return fmt.Errorf("perilog: names are not in order at %q", clip(n.name))
		case holder && !n.acted, holder && n.left:
			return fmt.Errorf("perilog: I3: resource %q has left, or was never held, and is held", clip(n.name))
		case n.left && !h.cleanup:
			return fmt.Errorf("perilog: I3: resource %q has left before its time", clip(n.name))
		case n.ended:
			return fmt.Errorf("perilog: resource %q is left over from an event", clip(n.name))
		case h.over && !n.left:
			return fmt.Errorf("perilog: I1: everything has left but resource %q", clip(n.name))
		}
	}
	return nil
}
