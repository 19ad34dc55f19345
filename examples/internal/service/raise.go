package service

import (
	"strings"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

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

const notYourException = "guests can only raise exceptions on their own jobs"

// raise raises an exception on a job.
func (s *Service) raise(r *Request) (any, error) {
	var p struct {
		exception
		ID         jobid.ID `json:"id"`
		WaitStatus *int32   `json:"wait_status,omitempty"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if _, err := s.active(r, p.ID, errno.NoEntry, "unknown job id", notYourException); err != nil {
		return nil, err
	}
	in := joblife.Raise{By: r.cred(), ID: p.ID, Type: p.Type, Severity: p.Severity, Note: p.Note}
	if p.WaitStatus != nil {
		in.WaitStatus = jobstate.Some(*p.WaitStatus)
	}
	return nil, s.step(in)
}

// A tally is the answer of requests about many jobs.
type tally struct {
	Count  int `json:"count"`
	Errors int `json:"errors"`
}

// raiseAll raises an exception on all jobs of a user that are in some states.
func (s *Service) raiseAll(r *Request) (any, error) {
	var p struct {
		exception
		DryRun bool   `json:"dry_run"`
		UserID userID `json:"userid"`
		States int64  `json:"states"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	if !r.mayAct(uint32(p.UserID)) {
		return nil, fail(errno.Perm, notYourException)
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	active := jobstate.StateNew | jobstate.StateActive
	ids := s.jobsOf(p.UserID, jobstate.State(p.States)&active)
	c := tally{Count: len(ids)}
	if p.DryRun {
		return c, nil
	}
	if err := s.many(len(ids)); err != nil {
		return nil, err
	}
	for _, id := range ids {
		if s.step(joblife.Raise{By: r.cred(), ID: id, Type: p.Type, Severity: p.Severity, Note: p.Note}) != nil {
			c.Errors++
		}
	}
	return c, nil
}

// raised tells the executor, and others that want to know, of exceptions.
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
