package pool

import (
	"errors"
	"math"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/rset"
)

// TopicAcquire is the topic of RFC 28: its responses are what [ParseAcquire] reads.
const TopicAcquire = "resource.acquire"

// maxAcquire is the most bytes of a response: the largest R, and what goes with it.
const maxAcquire = rset.MaxBytes + 4<<20

// Acquire is one response to resource.acquire (RFC 28). The zero Acquire is invalid.
type Acquire struct {
	// Resources is the inventory, perhaps empty, in the first response; nil in later ones. All
	// ranks are down, except those in Change.Up.
	Resources *rset.R
	// Change is the rest. A set or map is nil if its key is absent, and Grow, which has no key.
	Change Change
}

// ParseAcquire parses the payload of a response. It retains nothing of it.
//
// A first response has the keys resources and up; a later one has at least one of up, down,
// shrink, property-add, property-remove and expiration. With resources, "all" means all ranks.
// Unknown keys are ignored. Pool.Update checks whether the ranks exist. The error, which names the
// path and the offset, is ErrAcquire, unless a limit is exceeded: a payload has at most 68 MiB.
func ParseAcquire(payload []byte) (Acquire, error) {
	if len(payload) > maxAcquire {
		return Acquire{}, categorize(ErrAcquire, tooLong(payload, maxAcquire))
	}
	doc := jsonobj.NewDoc(payload)
	var a Acquire
	a.read(&doc)
	if doc.Failed() {
		return Acquire{}, categorize(ErrAcquire, doc.Fault())
	}
	return a, nil
}

func (a *Acquire) read(doc *jsonobj.Doc) {
	o := doc.Object()
	for o.Next() { // so that Find has all keys
	}
	if v := o.Find("resources"); !v.Absent() {
		r, err := rset.Parse(v.Raw())
		if err != nil {
			v.Fail(err)
		}
		a.Resources = r
		o.Require("up")
	}
	c := &a.Change
	c.Up, c.Down, c.Shrink = a.ranks(o.Find("up")), a.ranks(o.Find("down")), a.ranks(o.Find("shrink"))
	c.AddProperties, c.RemoveProperties = readProperties(o.Find("property-add")), readProperties(o.Find("property-remove"))
	if v := o.Find("expiration"); !v.Absent() {
		t := eventlog.Timestamp(v.Float(0, math.MaxFloat64))
		c.Expiration = &t
	}
	if a.Resources == nil && c.Up == nil && c.Down == nil && c.Shrink == nil && c.AddProperties == nil && c.RemoveProperties == nil && c.Expiration == nil {
		doc.Fail(errors.New("has no key of RFC 28"))
	}
}

func (a *Acquire) ranks(v jsonobj.Value) *idset.Set {
	if s, ok := jsonobj.String(v.Raw()); !ok || s != "all" {
		return readIDs(v, rset.MaxRank)
	}
	if a.Resources == nil {
		v.Fail(errors.New(`"all" is allowed only with resources`))
	}
	return a.Resources.Ranks()
}

func readIDs(v jsonobj.Value, most uint32) *idset.Set {
	return jsonobj.Parse(v, func(s string) (*idset.Set, error) { return idset.ParseLimit(s, most) })
}

func readProperties(v jsonobj.Value) map[string]*idset.Set {
	if v.Absent() {
		return nil
	}
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
