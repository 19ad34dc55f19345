package jobspec

import (
	"strconv"

	"github.com/joblife/joblife/internal/jsonscan"
)

// TaskRule says what a task's count counts. The zero TaskRule is none.
type TaskRule uint8

// The rules of RFC 14.
const (
	TasksPerSlot     TaskRule = 1 + iota // tasks in each slot
	TasksPerResource                     // tasks for each resource of a type in the slot
	TasksTotal                           // tasks in all
	TasksOther                           // an extension that this package does not know
)

// String returns the key that RFC 14 has for the rule.
func (r TaskRule) String() string {
	switch r {
	case TasksPerSlot:
		return "per_slot"
	case TasksPerResource:
		return "per_resource"
	case TasksTotal:
		return "total"
	case TasksOther:
		return "other"
	}
	return "TaskRule(" + strconv.Itoa(int(r)) + ")"
}

// Task is a program that the job runs.
type Task struct {
	// Command is the executable and its arguments, at least one.
	Command []string
	// Slot is the label of the slot that the task runs in.
	Slot string
	// Rule and Count say how many there are. Count is 0 for TasksOther.
	Rule  TaskRule
	Count int64
	// Resource is the type that TasksPerResource counts.
	Resource string
	// Distribution is a hint for the launcher, empty if there is none.
	Distribution string
}

// task is a Task without its command.
type task struct {
	arg0         string
	command      value
	slot         int // index of the vertex
	rule         TaskRule
	count        int64
	resource     string
	distribution string
	extra        string // a key that RFC 25 does not have
}

// Tasks returns the programs that the job runs, at least one. It decodes them
// anew at each call; they are the caller's to keep.
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
		c := jsonscan.Array(t.command.raw)
		for c.Next() {
			// readTask has read it before.
			arg, _ := jsonscan.String(c.Raw())
			out[i].Command = append(out[i].Command, arg)
		}
	}
	return out
}

// readTasks reads the value of the key tasks.
func (s *Spec) readTasks(v value) *Error {
	err := v.elements(func(i int, e value) *Error {
		if i >= s.limits.Tasks {
			return fail(e.offset, "", ErrLimit, errTasks)
		}
		return s.readTask(e)
	})
	if err == nil && len(s.tasks) == 0 {
		return fail(v.offset, "", ErrInvalid, errEmpty)
	}
	if _, ok := s.taskSum(nil); err == nil && !ok {
		return fail(v.offset, "", ErrLimit, errHuge)
	}
	return err
}

// readTask reads a task descriptor.
func (s *Spec) readTask(v value) *Error {
	var t task
	var slot, count value
	err := v.members(func(key []byte, m value) (err *Error) {
		switch string(key) {
		case "command":
			t.command = m
			return t.readCommand(m)
		case "slot":
			slot = m
			t.slot, err = s.slotLabelled(m)
		case "count":
			count = m
			return t.readCount(m)
		case "distribution":
			t.extra = "distribution"
			t.distribution, err = m.text()
		case "attributes":
			t.extra = "attributes"
			return m.object()
		default:
			return fail(m.offset, "", ErrInvalid, errUnknown)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, k := range [...]struct {
		name string
		v    value
	}{{"command", t.command}, {"slot", slot}, {"count", count}} {
		if k.v.absent() {
			return fail(v.offset, k.name, ErrInvalid, errMissing)
		}
	}
	if t.rule == TasksPerResource {
		if _, found, _ := s.sum(t.resource, t.slot+1, s.vertices[t.slot].end); !found {
			return fail(count.offset, "count.per_resource.type", ErrInvalid, errInSlot)
		}
	}
	s.tasks = append(s.tasks, t)
	return nil
}

// slotLabelled returns the index of the slot that has a label.
func (s *Spec) slotLabelled(v value) (int, *Error) {
	label, err := v.text()
	if err != nil {
		return 0, err
	}
	for i := range s.vertices {
		if x := &s.vertices[i]; x.Type == "slot" && x.Label == label {
			return i, nil
		}
	}
	return 0, fail(v.offset, "", ErrInvalid, errRefersTo)
}

// readCommand reads a command: its first word is kept, the others are checked.
func (t *task) readCommand(v value) *Error {
	n := 0
	err := v.elements(func(i int, e value) (err *Error) {
		n++
		if i == 0 {
			t.arg0, err = e.text()
		} else if jsonscan.KindOf(e.raw) != jsonscan.KindString {
			return fail(e.offset, "", ErrInvalid, errString)
		}
		return err
	})
	if err == nil && n == 0 {
		return fail(v.offset, "", ErrInvalid, errEmpty)
	}
	return err
}

// readCount reads how many tasks there are.
func (t *task) readCount(v value) *Error {
	n := 0
	err := v.members(func(key []byte, m value) (err *Error) {
		n++
		switch string(key) {
		case "per_slot":
			t.rule = TasksPerSlot
			t.count, err = m.count()
		case "total":
			t.rule = TasksTotal
			t.count, err = m.count()
		case "per_resource":
			t.rule = TasksPerResource
			t.resource, t.count, err = readTypeAndCount(m)
		default:
			t.rule = TasksOther
		}
		return err
	})
	if err == nil && n != 1 {
		return fail(v.offset, "", ErrInvalid, errOneKey)
	}
	return err
}

// readTypeAndCount reads the value of per_resource.
func readTypeAndCount(v value) (kind string, n int64, err *Error) {
	if err := v.object(); err != nil {
		return "", 0, err
	}
	for _, key := range [...]string{"type", "count"} {
		m := v.member(key)
		if m.absent() {
			return "", 0, fail(v.offset, key, ErrInvalid, errMissing)
		}
		if key == "type" {
			kind, err = m.kind()
		} else {
			n, err = m.count()
		}
		if err != nil {
			return "", 0, err.in(key)
		}
	}
	return kind, n, nil
}

// perResource is the job shell's option of that name, which stands in for
// RFC 14's task count of that name in jobspecs of version 1.
type perResource struct {
	kind  string
	count int64
	state optionState
}

// optionState tells whether a shell's option is there.
type optionState uint8

const (
	optionAbsent optionState = iota
	optionGiven
	optionInvalid
)

// readPerResource reads options.per-resource of the value of the key
// attributes.system.shell. RFC 14 leaves all in there to the shell, so that
// nothing in there is an error here.
func readPerResource(shell value) perResource {
	v := shell.member("options").member("per-resource")
	if v.absent() {
		return perResource{}
	}
	kind, err := v.member("type").text()
	if err != nil {
		return perResource{state: optionInvalid}
	}
	p := perResource{kind: kind, count: 1, state: optionGiven}
	if m := v.member("count"); !m.absent() {
		if p.count, err = m.count(); err != nil {
			return perResource{state: optionInvalid}
		}
	}
	return p
}
