package pool

import (
	"crypto/sha256"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/jobstate/jobspec"
)

// A Request is what a job asks of a pool: [NewRequest] makes it from a jobspec. It is
// immutable; any number of goroutines may use one. A pool refuses the zero Request.
type Request struct {
	nodes        jobspec.Count     // of nodes, or of slots of nodesPerSlot nodes; zero: slots go anywhere
	slots        jobspec.Count     // on each of the nodes, or in all; zero only in the zero Request
	nodesPerSlot int64             // 1, or how many nodes make one slot; slots is 1 then
	per          []need            // what each slot takes on a node, by kind; empty: whatever is in whole nodes
	exclusive    bool              // the job takes whole nodes; per is then what a node must have
	duration     time.Duration     // how long it may run; 0: no limit
	constraint   string            // of RFC 31, as JSON; "": every rank
	digest       [sha256.Size]byte // of the constraint
}

// A need is how many of a kind, as "core", a slot takes.
type need struct {
	kind string
	n    int64
}

const maxKind = 64 // bytes of the name of a kind

// NewRequest returns what a jobspec asks of a pool. It retains nothing of the Spec.
//
// The resources are node>slot>core, slot>node>core or slot>core, with gpus and other resources
// beside the cores (RFC 25 and more); or slot>node alone, which means whole nodes. Counts of
// nodes and slots may be ranges or sets, but the number of nodes in a slot is fixed. The job gets
// the smallest acceptable count of all else in a slot; the count 0 asks for nothing. It gets
// whole nodes if their vertex is exclusive. By RFC 14 a node in a slot is exclusive unless its
// key exclusive is false; flux-core requires that key.
//
// Constraints are those of RFC 31. Where the RFC says nothing, they work as in flux-core: all
// operators in one object must match; an object without operators matches every rank; not
// negates the conjunction of its values; properties without values matches every rank; hostlist
// and ranks without values match no rank; unknown hosts and ranks match nothing; the name of its
// host is a property of a rank. Names of properties must be valid by RFC 20, which flux-core does
// not require. Constraints have at most 1 MiB, 64 levels, 4096 operators and properties, 2^20
// hosts, and 65536 ranges of hosts.
//
// The error is ErrRequest for any other form, such as sockets, for a unit or an id, and for other
// constraints. It is an error too to ask for more than jobspec.MaxQuantity of a resource in total,
// and for larger constraints. The text names the path, and in constraints the offset.
func NewRequest(spec *jobspec.Spec) (*Request, error) {
	if spec == nil {
		return nil, categorize(ErrRequest, errors.New("the jobspec is nil"))
	}
	b := builder{q: Request{nodesPerSlot: 1, duration: spec.Duration()}}
	for i, v := range spec.Vertices() {
		if err := b.add(i, v); err != nil {
			return nil, categorize(ErrRequest, err)
		}
	}
	if err := b.finish(); err != nil {
		return nil, categorize(ErrRequest, err)
	}
	constrained, err := readConstraint(spec.Constraints(), new(idset.Set), nil)
	if err != nil {
		path := "attributes.system.constraints"
		if err.Path != "" {
			path += "." + err.Path
		}
		err.Path = guard.Cut(path, maxPath)
		return nil, categorize(ErrRequest, err)
	}
	if constrained {
		b.q.constraint = string(spec.Constraints())
		b.q.digest = sha256.Sum256(spec.Constraints())
	}
	return &b.q, nil
}

// Duration returns the time limit of the job; 0 means no limit.
func (q *Request) Duration() time.Duration { return q.duration }

// Least returns the least with which the job can start: idle nodes, 0 if it may share its nodes,
// and free cores, 0 if it asks for none. whole reports whether it takes just so many nodes,
// whichever they are.
func (q *Request) Least() (nodes, cores int64, whole bool) {
	_, fixed := q.nodes.Fixed()
	if q.exclusive {
		nodes = q.leastNodes()
	}
	return nodes, q.leastCores(), nodes > 0 && fixed && q.constraint == ""
}

// String returns one line for people, such as "4 nodes of 2 slots of 4 cores, 1 gpu"; "" for the
// zero Request.
func (q *Request) String() string {
	if q.slots.IsZero() {
		return ""
	}
	var parts []string
	noun := "node"
	if q.exclusive {
		noun = "whole node"
	}
	switch {
	case q.nodesPerSlot > 1:
		parts = append(parts, counted(q.nodes, "slot"), counted(jobspec.Fixed(q.nodesPerSlot), noun))
	case q.nodes.IsZero():
		parts = append(parts, counted(q.slots, "slot"))
	case len(q.per) > 0:
		parts = append(parts, counted(q.nodes, noun), counted(q.slots, "slot"))
	default:
		parts = append(parts, counted(q.nodes, noun))
	}
	if len(q.per) > 0 {
		needs := make([]string, len(q.per))
		for i, p := range q.per {
			needs[i] = counted(jobspec.Fixed(p.n), jsonobj.Name(p.kind))
		}
		parts = append(parts, strings.Join(needs, ", "))
	}
	text := strings.Join(parts, " of ")
	if q.constraint != "" {
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

// nslots returns the nslots of RFC 20. For a request that is not by node, nodes is 1.
func (q *Request) nslots(nodes, slots int64) int64 { return nodes * slots / q.nodesPerSlot }

// leastCores returns the smallest number of cores that is enough for the job.
func (q *Request) leastCores() int64 {
	for _, want := range q.per {
		if want.kind == "core" {
			return q.least(want.n)
		}
	}
	return 0
}

// leastNodes returns the smallest number of nodes that is enough, 0 if slots go anywhere.
func (q *Request) leastNodes() int64 {
	if q.nodes.IsZero() {
		return 0
	}
	return q.nodes.Min() * q.nodesPerSlot
}

// least returns how many of a kind the smallest grant has, if each slot has that many.
func (q *Request) least(each int64) int64 {
	return each * max(q.leastNodes(), 1) * q.slots.Min()
}

// builder makes a Request of the vertices of a jobspec.
type builder struct {
	q          Request
	vertices   []jobspec.Vertex
	node, slot int // index of the vertex, plus 1; 0: not seen
}

func (b *builder) add(i int, v jobspec.Vertex) error {
	b.vertices = append(b.vertices, v)
	switch {
	case v.Parent < 0 && i > 0:
		return b.fail(i, "", errors.New("must be one tree of resources"))
	case v.Unit != "":
		return b.fail(i, "unit", errors.New("units are not supported"))
	case v.ID != "":
		return b.fail(i, "id", errors.New("ids are not supported"))
	case v.Type == "node":
		// At the top, or alone in a slot at the top.
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
		// Outside of the slot and the node, or next to the node of a slot.
		return b.fail(i, "type", errPlace)
	case v.Parent > b.inner():
		return b.fail(v.Parent, "with", errors.New("must not contain other resources"))
	default:
		at, found := b.find(v.Type)
		switch {
		case found:
			return b.fail(i, "type", errors.New("occurs twice in one slot"))
		case v.Count.IsZero(): // of no use
			return nil
		}
		b.q.per = slices.Insert(b.q.per, at, need{kind: strings.Clone(v.Type), n: v.Count.Min()})
	}
	return nil
}

// inner returns the index of what the resources of a slot are in.
func (b *builder) inner() int { return max(b.node, b.slot) - 1 }

func (b *builder) find(kind string) (int, bool) {
	return slices.BinarySearchFunc(b.q.per, kind, func(n need, kind string) int { return strings.Compare(n.kind, kind) })
}

// finish completes the request once all vertices are in.
func (b *builder) finish() error {
	if b.slot == 0 {
		return at("resources", errPlace)
	}
	b.q.slots = b.vertices[b.slot-1].Count
	if b.node != 0 {
		b.q.nodes = b.vertices[b.node-1].Count
	}
	if b.node > b.slot { // nodes of one slot each, several of which make one of the job
		inSlot, ok := b.q.nodes.Fixed()
		if !ok {
			return b.fail(b.node-1, "count", errors.New("the number of nodes in a slot must be fixed"))
		}
		if b.q.slots.Min()*inSlot > jobspec.MaxCount {
			return b.fail(b.node-1, "count", tooManyInAll())
		}
		b.q.nodes, b.q.slots, b.q.nodesPerSlot = b.q.slots, jobspec.Fixed(1), inSlot
	}
	if _, ok := b.find("core"); !ok && !b.q.exclusive {
		return b.fail(b.inner(), "", errors.New("a slot needs cores, or whole nodes"))
	}
	return b.q.checkTotal()
}

func (q *Request) checkTotal() error {
	total := q.least(1)
	for _, p := range append([]need{{n: 1}}, q.per...) {
		if total > jobspec.MaxQuantity/p.n {
			return at("resources", tooManyInAll())
		}
	}
	return nil
}

// fail returns an error about a key of a vertex, or about the vertex.
func (b *builder) fail(i int, key string, cause error) error {
	path := b.path(i)
	if key != "" {
		path += "." + key
	}
	return at(path, cause)
}

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
