package service

import (
	"encoding/json"
	"errors"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// submit takes in jobs that job-ingest has checked. A job that is refused stops no other.
func (s *Service) submit(r *Request) (any, error) {
	var p struct {
		Jobs []json.RawMessage `json:"jobs"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	type submission struct {
		ID      jobid.ID        `json:"id"`
		Urgency int             `json:"urgency"`
		UserID  uint32          `json:"userid"`
		Time    float64         `json:"t_submit"`
		Flags   jobstate.Flags  `json:"flags"`
		Jobspec json.RawMessage `json:"jobspec"`
	}
	list := make([]submission, len(p.Jobs))
	for i, text := range p.Jobs {
		if err := (&Request{Payload: text}).decode(&list[i]); err != nil {
			return nil, err
		}
	}
	answer := struct {
		Errors [][2]any `json:"errors"`
	}{Errors: [][2]any{}}
	for _, j := range list {
		if v, ok := s.m.Job(j.ID); ok && v.State() != jobstate.StateInactive {
			continue // it was stored before a restart, and is submitted again
		}
		err := s.step(joblife.Submit{
			By: joblife.Cred{UserID: j.UserID}, ID: j.ID, Jobspec: j.Jobspec, Urgency: j.Urgency, Flags: j.Flags,
		})
		if err != nil {
			answer.Errors = append(answer.Errors, [2]any{j.ID, refusal(err)})
		}
	}
	return answer, nil
}

// refusal returns the words for a job that was refused.
func refusal(err error) string {
	var f *failure
	if errors.As(err, &f) {
		return f.text
	}
	_, text := explain(err)
	return text
}
