package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset"
)

// input is what there is of one job.
type input struct {
	id       jobid.ID
	noID     bool   // the input does not say
	label    string // what to call a job without an id
	eventlog []byte
	r        []byte // nil: none
	jobspec  []byte // nil: none
}

// name returns the id in F58, or what stands in for it.
func (in *input) name() string {
	if in.noID {
		return oneLine(in.label, 0)
	}
	return in.id.String()
}

// job is a job that was replayed.
type job struct {
	input
	*jobstate.Job
	spec *jobspec.Spec // updates applied; nil: none
	res  *rset.R       // nil: the job never had any
}

// newJob replays a job. If a part of it cannot be read, it returns the
// rest and the error.
func newJob(in input) (*job, error) {
	folded, err := jobstate.Replay(in.id, in.eventlog)
	errs := []error{withoutID(in, err)}
	if err == nil && !folded.Submitted() {
		errs[0] = fmt.Errorf("job %s: the log has no submit event", in.name())
	}
	j := &job{input: in, Job: folded}
	if len(in.jobspec) > 0 {
		if j.spec, err = currentSpec(in.jobspec, folded); err != nil {
			errs = append(errs, fmt.Errorf("job %s: %w", in.name(), err))
		}
	}
	// An R without an alloc is of a job that was canceled in flight: it never
	// had the resources (flux-core#7172).
	if len(in.r) > 0 && folded.WasAllocated() {
		if j.res, err = rset.Parse(in.r); err != nil {
			errs = append(errs, fmt.Errorf("job %s: %w", in.name(), err))
		}
	}
	return j, errors.Join(errs...)
}

// withoutID says where a replay stopped without naming an id that the input
// does not have.
func withoutID(in input, err error) error {
	var stop *jobstate.EventError
	switch {
	case !in.noID || !errors.As(err, &stop):
		return err
	case stop.Event == "":
		return stop.Err
	case stop.Line == 0: // it was not read from a whole log
		return fmt.Errorf("%q in %v: %w", stop.Event, stop.State, stop.Err)
	default:
		return fmt.Errorf("line %d: offset %d: %q in %v: %w", stop.Line, stop.Offset, stop.Event, stop.State, stop.Err)
	}
}

// currentSpec reads a jobspec and sets what the job's log updates in it. If
// an update cannot be set it returns the jobspec as it was submitted.
func currentSpec(b []byte, j *jobstate.Job) (*jobspec.Spec, error) {
	spec, err := jobspec.Parse(b)
	if err != nil {
		return nil, err
	}
	current, err := spec.UpdateAll(j.Updates())
	if err != nil {
		return spec, err
	}
	return current, nil
}

// failed reports whether the job is over and did not complete: it failed, was canceled or
// ran out of time.
func (j *job) failed() bool {
	r, ok := j.Result()
	return ok && j.State() == jobstate.StateInactive && r != jobstate.ResultCompleted
}

func (j *job) jobName() string {
	if j.spec == nil || j.spec.Name() == "" {
		return "-"
	}
	return j.spec.Name()
}

func (j *job) user() string { return strconv.FormatUint(uint64(j.UserID()), 10) }

// counts returns how large the job is, by R once it has resources.
func (j *job) counts() jobspec.Counts {
	switch {
	case j.spec == nil && j.res == nil:
		return jobspec.Counts{}
	case j.spec == nil:
		size := sizes(j.res)
		return jobspec.Counts{Nodes: jobspec.Known(size.Nodes), Cores: jobspec.Known(size.Cores), GPUs: jobspec.Known(size.GPUs)}
	case j.res == nil:
		return j.spec.Counts()
	default:
		return j.spec.CountsOn(sizes(j.res))
	}
}

// sizes returns the counts of a resource set that a listing needs.
func sizes(r *rset.R) jobspec.Resources {
	return jobspec.Resources{Nodes: int64(r.Len()), Cores: r.Count("core"), GPUs: r.Count("gpu"), Slots: r.Slots()}
}

// listing is what RFC 43 lets a job list say of a job. A nil field is absent.
type listing struct {
	ID         *jobid.ID       `json:"id,omitempty"`
	UserID     uint32          `json:"userid"`
	Urgency    int             `json:"urgency"`
	Priority   *uint32         `json:"priority,omitempty"`
	TSubmit    *seconds        `json:"t_submit,omitempty"`
	TDepend    *seconds        `json:"t_depend,omitempty"`
	TPriority  *seconds        `json:"t_priority,omitempty"`
	TSched     *seconds        `json:"t_sched,omitempty"`
	TRun       *seconds        `json:"t_run,omitempty"`
	TCleanup   *seconds        `json:"t_cleanup,omitempty"`
	TInactive  *seconds        `json:"t_inactive,omitempty"`
	State      int             `json:"state"`
	Name       *string         `json:"name,omitempty"`
	Cwd        *string         `json:"cwd,omitempty"`
	Queue      *string         `json:"queue,omitempty"`
	Project    *string         `json:"project,omitempty"`
	Bank       *string         `json:"bank,omitempty"`
	NTasks     *int64          `json:"ntasks,omitempty"`
	NCores     *int64          `json:"ncores,omitempty"`
	Duration   *seconds        `json:"duration,omitempty"`
	NNodes     *int64          `json:"nnodes,omitempty"`
	Ranks      *string         `json:"ranks,omitempty"`
	Nodelist   *string         `json:"nodelist,omitempty"`
	Success    *bool           `json:"success,omitempty"`
	Occurred   *bool           `json:"exception_occurred,omitempty"`
	ExcType    *string         `json:"exception_type,omitempty"`
	ExcSev     *uint8          `json:"exception_severity,omitempty"`
	ExcNote    *string         `json:"exception_note,omitempty"`
	Result     *int            `json:"result,omitempty"`
	Expiration *seconds        `json:"expiration,omitempty"`
	Notes      json.RawMessage `json:"annotations,omitempty"`
	Deps       *[]string       `json:"dependencies,omitempty"`
	WaitStatus *int            `json:"waitstatus,omitempty"`
}

// seconds prints as Flux prints times.
type seconds eventlog.Timestamp

// MarshalJSON prints as Flux prints reals.
func (s seconds) MarshalJSON() ([]byte, error) {
	return eventlog.Timestamp(s).AppendText(nil)
}

func ptr[T any](v T) *T { return &v }

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func known(q jobspec.Quantity) *int64 {
	if n, ok := q.Value(); ok {
		return &n
	}
	return nil
}

func (j *job) entered(s jobstate.State) *seconds {
	if t, ok := j.Entered(s); ok {
		return ptr(seconds(t))
	}
	return nil
}

// listing collects the attributes that follow from log, R and jobspec.
func (j *job) listing() *listing {
	counts := j.counts()
	l := &listing{
		UserID: j.UserID(), Urgency: j.Urgency(), State: int(j.State()),
		TSubmit: j.entered(jobstate.StateNew), TDepend: j.entered(jobstate.StateDepend), TPriority: j.entered(jobstate.StatePriority),
		TSched: j.entered(jobstate.StateSched), TRun: j.entered(jobstate.StateRun), TCleanup: j.entered(jobstate.StateCleanup),
		TInactive: j.entered(jobstate.StateInactive), NTasks: known(counts.Tasks), NCores: known(counts.Cores), NNodes: known(counts.Nodes),
		Notes: j.Annotations(),
	}
	if !j.noID {
		l.ID = &j.id
	}
	if p, ok := j.Priority(); ok {
		l.Priority = &p
	}
	if w, ok := j.WaitStatus(); ok {
		l.WaitStatus = &w
	}
	if d := j.Dependencies(); d != nil {
		l.Deps = &d
	}
	if j.spec != nil {
		l.Name, l.Cwd, l.Queue = text(j.spec.Name()), text(j.spec.Cwd()), text(j.spec.Queue())
		l.Project, l.Bank, l.Duration = text(j.spec.Project()), text(j.spec.Bank()), ptr(seconds(j.spec.Duration().Seconds()))
	}
	if j.res != nil {
		l.Ranks, l.Nodelist = ptr(string(j.res.Ranks().AppendBrackets(nil))), text(j.res.Nodelist().String())
		l.Expiration = ptr(seconds(j.res.Expiration()))
		if e, ok := j.Expiration(); ok {
			l.Expiration = ptr(seconds(e))
		}
	}
	if j.State() == jobstate.StateInactive {
		result, _ := j.Result()
		e, occurred := j.Exception()
		l.Result, l.Success, l.Occurred = ptr(int(result)), ptr(j.Success()), &occurred
		if occurred {
			l.ExcType, l.ExcSev, l.ExcNote = &e.Type, &e.Severity, &e.Note
		}
	}
	return l
}
