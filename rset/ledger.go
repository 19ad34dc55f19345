package rset

import (
	"errors"
	"fmt"
	"slices"

	"github.com/joblife/joblife/idset"
)

// A Ledger tells what of an allocation is still held and what has been freed.
// It gives out a fragment for whatever is freed, and exactly one of them, the
// last, is final: the one after which nothing is held. The zero Ledger is that
// of the empty R. A Ledger must not be copied, and one goroutine at a time may
// use it.
//
// Time frees nothing: an allocation past its expiration is held until someone
// frees it.
type Ledger struct {
	r           *R
	held, freed idset.Set
	n           int      // of ranks held
	heldNamed   []string // in order
	freedNamed  []string // in order
	gone        idset.Set
	final       bool
}

// A Fragment is what a call to a Ledger freed.
type Fragment struct {
	R     *R         // the resources, a fragment of the allocation; never nil, empty if no rank was freed
	Named []string   // the resources without a rank, in order
	Final bool       // nothing is held any more; exactly one fragment has it
	Gone  *idset.Set // those ranks of R that Shrink named: not to go back to a pool; nil if there are none
}

// IsEmpty reports whether there is nothing to tell: nothing was freed, and it
// is not the final fragment.
func (f Fragment) IsEmpty() bool { return f.R.IsEmpty() && len(f.Named) == 0 && !f.Final }

// NewLedger returns a ledger that holds all ranks of r, and resources without a
// rank by their names, as a rack's ssd. It retains r, which is immutable, and
// copies the names; one given twice counts once. A nil r is the empty one.
func NewLedger(r *R, named ...string) *Ledger {
	l := &Ledger{r: r.orEmpty(), heldNamed: slices.Clone(named)}
	slices.Sort(l.heldNamed)
	l.heldNamed = slices.Compact(l.heldNamed)
	l.held.UnionWith(l.r.Ranks())
	l.n = l.r.Len()
	return l
}

// Released is what has been freed of an allocation: with the allocation, all
// there is to know of a Ledger.
type Released struct {
	Ranks *idset.Set // nil is none
	Named []string
	Final bool // the final fragment was given out
}

// Rebuild returns the ledger of r and the names given of which some have been
// freed, as after a restart. The error is a *RanksError or *NamedError where r
// or the names do not have what is said to be freed, and ErrFinal where
// something is held after the final fragment. If nothing is held and Final is
// not set, the final fragment is still to come: Free of no rank gives it.
func Rebuild(r *R, done Released, named ...string) (*Ledger, error) {
	l := NewLedger(r, named...)
	if _, err := l.Free(done.Ranks); err != nil {
		return nil, err
	}
	for _, name := range done.Named {
		if err := l.checkNamed(name); err != nil {
			return nil, err
		}
		l.moveNamed(name)
	}
	if done.Final && (l.n > 0 || len(l.heldNamed) > 0) {
		return nil, ErrFinal
	}
	l.final = done.Final
	return l, nil
}

// Released returns what has been freed, as copies.
func (l *Ledger) Released() Released {
	return Released{Ranks: l.Freed(), Named: slices.Clone(l.freedNamed), Final: l.final}
}

// Free frees ranks, all of which must be held: the error is a *RanksError that
// names those that are not, or ErrFinal after the final fragment, and then
// nothing has changed. Free of no ranks changes nothing and gives an empty
// fragment, the final one if nothing else is held. It costs by the ranges of
// ranks, whatever is held.
func (l *Ledger) Free(ranks *idset.Set) (Fragment, error) {
	if !l.held.ContainsAll(ranks) {
		return Fragment{}, l.refuse(ranks)
	}
	if l.final {
		return Fragment{}, ErrFinal
	}
	return l.take(ranks), nil
}

// refuse returns why ranks can not be freed: which are unknown, which free.
func (l *Ledger) refuse(ranks *idset.Set) error {
	missing := idset.Difference(ranks, &l.held)
	return &RanksError{Unknown: idset.Difference(missing, &l.freed), Freed: idset.Intersect(missing, &l.freed)}
}

// FreeRank is Free of one rank.
func (l *Ledger) FreeRank(rank uint32) (Fragment, error) {
	if rank > idset.MaxID {
		rank = idset.MaxID // which no R has
	}
	var one idset.Set
	one.Insert(rank)
	return l.Free(&one)
}

// FreeHeld frees those of the ranks that are held, and returns the others: the
// tolerant form of Free, for reports that may come twice or too late. After the
// final fragment it returns an empty one, and all ranks.
func (l *Ledger) FreeHeld(ranks *idset.Set) (Fragment, *idset.Set) {
	rest := idset.Difference(ranks, &l.held)
	if l.final {
		return Fragment{R: new(R)}, rest
	}
	return l.take(idset.Intersect(ranks, &l.held)), rest
}

// FreeNamed frees a resource without a rank. The error is a *NamedError if it
// is not held, and then nothing has changed.
func (l *Ledger) FreeNamed(name string) (Fragment, error) {
	if err := l.checkNamed(name); err != nil {
		return Fragment{}, err
	}
	l.moveNamed(name)
	f := l.take(nil)
	f.Named = []string{name}
	return f, nil
}

// FreePart frees ranks and names, all of which must be held, in a fragment that is
// never final, even if nothing is held after it: FreeRest gives out the final one.
// It is for an owner that knows when an allocation is over, as when the event free
// is in the log. The error is that of Free and FreeNamed, and then nothing has
// changed.
func (l *Ledger) FreePart(ranks *idset.Set, named ...string) (Fragment, error) {
	if !l.held.ContainsAll(ranks) {
		return Fragment{}, l.refuse(ranks)
	}
	for i, name := range named {
		if err := l.checkNamed(name); err != nil {
			return Fragment{}, err
		}
		if slices.Contains(named[:i], name) {
			return Fragment{}, &NamedError{Name: quoted(name), Freed: true}
		}
	}
	if l.final {
		return Fragment{}, ErrFinal
	}
	for _, name := range named {
		l.moveNamed(name)
	}
	f := l.take(ranks)
	f.Named = slices.Clone(named)
	f.Final, l.final = false, false
	return f, nil
}

// FreeRest frees all that is held, ranks and names: the final fragment. The
// error is ErrFinal if that was given out before.
func (l *Ledger) FreeRest() (Fragment, error) {
	if l.final {
		return Fragment{}, ErrFinal
	}
	named := slices.Clone(l.heldNamed)
	for _, name := range named {
		l.moveNamed(name)
	}
	f := l.take(l.held.Clone())
	f.Named = named
	return f, nil
}

// take frees ranks that are held.
func (l *Ledger) take(ranks *idset.Set) Fragment {
	// The ranks are among those of r, so that there is no error.
	part, _ := l.r.Restrict(ranks)
	for first, last := range ranks.Ranges() {
		if first == last { // which moves less than a range does
			l.held.Remove(first)
			l.freed.Insert(first)
			continue
		}
		l.held.RemoveRange(first, last)
		l.freed.InsertRange(first, last)
	}
	l.n -= part.Len()
	l.final = l.n == 0 && len(l.heldNamed) == 0
	f := Fragment{R: part, Final: l.final}
	if l.gone.Intersects(ranks) {
		f.Gone = idset.Intersect(&l.gone, ranks)
	}
	return f
}

// checkNamed returns an error unless a name is held.
func (l *Ledger) checkNamed(name string) error {
	if _, ok := slices.BinarySearch(l.heldNamed, name); ok {
		return nil
	}
	_, freed := slices.BinarySearch(l.freedNamed, name)
	return &NamedError{Name: quoted(name), Freed: freed}
}

// moveNamed makes a name that is held one that is free.
func (l *Ledger) moveNamed(name string) {
	i, _ := slices.BinarySearch(l.heldNamed, name)
	l.heldNamed = slices.Delete(l.heldNamed, i, i+1)
	i, _ = slices.BinarySearch(l.freedNamed, name)
	l.freedNamed = slices.Insert(l.freedNamed, i, name)
}

// Shrink names ranks that have been removed for good, as from a pool that
// shrinks. They are freed like others, and Gone of the fragment names them.
// Ranks that are not held are ignored.
func (l *Ledger) Shrink(ranks *idset.Set) {
	l.gone.UnionWith(idset.Intersect(ranks, &l.held))
}

// Allocation returns the R that the ledger is of. It is never nil.
func (l *Ledger) Allocation() *R { return l.r.orEmpty() }

// Held returns a new set of the ranks that are held.
func (l *Ledger) Held() *idset.Set { return l.held.Clone() }

// Freed returns a new set of the ranks that have been freed.
func (l *Ledger) Freed() *idset.Set { return l.freed.Clone() }

// Holds reports whether a rank is held.
func (l *Ledger) Holds(rank uint32) bool { return l.held.Contains(rank) }

// HoldsNamed reports whether a resource without a rank is held.
func (l *Ledger) HoldsNamed(name string) bool { return l.checkNamed(name) == nil }

// HeldLen returns the number of ranks that are held, at no cost.
func (l *Ledger) HeldLen() int { return l.n }

// HeldNamed returns the names of resources without a rank that are held, in
// order, as a copy.
func (l *Ledger) HeldNamed() []string { return slices.Clone(l.heldNamed) }

// IsFinal reports whether the final fragment has been given out.
func (l *Ledger) IsFinal() bool { return l.final }

// HeldR returns the resources that are held, a fragment of the allocation.
func (l *Ledger) HeldR() *R {
	r, _ := l.Allocation().Restrict(&l.held)
	return r
}

// AppendText appends the state in words: "held 0-2; freed 3; named held ssd0;
// named freed; final". Ledgers of one allocation in the same state have the
// same text, whatever led there. The error is always nil.
func (l *Ledger) AppendText(dst []byte) ([]byte, error) {
	dst, _ = l.held.AppendText(append(dst, "held "...))
	dst, _ = l.freed.AppendText(append(dst, "; freed "...))
	dst = fmt.Appendf(dst, "; named held %q; named freed %q", l.heldNamed, l.freedNamed)
	if !l.gone.IsEmpty() {
		dst, _ = l.gone.AppendText(append(dst, "; gone "...))
	}
	if l.final {
		dst = append(dst, "; final"...)
	}
	return dst, nil
}

// String returns the text that AppendText appends.
func (l *Ledger) String() string {
	b, _ := l.AppendText(nil)
	return string(b)
}

// Check returns an error if an invariant of the ledger is broken, which only a
// fault of this package can do: what is held and what is freed have nothing in
// common and are the allocation together, by rank and by every kind of
// children, and nothing is held after the final fragment. It costs by all
// ranges.
func (l *Ledger) Check() error {
	r := l.Allocation()
	if l.held.Intersects(&l.freed) {
		return fmt.Errorf("rset: I1: ranks %q are held and freed", quoted(idset.Intersect(&l.held, &l.freed).String()))
	}
	all := r.Ranks()
	if sum := idset.Union(&l.held, &l.freed); !sum.Equal(all) {
		return fmt.Errorf("rset: I1: held and freed are %q, the allocation %q", quoted(sum.String()), quoted(all.String()))
	}
	held, _ := r.Restrict(&l.held)
	freed, _ := r.Restrict(&l.freed)
	sum, err := Append(held, freed)
	if err != nil || !SameResources(sum, r) {
		return errors.Join(errors.New("rset: I1: what is held and freed is not the allocation"), err)
	}
	if n := l.held.Len(); n != l.n {
		return fmt.Errorf("rset: I1: %d ranks are held, %d counted", n, l.n)
	}
	if l.final && (l.n > 0 || len(l.heldNamed) > 0) {
		return errors.New("rset: I2: something is held after the final fragment")
	}
	if !all.ContainsAll(&l.gone) {
		return errors.New("rset: I1: ranks are gone that were never there")
	}
	return nil
}
