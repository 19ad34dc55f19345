package service

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// jobSize is how many bytes a job takes in an answer, beside what others say of it.
const jobSize = 128

// listed is an active job in the answer to list.
type listed struct {
	ID           jobid.ID           `json:"id"`
	UserID       uint32             `json:"userid"`
	Urgency      int                `json:"urgency"`
	Priority     int64              `json:"priority"` // -1: it has none yet
	Submitted    eventlog.Timestamp `json:"t_submit"`
	State        uint8              `json:"state"`
	Annotations  json.RawMessage    `json:"annotations,omitempty"`
	Dependencies []string           `json:"dependencies,omitempty"`
}

// getinfo returns the greatest id of a job, above which job-ingest makes more.
func (s *Service) getinfo(r *Request) (any, error) {
	if !s.knows(r) {
		return nil, errHidden
	}
	return map[string]jobid.ID{"max_jobid": s.MaxID()}, nil
}

// MaxID returns the greatest id that a job has had, 0 if there was none.
func (s *Service) MaxID() jobid.ID { return s.m.Stats().MaxID }

func (s *Service) stats(r *Request) (any, error) {
	if !s.knows(r) {
		return nil, errHidden
	}
	m := s.m.Stats()
	var out struct {
		Journal struct {
			Listeners int    `json:"listeners"`
			Events    uint64 `json:"events"`
		} `json:"journal"`
		Active       int               `json:"active_jobs"`
		Inactive     int               `json:"inactive_jobs"`
		Max          jobid.ID          `json:"max_jobid"`
		Housekeeping housekeepingStats `json:"housekeeping"`
	}
	out.Journal.Listeners, out.Journal.Events = len(s.journal.list), m.Events
	out.Active, out.Inactive, out.Max = s.activeJobs(), m.States[jobstate.StateInactive], m.MaxID
	out.Housekeeping = s.processes.stats()
	text, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	return json.RawMessage(text), s.hold(r, &s.answers, len(text))
}

// list lists the active jobs: those that wait for resources, in the order in which they get
// them, then the others in the same order, then jobs that are over and may still be waited
// for.
func (s *Service) list(r *Request, p struct {
	Max int `json:"max_entries"` // 0: all
}) (any, error) {
	if p.Max < 0 {
		return nil, errProtocol
	}
	var views []joblife.View
	for v := range s.m.Jobs(jobstate.StateNew | jobstate.StateActive) {
		views = append(views, v)
	}
	slices.SortStableFunc(views, func(a, b joblife.View) int {
		return cmp.Or(inSched(b)-inSched(a), cmp.Compare(priority(b), priority(a)))
	})
	if p.Max > 0 {
		views = views[:min(p.Max, len(views))]
	}
	jobs := make([]listed, 0, len(views))
	for _, v := range views {
		jobs = append(jobs, listJob(v))
	}
	for _, id := range s.waits.order { // flux-core calls them zombies
		if z, ok := s.waits.ended[id]; ok && (p.Max == 0 || len(jobs) < p.Max) {
			jobs = append(jobs, z.listing)
		}
	}
	size := 0
	for _, j := range jobs {
		size += jobSize + len(j.Annotations) + len(strings.Join(j.Dependencies, ""))
	}
	return map[string][]listed{"jobs": jobs}, s.hold(r, &s.answers, size)
}

// allocQuery counts the jobs that concern the scheduler.
func (s *Service) allocQuery(*Request) (any, error) {
	n := s.m.Stats()
	return struct {
		Queue   int `json:"queue_length"`
		Pending int `json:"alloc_pending"`
		Running int `json:"running"`
	}{n.Queue.Pending, n.Queue.Sent + n.Queue.Recalled, n.States[jobstate.StateRun] + n.States[jobstate.StateCleanup]}, nil
}

// resourceStatus tells what all jobs together hold of the scheduler's resources.
func (s *Service) resourceStatus(r *Request) (any, error) {
	var list []*rset.R
	for _, r := range s.m.Allocated() {
		list = append(list, r)
	}
	all, err := Union(list)
	if err != nil {
		return nil, fail(errno.Invalid, "%v", err)
	}
	text := all.AppendJSON(nil)
	return map[string]json.RawMessage{"allocated": text}, s.hold(r, &s.answers, len(text))
}

// Union returns the union of sets of resources, without their times. It unites halves of the
// list, so that the work is n log n.
func Union(list []*rset.R) (*rset.R, error) {
	switch len(list) {
	case 0:
		return new(rset.R), nil
	case 1:
		return list[0].WithTimes(0, 0)
	}
	a, err := Union(list[:len(list)/2])
	if err != nil {
		return nil, err
	}
	b, err := Union(list[len(list)/2:])
	if err != nil {
		return nil, err
	}
	return rset.Union(a, b)
}

func listJob(v joblife.View) listed {
	j := v.Job()
	submitted, _ := j.Entered(jobstate.StateNew)
	return listed{
		ID: v.ID(), UserID: v.UserID(), Urgency: j.Urgency(), Priority: priority(v), Submitted: submitted,
		State: uint8(v.State()), Annotations: v.Annotations(), Dependencies: j.Dependencies(),
	}
}

func inSched(v joblife.View) int {
	if v.State() == jobstate.StateSched {
		return 1
	}
	return 0
}

func priority(v joblife.View) int64 {
	if p, ok := v.Job().Priority(); ok {
		return int64(p)
	}
	return -1
}

// history lists jobs of the user who asks, the youngest first.
func (s *Service) history(r *Request, p struct {
	Slice string `json:"slice"`
}) (any, error) {
	if !s.plugins.serves(historyPlugin) {
		return nil, noMethod(r)
	}
	var ids []jobid.ID
	for v := range s.m.Jobs(^jobstate.State(0)) {
		if v.UserID() == r.UserID {
			ids = append(ids, v.ID())
		}
	}
	slices.SortFunc(ids, func(a, b jobid.ID) int { return cmp.Compare(b, a) })
	picked, ok := pick(p.Slice, len(ids))
	if !ok {
		return nil, fail(errno.Invalid, "could not parse python-style slice expression")
	}
	jobs := make([]jobid.ID, 0, len(picked))
	for _, i := range picked {
		jobs = append(jobs, ids[i])
	}
	return map[string][]jobid.ID{"jobs": jobs}, s.hold(r, &s.answers, 8*len(jobs))
}

// pick returns the indexes that a slice of the language Python, such as [-3:] or [::-1], picks
// of n elements, and false for something else.
func pick(slice string, n int) (list []int, ok bool) {
	s, open := strings.CutPrefix(slice, "[")
	s, closed := strings.CutSuffix(s, "]")
	fields := strings.Split(s, ":")
	if !open || !closed || len(fields) < 2 || len(fields) > 3 {
		return nil, false
	}
	var parts [3]jobstate.Optional[int]
	for i, f := range fields {
		v, err := strconv.ParseInt(f, 10, 32)
		switch {
		case err == nil:
			parts[i] = jobstate.Some(int(v))
		case f != "":
			return nil, false
		}
	}
	step := 1
	if parts[2].Set {
		if step = min(max(parts[2].Value, -n-1), n+1); step == 0 {
			return nil, false
		}
	}
	first, last := 0, n // as Python clips the bounds
	if step < 0 {
		first, last = n-1, -1
	}
	clip := func(bound jobstate.Optional[int], otherwise int) int {
		switch v := bound.Value; {
		case !bound.Set:
			return otherwise
		case v < 0:
			return max(v+n, min(first, last))
		default:
			return min(v, max(first, last))
		}
	}
	stop := clip(parts[1], last)
	for i := clip(parts[0], first); step > 0 && i < stop || step < 0 && i > stop; i += step {
		list = append(list, i)
	}
	return list, true
}
