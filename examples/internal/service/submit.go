package service

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/strict"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
)

// A submission is one job of a request.
type submission struct {
	ID      jobid.ID           `json:"id"`
	Urgency int                `json:"urgency"`
	UserID  userID             `json:"userid"`
	Time    eventlog.Timestamp `json:"t_submit"`
	Flags   jobstate.Flags     `json:"flags"`
	Jobspec json.RawMessage    `json:"jobspec"`
}

// submit takes in jobs that job-ingest has checked. A job that is refused stops no other,
// but one that cannot be read stops all.
func (s *Service) submit(r *Request) (any, error) {
	var p struct {
		Jobs json.RawMessage `json:"jobs"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	var list []submission
	err := strict.Elements(p.Jobs, func(text json.RawMessage) error {
		var j submission
		if err := strict.Unmarshal(text, &j); err != nil {
			return err
		}
		list = append(list, j)
		return nil
	})
	if err != nil {
		return nil, errProtocol
	}
	answer := struct {
		Errors [][2]any `json:"errors"`
	}{Errors: [][2]any{}}
	for _, j := range list {
		if _, ok := s.m.Jobspec(j.ID); ok {
			continue // it was stored before a restart, and is submitted again
		}
		err := s.step(joblife.Submit{
			By: joblife.Cred{UserID: uint32(j.UserID)}, // job-ingest has checked what a guest may ask for
			ID: j.ID, Jobspec: j.Jobspec, Urgency: j.Urgency, Flags: j.Flags,
			Time: j.Time,
		})
		if err != nil {
			answer.Errors = append(answer.Errors, [2]any{j.ID, s.refusal(&j, err)})
		}
	}
	return answer, nil
}

// refusal returns the words for a job that was refused, as its user sees them.
func (s *Service) refusal(j *submission, err error) string {
	if !errors.Is(err, joblife.ErrRefused) {
		_, text := explain(err)
		return text
	}
	// The Manager asks the queue before it asks hooks.
	if spec, bad := jobspec.Parse(j.Jobspec); bad == nil {
		if closed := s.admits(spec.Queue()); closed != nil {
			err = closed
		}
	}
	var f *failure
	if errors.As(err, &f) {
		return f.text
	}
	return cmp.Or(strings.TrimPrefix(err.Error(), joblife.ErrRefused.Error()+": "), "rejected by plugin")
}
