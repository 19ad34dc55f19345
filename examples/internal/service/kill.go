package service

import (
	"fmt"

	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// maxSignal is the greatest signal number of Linux.
const maxSignal = 64

func checkSignal(signum int) error {
	if signum <= 0 || signum > maxSignal {
		return fail(errno.Invalid, "Invalid signal number")
	}
	return nil
}

// kill sends a signal to the shells of a job. None answers, so it may not arrive.
func (s *Service) kill(r *Request) (any, error) {
	var p struct {
		ID     jobid.ID `json:"id"`
		Signum int      `json:"signum"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	if err := checkSignal(p.Signum); err != nil {
		return nil, err
	}
	v, err := s.active(r, p.ID, errno.Invalid, "unknown job id", "guests may only send signals to their own jobs")
	switch {
	case err != nil:
		return nil, err
	case !v.State().In(jobstate.StateRunning):
		return nil, fail(errno.Invalid, "job is not running")
	}
	s.signal(p.ID, p.Signum)
	return nil, nil
}

// killAll sends a signal to the shells of all jobs of a user.
func (s *Service) killAll(r *Request) (any, error) {
	var p struct {
		DryRun bool   `json:"dry_run"`
		UserID userID `json:"userid"`
		Signum int    `json:"signum"`
	}
	if r.decode(&p) != nil {
		return nil, fail(errno.Protocol, "error decoding request")
	}
	if !r.mayAct(uint32(p.UserID)) {
		return nil, fail(errno.Perm, "guests can only kill their own jobs")
	}
	if err := checkSignal(p.Signum); err != nil {
		return nil, err
	}
	ids := s.jobsOf(p.UserID, jobstate.StateRunning)
	if !p.DryRun {
		if err := s.many(len(ids)); err != nil {
			return nil, err
		}
		for _, id := range ids {
			s.signal(id, p.Signum)
		}
	}
	return tally{Count: len(ids)}, nil
}

// signal sends a signal to the shells of a job with the next Out.
func (s *Service) signal(id jobid.ID, signum int) {
	s.open.Events = append(s.open.Events, Event{
		Topic: fmt.Sprintf("shell-%d.kill", id),
		Payload: struct {
			Signum int `json:"signum"`
		}{signum},
	})
}
