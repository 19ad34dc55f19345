package rset

import (
	"fmt"
	"slices"

	"github.com/joblife/joblife/idset"
)

// A Ledger knows which part of an allocation is held and which has been freed. Each call that
// frees returns a fragment. Exactly one fragment is final: the one after which nothing is held.
// An expiration frees nothing. The zero Ledger belongs to the empty R.
type Ledger struct {
	r           *R
	held, freed idset.Set
	named       map[string]bool // the named resources, and whether they are held
	heldNamed   int             // how many of them are
	final       bool
}

// A Fragment is what one call of a [Ledger] freed.
type Fragment struct {
	R     *R       // the resources, a fragment of the allocation; never nil, empty if no rank was freed
	Named []string // the named resources, sorted
	Final bool     // nothing is held any more; true for exactly one fragment
}

// IsEmpty reports whether nothing was freed and the fragment is not final: do not send it.
func (f Fragment) IsEmpty() bool { return f.R.IsEmpty() && len(f.Named) == 0 && !f.Final }

// NewLedger returns a ledger that holds all of r, which may be nil, and the named resources,
// which have no rank, such as the ssd of a rack. Duplicate names count once.
func NewLedger(r *R, named ...string) *Ledger {
	l := &Ledger{r: r.orEmpty()}
	l.held.UnionWith(l.r.Ranks())
	if len(named) > 0 {
		l.named = make(map[string]bool, len(named))
	}
	for _, name := range named {
		l.named[name] = true
	}
	l.heldNamed = len(l.named)
	return l
}

// Released is the part of an allocation that has been freed, as a log keeps it.
type Released struct {
	Ranks *idset.Set // nil: none
	Named []string   // the named resources
	Final bool       // the final fragment was given
}

// Rebuild returns the ledger of r and the named resources as it was before a restart; done
// is what was freed. It is an error if done has ranks or names that r and named do not have,
// or if something is held after the final fragment. If nothing is held and done is not
// final, Free of no ranks returns the final fragment.
func Rebuild(r *R, done Released, named ...string) (*Ledger, error) {
	l := NewLedger(r, named...)
	freed := inOrder(done.Named)
	if err := l.check(done.Ranks, freed); err != nil {
		return nil, err
	}
	l.debit(done.Ranks, freed)
	if done.Final && !l.final {
		return nil, errFinal
	}
	l.final = done.Final
	return l, nil
}

// Free frees ranks and named resources. It is an error if not all of them are held, or
// after the final fragment; then nothing changes. Free of no ranks (nil or empty) and no
// names returns an empty fragment, which is final if nothing is held. It takes time in
// proportion to the ranges of ranks and to the names, which it sorts. If reports may come
// twice or late, free idset.Intersect(ranks, l.Held()).
func (l *Ledger) Free(ranks *idset.Set, named ...string) (Fragment, error) {
	named = inOrder(named)
	if err := l.check(ranks, named); err != nil {
		return Fragment{}, err
	}
	return l.debit(ranks, named), nil
}

// FreePart is Free for where something else ends an allocation, such as the event free in a
// log: its fragment is never final, even if nothing is held after it. FreeRest gives that.
func (l *Ledger) FreePart(ranks *idset.Set, named ...string) (Fragment, error) {
	f, err := l.Free(ranks, named...)
	if err == nil {
		f.Final, l.final = false, false
	}
	return f, err
}

// FreeRest frees all that is held and returns the final fragment. It is an error after that.
func (l *Ledger) FreeRest() (Fragment, error) {
	if l.final {
		return Fragment{}, errFinal
	}
	var named []string
	for name, held := range l.named {
		if held {
			named = append(named, name)
		}
	}
	slices.Sort(named)
	return l.debit(l.held.Clone(), named), nil
}

func inOrder(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return names
}

// check returns why ranks and names, which are in order, cannot be freed.
func (l *Ledger) check(ranks *idset.Set, named []string) error {
	if !l.held.ContainsAll(ranks) {
		missing := idset.Difference(ranks, &l.held)
		return ranksError(idset.Difference(missing, &l.freed), idset.Intersect(missing, &l.freed))
	}
	for i, name := range named {
		switch held, known := l.named[name]; {
		case !known:
			return fmt.Errorf("%w: unknown resource %.64q", errNotFound, name)
		case !held:
			return fmt.Errorf("%w: resource %.64q was freed before", errNotFound, name)
		case i > 0 && named[i-1] == name:
			return fmt.Errorf("%w: resource %.64q is named twice", errNotFound, name)
		}
	}
	if l.final {
		return errFinal
	}
	return nil
}

// debit frees what check accepts.
func (l *Ledger) debit(ranks *idset.Set, named []string) Fragment {
	// r has all ranks that are held, so that there is no error.
	part, _ := l.r.Restrict(ranks)
	for first, last := range ranks.Ranges() {
		l.held.RemoveRange(first, last)
		l.freed.InsertRange(first, last)
	}
	for _, name := range named {
		l.named[name] = false
	}
	l.heldNamed -= len(named)
	l.final = l.held.IsEmpty() && l.heldNamed == 0
	return Fragment{R: part, Named: named, Final: l.final}
}

// Held returns a new set of the ranks that are held.
func (l *Ledger) Held() *idset.Set { return l.held.Clone() }

// Freed returns a new set of the ranks that have been freed.
func (l *Ledger) Freed() *idset.Set { return l.freed.Clone() }

// HoldsNamed reports whether a named resource is held.
func (l *Ledger) HoldsNamed(name string) bool { return l.named[name] }

// IsFinal reports whether the final fragment has been given.
func (l *Ledger) IsFinal() bool { return l.final }
