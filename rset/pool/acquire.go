package pool

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/internal/jsonscan"
	"github.com/joblife/joblife/rset"
)

// maxAcquire is the largest number of bytes of a response: an R as large as package
// rset reads, and what goes with it.
const maxAcquire = rset.MaxBytes + 4<<20

// Acquire is one response to resource.acquire (RFC 28): the inventory, or a change of
// it. The zero Acquire is invalid.
type Acquire struct {
	// Resources is the inventory, in the first response; nil in later ones. It may be
	// empty. All ranks are down, except those in Change.Up.
	Resources *rset.R
	// Change is the rest of the response. A set or map is nil if the response
	// does not have its key. Grow is always nil: RFC 28 has no such key.
	Change Change
}

// ParseAcquire parses the payload of a response. It retains nothing of it.
//
// A first response has the keys resources and up; a later one has at least one of up,
// down, shrink, property-add, property-remove and expiration. With resources, "all"
// means all ranks. Unknown keys are ignored. Pool.Update checks whether the ranks
// exist.
//
// The error wraps ErrAcquire; or ErrLimit for a payload above 68 MiB or an R that is
// too large. Its text names the path and the offset, and it wraps the cause, such as
// rset.ErrSyntax.
func ParseAcquire(payload []byte) (Acquire, error) {
	if len(payload) > maxAcquire {
		return Acquire{}, categorize(ErrAcquire, tooLong(payload, maxAcquire))
	}
	doc := jsonobj.NewDoc(payload, jsonscan.Limits{})
	var a Acquire
	a.read(&doc)
	if doc.Failed() {
		return Acquire{}, categorize(ErrAcquire, doc.Fault())
	}
	return a, nil
}

// read reads the whole response.
func (a *Acquire) read(doc *jsonobj.Doc) {
	c, known := &a.Change, false
	var up, down, shrink jsonobj.Value
	o := doc.Object()
	for o.Next() {
		v := o.Value()
		switch string(o.Key()) {
		case "resources":
			r, err := rset.Parse(v.Raw())
			if err != nil {
				v.Fail(err)
			}
			a.Resources = r
		case "up":
			up = v
		case "down":
			down = v
		case "shrink":
			shrink = v
		case "property-add":
			c.AddProperties = readProperties(v)
		case "property-remove":
			c.RemoveProperties = readProperties(v)
		case "expiration":
			t := eventlog.Timestamp(v.Float(0, math.MaxFloat64))
			c.Expiration = &t
		default:
			continue
		}
		known = true
	}
	switch {
	case a.Resources != nil:
		o.Require("up")
	case !known:
		doc.Fail(errNoChange)
	}
	c.Up, c.Down, c.Shrink = a.ranks(up), a.ranks(down), a.ranks(shrink)
}

// ranks reads a set of ranks.
func (a *Acquire) ranks(v jsonobj.Value) *idset.Set {
	if s, ok := jsonscan.String(v.Raw()); !ok || s != "all" {
		return readIDs(v, rset.MaxRank)
	}
	if a.Resources == nil {
		v.Fail(errAll)
	}
	return a.Resources.Ranks()
}

// readIDs reads an idset.
func readIDs(v jsonobj.Value, most uint32) *idset.Set {
	return jsonobj.Parse(v, func(s string) (*idset.Set, error) { return idset.ParseLimit(s, most) })
}

// readProperties reads the ranks of properties, as RFC 20 writes them.
func readProperties(v jsonobj.Value) map[string]*idset.Set {
	properties := make(map[string]*idset.Set)
	for o := v.Object(); o.Next(); {
		name := string(o.Key())
		if !rset.ValidProperty(name) {
			o.Value().Fail(errPropertyName)
		}
		properties[name] = readIDs(o.Value(), rset.MaxRank)
	}
	return properties
}

// MarshalJSON returns the response as the resource module of Flux writes it. It
// leaves out fields that are nil, but a first response always has the key up. The
// error is ErrAcquire for what ParseAcquire would refuse, and if Change.Grow is not
// nil.
func (a Acquire) MarshalJSON() ([]byte, error) {
	c := a.Change
	w := jsonobj.Write(nil, jsonscan.Limits{})
	switch {
	case c.Grow != nil:
		w.Fail("", errGrow)
	case a.Resources == nil && c.Up == nil && c.Down == nil && c.Shrink == nil &&
		c.AddProperties == nil && c.RemoveProperties == nil && c.Expiration == nil:
		w.Fail("", errNoChange)
	}
	if a.Resources != nil {
		w.Key("resources")
		w.Out = a.Resources.AppendJSON(w.Out)
		if c.Up == nil {
			c.Up = new(idset.Set)
		}
	}
	for _, s := range [...]struct {
		key string
		set *idset.Set
	}{{"up", c.Up}, {"down", c.Down}, {"shrink", c.Shrink}} {
		if s.set != nil {
			writeRanks(&w, s.key, s.key, s.set)
		}
	}
	for _, p := range [...]struct {
		key  string
		sets map[string]*idset.Set
	}{{"property-add", c.AddProperties}, {"property-remove", c.RemoveProperties}} {
		if p.sets != nil {
			writeProperties(&w, p.key, p.sets)
		}
	}
	if c.Expiration != nil {
		if !validTime(*c.Expiration) {
			w.Fail("expiration", errTime)
		}
		w.Float("expiration", float64(*c.Expiration))
	}
	out, err := w.End(nil)
	if err != nil {
		return nil, categorize(ErrAcquire, err)
	}
	return out, nil
}

// writeRanks appends a set of ranks as the value of a key.
func writeRanks(w *jsonobj.Writer, path, key string, set *idset.Set) {
	if rank, ok := set.Max(); ok && rank > rset.MaxRank {
		w.Fail("", at(path, fmt.Errorf("rank %d is above %d", rank, rset.MaxRank)))
	}
	w.Text(key, set.String())
}

// writeProperties appends an object of properties, by name.
func writeProperties(w *jsonobj.Writer, key string, sets map[string]*idset.Set) {
	w.Open(key)
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		if !rset.ValidProperty(name) {
			w.Fail(key, fmt.Errorf("%w: %s", errPropertyName, guard.Quote(name)))
		}
		writeRanks(w, key+"."+jsonobj.Name(name), name, sets[name])
	}
	w.Close()
}
