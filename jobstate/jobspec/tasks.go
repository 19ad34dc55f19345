package jobspec

import "github.com/joblife/joblife/internal/jsonobj"

// taskRule says what task.count refers to (RFC 14). The zero taskRule is invalid.
type taskRule uint8

const (
	tasksPerSlot     taskRule = 1 + iota // tasks in each slot
	tasksPerResource                     // tasks for each resource of a type in the slot
	tasksTotal                           // tasks in total
	tasksOther                           // an extension that this package does not know
)

// task is a program that the job runs.
type task struct {
	command  []byte // the array
	slot     int    // index of the vertex
	rule     taskRule
	count    int64  // 0 for tasksOther
	resource string // the type that tasksPerResource counts
}

// Command returns the program of the first task and its arguments, decoded anew at each
// call. Few jobs have more tasks: see [Spec.Lookup] of "tasks".
func (s *Spec) Command() []string {
	var out []string
	d := jsonobj.NewDoc(s.tasks[0].command) // which readTask has read before
	for a := d.Array(); a.Next(); {
		out = append(out, a.Text())
	}
	return out
}

func (s *Spec) readTasks(v jsonobj.Value) {
	a := v.Array()
	for a.Next() {
		if len(s.tasks) == maxTasks {
			a.Value().Fail(errTasks)
			return
		}
		s.readTask(a.Value())
	}
	if v.Failed() {
		return
	}
	if len(s.tasks) == 0 {
		v.Fail(errEmpty)
	}
	if s.taskSum(nil).huge {
		v.Fail(errHuge)
	}
}

func (s *Spec) readTask(v jsonobj.Value) {
	var t task
	var number jsonobj.Value
	o := v.Object()
	for o.Next() {
		switch m := o.Value(); string(o.Key()) {
		case "command":
			t.command = m.Raw() // decoded when somebody asks
			n := 0
			for a := m.Array(); a.Next(); n++ {
				a.Value().TextBytes()
			}
			if n == 0 {
				m.Fail(errEmpty)
			}
		case "slot":
			t.slot = s.slotLabelled(m)
		case "count":
			number = m
			t.readCount(m)
		case "distribution":
			m.Text()
		case "attributes":
			m.IsObject()
		default:
			m.Fail(errUnknown)
		}
	}
	if o.Require("command", "slot", "count"); v.Failed() {
		return
	}
	if t.rule == tasksPerResource {
		if _, found := s.sum(t.resource, t.slot+1, int(s.vertices[t.slot].end)); !found {
			number.Member("per_resource").Member("type").Fail(errInSlot)
			return
		}
	}
	s.tasks = append(s.tasks, t)
}

func (s *Spec) slotLabelled(v jsonobj.Value) int {
	label := v.TextBytes()
	for i := range s.vertices {
		if x := &s.vertices[i]; x.Type == "slot" && x.Label == string(label) {
			return i
		}
	}
	v.Fail(errRefersTo)
	return 0
}

func (t *task) readCount(v jsonobj.Value) {
	n := 0
	o := v.Object()
	for o.Next() {
		n++
		switch m := o.Value(); string(o.Key()) {
		case "per_slot":
			t.rule, t.count = tasksPerSlot, count(m)
		case "total":
			t.rule, t.count = tasksTotal, count(m)
		case "per_resource":
			t.rule = tasksPerResource
			t.resource, t.count = readTypeAndCount(m)
		default:
			t.rule = tasksOther
		}
	}
	if n != 1 {
		v.Fail(errOneKey)
	}
}

// readTypeAndCount reads the value of per_resource.
func readTypeAndCount(v jsonobj.Value) (kind string, n int64) {
	o := v.Object()
	for o.Next() {
		switch string(o.Key()) {
		case "type":
			kind = kindOf(o.Value())
		case "count":
			n = count(o.Value())
		}
	}
	o.Require("type", "count")
	return kind, n
}

// perResource is the job shell's option of that name. In jobspecs of version 1 it
// takes the place of RFC 14's task count of that name.
type perResource struct {
	kind    string // "": the option is not there
	count   int64
	invalid bool // nothing is known of the tasks
}

// readPerResource reads options.per-resource of attributes.system.shell. RFC 14 leaves its
// content to the shell, so that nothing in it is an error here.
func readPerResource(shell jsonobj.Value) perResource {
	v := shell.Member("options").Member("per-resource")
	if v.Absent() {
		return perResource{}
	}
	kind, ok := jsonobj.String(v.Member("type").Raw())
	n := int64(1)
	if m := v.Member("count"); ok && !m.Absent() {
		n, ok = jsonobj.Int64(m.Raw())
	}
	return perResource{kind: kind, count: n, invalid: !ok || n < 1 || n > MaxCount}
}
