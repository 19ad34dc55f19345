package pool

import (
	"slices"
	"strconv"
	"strings"

	"github.com/joblife/joblife/jobstate/jobspec"
)

// A Request is what a job asks of a pool. It is immutable: any number of
// goroutines may use one, any number of times. The zero Request asks for
// nothing; it is not valid, and a pool refuses it.
type Request struct {
	// nodes is how many nodes; the zero Count if the job asks for slots
	// wherever they fit.
	nodes jobspec.Count
	// slots is how many slots on each of the nodes, or in all where nodes is
	// the zero Count. It is the zero Count in the zero Request alone.
	slots jobspec.Count
	// span is how many nodes make one slot, for jobs that ask for nodes in
	// slots; slots is 1 then. It is 1 for all others.
	span int64
	// per is what each slot takes on a node, in the order of kinds, each kind
	// once. It is empty for a job that asks for whole nodes, whatever is in them.
	per []need
	// exclusive tells that the job takes nodes whole; per is then what a node
	// must have.
	exclusive  bool
	duration   float64     // seconds; 0: no limit
	constraint *constraint // nil: every rank will do
}

// A need is how many of a kind, as "core", a slot takes.
type need struct {
	kind string
	n    int64
}

// maxKind is the largest number of bytes in the name of a kind.
const maxKind = 64

// NewRequest returns what a jobspec asks of a pool. It retains nothing of the
// Spec.
//
// The resources are one of node>slot>core, slot>node>core and slot>core, with
// gpus and resources of any other type beside the cores, which is RFC 25 and
// more, or slot>node alone, which is whole nodes. A count of nodes and slots may
// be a range or a set; of cores and of all else in a slot the job gets the
// smallest acceptable count. A job takes nodes whole if their vertex is
// exclusive, which by RFC 14 it is in a slot unless it says otherwise; the
// reference asks for the key.
//
// The constraints are those of RFC 31. Operators in one object must all match,
// and none matches everything; not negates its values together; of properties
// without values every rank matches, of hostlist and ranks without values none;
// hosts and ranks that are not there match nothing; a rank has the name of its
// host as a property. RFC 31 leaves that open, and it is so in the reference.
// The name of a property is one of RFC 20, which the reference does not ask for.
// Constraints may have 1 MiB, 64 levels, 4096 operators and properties, 2^24
// hosts, and 65536 ranges of hosts.
//
// The error is an *InputError: of category ErrRequest for any other form, such
// as sockets, for a unit or an id, and for constraints that are not of RFC 31;
// of ErrLimit for more than jobspec.MaxQuantity of a resource in all, and for
// constraints beyond the limits.
func NewRequest(spec *jobspec.Spec) (*Request, error) {
	if spec == nil {
		return nil, fail(ErrRequest, "", noOffset, errZeroSpec)
	}
	b := builder{q: Request{span: 1, duration: spec.Duration().Seconds()}}
	for i, v := range spec.Vertices() {
		if err := b.add(i, v); err != nil {
			return nil, err
		}
	}
	if err := b.finish(); err != nil {
		return nil, err
	}
	c, err := parseConstraint(spec.Constraints())
	if err != nil {
		return nil, err.in("attributes.system.constraints")
	}
	b.q.constraint = c
	return &b.q, nil
}

// Duration returns how many seconds the job may run; 0 is no limit.
func (q *Request) Duration() float64 { return q.duration }

// String returns the request in one line for people, as "4 nodes of 2 slots of
// 4 cores, 1 gpu". It is empty for the zero Request.
func (q *Request) String() string {
	if q.slots.IsZero() {
		return ""
	}
	var parts []string
	if !q.nodes.IsZero() {
		noun := "node"
		if q.exclusive {
			noun = "whole node"
		}
		parts = append(parts, counted(q.nodes, noun))
	}
	switch {
	case q.span > 1:
		parts[0] += ", " + strconv.FormatInt(q.span, 10) + " to a slot,"
	case q.nodes.IsZero() || len(q.per) > 0:
		parts = append(parts, counted(q.slots, "slot"))
	}
	if len(q.per) > 0 {
		needs := make([]string, len(q.per))
		for i, p := range q.per {
			needs[i] = counted(jobspec.Fixed(p.n), named(p.kind))
		}
		parts = append(parts, strings.Join(needs, ", "))
	}
	text := strings.TrimSuffix(strings.Join(parts, " of "), ",")
	if q.constraint != nil {
		text += ", constrained"
	}
	return text
}

// counted returns a count and what is counted, in the plural unless it is one.
func counted(c jobspec.Count, noun string) string {
	if n, ok := c.Fixed(); !ok || n != 1 {
		noun += "s"
	}
	return c.String() + " " + noun
}

// nslots returns how many slots there are on so many nodes with so many slots
// each: what RFC 20 calls nslots. Of a request that is not by node the slots are
// those in all, on one node.
func (q *Request) nslots(nodes, slots int64) int64 { return nodes * slots / q.span }

// builder makes a Request of vertices.
type builder struct {
	q          Request
	vertices   []jobspec.Vertex
	node, slot int // index of the vertex, plus 1; 0: not seen
}

// add takes the next vertex.
func (b *builder) add(i int, v jobspec.Vertex) *InputError {
	b.vertices = append(b.vertices, v)
	switch {
	case v.Parent < 0 && i > 0:
		return b.fail(i, "", errOneResource)
	case v.Unit != "":
		return b.fail(i, "unit", errUnit)
	case v.ID != "":
		return b.fail(i, "id", errID)
	case v.Type == "node":
		// At the top, or alone in the slot that is.
		if b.node != 0 || v.Parent+1 != b.slot || len(b.q.per) > 0 {
			return b.fail(i, "type", errPlace)
		}
		b.node, b.q.exclusive = i+1, v.Exclusive
	case v.Type == "slot":
		if b.slot != 0 || v.Parent+1 != b.node {
			return b.fail(i, "type", errPlace)
		}
		b.slot = i + 1
	case b.slot == 0 || v.Parent < b.inner() || len(v.Type) > maxKind:
		// Outside of slot and node, or beside the node of a slot.
		return b.fail(i, "type", errPlace)
	case v.Parent > b.inner():
		return b.fail(v.Parent, "with", errInner)
	default:
		at, found := b.find(v.Type)
		if found {
			return b.fail(i, "type", errTwice)
		}
		b.q.per = slices.Insert(b.q.per, at, need{kind: strings.Clone(v.Type), n: v.Count.Min()})
	}
	return nil
}

// inner returns the index of the inner one of slot and node: what the
// resources of a slot are in.
func (b *builder) inner() int { return max(b.node, b.slot) - 1 }

// find returns the place of a kind in what a slot needs.
func (b *builder) find(kind string) (int, bool) {
	return slices.BinarySearchFunc(b.q.per, kind, func(n need, kind string) int { return strings.Compare(n.kind, kind) })
}

// finish completes the request once all vertices are in.
func (b *builder) finish() *InputError {
	if b.slot == 0 {
		return fail(ErrRequest, "resources", noOffset, errPlace)
	}
	b.q.slots = b.vertices[b.slot-1].Count
	if b.node != 0 {
		b.q.nodes = b.vertices[b.node-1].Count
	}
	if b.node > b.slot {
		if err := b.spread(); err != nil {
			return err
		}
	}
	if _, ok := b.find("core"); !ok && !b.q.exclusive {
		return b.fail(b.inner(), "", errNoCores)
	}
	total := b.q.slots.Min()
	if !b.q.nodes.IsZero() {
		total *= b.q.nodes.Min()
	}
	for _, p := range append([]need{{n: 1}}, b.q.per...) {
		if total > jobspec.MaxQuantity/p.n {
			return fail(ErrLimit, "resources", noOffset, errTooMany)
		}
	}
	return nil
}

// spread turns slots of nodes into nodes of one slot each, of which span make
// one slot of the job.
func (b *builder) spread() *InputError {
	span, ok := b.q.nodes.Fixed()
	if !ok {
		return b.fail(b.node-1, "count", errSpan)
	}
	nodes, err := times(b.q.slots, span)
	if err != nil {
		category := ErrRequest
		if err == errTooMany {
			category = ErrLimit
		}
		return fail(category, b.path(b.node-1)+".count", noOffset, err)
	}
	b.q.nodes, b.q.slots, b.q.span = nodes, jobspec.Fixed(1), span
	return nil
}

// times returns the count that accepts k times what c accepts.
func times(c jobspec.Count, k int64) (jobspec.Count, error) {
	lo := c.Min() * k
	hi, bounded := c.Max()
	operator, operand := c.Operator()
	_, fixed := c.Fixed()
	switch {
	case k == 1:
		return c, nil
	case lo > jobspec.MaxCount:
		return jobspec.Count{}, errTooMany
	case fixed:
		return jobspec.Fixed(lo), nil
	case operator == jobspec.OperatorAdd:
		operand *= k
	case operator != jobspec.OperatorMultiply:
		return jobspec.Count{}, errSpan
	}
	text := strconv.FormatInt(lo, 10)
	if bounded && hi*k <= jobspec.MaxCount {
		text += "-" + strconv.FormatInt(hi*k, 10)
	} else {
		text += "+" // up to jobspec.MaxCount
	}
	if operand > jobspec.MaxCount {
		return jobspec.Fixed(lo), nil // the next one is beyond
	}
	return jobspec.ParseCount(text + ":" + strconv.FormatInt(operand, 10) + ":" + operator.String())
}

// fail returns an error about a key of a vertex, or about the vertex.
func (b *builder) fail(i int, key string, cause error) *InputError {
	path := b.path(i)
	if key != "" {
		path += "." + key
	}
	return fail(ErrRequest, path, noOffset, cause)
}

// path returns the dotted path of a vertex.
func (b *builder) path(i int) string {
	parent, index := b.vertices[i].Parent, 0
	for _, v := range b.vertices[parent+1 : i] {
		if v.Parent == parent {
			index++
		}
	}
	path := "resources"
	if parent >= 0 {
		path = b.path(parent) + ".with"
	}
	return path + "[" + strconv.Itoa(index) + "]"
}
