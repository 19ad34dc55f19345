package rset

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/internal/jsonscan"
	"github.com/joblife/joblife/rset/hostlist"
	"github.com/joblife/joblife/rset/internal/children"
)

// Parse parses an R of RFC 20, version 1. It retains nothing of b. The error wraps
// [ErrSyntax], [ErrLimit], or [ErrHosts] if there are not as many hosts as ranks. Its
// text names the path and the offset of the value.
//
// Entries of R_lite may come in any order. A rank may be in several entries, but
// each of its resources only in one. Unknown keys are kept, except in an entry of
// R_lite. An R without resources is valid.
//
// It accepts 64 MiB of text, ranks up to 2^24, ids of children and numbers of
// entries up to 2^20, and 2^24 hosts. Memory grows linearly with the text.
func Parse(b []byte) (*R, error) {
	return limits{MaxRank, maxChild, MaxBytes, maxEntries, maxHosts}.parse(b)
}

// limits is how large an R may be.
type limits struct {
	rank, child, bytes, entries, hosts int
}

func (l limits) parse(b []byte) (*R, error) {
	if len(b) > l.bytes {
		return nil, fmt.Errorf("%w: %w", ErrLimit, tooMany("bytes", len(b), l.bytes))
	}
	doc := jsonobj.NewDoc(b, jsonscan.Limits{})
	d := decoder{most: l, r: new(R), nodes: make(map[string]*node), merger: merger{bytes: len(b)}, doc: &doc}
	d.document()
	if doc.Failed() {
		return nil, categorize(doc.Fault())
	}
	return d.r, nil
}

// categorize returns an error that wraps a cause and its category.
func categorize(err error) error {
	category := ErrSyntax
	for _, is := range [...]error{ErrHosts, ErrLimit, hostlist.ErrLimit, idset.ErrLimit, jsonscan.ErrDepth} {
		switch {
		case !errors.Is(err, is):
		case is == ErrHosts:
			category = ErrHosts
		default:
			category = ErrLimit
		}
	}
	return fmt.Errorf("%w: %w", category, err)
}

// A decoder reads one R.
type decoder struct {
	most limits
	merger
	doc   *jsonobj.Doc
	r     *R
	nodes map[string]*node // by their text as it was read
}

// document reads the whole text.
func (d *decoder) document() {
	var execution jsonobj.Value
	o := d.doc.Object()
	for o.Next() {
		switch string(o.Key()) {
		case "version":
			if n, ok := jsonscan.Int64(o.Value().Raw()); !ok || n != 1 {
				o.Value().Fail(errVersion)
			}
		case "execution":
			execution = o.Value()
		case "scheduling":
			d.r.scheduling = o.Value().Compact()
		default:
			d.r.top = append(d.r.top, member{string(o.Key()), o.Value().Compact()})
		}
	}
	o.Require("version", "execution")
	d.execution(execution)
	sortMembers(d.r.top)
	sortMembers(d.r.execution)
}

func sortMembers(members []member) {
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.key, b.key) })
}

// execution reads the execution object.
func (d *decoder) execution(v jsonobj.Value) {
	var lite, expiration, nodelist, properties jsonobj.Value
	o := v.Object()
	for o.Next() {
		switch string(o.Key()) {
		case "R_lite":
			lite = o.Value()
		case "starttime":
			d.r.start = eventlog.Timestamp(o.Float(0, math.MaxFloat64))
		case "expiration":
			expiration = o.Value()
			d.r.end = eventlog.Timestamp(o.Float(0, math.MaxFloat64))
		case "nslots":
			d.r.slots = o.Int(0, math.MaxInt64)
		case "nodelist":
			nodelist = o.Value()
		case "properties":
			properties = o.Value()
		default:
			d.r.execution = append(d.r.execution, member{string(o.Key()), o.Value().Compact()})
		}
	}
	o.Require("R_lite")
	if d.r.end > 0 && d.r.end <= d.r.start {
		expiration.Fail(errExpiration)
	}
	d.lite(lite)
	d.hosts(nodelist)
	d.properties(properties)
}

// lite reads R_lite.
func (d *decoder) lite(v jsonobj.Value) {
	for a := v.Array(); a.Next(); {
		if len(d.entries) == d.most.entries {
			a.Value().Fail(tooMany("entries", len(d.entries)+1, d.most.entries))
		}
		d.entry(a.Value())
	}
	if d.doc.Failed() {
		return
	}
	made, entry, err := d.merge()
	switch {
	case err == nil:
		d.r.spans, d.r.nodes = made.spans, made.nodes
	case entry < 0:
		v.Fail(err)
	default:
		d.entries[entry].value.Fail(err)
	}
}

// An entry is one of R_lite.
type entry struct {
	ranks *idset.Set
	node  *node // nil if it has no resources
	value jsonobj.Value
}

func (d *decoder) entry(v jsonobj.Value) {
	e := entry{value: v}
	var kinds jsonobj.Value
	o := v.Object()
	for o.Next() {
		switch string(o.Key()) {
		case "rank":
			if e.ranks = parseIDs(o.Value(), d.most.rank); e.ranks.IsEmpty() {
				o.Value().Fail(errNoRank)
			}
		case "children":
			kinds = o.Value()
		}
	}
	o.Require("rank", "children")
	n, ok := d.nodes[string(kinds.Raw())]
	if !ok {
		n = d.node(kinds)
		d.nodes[string(kinds.Raw())] = n
	}
	e.node = n
	d.entries = append(d.entries, e)
}

// node reads children.
func (d *decoder) node(v jsonobj.Value) *node {
	var kinds []children.Kind
	for o := v.Object(); o.Next(); {
		ids := parseIDs(o.Value(), d.most.child)
		kinds = append(kinds, children.Kind{Name: string(o.Key()), IDs: ids, N: ids.Len()})
	}
	return newNode(children.Of(kinds))
}

// parseIDs reads an idset.
func parseIDs(v jsonobj.Value, most int) *idset.Set {
	set, err := idset.ParseLimit(v.Text(), uint32(most))
	if err != nil {
		v.Fail(err)
	}
	return set
}

// hosts reads nodelist, once the ranks are known.
func (d *decoder) hosts(v jsonobj.Value) {
	if v.Absent() {
		return
	}
	list := new(hostlist.List)
	parser := hostlist.Parser{MaxText: d.most.bytes, MaxHosts: d.most.hosts}
	for a := v.Array(); a.Next(); {
		part := jsonobj.Parse(a.Value(), parser.Parse)
		if n := list.Len() + part.Len(); n > d.most.hosts || n < 0 {
			a.Value().Fail(tooMany("hosts", n, d.most.hosts))
		}
		list.AppendList(part)
	}
	if err := d.r.checkHosts(list); err != nil {
		v.Fail(err)
	}
	d.r.hosts = hostsOf(list)
}

// properties reads properties, once the ranks are known.
func (d *decoder) properties(v jsonobj.Value) {
	ranks := d.r.Ranks()
	for o := v.Object(); o.Next(); {
		set := parseIDs(o.Value(), d.most.rank)
		if err := d.r.addProperty(string(o.Key()), set, ranks); err != nil {
			o.Value().Fail(err)
		}
	}
	d.r.sortProperties()
}

// addProperty gives r a property, whose ranks must be among those given.
func (r *R) addProperty(name string, set, ranks *idset.Set) error {
	switch {
	case !ValidProperty(name):
		return errProperty
	case !ranks.ContainsAll(set):
		return fmt.Errorf("unknown ranks %s", plain(idset.Difference(set, ranks).String()))
	case !set.IsEmpty():
		r.properties = append(r.properties, property{name, set})
	}
	return nil
}

func (r *R) sortProperties() {
	slices.SortFunc(r.properties, func(a, b property) int { return strings.Compare(a.name, b.name) })
}

// ValidProperty reports whether a text can be the name of a property: it is not
// empty, is valid UTF-8, and has no zero byte and none of !&'"^`|().
func ValidProperty(name string) bool {
	return name != "" && !strings.ContainsAny(name, "!&'\"^`|()\x00") && utf8.ValidString(name)
}
