package jobspec

import (
	"errors"
	"iter"

	"github.com/joblife/joblife/internal/jsonobj"
)

// Vertex is a resource that a job asks for.
type Vertex struct {
	// Type is "node", "slot", "core", "gpu" or another that a scheduler knows.
	Type string
	// Count is the number of it in each one of its parent. It is the zero Count if the job
	// asks for none: count is 0, which nodes, slots and cores cannot have.
	Count Count
	// Unit, Label and ID are the keys of RFC 14, "" if absent. A slot has a Label.
	Unit, Label, ID string
	// Exclusive says that no other job may use it. By default slots and all in them are (RFC 14).
	Exclusive bool
	label     bool  // there is a Label
	end       int32 // index after the last vertex in it
	// Parent is the index of the vertex that contains it; -1 if there is none.
	Parent int

	total Quantity // how many of it the job asks for in all
}

// Vertices yields the resources that the job asks for with their indexes, each after its parent.
func (s *Spec) Vertices() iter.Seq2[int, Vertex] {
	return func(yield func(int, Vertex) bool) {
		for i, v := range s.vertices {
			if !yield(i, v) {
				return
			}
		}
	}
}

func (s *Spec) readResources(v jsonobj.Value) {
	if s.readLevel(v, -1, 1); v.Failed() {
		return
	}
	if len(s.vertices) == 0 {
		v.Fail(errEmpty)
	}
	for _, kind := range [...]string{"node", "slot", "core", "gpu"} {
		if sum, _ := s.sum(kind, 0, len(s.vertices)); sum.huge {
			v.Fail(errHuge)
		}
	}
}

// readLevel reads a list of vertices that are in the given one.
func (s *Spec) readLevel(v jsonobj.Value, parent, depth int) {
	if depth > maxNesting {
		v.Fail(errDepth)
		return
	}
	a := v.Array()
	for a.Next() {
		s.readVertex(a.Value(), parent, depth)
	}
}

// readVertex reads a vertex and those in it.
func (s *Spec) readVertex(v jsonobj.Value, parent, depth int) {
	if len(s.vertices) >= maxVertices {
		v.Fail(errVertices)
		return
	}
	x := Vertex{Parent: parent}
	exclusive := false // whether the key is there
	var with, number jsonobj.Value
	o := v.Object()
	for o.Next() {
		switch m := o.Value(); string(o.Key()) {
		case "type":
			x.Type = kindOf(m)
		case "count":
			x.Count, number = countOf(m), m
		case "unit":
			x.Unit = m.Text()
		case "label":
			x.Label, x.label = wordOf(m, "task"), true
		case "id":
			x.ID = m.Text()
		case "exclusive":
			x.Exclusive, exclusive = m.Bool(), true
		case "with":
			with = m
		default:
			m.Fail(errUnknown)
		}
	}
	if x.Count.IsZero() && !number.Absent() && (x.Type == "node" || x.Type == "slot" || x.Type == "core") {
		number.Fail(errInteger)
	}
	if o.Require("type", "count"); x.Type == "slot" {
		o.Require("label", "with")
	}
	if v.Failed() {
		return
	}
	if !exclusive {
		x.Exclusive = x.Type == "slot" || s.inSlot(parent)
	}
	if s.placeVertex(&x, v); v.Failed() {
		return
	}
	index := len(s.vertices)
	s.vertices = append(s.vertices, x)
	if !with.Absent() {
		s.readLevel(with, index, depth+1)
	}
	if x.Type == "slot" && len(s.vertices) == index+1 {
		with.Fail(errEmpty)
	}
	s.vertices[index].end = int32(len(s.vertices))
}

// placeVertex checks a vertex against those before it, and sets its total.
func (s *Spec) placeVertex(x *Vertex, v jsonobj.Value) {
	if x.label {
		for i := range s.vertices {
			if y := &s.vertices[i]; y.label && y.Label == x.Label {
				v.FailKey("label", errUnique)
			}
		}
	}
	n, known := x.Count.Fixed()
	x.total = Quantity{n: n, known: known || x.Count.IsZero()}
	if x.Parent >= 0 {
		x.total = s.vertices[x.Parent].total.times(x.total)
	}
	if x.total.huge {
		v.FailKey("count", errHuge)
	}
}

// inSlot reports whether the vertex i is a slot or in one.
func (s *Spec) inSlot(i int) bool {
	for ; i >= 0; i = s.vertices[i].Parent {
		if s.vertices[i].Type == "slot" {
			return true
		}
	}
	return false
}

// sum adds up how many of a type some vertices ask for, and tells whether there is any.
func (s *Spec) sum(kind string, from, to int) (sum Quantity, found bool) {
	sum = Known(0)
	for i := from; i < to; i++ {
		if s.vertices[i].Type == kind {
			sum, found = sum.plus(s.vertices[i].total), true
		}
	}
	return sum, found
}

// kindOf reads a type of resource.
func kindOf(v jsonobj.Value) string {
	kind := wordOf(v, "node", "slot", "core", "gpu")
	if kind == "" {
		v.Fail(errEmpty)
	}
	return kind
}

// wordOf reads a type or a label, without memory of its own for a common one. Parse compares
// each with those of all other vertices, so that its length has a limit.
func wordOf(v jsonobj.Value, common ...string) string {
	text := v.TextBytes()
	if len(text) > maxWord {
		v.Fail(errBytes)
	}
	for _, word := range common {
		if string(text) == word {
			return word
		}
	}
	return string(text)
}

// Shape is the form of RFC 25 of a job's resources: slots of cores and gpus, on nodes or not.
type Shape struct {
	// Nodes is the number of nodes; the zero Count if the job does not ask for nodes.
	Nodes Count
	// Slots is the number of slots on each node; in total, if Nodes is zero.
	Slots Count
	// Cores and GPUs are for each slot. GPUs is the zero Count for none.
	Cores, GPUs Count
	// Exclusive says that the job gets whole nodes.
	Exclusive bool
}

// Shape returns the resources in the form of RFC 25; that they have another form is an error.
func (s *Spec) Shape() (Shape, error) {
	slot := 0
	var shape Shape
	if first := &s.vertices[0]; first.Type == "node" {
		slot, shape.Nodes, shape.Exclusive = 1, first.Count, first.Exclusive
	}
	// There is a slot, for tasks run in one, and something in it.
	if s.vertices[slot].Type != "slot" || s.vertices[slot].Parent != slot-1 {
		return Shape{}, errNoShape
	}
	shape.Slots = s.vertices[slot].Count
	for i := slot + 1; i < len(s.vertices); i++ {
		switch x := &s.vertices[i]; {
		case x.Parent == slot && x.Type == "core" && shape.Cores.IsZero():
			shape.Cores = x.Count
		case x.Parent == slot && x.Type == "gpu" && shape.GPUs.IsZero():
			shape.GPUs = x.Count
		default:
			return Shape{}, errNoShape
		}
	}
	if shape.Cores.IsZero() {
		return Shape{}, errNoShape
	}
	return shape, nil
}

var errNoShape = refuse(&jsonobj.Fault{
	Path: "resources", Offset: jsonobj.NoOffset,
	Err: errors.New("must be slot>core, slot>(core,gpu), node>slot>core or node>slot>(core,gpu)"),
})
