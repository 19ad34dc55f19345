package rset

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/rset/children"
	"github.com/joblife/joblife/rset/hostlist"
)

// Parse parses an R of RFC 20, version 1. It retains nothing of b. The error names the path
// and the offset of the value, and wraps [ErrLimit] if b is too large.
//
// Entries of R_lite may come in any order; each rank is in one. There are as many hosts as ranks,
// or none. Unknown keys are kept, except in an entry of R_lite. An R without resources is valid.
//
// It accepts 64 MiB of text, ranks up to 2^24, ids of children up to 2^20, 2^20 entries, and
// 2^24 hosts. Memory grows linearly with the text.
func Parse(b []byte) (*R, error) {
	return limits{MaxRank, maxChild, MaxBytes, maxEntries, maxHosts}.parse(b)
}

type limits struct {
	rank, child, bytes, entries, hosts int
}

func (l limits) parse(b []byte) (*R, error) {
	if len(b) > l.bytes {
		return nil, fmt.Errorf("%w: %w", ErrLimit, tooMany("bytes", len(b), l.bytes))
	}
	d := decoder{most: l, r: new(R), doc: jsonobj.NewDoc(b)}
	d.document()
	if d.doc.Failed() {
		return nil, categorize(d.doc.Fault())
	}
	return d.r, nil
}

func categorize(err error) error {
	category := errInvalid
	if errors.Is(err, errHosts) {
		category = errHosts
	}
	for _, limit := range [...]error{ErrLimit, hostlist.ErrLimit, idset.ErrLimit, jsonobj.ErrDepth} {
		if errors.Is(err, limit) {
			category = ErrLimit
		}
	}
	return fmt.Errorf("%w: %w", category, err)
}

// A decoder reads one R.
type decoder struct {
	most limits
	assembler
	doc     jsonobj.Doc
	r       *R
	known   []knownKind      // of the node before, in the order of the text
	aliases map[string]int32 // nodes by texts that are not theirs
}

// A knownKind is what a node has of a kind. The next node often has the same.
type knownKind struct {
	children.Kind
	text []byte // of the ids, nil at first
}

func (d *decoder) document() {
	var execution jsonobj.Value
	o := d.doc.Object()
	for o.Next() {
		switch string(o.Key()) {
		case "version":
			if n, ok := jsonobj.Int64(o.Value().Raw()); !ok || n != 1 {
				o.Value().Fail(errors.New("must be 1"))
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

func (d *decoder) lite(v jsonobj.Value) {
	for a := v.Array(); a.Next(); {
		if len(d.entries) == d.most.entries {
			a.Value().Fail(tooMany("entries", len(d.entries)+1, d.most.entries))
		}
		if len(d.entries) == maxSearch {
			d.makeRoom(v, a.Value())
		}
		d.entry(a.Value())
	}
	if d.doc.Failed() {
		return
	}
	if entry, err := d.assemble(); err != nil {
		a := v.Array()
		for range entry + 1 {
			a.Next()
		}
		a.Value().Fail(err)
	}
	d.r.spans, d.r.nodes = d.spans, d.nodes
}

// makeRoom makes room for the entries that come if they are as long as those before.
func (d *decoder) makeRoom(all, next jsonobj.Value) {
	done := next.Offset() - all.Offset()
	d.room = min((len(all.Raw())-done)/(done/len(d.entries)), d.most.entries) + 1
	d.entries, d.pieces = slices.Grow(d.entries, d.room), slices.Grow(d.pieces, d.room)
}

func (d *decoder) entry(v jsonobj.Value) {
	var kinds jsonobj.Value
	o := v.Object()
	for o.Next() {
		switch string(o.Key()) {
		case "rank":
			d.ranks(o.Value())
		case "children":
			kinds = o.Value()
		}
	}
	o.Require("rank", "children")
	n := d.node(kinds)
	if n < 0 {
		v.Fail(errNoResource)
	}
	d.entries = append(d.entries, n)
}

// ranks reads the ranks of an entry, of which most are one rank.
func (d *decoder) ranks(v jsonobj.Value) {
	text := v.TextBytes()
	if rank, ok := jsonobj.Int64(text); ok && text[0] != '-' && rank <= int64(d.most.rank) {
		d.piece(uint32(rank), uint32(rank))
		return
	}
	set := parseIDs(v, d.most.rank)
	for first, last := range set.Ranges() {
		d.piece(first, last)
	}
	if set.IsEmpty() {
		v.Fail(errNoRank)
	}
}

// node reads children and returns the number of the node, -1 if there are none.
func (d *decoder) node(v jsonobj.Value) int32 {
	raw := v.Raw()
	if n := lookup(&d.interner, raw); n >= 0 {
		return n
	}
	if n, ok := d.aliases[string(raw)]; ok {
		return n
	}
	if d.known == nil {
		d.known = make([]knownKind, 0, 4)
	}
	var room [4]children.Kind
	kinds := room[:0]
	i := 0
	for o := v.Object(); o.Next(); i++ {
		if i == len(d.known) {
			d.known = append(d.known, knownKind{})
		}
		d.known[i].read(o.Key(), o.Value(), d.most.child)
		kinds = append(kinds, d.known[i].Kind)
	}
	set := children.Of(kinds)
	if set == nil || v.Failed() {
		return -1
	}
	n := d.number(set)
	if set.Text() != string(raw) {
		if d.aliases == nil {
			d.aliases = make(map[string]int32)
		}
		d.aliases[string(raw)] = n
	}
	return n
}

func (k *knownKind) read(name []byte, v jsonobj.Value, most int) {
	if k.Name == string(name) && bytes.Equal(k.text, v.Raw()) {
		return
	}
	if k.Name != string(name) {
		k.Name = string(name)
	}
	k.text, k.IDs = v.Raw(), parseIDs(v, most)
	k.N = k.IDs.Len()
}

func parseIDs(v jsonobj.Value, most int) *idset.Set {
	set, err := idset.ParseLimit(string(v.TextBytes()), uint32(most))
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
	var list *hostlist.List
	parser := hostlist.Parser{MaxText: d.most.bytes, MaxHosts: d.most.hosts}
	for a := v.Array(); a.Next(); {
		part := jsonobj.Parse(a.Value(), parser.Parse)
		if n := list.Len() + part.Len(); n > d.most.hosts || n < 0 {
			a.Value().Fail(tooMany("hosts", n, d.most.hosts))
		}
		if list == nil {
			list = part
		} else {
			list.AppendList(part)
		}
	}
	if err := d.r.checkHosts(list); err != nil {
		v.Fail(err)
	}
	d.r.hosts = list
}

// properties reads properties, once the ranks are known.
func (d *decoder) properties(v jsonobj.Value) {
	if v.Absent() {
		return
	}
	ranks := d.r.Ranks()
	for o := v.Object(); o.Next(); {
		name, set := string(o.Key()), parseIDs(o.Value(), d.most.rank)
		switch {
		case !ValidProperty(name):
			o.Value().Fail(errProperty)
		case !ranks.ContainsAll(set):
			o.Value().Fail(unknownRanks(idset.Difference(set, ranks)))
		case !set.IsEmpty():
			d.r.properties = append(d.r.properties, property{name, set})
		}
	}
	slices.SortFunc(d.r.properties, func(a, b property) int { return strings.Compare(a.name, b.name) })
}

// ValidProperty reports whether a text can be the name of a property: not empty, in valid UTF-8,
// without zero bytes and !&'"^`|().
func ValidProperty(name string) bool {
	return name != "" && !strings.ContainsAny(name, "!&'\"^`|()\x00") && utf8.ValidString(name)
}
