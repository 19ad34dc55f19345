package jobspec

import "strconv"

// CheckV1 returns an error unless the jobspec keeps to what RFC 25 adds to
// RFC 14: one of the four forms of resources that [Spec.Shape] reads, counts
// that are integers, no keys but RFC 25's in resources and tasks, and one task,
// whose count is per_slot 1 or a total of at least the number of nodes and at
// most that of slots. Parse is not as strict, since instances of Flux run more.
//
// The error is an *[Error] of category ErrShape.
func (s *Spec) CheckV1() error {
	if _, err := s.Shape(); err != nil {
		return err
	}
	for i := range s.vertices {
		x := &s.vertices[i]
		_, fixed := x.Count.Fixed()
		key, cause := "", errKeyRFC25
		switch {
		case !fixed:
			key, cause = "count", errFixed
		case x.keys&keyID != 0:
			key = "id"
		case x.keys&keyExclusive != 0 && x.Type != "node" && x.Type != "slot":
			key = "exclusive"
		default:
			continue
		}
		return &Error{Path: clip(s.vertexPath(i) + "." + key), Offset: noOffset, Category: ErrShape, Err: cause}
	}
	if len(s.tasks) != 1 {
		return fail(noOffset, "tasks", ErrShape, errOne)
	}
	if err := s.checkTaskV1(); err != nil {
		return err.at(0).in("tasks")
	}
	return nil
}

// checkTaskV1 is CheckV1 for the one task.
func (s *Spec) checkTaskV1() *Error {
	t, c := &s.tasks[0], s.Counts()
	switch {
	case t.extra != "":
		return fail(noOffset, t.extra, ErrShape, errKeyRFC25)
	case t.rule == TasksPerSlot && t.count != 1:
		return fail(noOffset, "count.per_slot", ErrShape, errPerSlot)
	case t.rule == TasksTotal && (t.count > c.Slots.n || t.count < c.Nodes.n):
		return fail(noOffset, "count.total", ErrShape, errTotal)
	case t.rule != TasksPerSlot && t.rule != TasksTotal:
		return fail(noOffset, "count", ErrShape, errKeyRFC25)
	}
	return nil
}

// vertexPath returns the dotted path of a vertex.
func (s *Spec) vertexPath(i int) string {
	parent, index := s.vertices[i].Parent, 0
	for j := parent + 1; j < i; j++ {
		if s.vertices[j].Parent == parent {
			index++
		}
	}
	path := "resources"
	if parent >= 0 {
		path = s.vertexPath(parent) + ".with"
	}
	return path + "[" + strconv.Itoa(index) + "]"
}
