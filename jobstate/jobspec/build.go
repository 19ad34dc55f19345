package jobspec

import (
	"cmp"
	"strconv"
	"time"

	"github.com/joblife/joblife/internal/jsonobj"
)

// Job is what most jobs ask for, in the form of RFC 25: slots of cores and gpus,
// one task in each slot. The comments say what a zero field means.
type Job struct {
	Nodes     int64         // 0: slots go to any nodes
	Slots     int64         // on each node; in total if Nodes is 0. 0 means 1
	Cores     int64         // for each slot; 0 means 1
	GPUs      int64         // for each slot
	Exclusive bool          // whole nodes; Nodes must not be 0
	Duration  time.Duration // time limit; 0: none
	Command   []string      // the program of each task and its arguments; not empty
	Name      string        // "": the last element of the command's path
	Queue     string        // "": none
	Cwd       string        // working directory; "": none
}

// New returns the jobspec of a job. It is an error if a count or the duration is negative
// or too large, the command is empty, a text is not valid UTF-8, or all is above 16 MiB.
func New(j Job) (*Spec, error) {
	raw, err := j.append(nil)
	if err != nil {
		return nil, refuse(err.(*jsonobj.Fault))
	}
	return made(raw, nil)
}

// made returns the Spec of a text that this package made, to which errors name no offset.
func made(raw []byte, original *Spec) (*Spec, error) {
	s := newSpec(raw)
	s.original = original
	fault := tooLong(raw)
	if fault == nil {
		fault = s.read()
	}
	if fault != nil {
		fault.Offset = jsonobj.NoOffset
		return nil, refuse(fault)
	}
	return s, nil
}

// append appends the jobspec in canonical form. Counts are checked when it is read.
func (j *Job) append(dst []byte) ([]byte, error) {
	w := jsonobj.Write(dst, 0)
	w.Open("attributes")
	w.Open("system")
	if j.Cwd != "" {
		w.Text("cwd", j.Cwd)
	}
	w.Key("duration")
	if j.Duration%time.Second == 0 {
		w.Out = strconv.AppendInt(w.Out, int64(j.Duration/time.Second), 10)
	} else {
		w.Out = jsonobj.AppendFloat(w.Out, j.Duration.Seconds())
	}
	if j.Name != "" {
		w.Open("job")
		w.Text("name", j.Name)
		w.Close()
	}
	if j.Queue != "" {
		w.Text("queue", j.Queue)
	}
	w.Close()
	w.Close()
	w.Key("resources")
	w.Out = j.appendResources(w.Out)
	w.Key("tasks")
	task := jsonobj.Write(append(w.Out, '['), 0)
	task.Texts("command", j.Command)
	task.Open("count")
	task.Int("per_slot", 1)
	task.Close()
	task.Text("slot", "task")
	out, err := task.End()
	if err != nil {
		w.Fail("tasks", err)
	}
	w.Out = append(out, ']')
	w.Int("version", 1)
	return w.End()
}

func (j *Job) appendResources(dst []byte) []byte {
	if j.Nodes != 0 || j.Exclusive {
		dst = strconv.AppendInt(append(dst, `[{"count":`...), j.Nodes, 10)
		if j.Exclusive {
			dst = append(dst, `,"exclusive":true`...)
		}
		dst = append(dst, `,"type":"node","with":`...)
	}
	dst = strconv.AppendInt(append(dst, `[{"count":`...), cmp.Or(j.Slots, 1), 10)
	dst = append(dst, `,"label":"task","type":"slot","with":[{"count":`...)
	dst = append(strconv.AppendInt(dst, cmp.Or(j.Cores, 1), 10), `,"type":"core"}`...)
	if j.GPUs != 0 {
		dst = strconv.AppendInt(append(dst, `,{"count":`...), j.GPUs, 10)
		dst = append(dst, `,"type":"gpu"}`...)
	}
	dst = append(dst, `]}]`...)
	if j.Nodes != 0 || j.Exclusive {
		dst = append(dst, `}]`...)
	}
	return dst
}
