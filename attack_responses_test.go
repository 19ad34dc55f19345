package joblife_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset/alloc"
)

// answer says the next response. One to a request with the jobspec of before an update does not count.
func (s *scheduler) answer(r joblife.SchedResponse) error {
	waits := func() (joblife.View, bool) {
		v, ok := s.p.m.Job(r.ID)
		return v, ok && v.State().In(jobstate.StatePending)
	}
	var limit time.Duration
	v, before := waits()
	if before {
		limit = v.Jobspec().Duration()
	}
	err := s.p.step(r)
	if _, after := waits(); before && !after && s.limits[r.ID] != limit {
		s.p.Fail("a response for %v counts, which is for a limit of %v and not of %v: %+v", r.ID, s.limits[r.ID], limit, r)
	}
	return err
}

// bookTwice gives a job what another one holds: PR-10.
func (s *scheduler) bookTwice(id jobid.ID) {
	for other, r := range s.p.m.Allocated() {
		if other == id || s.p.P(0.5) {
			continue
		}
		s.p.Say("book %v of %v for %v too", r.Ranks(), other, id)
		if err := s.p.step(joblife.SchedResponse{ID: id, R: r}); !errors.Is(err, joblife.ErrConflict) && !s.p.stops {
			s.p.Fail("PR-10: %v gets %v, which %v holds: %v", id, r, other, err)
		}
		s.refused()
		return
	}
}

// answerLate says again what a session that is over did not pass on. It may fit: then only
// the next hello tells the scheduler.
func (s *scheduler) answerLate() {
	if !joblife.Idle(s.p.m) {
		return // the Manager knows of a free that the world does not
	}
	r := s.late[0]
	s.late = s.late[1:]
	given := func(in joblife.Input) bool {
		r, ok := in.(joblife.SchedResponse)
		return ok && r.Type == alloc.ResponseSuccess
	}
	if s.index(r.ID) < 0 || slices.ContainsFunc(s.inbox, given) {
		return // it was not asked for again, or the world has newer ones
	}
	err := s.p.step(r)
	if s.p.Say("a late answer for %v: %v", r.ID, err); err == nil && r.Type == alloc.ResponseSuccess {
		s.p.w.Allocated(r.ID, r.R)
	}
	s.refused()
}

// judgeJournal checks that each event names the user of its job, who may read it.
func (p *play) judgeJournal() {
	for _, e := range p.rd.Journal {
		submit, _, _ := bytes.Cut(p.logs[e.Job], []byte{'\n'})
		if len(submit) > 0 && !bytes.Contains(submit, fmt.Appendf(nil, `"userid":%d,`, e.UserID)) {
			p.Fail("the journal has an event of %v for user %d: %s", e.Job, e.UserID, submit)
		}
	}
}
