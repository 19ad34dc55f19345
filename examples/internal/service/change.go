package service

import (
	"encoding/json"
	"errors"
	"math"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// anyUser is the userid of nobody: in requests about many jobs it stands for all users.
const anyUser = math.MaxUint32

// A userID is a userid in a payload. Peers that write it as a signed number write anyUser
// as -1.
type userID uint32

// UnmarshalJSON reads a number of 32 bits, signed or not.
func (u *userID) UnmarshalJSON(b []byte) error {
	var n int64
	if err := json.Unmarshal(b, &n); err != nil {
		return err
	}
	if n < math.MinInt32 || n > math.MaxUint32 {
		return errProtocol
	}
	*u = userID(n)
	return nil
}

// mayAct reports whether a request may be about the jobs of a user.
func (r *Request) mayAct(user uint32) bool {
	return r.owner() || r.UserID == user && user != anyUser
}

// active returns the job that a request changes. For a job that is unknown, for one that
// is over, or for one of somebody else the error is what the request answers then.
func (s *Service) active(r *Request, id jobid.ID, errnum int, unknown, denied string) (joblife.View, error) {
	v, ok := s.m.Job(id)
	switch {
	case !ok:
		return v, fail(errnum, "%s", unknown)
	case v.State() == jobstate.StateInactive:
		return v, fail(errnum, "job is inactive")
	case !r.mayAct(v.UserID()):
		return v, fail(errno.Perm, "%s", denied)
	}
	return v, nil
}

// jobsOf returns the jobs of a user in some states, by id.
func (s *Service) jobsOf(user userID, mask jobstate.State) (ids []jobid.ID) {
	for v := range s.m.Jobs(mask) {
		if user == anyUser || v.UserID() == uint32(user) {
			ids = append(ids, v.ID())
		}
	}
	return ids
}

// maxMany limits the jobs of requests about many jobs that share an Out. One request is
// short, and may be about all jobs of its user.
const maxMany = 1 << 16

// many refuses a request about n jobs, unless it has room beside others.
func (s *Service) many(n int) error {
	if s.touched > 0 && s.touched+n > maxMany {
		return fail(errno.Again, "requests about %d jobs wait", s.touched)
	}
	s.touched += n
	return nil
}

// urgency sets the urgency of a job that has no resources.
func (s *Service) urgency(r *Request) (any, error) {
	var p struct {
		ID      jobid.ID `json:"id"`
		Urgency int      `json:"urgency"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	if p.Urgency < 0 || p.Urgency > jobstate.UrgencyExpedite {
		return nil, fail(errno.Invalid, "urgency value is out of range")
	}
	v, err := s.active(r, p.ID, errno.Invalid, "unknown job", "guests can only reprioritize their own jobs")
	if err != nil {
		return nil, err
	}
	var answer struct {
		Old int `json:"old_urgency"`
	}
	answer.Old = v.Job().Urgency()
	err = s.step(joblife.Urgency{By: r.cred(), ID: p.ID, Urgency: p.Urgency})
	switch {
	case errors.Is(err, joblife.ErrDenied):
		return nil, fail(errno.Perm, "guests can only adjust urgency <= default")
	case errors.Is(err, joblife.ErrInvalid):
		return nil, fail(errno.Invalid, "urgency cannot be changed once resources are allocated")
	}
	return answer, err
}

// memo merges values into the annotations of a job.
func (s *Service) memo(r *Request) (any, error) {
	var p struct {
		ID       jobid.ID        `json:"id"`
		Volatile bool            `json:"volatile,omitempty"`
		Memo     json.RawMessage `json:"memo"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	_, err := s.active(r, p.ID, errno.NoEntry, "unknown job id", "guests can only add a memo to their own jobs")
	if err != nil {
		return nil, err
	}
	return nil, s.step(joblife.Memo{By: r.cred(), ID: p.ID, Values: p.Memo, Volatile: p.Volatile})
}

// postEvent logs an event as it is.
func (s *Service) postEvent(r *Request) (any, error) {
	var p struct {
		ID      jobid.ID        `json:"id"`
		Name    string          `json:"name"`
		Context json.RawMessage `json:"context,omitempty"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	if _, err := s.active(r, p.ID, errno.NoEntry, "", ""); err != nil {
		return nil, fail(errno.NoEntry, "")
	}
	if s.step(joblife.Post{By: r.cred(), ID: p.ID, Name: p.Name, Context: p.Context}) != nil {
		return nil, fail(errno.Invalid, "")
	}
	return nil, nil
}
