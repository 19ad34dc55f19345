package pool

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// A Change is a change of the inventory, as in the later responses of RFC 28. A nil set is empty.
type Change struct {
	Up, Down *idset.Set // ranks that come up, and ranks that go down
	Shrink   *idset.Set // ranks that leave the inventory
	Grow     *rset.R    // ranks that join the inventory; down unless they are in Up

	// AddProperties and RemoveProperties have the ranks by the name of the property. Adding
	// a property that a rank has, or removing one that it lacks, is no error.
	AddProperties, RemoveProperties map[string]*idset.Set

	Expiration *eventlog.Timestamp // of the pool; 0: never; nil: as it was
}

// Update changes the inventory. After an error nothing has changed. Shrink comes before Grow,
// so a rank in both is replaced.
//
// Jobs keep what they hold on a rank that goes down. What they hold on a rank that leaves is in
// Allocation.Gone: Free accepts it, and if the rank comes back first, the job holds it again.
//
// It is an error to name ranks that are not in the inventory, ranks to add that are in it already,
// ranks both up and down, a property both added to and removed from a rank, or an invalid time; to
// exceed a limit; or what package rset refuses of hosts and names of properties. Shrink, Grow and
// properties take time in proportion to the inventory, all other changes to what they name.
func (p *Pool) Update(c Change) error {
	inventory, err := p.changed(c)
	if err != nil {
		return err
	}
	// Nothing below fails.
	p.shortages = nil
	p.shrink(c.Shrink)
	switch {
	case !c.Shrink.IsEmpty() || !c.Grow.IsEmpty():
		p.setInventory(inventory)
	case inventory != p.inventory:
		p.setProperties(inventory)
	}
	if !c.Grow.IsEmpty() {
		p.grow(c.Grow)
	}
	for first, last := range c.Up.Ranges() {
		p.edit(first, last, func(_, _ uint32, s *state) { s.up = true })
	}
	for first, last := range c.Down.Ranges() {
		p.edit(first, last, func(_, _ uint32, s *state) { s.up = false })
	}
	if c.Expiration != nil {
		p.expiration = *c.Expiration + 0 // no negative zero
	}
	return nil
}

// changed returns the inventory after a change, or an error if the change is invalid.
func (p *Pool) changed(c Change) (*rset.R, error) {
	if c.Expiration != nil {
		if err := checkTime("expiration of the pool", *c.Expiration); err != nil {
			return nil, err
		}
	}
	inventory, ranks, err := p.resized(c)
	if err == nil { // a rank in Shrink may be in Down too, since it goes down as it leaves
		err = cmp.Or(among("up", c.Up, ranks), disjoint("up and down", c.Up, c.Down, "are named both ways"), among("down", idset.Difference(c.Down, c.Shrink), ranks))
	}
	if err == nil {
		inventory, err = changeProperties(inventory, c, ranks)
	}
	if err == nil && inventory != p.inventory {
		err = p.checkProperties(inventory)
	}
	return inventory, err
}

// resized returns the inventory and its ranks after some left and others joined.
func (p *Pool) resized(c Change) (*rset.R, *idset.Set, error) {
	inventory, ranks := p.inventory, p.ranks
	if err := among("shrink", c.Shrink, ranks); err != nil {
		return nil, nil, err
	}
	if !c.Shrink.IsEmpty() {
		ranks = idset.Difference(ranks, c.Shrink)
		left := must(inventory.Restrict(ranks))
		inventory = inventory.Cut(slices.Collect(left.Parts()), 0, 0, 0)
	}
	if !c.Grow.IsEmpty() {
		if err := disjoint("grow", c.Grow.Ranks(), ranks, "are in the inventory already"); err != nil {
			return nil, nil, err
		}
		grown, err := rset.UnionDisjoint(inventory, c.Grow)
		if err != nil {
			return nil, nil, fmt.Errorf("pool: grow: %w", err)
		}
		inventory = bareOf(grown)
		ranks = inventory.Ranks()
	}
	return inventory, ranks, nil
}

// changeProperties returns an inventory after a change of properties.
func changeProperties(r *rset.R, c Change, ranks *idset.Set) (*rset.R, error) {
	changes := make(map[string]*idset.Set)
	names := slices.AppendSeq(slices.Collect(maps.Keys(c.RemoveProperties)), maps.Keys(c.AddProperties))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		what, gone, come := "property "+jsonobj.Name(name), c.RemoveProperties[name], c.AddProperties[name]
		err := cmp.Or(among(what, idset.Difference(gone, c.Shrink), ranks), disjoint(what, gone, come, "are named both ways"), among(what, come, ranks))
		if err != nil {
			return nil, err
		}
		if have := r.Property(name); have.Intersects(gone) || !have.ContainsAll(come) {
			changes[name] = idset.Union(idset.Difference(have, gone), come)
		}
	}
	if len(changes) == 0 {
		return r, nil
	}
	r, err := r.WithProperties(changes)
	if err != nil {
		return nil, fmt.Errorf("pool: property: %w", err)
	}
	return r, nil
}

func (p *Pool) checkProperties(r *rset.R) error {
	n := 0
	for range r.Properties() {
		n++
	}
	if n > p.cfg.MaxProperties {
		return tooMany("properties", n, p.cfg.MaxProperties)
	}
	return nil
}

// among returns an error unless all of a set is among the ranks.
func among(what string, set, ranks *idset.Set) error {
	if ranks.ContainsAll(set) {
		return nil
	}
	return ranksError(what, idset.Difference(set, ranks), "are not in the inventory")
}

// disjoint returns an error if two sets have ranks in common.
func disjoint(what string, a, b *idset.Set, reason string) error {
	if !a.Intersects(b) {
		return nil
	}
	return ranksError(what, idset.Intersect(a, b), reason)
}

// shrink takes ranks out of the pool. What jobs hold of them is gone.
func (p *Pool) shrink(ranks *idset.Set) {
	if ranks.IsEmpty() {
		return
	}
	p.shrinks++
	gone := make(map[jobid.ID]parts)
	for first, last := range ranks.Ranges() {
		p.edit(first, last, func(first, last uint32, s *state) {
			for _, o := range s.owners {
				gone[o.job] = gone[o.job].add(first, last, o.what)
			}
			s.all = nil
		})
	}
	for id, c := range gone {
		h, _ := p.holder(id)
		p.setGone(h, must(rset.UnionDisjoint(h.gone, c.r())))
	}
}

// grow puts ranks into the pool, down. What jobs hold of them from before is no longer gone.
func (p *Pool) grow(r *rset.R) {
	for _, sp := range spansOf(r) {
		p.insert(sp)
		p.edit(sp.first, sp.last, func(uint32, uint32, *state) {}) // joins its neighbours
	}
	var back []*holder
	p.holders.Ascend(func(it jobItem[*holder]) bool {
		if !it.of.gone.IsEmpty() {
			back = append(back, it.of)
		}
		return true
	})
	for _, h := range back {
		p.setGone(h, p.hold(h.id, h.end(), h.gone))
	}
}
