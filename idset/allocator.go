package idset

// A Policy says which free id an Allocator hands out.
type Policy uint8

const (
	// LowestFree hands out the lowest free id.
	LowestFree Policy = iota

	// RoundRobin hands out the next free id above the one last handed out,
	// and begins again with the lowest when there is none above. An id that
	// was freed so stays unused for as long as it can.
	RoundRobin
)

// An Allocator hands out ids of a given set and takes them back. The zero value
// has no ids. It must not be copied, and one goroutine at a time may use it.
//
// Handing out and taking back cost by the number of ranges that are free, not
// by ids: an allocator for every id up to MaxID is no larger than one for ten,
// so that none ever has to grow.
type Allocator struct {
	universe Set
	free     Set // a subset of universe
	policy   Policy
	next     uint32 // round robin: where to look first
}

// NewAllocator returns an allocator whose ids are those of the given set, all
// of them free. It keeps a copy. Panics if p is none of the policies.
func NewAllocator(ids *Set, p Policy) *Allocator {
	if p > RoundRobin {
		panic("idset: no such policy")
	}
	a := &Allocator{policy: p}
	a.universe.UnionWith(ids)
	a.free.UnionWith(ids)
	return a
}

// Alloc takes a free id and returns it, or false if there is none.
func (a *Allocator) Alloc() (uint32, bool) {
	id, ok := a.free.from(a.next)
	if !ok {
		if id, ok = a.free.Min(); !ok {
			return 0, false
		}
	}
	a.free.Remove(id)
	if a.policy == RoundRobin {
		a.next = id + 1
	}
	return id, true
}

// Free gives an id back. The error is an *IDError: ErrUniverse if the id is not
// one of the allocator's, ErrNotAllocated if it is free. After an error nothing
// has changed.
func (a *Allocator) Free(id uint32) error {
	if !a.universe.Contains(id) {
		return &IDError{ID: id, Err: ErrUniverse}
	}
	if !a.free.Insert(id) {
		return &IDError{ID: id, Err: ErrNotAllocated}
	}
	return nil
}

// FreeSet gives every id of a set back, or none: the error is as that of Free
// and names the lowest id that can not be.
func (a *Allocator) FreeSet(ids *Set) error {
	if !a.universe.ContainsAll(ids) {
		return lowest(Difference(ids, &a.universe), ErrUniverse)
	}
	if a.free.Intersects(ids) {
		return lowest(Intersect(ids, &a.free), ErrNotAllocated)
	}
	a.free.UnionWith(ids)
	return nil
}

// Reserve takes a certain id, as after a restart that finds it in use. It does
// not move the place where round robin goes on. The error is an *IDError:
// ErrUniverse if the id is not one of the allocator's, ErrAllocated if it is
// taken. After an error nothing has changed.
func (a *Allocator) Reserve(id uint32) error {
	if !a.universe.Contains(id) {
		return &IDError{ID: id, Err: ErrUniverse}
	}
	if !a.free.Remove(id) {
		return &IDError{ID: id, Err: ErrAllocated}
	}
	return nil
}

// ReserveSet takes every id of a set, or none: the error is as that of Reserve
// and names the lowest id that can not be.
func (a *Allocator) ReserveSet(ids *Set) error {
	if !a.universe.ContainsAll(ids) {
		return lowest(Difference(ids, &a.universe), ErrUniverse)
	}
	if !a.free.ContainsAll(ids) {
		return lowest(Difference(ids, &a.free), ErrAllocated)
	}
	a.free.SubtractWith(ids)
	return nil
}

// lowest returns the error for the lowest id of a set.
func lowest(ids *Set, err error) error {
	id, _ := ids.Min()
	return &IDError{ID: id, Err: err}
}

// IsFree reports whether an id is one of the allocator's and free.
func (a *Allocator) IsFree(id uint32) bool { return a.free.Contains(id) }

// Available returns the number of free ids; it saturates as Set.Len does.
func (a *Allocator) Available() int { return a.free.Len() }

// Allocated returns a new set of the ids that are taken.
func (a *Allocator) Allocated() *Set { return Difference(&a.universe, &a.free) }
