package service

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset/alloc"
)

// The limits part knows what jobs may ask for: how much, how many of a user, and until when.
type limits struct {
	*core
	jobs       map[uint32]map[jobid.ID]struct{}      // those of a user that are not over
	restored   bool                                  // there was a process before
	expiration jobstate.Optional[eventlog.Timestamp] // of the instance
	known      map[jobid.ID]eventlog.Timestamp       // expirations that the scheduler of this session knows
}

// hooks refuse a job beyond the limits.
func (s *limits) hooks() joblife.Hooks {
	h := counting("limits", func(e *joblife.HookEvent, n int) {
		id, user := e.Job.ID(), e.Job.UserID()
		delete(s.known, id)
		switch jobs := s.jobs[user]; {
		case n > 0 && jobs == nil:
			s.jobs[user] = map[jobid.ID]struct{}{id: {}}
		case n > 0:
			jobs[id] = struct{}{}
		default:
			if delete(jobs, id); len(jobs) == 0 {
				delete(s.jobs, user)
			}
		}
	})
	h.Validate = func(e *joblife.HookEvent) error {
		if _, known := e.Lookup(e.Job.ID()); known { // it was let in before a restart
			return nil
		}
		if err := s.check(e.Job.Jobspec()); err != nil {
			return err
		}
		if limit := s.cfg.MaxActive; limit > 0 && len(s.jobs[e.Job.UserID()]) >= limit {
			return fail(errno.Invalid, "user has max number of jobs submitted")
		}
		return nil
	}
	return h
}

// check returns an error if a job asks for more than it may, in the words of flux-core.
func (s *limits) check(spec *jobspec.Spec) error {
	queue := spec.Queue()
	l := s.cfg.Limits.override(s.cfg.Queues[queue].Limits)
	where := ""
	if queue != "" {
		where = " for queue " + queue
	}
	if d := fsd.Duration(spec.Duration()); l.Duration.Value != 0 && l.Duration.Value != fsd.Forever && (d == 0 || d > l.Duration.Value) {
		asked := "unlimited"
		if d != 0 {
			asked = d.Format(2)
		}
		return fail(errno.Invalid, "requested duration (%s) exceeds policy limit of %s%s", asked, l.Duration.Value.Format(2), where)
	}
	if l.Max != (Size{}) || l.Min != (Size{}) {
		if err := l.size(spec, where); err != nil {
			return err
		}
	}
	return s.outlives(spec.Duration())
}

// size checks the size of a job, which is the least that it asks for.
func (l *Limits) size(spec *jobspec.Spec, where string) error {
	shape, err := spec.Shape()
	if err != nil {
		return err
	}
	nodes, slots := shape.Nodes.Min(), shape.Slots.Min()
	if nodes > 0 {
		slots = product(slots, nodes)
	}
	cores, gpus := product(slots, shape.Cores.Min()), product(slots, shape.GPUs.Min())
	names, sizes := [...]string{"nnodes", "ncores", "ngpus"}, [...]int64{nodes, cores, gpus}
	for i, limit := range [...]jobstate.Optional[int]{l.Max.Nodes, l.Max.Cores, l.Max.GPUs, l.Min.Nodes, l.Min.Cores, l.Min.GPUs} {
		n, what, asked := int64(limit.Value), names[i%3], sizes[i%3]
		switch {
		case !limit.Set || n < 0:
		case i < 3 && asked > n:
			return fail(errno.Invalid, "requested %s (%d) exceeds policy limit of %d%s", what, asked, n, where)
		case i >= 3 && asked < n:
			return fail(errno.Invalid, "requested %s (%d) is under policy limit of %d%s", what, asked, n, where)
		}
	}
	return nil
}

// product returns a*b for numbers that are not negative, or the greatest int64.
func product(a, b int64) int64 {
	if b != 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// outlives returns an error if a job would run for longer than the instance does.
func (s *limits) outlives(d time.Duration) error {
	if d == 0 || s.expiration.Value == 0 {
		return nil
	}
	left := s.expiration.Value.Time().Sub(s.now())
	switch {
	case d <= left:
		return nil
	case left < 0:
		return fail(errno.Invalid, "duration exceeds instance lifetime")
	}
	return fail(errno.Invalid, "job duration (%s) exceeds remaining instance lifetime (%s)", fsd.Duration(d).Format(2), fsd.Duration(left).Format(2))
}

// expireAll notes when the instance's own resources expire. After a change, running jobs
// without a duration expire with them. The process before may have ended with a change that was not
// stored: after a restart, those that expire at another time do so as well. One that never
// expires stays so then, since that is no harm, and the owner may have wanted it.
func (s *limits) expireAll(at eventlog.Timestamp) error {
	old := s.expiration
	s.expiration = jobstate.Some(at)
	if old.Value != at {
		s.quick.infof("duration-validator: updated expiration to %.2f", at)
	}
	if old.Set && old.Value == at || !old.Set && !s.restored {
		return nil
	}
	if n := s.m.Stats().States; old.Set && n[jobstate.StateRun]+n[jobstate.StateCleanup] > 0 {
		s.quick.infof("resource expiration updated %s", change(old.Value, at))
	}
	var list []jobid.ID
	for v := range s.m.Jobs(jobstate.StateRun) {
		r := v.R()
		switch {
		case r == nil, v.Jobspec().Duration() != 0, at != 0 && at <= r.Start():
		case !old.Set && (r.Expiration() == 0 || r.Expiration() == at):
		default:
			list = append(list, v.ID())
			s.quick.infof("updated expiration of %s %s", s.name(v.ID()), change(r.Expiration(), at))
		}
	}
	var err error
	for _, id := range list {
		err = errors.Join(err, s.expire(id, at))
	}
	return err
}

// change describes a new expiration; 0 is never.
func change(old, at eventlog.Timestamp) string {
	by := fmt.Sprintf("%+.6g", at-old)
	switch {
	case old == 0:
		by = "-inf"
	case at == 0:
		by = "+inf"
	}
	return fmt.Sprintf("from %.2f to %.2f (%s)", old, at, by)
}

// expire sets when the resources of a job expire. The scheduler knows.
func (s *limits) expire(id jobid.ID, at eventlog.Timestamp) error {
	s.known[id] = at
	err := s.step(joblife.SetExpiration{ID: id, Expiration: at})
	if err != nil {
		delete(s.known, id)
	}
	return err
}

// dropKnown drops messages about expirations that the scheduler knows already. Where it hears an
// earlier one first, since both became durable at once, it must hear the later one again.
func (s *limits) dropKnown(list []alloc.Message) []alloc.Message {
	kept := list[:0]
	for _, m := range list {
		if e, ok := m.(alloc.Expiration); ok {
			at, ok := s.known[e.ID]
			if delete(s.known, e.ID); ok && at == e.Expiration {
				continue
			}
		}
		kept = append(kept, m)
	}
	return kept
}
