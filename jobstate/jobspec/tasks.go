package jobspec

import "github.com/joblife/joblife/internal/jsonobj"

// TaskRule says what Task.Count refers to. The zero TaskRule is invalid.
type TaskRule uint8

// The rules of RFC 14.
const (
	TasksPerSlot     TaskRule = 1 + iota // tasks in each slot
	TasksPerResource                     // tasks for each resource of a type in the slot
	TasksTotal                           // tasks in total
	TasksOther                           // an extension that this package does not know
)

// Task is a program that the job runs.
type Task struct {
	// Command is the executable and its arguments, at least one.
	Command []string
	// Slot is the label of the slot that the task runs in.
	Slot string
	// Rule and Count say how many tasks there are. Count is 0 for TasksOther.
	Rule  TaskRule
	Count int64
	// Resource is the type that TasksPerResource counts.
	Resource string
	// Distribution is a hint for the launcher, empty if there is none.
	Distribution string
}

// task is a Task without its command.
type task struct {
	command      []byte // the array
	slot         int    // index of the vertex
	rule         TaskRule
	count        int64
	resource     string
	distribution string
}

// Tasks returns the programs that the job runs, at least one. It decodes them at each
// call. The caller owns them.
func (s *Spec) Tasks() []Task {
	out := make([]Task, len(s.tasks))
	for i, t := range s.tasks {
		out[i] = Task{
			Slot:         s.vertices[t.slot].Label,
			Rule:         t.rule,
			Count:        t.count,
			Resource:     t.resource,
			Distribution: t.distribution,
		}
		d := jsonobj.NewDoc(t.command) // which readTask has read before
		for a := d.Array(); a.Next(); {
			out[i].Command = append(out[i].Command, a.Text())
		}
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
	if _, ok := s.taskSum(nil); !ok {
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
			t.command = m.Raw()
			checkCommand(m)
		case "slot":
			t.slot = s.slotLabelled(m)
		case "count":
			number = m
			t.readCount(m)
		case "distribution":
			t.distribution = m.Text()
		case "attributes":
			m.IsObject()
		default:
			m.Fail(errUnknown)
		}
	}
	if o.Require("command", "slot", "count"); v.Failed() {
		return
	}
	if t.rule == TasksPerResource {
		if _, found, _ := s.sum(t.resource, t.slot+1, s.vertices[t.slot].end); !found {
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

// checkCommand checks a command, which is decoded when somebody asks.
func checkCommand(v jsonobj.Value) {
	n := 0
	for a := v.Array(); a.Next(); n++ {
		a.Value().TextBytes()
	}
	if n == 0 {
		v.Fail(errEmpty)
	}
}

func (t *task) readCount(v jsonobj.Value) {
	n := 0
	o := v.Object()
	for o.Next() {
		n++
		switch m := o.Value(); string(o.Key()) {
		case "per_slot":
			t.rule, t.count = TasksPerSlot, count(m)
		case "total":
			t.rule, t.count = TasksTotal, count(m)
		case "per_resource":
			t.rule = TasksPerResource
			t.resource, t.count = readTypeAndCount(m)
		default:
			t.rule = TasksOther
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
	kind  string
	count int64
	state optionState
}

// optionState says whether a shell's option is there.
type optionState uint8

const (
	optionAbsent optionState = iota
	optionGiven
	optionInvalid
)

// readPerResource reads options.per-resource of attributes.system.shell. RFC 14 leaves its
// content to the shell, so that nothing in it is an error here.
func readPerResource(shell jsonobj.Value) perResource {
	v := shell.Member("options").Member("per-resource")
	if v.Absent() {
		return perResource{}
	}
	kind, ok := jsonobj.String(v.Member("type").Raw())
	if !ok {
		return perResource{state: optionInvalid}
	}
	n := int64(1)
	if m := v.Member("count"); !m.Absent() {
		if n, ok = jsonobj.Int64(m.Raw()); !ok || n < 1 || n > MaxCount {
			return perResource{state: optionInvalid}
		}
	}
	return perResource{kind: kind, count: n, state: optionGiven}
}
