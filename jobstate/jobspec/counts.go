package jobspec

import "slices"

// Counts is the size of a job: how many Nodes, Slots, Cores, GPUs and Tasks it has in
// all. In the zero Counts nothing is known.
type Counts struct {
	Nodes, Slots, Cores, GPUs, Tasks Quantity
}

// Resources is the size of the resource set that a job got (RFC 20).
type Resources struct {
	Nodes int64 // how many ranks
	Cores int64 // on all ranks
	GPUs  int64 // on all ranks
	Slots int64 // execution.nslots, 0 if the resource set does not say
}

// Counts returns the size that the job asks for, as a listing shows it before
// the job has resources:
//
//   - Nodes is known if the job asks for a number of nodes.
//   - Cores and GPUs are the sums over the slots. They are not known if the job asks
//     for whole nodes.
//   - Tasks is the sum of the tasks' counts, or the number that the shell option
//     per-resource gives. Tasks per node are known if Nodes is known, tasks per core
//     if the job does not ask for nodes.
//   - A number that a range or a set leaves open is not known.
func (s *Spec) Counts() Counts {
	var c Counts
	n := len(s.vertices)
	// The sums are within bounds, readResources and readTasks saw to that.
	var found bool
	if c.Nodes, found = s.sum("node", 0, n); !found {
		c.Nodes = Quantity{}
	}
	c.Slots, _ = s.sum("slot", 0, n)
	if !slices.ContainsFunc(s.vertices, func(x Vertex) bool { return x.Type == "node" && x.Exclusive }) {
		if c.Cores, found = s.sum("core", 0, n); !found {
			c.Cores = Quantity{}
		}
		c.GPUs, _ = s.sum("gpu", 0, n)
	}
	c.Tasks = s.allTasks(nil)
	return c
}

// CountsOn returns the size of the job on the resources that it got. Slots and tasks come from the
// jobspec, or follow from the resources. Numbers beyond [MaxQuantity] are not known.
func (s *Spec) CountsOn(r Resources) Counts {
	c := s.Counts()
	c.Nodes, c.Cores, c.GPUs = Known(r.Nodes), Known(r.Cores), Known(r.GPUs)
	c.Slots = c.Slots.or(r.of("slot"))
	c.Tasks = s.allTasks(&r)
	return c
}

// allTasks returns the number of tasks, on r or, if r is nil, by what the job asks for.
func (s *Spec) allTasks(r *Resources) Quantity {
	if s.perResource.invalid {
		return Quantity{}
	}
	n := s.taskSum(r)
	if base, applies := s.perResourceBase(r); applies {
		n = base.times(Known(s.perResource.count))
	}
	if n.huge { // by the resources, or by the option, which is the shell's
		return Quantity{}
	}
	return n
}

// perResourceBase returns how many resources the option per-resource speaks of, if any.
func (s *Spec) perResourceBase(r *Resources) (base Quantity, applies bool) {
	nodes, hasNodes := s.sum("node", 0, len(s.vertices))
	switch s.perResource.kind {
	case "node":
		if hasNodes {
			base = nodes
		}
	case "core":
		if !hasNodes {
			base, _ = s.sum("core", 0, len(s.vertices))
		}
	default:
		return Quantity{}, false
	}
	if r != nil {
		base = base.or(r.of(s.perResource.kind))
	}
	return base, true
}

// taskSum adds up the tasks' own counts.
func (s *Spec) taskSum(r *Resources) Quantity {
	sum := Known(0)
	for i := range s.tasks {
		sum = sum.plus(s.taskCount(&s.tasks[i], r))
	}
	return sum
}

func (s *Spec) taskCount(t *task, r *Resources) Quantity {
	slot := &s.vertices[t.slot]
	var base Quantity
	switch t.rule {
	case tasksTotal:
		return Known(t.count)
	case tasksPerSlot:
		base = slot.total
		if r != nil && s.onlySlot() {
			base = base.or(r.of("slot"))
		}
	case tasksPerResource:
		base, _ = s.sum(t.resource, t.slot+1, int(slot.end))
		if r != nil && s.onlySlot() {
			base = base.or(r.of(t.resource))
		}
	}
	return base.times(Known(t.count))
}

// onlySlot reports whether the job has one slot vertex: then all that it got is that slot's.
func (s *Spec) onlySlot() bool {
	n := 0
	for i := range s.vertices {
		if s.vertices[i].Type == "slot" {
			n++
		}
	}
	return n == 1
}

// of returns how many resources of a type there are, if the resource set says it.
func (r *Resources) of(kind string) Quantity {
	switch {
	case kind == "node":
		return Known(r.Nodes)
	case kind == "core":
		return Known(r.Cores)
	case kind == "gpu":
		return Known(r.GPUs)
	case kind == "slot" && r.Slots != 0:
		return Known(r.Slots)
	}
	return Quantity{}
}
