package jobspec

import "iter"

// Vertex is a resource that a job asks for.
type Vertex struct {
	// Type is "node", "slot", "core", "gpu" or whatever a scheduler knows.
	Type string
	// Count is how many of it, for each one of its parent.
	Count Count
	// Unit, Label and ID are what RFC 14 says, empty where absent. A slot has
	// a Label.
	Unit, Label, ID string
	// Exclusive tells whether it is for this job alone, RFC 14's defaults
	// applied: slots and what is in them are, unless they say otherwise.
	Exclusive bool
	// Parent is the index of the vertex that it is in, -1 for none.
	Parent int

	keys  keys
	end   int      // index after the last vertex in it
	total Quantity // how many of it the job asks for in all
}

// keys says which optional keys a vertex has.
type keys uint8

const (
	keyExclusive keys = 1 << iota
	keyID
	keyWith
	keyLabel
)

// Vertices yields the resources that the job asks for, each after the one that
// it is in, with its index.
func (s *Spec) Vertices() iter.Seq2[int, Vertex] {
	return func(yield func(int, Vertex) bool) {
		for i, v := range s.vertices {
			if !yield(i, v) {
				return
			}
		}
	}
}

// maxNesting is how deep resources may be in each other.
const maxNesting = 32

// readResources reads the value of the key resources.
func (s *Spec) readResources(v value) *Error {
	s.vertices = make([]Vertex, 0, 4) // enough for RFC 25
	if err := s.readLevel(v, -1, 1); err != nil {
		return err
	}
	if len(s.vertices) == 0 {
		return fail(v.offset, "", ErrInvalid, errEmpty)
	}
	for _, kind := range [...]string{"node", "slot", "core", "gpu"} {
		if _, _, ok := s.sum(kind, 0, len(s.vertices)); !ok {
			return fail(v.offset, "", ErrLimit, errHuge)
		}
	}
	return nil
}

// readLevel reads a list of vertices that are in the given one.
func (s *Spec) readLevel(v value, parent, depth int) *Error {
	if depth > maxNesting {
		return fail(v.offset, "", ErrLimit, errDepth)
	}
	return v.elements(func(_ int, e value) *Error { return s.readVertex(e, parent, depth) })
}

// readVertex reads a vertex and those in it.
func (s *Spec) readVertex(v value, parent, depth int) *Error {
	if len(s.vertices) >= s.limits.Vertices {
		return fail(v.offset, "", ErrLimit, errVertices)
	}
	x := Vertex{Parent: parent}
	var with value
	err := v.members(func(key []byte, m value) (err *Error) {
		switch string(key) {
		case "type":
			if x.Type, err = m.kind(); err == nil && x.Type == "" {
				return fail(m.offset, "", ErrInvalid, errEmpty)
			}
		case "count":
			x.Count, err = countOf(m)
		case "unit":
			x.Unit, err = m.text()
		case "label":
			x.keys |= keyLabel
			x.Label, err = m.text()
		case "id":
			x.keys |= keyID
			x.ID, err = m.text()
		case "exclusive":
			x.keys |= keyExclusive
			x.Exclusive, err = m.bool()
		case "with":
			x.keys |= keyWith
			with = m
		default:
			return fail(m.offset, "", ErrInvalid, errUnknown)
		}
		return err
	})
	if err == nil {
		err = s.completeVertex(&x, v)
	}
	if err != nil {
		return err
	}
	index := len(s.vertices)
	s.vertices = append(s.vertices, x)
	if !with.absent() {
		if err := s.readLevel(with, index, depth+1); err != nil {
			return err.in("with")
		}
	}
	if x.Type == "slot" && len(s.vertices) == index+1 {
		return fail(with.offset, "with", ErrInvalid, errEmpty)
	}
	s.vertices[index].end = len(s.vertices)
	return nil
}

// completeVertex checks the keys of a vertex against each other and against the
// vertices before it, and works out what follows from them.
func (s *Spec) completeVertex(x *Vertex, v value) *Error {
	slot := x.Type == "slot"
	switch {
	case x.Type == "":
		return fail(v.offset, "type", ErrInvalid, errMissing)
	case x.Count.IsZero():
		return fail(v.offset, "count", ErrInvalid, errMissing)
	case slot && x.keys&keyLabel == 0:
		return fail(v.offset, "label", ErrInvalid, errMissing)
	case slot && x.keys&keyWith == 0:
		return fail(v.offset, "with", ErrInvalid, errMissing)
	}
	if x.keys&keyLabel != 0 {
		for i := range s.vertices {
			if y := &s.vertices[i]; y.keys&keyLabel != 0 && y.Label == x.Label {
				return fail(v.offset, "label", ErrInvalid, errUnique)
			}
		}
	}
	if x.keys&keyExclusive == 0 {
		x.Exclusive = slot || s.inSlot(x.Parent)
	}
	x.total = x.Count.quantity()
	if x.Parent >= 0 {
		total, ok := s.vertices[x.Parent].total.times(x.total)
		if !ok {
			return fail(v.offset, "count", ErrLimit, errHuge)
		}
		x.total = total
	}
	return nil
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

// quantity returns the one number that the Count accepts, unknown if there are
// more.
func (c Count) quantity() Quantity {
	n, known := c.Fixed()
	return Quantity{n, known}
}

// sum adds up how many of a type the vertices from one index to before another
// ask for, and tells whether there is any. It is not ok beyond MaxQuantity.
func (s *Spec) sum(kind string, from, to int) (sum Quantity, found, ok bool) {
	sum = Known(0)
	for i := from; i < to; i++ {
		if s.vertices[i].Type != kind {
			continue
		}
		found = true
		if sum, ok = sum.plus(s.vertices[i].total); !ok {
			return Quantity{}, true, false
		}
	}
	return sum, found, true
}

// kind returns a type of resource, without memory of its own where it is a
// common one.
func (v value) kind() (string, *Error) {
	for _, known := range [...]string{"node", "slot", "core", "gpu"} {
		if n := len(known); len(v.raw) == n+2 && string(v.raw[1:n+1]) == known && v.raw[0] == '"' {
			return known, nil
		}
	}
	return v.text()
}

// Shape is the form that RFC 25 gives the resources of a job: slots of cores
// and gpus, spread over nodes or not.
type Shape struct {
	// Nodes is how many nodes, the zero Count where the job does not say.
	Nodes Count
	// Slots is how many slots on each node; in all, where Nodes is zero.
	Slots Count
	// Cores and GPUs are for each slot. GPUs is the zero Count for none.
	Cores, GPUs Count
	// Exclusive tells that the job gets whole nodes.
	Exclusive bool
}

// Shape returns the resources in the form of RFC 25, counts of RFC 14
// (ranges and sets) let in. The error is an *[Error] of category ErrShape where
// they are of another form.
func (s *Spec) Shape() (Shape, error) {
	slot := 0
	var shape Shape
	if first := &s.vertices[0]; first.Type == "node" {
		slot, shape.Nodes, shape.Exclusive = 1, first.Count, first.Exclusive
	}
	// There is a slot, for tasks run in one, and something in it.
	if s.vertices[slot].Type != "slot" || s.vertices[slot].Parent != slot-1 {
		return Shape{}, errNoShape()
	}
	shape.Slots = s.vertices[slot].Count
	for i := slot + 1; i < len(s.vertices); i++ {
		switch x := &s.vertices[i]; {
		case x.Parent == slot && x.Type == "core" && shape.Cores.IsZero():
			shape.Cores = x.Count
		case x.Parent == slot && x.Type == "gpu" && shape.GPUs.IsZero():
			shape.GPUs = x.Count
		default:
			return Shape{}, errNoShape()
		}
	}
	if shape.Cores.IsZero() {
		return Shape{}, errNoShape()
	}
	return shape, nil
}

// errNoShape returns the error of Shape.
func errNoShape() error { return fail(noOffset, "resources", ErrShape, errFour) }
