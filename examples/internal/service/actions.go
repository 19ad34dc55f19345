package service

import (
	"errors"
	"fmt"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/perilog"
)

// A Lost says what becomes of a prolog, an epilog or housekeeping that ran when the
// process of the Service ended: rexec ends its commands then.
type Lost string

// The policies.
const (
	LostFinish Lost = "finish" // it has failed, and its ranks are drained first; the default
	LostRerun  Lost = "rerun"  // it runs again; where it cannot, it is finished
	LostHold   Lost = "hold"   // it keeps its ranks until an operator finishes it
)

func (l Lost) check() error {
	switch l {
	case "", LostFinish, LostRerun, LostHold:
		return nil
	}
	return fmt.Errorf("service: lost: %q is not finish, rerun or hold", l)
}

// drainAgain is how long a drain that was refused waits.
const drainAgain = time.Minute

// A drain is a request to drain ranks that was refused, and is sent again.
type drain struct {
	at     time.Time
	ranks  *idset.Set
	reason string
	then   func() error
}

// actions adds what a Ready says of prologs, epilogs and housekeeping.
func (s *Service) actions(rd *joblife.Ready) {
	for _, l := range rd.Launch {
		s.launch(l)
	}
	for _, sig := range rd.Signal {
		for rank := range sig.Ranks.All() {
			if p := s.processes[place{sig.Job, sig.Action, sig.Attempt, rank}]; p != nil {
				s.killProcess(&s.open, p, sig.Signal.Signal)
			}
		}
	}
	for _, d := range rd.Drain {
		ranks := d.Ranks.Clone()
		s.drainRanks(&s.open, drain{ranks: ranks, reason: d.Reason, then: func() error {
			return s.step(joblife.Drained{Ranks: ranks})
		}})
	}
}

// drainRanks drains ranks. If that is refused, it is tried again: nothing else may free them.
func (s *Service) drainRanks(out *Out, d drain) {
	payload := struct {
		Targets string `json:"targets"`
		Reason  string `json:"reason"`
		Mode    string `json:"mode"`
	}{d.ranks.String(), d.reason, "update"}
	s.send(out, Call{Topic: "resource.drain", Nodeid: 0, Payload: payload}, func(r Response) error {
		if r.Errnum == 0 {
			return d.then()
		}
		s.quick.logf("resource.drain of %v: %s: it is tried again in %v", d.ranks, r.why(), drainAgain)
		d.at = s.now.Add(drainAgain)
		s.drains = append(s.drains, d)
		return nil
	})
}

// drainDue sends the drains that are due again.
func (s *Service) drainDue() {
	for len(s.drains) > 0 && !s.drains[0].at.After(s.now) {
		d := s.drains[0]
		s.drains = s.drains[1:]
		s.drainRanks(&s.quick, d)
	}
}

// resolve resolves the actions that were lost in a restart.
func (s *Service) resolve(list []joblife.Unresolved) error {
	for _, u := range list {
		if u.Reason != perilog.ReasonLost && u.Reason != perilog.ReasonRemoved || s.cfg.Lost == LostHold {
			continue
		}
		action := joblife.Action{Job: u.Job, Key: u.Action, Ranks: u.Ranks}
		if s.cfg.Lost == LostRerun {
			err := s.step(joblife.Rerun{Action: action})
			if err == nil {
				continue
			}
			if !errors.Is(err, perilog.ErrAction) {
				return err
			}
		}
		reason := fmt.Sprintf("%v was lost for job %v", u.Action.Kind, u.Job)
		s.drainRanks(&s.quick, drain{ranks: u.Ranks, reason: reason, then: func() error {
			action.Ranks = idset.Of()
			for v := range s.m.Unresolved() { // some ranks may have ended otherwise
				if v.Job == u.Job && v.Action == u.Action && v.Reason == u.Reason {
					action.Ranks = idset.Intersect(u.Ranks, v.Ranks)
				}
			}
			if action.Ranks.IsEmpty() {
				return nil
			}
			return s.step(joblife.ForceFinish{Action: action, Status: 1, Who: "restart"})
		}})
	}
	return nil
}
