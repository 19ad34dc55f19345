package rset

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/rset/children"
	"github.com/joblife/joblife/rset/hostlist"
)

// Config describes an R for [New]. The zero Config is the empty set.
type Config struct {
	Entries    []Entry               // in any order, each rank in one
	Hosts      *hostlist.List        // in rank order; nil or empty: none
	Properties map[string]*idset.Set // ranks by property
	Start      eventlog.Timestamp    // 0: always valid
	Expiration eventlog.Timestamp    // 0: never
	Slots      int64                 // 0: not known
}

// New returns the R that c describes. It retains nothing of c. It refuses what [Parse] would,
// except for a text of more than [MaxBytes]; errors name the entry or field, not the offset.
func New(c Config) (*R, error) {
	if err := few("entries", len(c.Entries), maxEntries); err != nil {
		return nil, categorize(err)
	}
	var m assembler
	for i, e := range c.Entries {
		n, err := newEntry(e)
		if err != nil {
			return nil, fmt.Errorf("%w: entry %d: %w", errInvalid, i, err)
		}
		for first, last := range e.Ranks.Ranges() {
			m.piece(first, last)
		}
		m.entries = append(m.entries, m.number(n))
	}
	if at, err := m.assemble(); err != nil {
		return nil, fmt.Errorf("%w: entry %d: %w", errInvalid, at, err)
	}
	r := &R{spans: m.spans, nodes: m.nodes, slots: c.Slots}
	if c.Slots < 0 {
		return nil, fmt.Errorf("%w: slots: must not be negative", errInvalid)
	}
	var err error
	if !c.Hosts.IsEmpty() {
		if r, err = r.AssignHosts(c.Hosts); err != nil {
			return nil, err
		}
	}
	if r, err = r.WithProperties(c.Properties); err != nil {
		return nil, err
	}
	return r.WithTimes(c.Start, c.Expiration)
}

func newEntry(e Entry) (*children.Set, error) {
	switch most, ok := e.Ranks.Max(); {
	case !ok:
		return nil, errNoRank
	case most > MaxRank:
		return nil, fmt.Errorf("rank %d: %w", most, idset.ErrRange)
	}
	kinds := make([]children.Kind, 0, len(e.Children))
	for _, name := range slices.Sorted(maps.Keys(e.Children)) {
		ids := e.Children[name].Clone()
		switch most, _ := ids.Max(); {
		case !utf8.ValidString(name):
			return nil, fmt.Errorf("kind %.64q: %w", name, jsonobj.ErrUTF8)
		case most > maxChild:
			return nil, fmt.Errorf("%s %d: %w", guard.Plain(name), most, idset.ErrRange)
		}
		kinds = append(kinds, children.Kind{Name: name, IDs: ids, N: ids.Len()})
	}
	set := children.Of(kinds)
	if set == nil {
		return nil, errNoResource
	}
	return set, nil
}

// WithTimes returns r with other times, with the meaning that they have in [Config]. It is
// an error if a time is negative or not finite, or if expiration is not after start.
func (r *R) WithTimes(start, expiration eventlog.Timestamp) (*R, error) {
	for _, t := range []eventlog.Timestamp{start, expiration} {
		if !(t >= 0 && t <= math.MaxFloat64) {
			return nil, fmt.Errorf("%w: time %v: must be a finite time of 0 or later", errInvalid, t)
		}
	}
	if expiration > 0 && expiration <= start {
		return nil, fmt.Errorf("%w: expiration: %w", errInvalid, errExpiration)
	}
	out := *r.orEmpty()
	out.start, out.end = start+0, expiration+0
	return &out, nil
}

// WithProperties returns r with other ranks for some properties, by name; one without ranks
// goes. It is an error if r does not have all of the ranks, or for an invalid name. It copies
// the sets, and takes time in proportion to the ranges of r, all properties and what is given.
func (r *R) WithProperties(ranks map[string]*idset.Set) (*R, error) {
	out := *r.orEmpty()
	rest := out.properties
	out.properties = make([]property, 0, len(rest)+len(ranks))
	for _, name := range slices.Sorted(maps.Keys(ranks)) {
		var err error
		if !ValidProperty(name) {
			err = errProperty
		} else if unknown := out.beyond(ranks[name]); unknown != nil {
			err = unknownRanks(unknown)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: property %.64q: %w", errInvalid, name, err)
		}
		i, found := findProperty(rest, name)
		out.properties, rest = append(out.properties, rest[:i]...), rest[i:]
		if found {
			rest = rest[1:]
		}
		if !ranks[name].IsEmpty() {
			out.properties = append(out.properties, property{name, ranks[name].Clone()})
		}
	}
	out.properties = append(out.properties, rest...)
	return &out, nil
}

// beyond returns the ranks of a set that r does not have, nil if it has all.
func (r *R) beyond(ranks *idset.Set) *idset.Set {
	for first, last := range ranks.Ranges() {
		for at := first; at <= last; {
			i, ok := find(r.spans, at)
			if !ok {
				return idset.Difference(ranks, r.Ranks())
			}
			at = r.spans[i].last + 1
		}
	}
	return nil
}
