package pool

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonscan"
	"github.com/joblife/joblife/rset"
)

// MaxAcquire is the number of bytes of a response that ParseAcquire reads: an
// R as large as package rset reads, and what goes with it.
const MaxAcquire = rset.MaxBytes + 4<<20

// Acquire is one response to resource.acquire (RFC 28): what is there, or what
// has changed. The zero Acquire is not one.
type Acquire struct {
	// Resources is the inventory, all of it down but for what Up names. The
	// first response has it, others do not: it is nil there.
	Resources *rset.R
	// Change is what else the response tells. Its sets and maps are nil where
	// it has no such key, and not nil, if empty, where it has. Grow is nil:
	// RFC 28 knows no such key.
	Change Change
}

// ParseAcquire reads the payload of a response. It retains nothing of it.
//
// A first response has the keys resources and up. "all" is what package idset
// does not read and instances do: as the value of up, or of another key that
// names ranks, it is all ranks of the resources that come with it. A later
// response has at least one of up, down, shrink, property-add, property-remove
// and expiration. Unknown keys are passed over. Whether ranks are there is for
// Pool.Update to say.
//
// The error is an *InputError of category ErrAcquire, or ErrLimit for a payload
// of more than MaxAcquire bytes and an R that is too large. Where resources is
// no R its cause is the error of package rset, with offsets in that value.
func ParseAcquire(payload []byte) (Acquire, error) {
	if len(payload) > MaxAcquire {
		return Acquire{}, tooMany("bytes", len(payload), MaxAcquire)
	}
	var p acquireParser
	if err := p.parse(jsonValue{payload, 0}); err != nil {
		return Acquire{}, err
	}
	return p.a, nil
}

// acquireParser reads a response.
type acquireParser struct {
	a     Acquire
	all   []allRanks // the keys whose value is "all"
	known bool       // there was a key of RFC 28
}

// allRanks is where a set goes that is all ranks, once they are known.
type allRanks struct {
	set **idset.Set
	key string
	at  jsonValue
}

// parse reads the whole response.
func (p *acquireParser) parse(v jsonValue) *InputError {
	if err := v.object(ErrAcquire, p.member); err != nil {
		return err
	}
	switch {
	case p.a.Resources != nil && p.a.Change.Up == nil && !slices.ContainsFunc(p.all, func(a allRanks) bool { return a.key == "up" }):
		return v.fail(ErrAcquire, errMissing).in("up")
	case !p.known:
		return v.fail(ErrAcquire, errNoChange)
	}
	for _, all := range p.all {
		if p.a.Resources == nil {
			return all.at.fail(ErrAcquire, errAll).in(all.key)
		}
		*all.set = p.a.Resources.Ranks()
	}
	return nil
}

// member reads one key.
func (p *acquireParser) member(key []byte, v jsonValue) (err *InputError) {
	c := &p.a.Change
	known := true
	switch string(key) {
	case "resources":
		p.a.Resources, err = v.resources()
	case "up":
		err = p.ranks("up", &c.Up, v)
	case "down":
		err = p.ranks("down", &c.Down, v)
	case "shrink":
		err = p.ranks("shrink", &c.Shrink, v)
	case "property-add":
		c.AddProperties, err = v.properties()
	case "property-remove":
		c.RemoveProperties, err = v.properties()
	case "expiration":
		c.Expiration, err = v.time()
	default:
		known = false
	}
	p.known = p.known || known
	return err
}

// ranks reads a set of ranks.
func (p *acquireParser) ranks(key string, set **idset.Set, v jsonValue) (err *InputError) {
	if s, ok := jsonscan.String(v.raw); ok && s == "all" {
		p.all = append(p.all, allRanks{set, key, v})
		return nil
	}
	*set, err = v.ids(ErrAcquire, rset.MaxRank)
	return err
}

// resources reads an inventory, which has resources.
func (v jsonValue) resources() (*rset.R, *InputError) {
	r, err := rset.Parse(v.raw)
	if err != nil {
		return nil, v.wrap(ErrAcquire, err)
	}
	if r.IsEmpty() {
		return nil, v.fail(ErrAcquire, ErrEmpty)
	}
	return r, nil
}

// properties reads the ranks of properties, as RFC 20 writes them.
func (v jsonValue) properties() (map[string]*idset.Set, *InputError) {
	properties := make(map[string]*idset.Set)
	err := v.object(ErrAcquire, func(key []byte, m jsonValue) *InputError {
		name := string(key)
		if !isProperty(name) {
			return m.fail(ErrAcquire, fmt.Errorf("%q %w", clip(name, maxToken), errPropertyName))
		}
		set, err := m.ids(ErrAcquire, rset.MaxRank)
		properties[name] = set
		return err
	})
	return properties, err
}

// time reads a time.
func (v jsonValue) time() (*eventlog.Timestamp, *InputError) {
	f, ok := jsonscan.Float64(v.raw)
	if !ok || f < 0 {
		return nil, v.fail(ErrAcquire, errTime)
	}
	t := eventlog.Timestamp(f + 0) // no negative zero
	return &t, nil
}

// MarshalJSON returns the response as the resource module writes it: resources
// in the form of rset.R.AppendJSON, keys in one order, each that has a value
// which is not nil. A first response always has up. The error is an *InputError
// for what ParseAcquire would refuse: an empty inventory, no key at all, a name
// that is not one of a property, a rank above rset.MaxRank, an expiration that
// is no time; and for Change.Grow.
func (a Acquire) MarshalJSON() ([]byte, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	var dst []byte
	c := a.Change
	key := func(name string) {
		dst = append(jsonscan.AppendString(append(dst, ','), name), ':')
	}
	if a.Resources != nil {
		key("resources")
		dst = a.Resources.AppendJSON(dst)
		if c.Up == nil {
			c.Up = new(idset.Set)
		}
	}
	for _, s := range c.sets() {
		if s.set != nil {
			key(s.key)
			dst = appendRanks(dst, s.set)
		}
	}
	for _, p := range c.properties() {
		if p.sets != nil {
			key(p.key)
			dst = appendProperties(dst, p.sets)
		}
	}
	if c.Expiration != nil {
		key("expiration")
		dst = jsonscan.AppendFloat(dst, float64(*c.Expiration+0))
	}
	dst[0] = '{' // where the comma of the first key is
	return append(dst, '}'), nil
}

// check returns an error if the response can not be written.
func (a Acquire) check() error {
	c := &a.Change
	refuse := func(key string, cause error) error { return fail(ErrAcquire, key, noOffset, cause) }
	switch {
	case a.Resources != nil && a.Resources.IsEmpty():
		return refuse("resources", ErrEmpty)
	case c.Grow != nil:
		return refuse("", errGrow)
	case a.Resources == nil && c.Up == nil && c.Down == nil && c.Shrink == nil &&
		c.AddProperties == nil && c.RemoveProperties == nil && c.Expiration == nil:
		return refuse("", errNoChange)
	case c.Expiration != nil && !(*c.Expiration >= 0 && *c.Expiration <= math.MaxFloat64):
		return refuse("expiration", errTime)
	}
	for _, s := range c.sets() {
		if rank, ok := s.set.Max(); ok && rank > rset.MaxRank {
			return refuse(s.key, fmt.Errorf("rank %d is above %d", rank, rset.MaxRank))
		}
	}
	for _, p := range c.properties() {
		for _, name := range slices.Sorted(maps.Keys(p.sets)) {
			if !isProperty(name) {
				return refuse(p.key, fmt.Errorf("%q %w", clip(name, maxToken), errPropertyName))
			}
			if rank, ok := p.sets[name].Max(); ok && rank > rset.MaxRank {
				return refuse(p.key+"."+named(name), fmt.Errorf("rank %d is above %d", rank, rset.MaxRank))
			}
		}
	}
	return nil
}

// keyedSet and keyedProperties are members of a response.
type (
	keyedSet struct {
		key string
		set *idset.Set
	}
	keyedProperties struct {
		key  string
		sets map[string]*idset.Set
	}
)

// sets returns the members that are sets, in the order in which they are
// written.
func (c *Change) sets() [3]keyedSet {
	return [3]keyedSet{{"up", c.Up}, {"down", c.Down}, {"shrink", c.Shrink}}
}

// properties returns the members that are properties.
func (c *Change) properties() [2]keyedProperties {
	return [2]keyedProperties{{"property-add", c.AddProperties}, {"property-remove", c.RemoveProperties}}
}

// appendRanks appends a set as a string.
func appendRanks(dst []byte, set *idset.Set) []byte {
	dst, _ = set.AppendText(append(dst, '"'))
	return append(dst, '"')
}

// appendProperties appends an object of properties, by name.
func appendProperties(dst []byte, sets map[string]*idset.Set) []byte {
	dst = append(dst, '{')
	for i, name := range slices.Sorted(maps.Keys(sets)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendRanks(append(jsonscan.AppendString(dst, name), ':'), sets[name])
	}
	return append(dst, '}')
}
