package service

import (
	"errors"
	"strings"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// raise raises an exception on a job.
func (s *Service) raise(r *Request) (any, error) {
	var p struct {
		ID         jobid.ID `json:"id"`
		Severity   int      `json:"severity"`
		Type       string   `json:"type"`
		Note       string   `json:"note,omitempty"`
		WaitStatus *int32   `json:"wait_status,omitempty"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	switch {
	case p.Severity < 0 || p.Severity > 7:
		return nil, fail(eproto, "invalid exception severity")
	case p.Type == "" || strings.ContainsAny(p.Type, "= \t\n\v\f\r"):
		return nil, fail(eproto, "invalid exception type")
	}
	in := joblife.Raise{By: r.cred(), ID: p.ID, Type: p.Type, Severity: p.Severity, Note: p.Note}
	if p.WaitStatus != nil {
		in.WaitStatus = jobstate.Some(*p.WaitStatus)
	}
	err := s.step(in)
	if errors.Is(err, joblife.ErrDenied) {
		return nil, fail(eperm, "guests can only raise exceptions on their own jobs")
	}
	return nil, unknown(err, enoent, "unknown job id")
}

// unknown returns the error for a job that the Manager does not know, or that is over, in
// the words of the request; other errors stay.
func unknown(err error, errnum int, word string) error {
	switch {
	case errors.Is(err, joblife.ErrUnknown):
		return fail(errnum, "%s", word)
	case errors.Is(err, joblife.ErrInactive):
		return fail(errnum, "job is inactive")
	}
	return err
}
