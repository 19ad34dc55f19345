package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// activeJob returns the job that a request changes. errnum and unknown are for a job that is
// not there, denied is for one of another user: flux-core has other words in each request. In a
// private instance a guest does not learn that it is there.
func (s *Service) activeJob(r *Request, id jobid.ID, errnum int, unknown, denied string) (joblife.View, error) {
	v, ok := s.m.Job(id)
	switch {
	case !ok || !s.knows(r) && !r.mayAct(v.UserID()):
		return v, fail(errnum, "%s", unknown)
	case v.State() == jobstate.StateInactive:
		return v, fail(errnum, "job is inactive")
	case !r.mayAct(v.UserID()):
		return v, fail(errno.Perm, "%s", denied)
	}
	return v, nil
}

// ofUser returns the active jobs of a user in the states of a mask. Those of others cost nothing.
func (s *Service) ofUser(user userID, mask jobstate.State) (ids []jobid.ID) {
	if user == anyUser {
		for v := range s.m.Jobs(mask) {
			ids = append(ids, v.ID())
		}
		return ids
	}
	for id := range s.limits.jobs[uint32(user)] {
		if v, ok := s.m.Job(id); ok && v.State().In(mask) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// maxMany limits the jobs of all requests about many jobs that share a commit.
const maxMany = 1 << 16

// A tally is the answer of requests about many jobs.
type tally struct {
	Count  int `json:"count"`
	Errors int `json:"errors"`
}

// each calls f for some jobs, and counts them and its errors. A dry run only counts the
// jobs. It refuses if there is no room beside other requests: see maxMany.
func (s *Service) each(r *Request, ids []jobid.ID, dryRun bool, f func(jobid.ID) error) (any, error) {
	c := tally{Count: len(ids)}
	if dryRun {
		return c, nil
	}
	if err := s.hold(r, &s.touched, len(ids)); err != nil {
		return nil, err
	}
	for _, id := range ids {
		if f(id) != nil {
			c.Errors++
		}
	}
	return c, nil
}

// urgency sets the urgency of a job that has no resources.
func (s *Service) urgency(r *Request, p struct {
	ID      jobid.ID `json:"id"`
	Urgency int      `json:"urgency"`
}) (any, error) {
	if p.Urgency < 0 || p.Urgency > jobstate.UrgencyExpedite {
		return nil, fail(errno.Invalid, "urgency value is out of range")
	}
	v, err := s.activeJob(r, p.ID, errno.Invalid, "unknown job", "guests can only reprioritize their own jobs")
	if err != nil {
		return nil, err
	}
	old := v.Job().Urgency()
	err = s.step(joblife.SetUrgency{By: r.cred(), ID: p.ID, Urgency: p.Urgency})
	switch {
	case errors.Is(err, joblife.ErrDenied):
		return nil, fail(errno.Perm, "guests can only adjust urgency <= default")
	case errors.Is(err, joblife.ErrInvalid):
		return nil, fail(errno.Invalid, "urgency cannot be changed once resources are allocated")
	}
	return map[string]int{"old_urgency": old}, err
}

// memo merges values into the annotations of a job.
func (s *Service) memo(r *Request, p struct {
	ID       jobid.ID        `json:"id"`
	Volatile bool            `json:"volatile,omitempty"`
	Memo     json.RawMessage `json:"memo"`
}) (any, error) {
	_, err := s.activeJob(r, p.ID, errno.NoEntry, "unknown job id", "guests can only add a memo to their own jobs")
	if err != nil {
		return nil, err
	}
	return nil, s.step(joblife.Memo{By: r.cred(), ID: p.ID, Values: p.Memo, Volatile: p.Volatile})
}

// postEvent logs an event as it is.
func (s *Service) postEvent(r *Request, p struct {
	ID      jobid.ID        `json:"id"`
	Name    string          `json:"name"`
	Context json.RawMessage `json:"context,omitempty"`
}) (any, error) {
	if _, err := s.activeJob(r, p.ID, errno.NoEntry, "", ""); err != nil {
		return nil, fail(errno.NoEntry, "")
	}
	if s.step(joblife.Post{By: r.cred(), ID: p.ID, Name: p.Name, Context: p.Context}) != nil {
		return nil, fail(errno.Invalid, "")
	}
	return nil, nil
}

// An exception is what raise and raiseall ask for.
type exception struct {
	Severity int    `json:"severity"`
	Type     string `json:"type"`
	Note     string `json:"note,omitempty"`
}

func (x *exception) check() error {
	switch {
	case x.Severity < 0 || x.Severity > jobstate.MaxSeverity:
		return fail(errno.Protocol, "invalid exception severity")
	case x.Type == "" || strings.ContainsAny(x.Type, "= \t\n\v\f\r"):
		return fail(errno.Protocol, "invalid exception type")
	}
	return nil
}

func (x *exception) input(r *Request, id jobid.ID) joblife.Raise {
	return joblife.Raise{By: r.cred(), ID: id, Type: x.Type, Severity: x.Severity, Note: x.Note}
}

const notYourException = "guests can only raise exceptions on their own jobs"

func (s *Service) raise(r *Request, p struct {
	exception
	ID         jobid.ID `json:"id"`
	WaitStatus *int32   `json:"wait_status,omitempty"`
}) (any, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if _, err := s.activeJob(r, p.ID, errno.NoEntry, "unknown job id", notYourException); err != nil {
		return nil, err
	}
	in := p.input(r, p.ID)
	if p.WaitStatus != nil {
		in.WaitStatus = jobstate.Some(*p.WaitStatus)
	}
	return nil, s.step(in)
}

func (s *Service) raiseAll(r *Request, p struct {
	exception
	DryRun bool   `json:"dry_run"`
	UserID userID `json:"userid"`
	States int64  `json:"states"`
}) (any, error) {
	if !r.mayAct(uint32(p.UserID)) {
		return nil, fail(errno.Perm, notYourException)
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	states := jobstate.State(p.States) & (jobstate.StateNew | jobstate.StateActive)
	return s.each(r, s.ofUser(p.UserID, states), p.DryRun, func(id jobid.ID) error { return s.step(p.input(r, id)) })
}

// raised returns the events that tell the executor, and others, of exceptions.
func raised(list []joblife.Raised) (events []Event) {
	type payload struct {
		ID         jobid.ID `json:"id"`
		Type       string   `json:"type"`
		Severity   uint8    `json:"severity"`
		WaitStatus *int32   `json:"wait_status,omitempty"`
	}
	for _, x := range list {
		p := payload{ID: x.Job, Type: x.Type, Severity: x.Severity}
		if x.WaitStatus.Set {
			p.WaitStatus = &x.WaitStatus.Value
		}
		events = append(events, Event{Topic: "job-exception", Payload: p, Private: true})
	}
	return events
}

// maxSignal is the greatest signal number of Linux.
const maxSignal = 64

func checkSignal(signum int) error {
	if signum <= 0 || signum > maxSignal {
		return fail(errno.Invalid, "Invalid signal number")
	}
	return nil
}

// kill sends a signal to the shells of a job.
func (s *Service) kill(r *Request, p struct {
	ID     jobid.ID `json:"id"`
	Signum int      `json:"signum"`
}) (any, error) {
	if err := checkSignal(p.Signum); err != nil {
		return nil, err
	}
	v, err := s.activeJob(r, p.ID, errno.Invalid, "unknown job id", "guests may only send signals to their own jobs")
	switch {
	case err != nil:
		return nil, err
	case !v.State().In(jobstate.StateRunning):
		return nil, fail(errno.Invalid, "job is not running")
	}
	return nil, s.signal(p.ID, p.Signum)
}

func (s *Service) killAll(r *Request, p struct {
	DryRun bool   `json:"dry_run"`
	UserID userID `json:"userid"`
	Signum int    `json:"signum"`
}) (any, error) {
	if !r.mayAct(uint32(p.UserID)) {
		return nil, fail(errno.Perm, "guests can only kill their own jobs")
	}
	if err := checkSignal(p.Signum); err != nil {
		return nil, err
	}
	return s.each(r, s.ofUser(p.UserID, jobstate.StateRunning), p.DryRun, func(id jobid.ID) error { return s.signal(id, p.Signum) })
}

// signal sends a signal to the shells of a job with the next Out. They do not answer, so
// nobody learns whether it arrived.
func (s *Service) signal(id jobid.ID, signum int) error {
	type payload struct {
		Signum int `json:"signum"`
	}
	s.open.Events = append(s.open.Events, Event{Topic: fmt.Sprintf("shell-%d.kill", id), Payload: payload{signum}})
	return nil
}
