package rset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonscan"
	"github.com/joblife/joblife/rset/hostlist"
	"github.com/joblife/joblife/rset/internal/children"
)

// Parse parses an R of RFC 20, version 1. It retains nothing of b. The error wraps
// ErrSyntax, ErrLimit, or ErrHosts if there are not as many hosts as ranks.
//
// Entries of R_lite may come in any order. A rank may be in several entries, each
// of its resources in one. Unknown members are kept, except those of an entry. An
// R without resources is valid.
//
// It accepts 64 MiB of text, ranks up to 2^24, ids of children and numbers of
// entries up to 2^20, and 2^24 hosts. Memory is in proportion to the text.
func Parse(b []byte) (*R, error) {
	return limits{MaxRank, maxChild, MaxBytes, maxEntries, maxHosts}.parse(b)
}

// limits is how large an R may be.
type limits struct {
	rank, child, bytes, entries, hosts int
}

func (l limits) parse(b []byte) (*R, error) {
	d := decoder{limits: l, r: new(R), size: len(b)}
	if len(b) > l.bytes {
		return nil, limitError("bytes", len(b), l.bytes)
	}
	if err := d.document(b); err != nil {
		if e, ok := err.(*ParseError); ok {
			e.Field = cmp.Or(strings.TrimPrefix(e.Field, "."), "R")
		}
		return nil, err
	}
	return d.r, nil
}

// A decoder reads one R. Values are parts of the text, with where they begin.
type decoder struct {
	limits
	r          *R
	nodes      map[string]*node // by their text as it was read
	read       []entry
	size       int              // of the text in bytes
	work       int              // what overlaps of entries have cost
	unions     map[string]*node // of entries that overlap, by their places
	key        []byte           // room for a key of unions
	nodelist   value
	properties value
}

// A value is a JSON value and where it is.
type value struct {
	raw    []byte
	offset int
}

// fail returns a ParseError for a value. Who called for it adds the field.
func (v value) fail(err error) error { return &ParseError{Offset: v.offset, Err: err} }

// under adds to an error what contains the value it is about.
func under(field string, err error) error {
	if e, ok := err.(*ParseError); ok {
		e.Field = field + e.Field
	}
	return err
}

// object calls f with every member of an object. f does not keep the key.
func (v value) object(f func(key []byte, m value) error) error {
	if jsonscan.KindOf(v.raw) != jsonscan.KindObject {
		return v.fail(errKind)
	}
	c := jsonscan.Object(v.raw)
	for c.Next() {
		if err := f(c.Key(), value{c.Raw(), v.offset + c.Offset()}); err != nil {
			return under("."+string(c.Key()[:min(len(c.Key()), maxToken)]), err)
		}
	}
	return v.wrap(c.Err())
}

// array calls f with every element of an array.
func (v value) array(f func(i int, m value) error) error {
	if jsonscan.KindOf(v.raw) != jsonscan.KindArray {
		return v.fail(errKind)
	}
	c := jsonscan.Array(v.raw)
	for i := 0; c.Next(); i++ {
		if err := f(i, value{c.Raw(), v.offset + c.Offset()}); err != nil {
			return under(fmt.Sprintf("[%d]", i), err)
		}
	}
	return v.wrap(c.Err())
}

// text returns the content of a string.
func (v value) text() (string, error) {
	s, ok := jsonscan.String(v.raw)
	if !ok {
		return "", v.fail(errKind)
	}
	return s, nil
}

// ids returns the set that a string names.
func (v value) ids(most int) (*idset.Set, error) {
	s, err := v.text()
	if err != nil {
		return nil, err
	}
	set, err := idset.ParseLimit(s, uint32(most))
	if err != nil {
		return nil, v.fail(err)
	}
	return set, nil
}

// document reads the whole text.
func (d *decoder) document(b []byte) error {
	doc := value{raw: b}
	var version, execution value
	err := doc.object(func(key []byte, m value) error {
		switch string(key) {
		case "version":
			version = m
		case "execution":
			execution = m
		case "scheduling":
			d.r.scheduling = jsonscan.AppendCompact(nil, m.raw)
		default:
			d.r.top = append(d.r.top, member{string(key), jsonscan.AppendCompact(nil, m.raw)})
		}
		return nil
	})
	switch n, ok := jsonscan.Int64(version.raw); {
	case err != nil:
		return err
	case version.raw == nil:
		return under(".version", doc.fail(errMissing))
	case !ok || n != 1:
		return under(".version", version.fail(errVersion))
	case execution.raw == nil:
		return under(".execution", doc.fail(errMissing))
	}
	if err := d.execution(execution); err != nil {
		return under(".execution", err)
	}
	sortMembers(d.r.top)
	sortMembers(d.r.execution)
	return nil
}

func sortMembers(members []member) {
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.key, b.key) })
}

// execution reads the execution object.
func (d *decoder) execution(v value) error {
	var lite, expiration value
	err := v.object(func(key []byte, m value) (err error) {
		switch string(key) {
		case "R_lite":
			lite = m
		case "starttime":
			d.r.start, err = m.time()
		case "expiration":
			expiration = m
			d.r.end, err = m.time()
		case "nslots":
			var ok bool
			if d.r.slots, ok = jsonscan.Int64(m.raw); !ok {
				return m.fail(errKind)
			} else if d.r.slots < 0 {
				return m.fail(errSlots)
			}
		case "nodelist":
			d.nodelist = m
		case "properties":
			d.properties = m
		default:
			d.r.execution = append(d.r.execution, member{string(key), jsonscan.AppendCompact(nil, m.raw)})
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case lite.raw == nil:
		return under(".R_lite", v.fail(errMissing))
	case d.r.end > 0 && d.r.end <= d.r.start:
		return under(".expiration", expiration.fail(errExpiration))
	}
	if err := d.lite(lite); err != nil {
		return under(".R_lite", err)
	}
	if err := d.hosts(); err != nil {
		return under(".nodelist", err)
	}
	return under(".properties", d.props())
}

// time reads a time.
func (v value) time() (eventlog.Timestamp, error) {
	f, ok := jsonscan.Float64(v.raw)
	if !ok || f < 0 {
		return 0, v.fail(errTime)
	}
	return eventlog.Timestamp(f + 0), nil
}

// lite reads R_lite.
func (d *decoder) lite(v value) error {
	d.nodes = make(map[string]*node)
	err := v.array(func(i int, e value) error {
		if i == d.limits.entries {
			return limitError("entries", i+1, d.limits.entries)
		}
		return d.entry(e)
	})
	if err != nil {
		return err
	}
	return d.merge(v)
}

// An entry is one of R_lite.
type entry struct {
	ranks  *idset.Set
	node   *node // nil if it has no resources
	offset int
}

func (d *decoder) entry(v value) error {
	e := entry{offset: v.offset}
	var children value
	err := v.object(func(key []byte, m value) (err error) {
		switch string(key) {
		case "rank":
			if e.ranks, err = m.ids(d.rank); err == nil && e.ranks.IsEmpty() {
				err = m.fail(errNoRank)
			}
		case "children":
			children = m
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case e.ranks == nil:
		return under(".rank", v.fail(errMissing))
	case children.raw == nil:
		return under(".children", v.fail(errMissing))
	}
	n, ok := d.nodes[string(children.raw)]
	if !ok {
		if n, err = d.node(children); err != nil {
			return under(".children", err)
		}
		d.nodes[string(children.raw)] = n
	}
	e.node = n
	d.read = append(d.read, e)
	return nil
}

// node reads children.
func (d *decoder) node(v value) (*node, error) {
	kinds := make(map[string]*idset.Set)
	err := v.object(func(key []byte, m value) error {
		ids, err := m.ids(d.child)
		kinds[string(key)] = ids
		return err
	})
	if err != nil {
		return nil, err
	}
	return newNode(children.FromMap(kinds)), nil
}

// hosts reads nodelist, once the ranks are known.
func (d *decoder) hosts() error {
	if d.nodelist.raw == nil {
		return nil
	}
	list := new(hostlist.List)
	err := d.nodelist.array(func(_ int, m value) error {
		s, err := m.text()
		if err != nil {
			return err
		}
		part, err := hostlist.Parser{MaxText: d.bytes, MaxHosts: d.limits.hosts}.Parse(s)
		if err != nil {
			return m.fail(err)
		}
		if n := list.Len() + part.Len(); n > d.limits.hosts || n < 0 {
			return limitError("hosts", n, d.limits.hosts)
		}
		list.AppendList(part)
		return nil
	})
	if err != nil {
		return err
	}
	if list.Len() != d.r.Len() {
		return hostsCount(d.r.Len(), list.Len())
	}
	d.r.hosts = hostsOf(list)
	return nil
}

// notInProperty is the bytes that no name of a property has.
const notInProperty = "!&'\"^`|()"

// props reads properties, once the ranks are known.
func (d *decoder) props() error {
	if d.properties.raw == nil {
		return nil
	}
	ranks := d.r.Ranks()
	err := d.properties.object(func(key []byte, m value) error {
		name := string(key)
		if name == "" || strings.ContainsAny(name, notInProperty) {
			return m.fail(errProperty)
		}
		set, err := m.ids(d.rank)
		if err != nil {
			return err
		}
		if !ranks.ContainsAll(set) {
			return m.fail(fmt.Errorf("unknown ranks %s", clip(idset.Difference(set, ranks).String())))
		}
		if !set.IsEmpty() {
			d.r.properties = append(d.r.properties, property{name, set})
		}
		return nil
	})
	slices.SortFunc(d.r.properties, func(a, b property) int { return strings.Compare(a.name, b.name) })
	return err
}

// wrap makes an error of the JSON scanner one of a value.
func (v value) wrap(err error) error {
	if err == nil {
		return nil
	}
	offset := v.offset
	if syntax, ok := err.(*jsonscan.SyntaxError); ok {
		offset += syntax.Offset
		err = syntax.Err
	}
	return &ParseError{Offset: offset, Err: err}
}
