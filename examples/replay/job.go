package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/lines"
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

// newJob replays a job. If parts of it cannot be read, it returns the
// rest and the errors.
func newJob(in input) (j *job, errs []error) {
	folded, err := jobstate.Replay(in.id, in.eventlog)
	switch {
	case err != nil:
		errs = append(errs, in.stopped(err))
	case !folded.Submitted():
		errs = append(errs, fmt.Errorf("job %s: the log has no submit event", in.name()))
	}
	j = &job{input: in, Job: folded}
	if len(in.jobspec) > 0 {
		if j.spec, err = currentSpec(in.jobspec, folded); err != nil {
			errs = append(errs, fmt.Errorf("job %s, %w", in.name(), err))
		}
	}
	// An R without an alloc is of a job that was canceled in flight: it never
	// had the resources (flux-core#7172).
	if len(in.r) > 0 && folded.WasAllocated() {
		if j.res, err = rset.Parse(in.r); err != nil {
			errs = append(errs, fmt.Errorf("job %s, %s", in.name(), strings.TrimPrefix(err.Error(), "rset: invalid ")))
		}
	}
	return j, errs
}

// stopped says where a replay stopped. It names no id that the input does not have.
func (in *input) stopped(err error) error {
	if in.noID {
		return errors.New(lines.Why(err))
	}
	return fmt.Errorf("job %s, %s", in.name(), lines.Why(err))
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

// A listing is a JSON object with attributes of RFC 43.
type listing struct {
	text bytes.Buffer
	enc  *json.Encoder // to text
	err  error
}

// add adds an attribute unless it is absent.
func (l *listing) add(key string, value any, ok bool) {
	if !ok {
		return
	}
	l.text.WriteString(`,"` + key + `":`)
	l.err = cmp.Or(l.err, l.enc.Encode(value))
	l.text.Truncate(l.text.Len() - 1) // a newline
}

// addText adds a text unless it is empty.
func (l *listing) addText(key, value string) { l.add(key, value, value != "") }

func (l *listing) count(key string, q jobspec.Quantity) {
	n, ok := q.Value()
	l.add(key, n, ok)
}

// seconds prints as Flux prints times.
type seconds eventlog.Timestamp

// MarshalJSON prints as Flux prints reals.
func (s seconds) MarshalJSON() ([]byte, error) {
	return eventlog.Timestamp(s).AppendText(nil)
}

// listing returns what RFC 43 lets a job list say of a job, as far as it follows from log, R
// and jobspec, in a line.
func (j *job) listing() ([]byte, error) {
	var l listing
	l.enc = json.NewEncoder(&l.text)
	l.enc.SetEscapeHTML(false)
	l.add("id", j.id, !j.noID)
	l.add("userid", j.UserID(), true)
	l.add("urgency", j.Urgency(), true)
	priority, ok := j.Priority()
	l.add("priority", priority, ok)
	for i, key := range []string{"t_submit", "t_depend", "t_priority", "t_sched", "t_run", "t_cleanup", "t_inactive"} {
		t, ok := j.Entered(jobstate.StateNew << i)
		l.add(key, seconds(t), ok)
	}
	l.add("state", int(j.State()), true)
	if j.spec != nil {
		l.addText("name", j.spec.Name())
		l.addText("cwd", j.spec.Cwd())
		l.addText("queue", j.spec.Queue())
		l.addText("project", j.spec.Project())
		l.addText("bank", j.spec.Bank())
	}
	counts := j.counts()
	l.count("ntasks", counts.Tasks)
	l.count("ncores", counts.Cores)
	if j.spec != nil {
		l.add("duration", seconds(j.spec.Duration().Seconds()), true)
	}
	l.count("nnodes", counts.Nodes)
	if j.res != nil {
		l.add("ranks", string(j.res.Ranks().AppendBrackets(nil)), true)
		l.addText("nodelist", j.res.Nodelist().String())
	}
	if j.State() == jobstate.StateInactive {
		e, occurred := j.Exception()
		l.add("success", j.Success(), true)
		l.add("exception_occurred", occurred, true)
		l.add("exception_type", e.Type, occurred)
		l.add("exception_severity", e.Severity, occurred)
		l.add("exception_note", e.Note, occurred)
		result, _ := j.Result()
		l.add("result", int(result), true)
	}
	if j.res != nil {
		end, ok := j.Expiration()
		if !ok {
			end = j.res.Expiration()
		}
		l.add("expiration", seconds(end), true)
	}
	l.add("annotations", j.Annotations(), len(j.Annotations()) > 0)
	l.add("dependencies", j.Dependencies(), j.Dependencies() != nil)
	status, ok := j.WaitStatus()
	l.add("waitstatus", status, ok)
	l.text.WriteString("}\n")
	line := l.text.Bytes()
	line[0] = '{' // in place of the first comma
	return line, l.err
}
