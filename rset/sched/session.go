package sched

import (
	"errors"
	"fmt"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
)

const maxScheduling = rset.MaxBytes / 2 // each R of a job has the key, and rset.Parse reads it

// Acquire takes a response to resource.acquire: first the inventory, then changes of it. Jobs
// that the inventory can never meet any more are denied. The error is ErrExists for a second
// inventory, ErrNotReady for a change without one, ErrLimit for one whose key scheduling has more
// than 32 MiB, or what pool.New and pool.Pool.Update return; then nothing has changed. Also after
// a change of nothing the next Decide asks the policy.
func (s *Scheduler) Acquire(a pool.Acquire) error {
	s.enter()
	p, c := s.pool, a.Change
	switch {
	case a.Resources != nil && p != nil:
		return refuse(ErrExists, "the inventory is known: only the first response may have resources")
	case a.Resources == nil && p == nil:
		return refuse(ErrNotReady, "there is no inventory: the first response must have resources")
	case p == nil && len(a.Resources.Scheduling()) > maxScheduling:
		return refuse(ErrLimit, "the key scheduling of the inventory has %d bytes, at most %d are allowed", len(a.Resources.Scheduling()), maxScheduling)
	case p == nil:
		var err error
		if p, err = pool.New(a.Resources, pool.Config{MaxJobs: s.cfg.MaxJobs, Fit: s.cfg.Fit}); err != nil {
			return err
		}
	}
	if err := p.Update(c); err != nil {
		return err
	}
	s.pool, s.full = p, true
	s.cfg.Logf("%d cores; ranks up: %v, down: %v, away: %v", p.Inventory().Count("core"), ranks{c.Up}, ranks{c.Down}, ranks{c.Shrink})
	if c.Expiration != nil {
		s.cfg.Logf("all expires at %v, where 0 is never", *c.Expiration)
	}
	if len(c.AddProperties)+len(c.RemoveProperties) > 0 || c.Shrink != nil {
		for j := s.queue.first(nil); j != nil; j = s.queue.after(j.key(), nil) {
			if err := p.Feasible(j.Request); err != nil {
				s.forget(j)
				s.denied(j.ID, err)
			}
		}
	}
	return nil
}

// Drain is Acquire of ranks in Change.Down, of which it ignores those not in the inventory.
// Without an inventory the error is ErrNotReady.
func (s *Scheduler) Drain(ranks *idset.Set) error {
	if s.pool == nil {
		return errNoInventory()
	}
	down := idset.Intersect(ranks, s.pool.Inventory().Ranks())
	return s.Acquire(pool.Acquire{Change: pool.Change{Down: down}})
}

// Handle takes a message of the manager, of which it retains an R alone. The error is
// ErrNotReady, ErrExists, ErrNoR or ErrLimit; that of Pool.Free for an alloc.Free, of
// Pool.SetExpiration for an alloc.Expiration, and of jobspec.Parse, pool.NewRequest and
// Pool.Feasible for an alloc.Feasibility; or there is one for a message that only a
// scheduler sends. Then nothing has changed. What Pool.Adopt reports of an
// alloc.HelloResponse, ErrExists excepted, leaves the job with its resources.
func (s *Scheduler) Handle(m alloc.Message) error {
	s.enter()
	switch m := m.(type) {
	case alloc.HelloResponse:
		return s.adopt(m)
	case alloc.ReadyResponse:
		return nil
	case alloc.Request:
		return s.request(m)
	case alloc.Cancel:
		s.cancel(m)
		return nil
	case alloc.Prioritize:
		s.prioritize(m)
		return nil
	case alloc.Free:
		return s.free(m)
	case alloc.Expiration:
		return s.expire(m)
	case alloc.Feasibility:
		if s.pool == nil {
			return errNoInventory()
		}
		_, err := s.understand(m.Jobspec)
		return err
	}
	return fmt.Errorf("%w: %T", errSide, m)
}

func errNoInventory() error { return refuse(ErrNotReady, "there is no inventory yet") }

// Hello begins a session with a manager in the same program, which has said hello, and ends the
// one before: with the configuration and the inventory as they are, and the jobs of the hello
// alone. The error joins what Handle and EndHello return; if EndHello failed, nothing starts
// before another hello. Without an inventory it is ErrNotReady, and nothing has changed.
func (s *Scheduler) Hello(a alloc.Announcement) error {
	s.enter()
	if s.pool == nil {
		return errNoInventory()
	}
	s.renew()
	var faults []error
	for _, h := range a.Responses {
		faults = append(faults, s.Handle(h))
	}
	_, fault := s.EndHello()
	return errors.Join(append(faults, fault)...)
}

// renew forgets all but the configuration, the inventory and the time.
func (s *Scheduler) renew() {
	all, now := s.pool.Inventory(), s.now
	up := idset.Difference(all.Ranks(), s.pool.Down().Ranks())
	s.reset(s.cfg)
	err := s.Acquire(pool.Acquire{Resources: all, Change: pool.Change{Up: up}})
	if err != nil {
		panic("sched: broken invariant: " + err.Error()) // it was accepted before
	}
	s.now = now
}

// hear notes a response to a hello, or their end. Behind an end they are of another hello.
func (s *Scheduler) hear() {
	if s.heard && s.pool != nil {
		s.renew()
	}
	s.heard, s.ready = false, false
}

// Missed says that a line of the manager could not be parsed: what alloc.ParseFromManager returned
// with the error. If it may be a response to a hello, EndHello fails.
func (s *Scheduler) Missed(l alloc.Line) {
	s.enter()
	if l.Topic == alloc.TopicHello || l.Topic == "" && !s.ready {
		s.hear()
		s.unknown++
	}
}

// adopt takes a job that has resources. Nothing starts before the end of the hello.
func (s *Scheduler) adopt(h alloc.HelloResponse) error {
	s.hear()
	s.unknown++ // until it is known what the job has
	j := s.jobs[h.ID]
	switch {
	case s.pool == nil:
		return refuse(ErrNotReady, "job %v holds resources and there is no inventory: resource.acquire comes first", h.ID)
	case j == nil && len(s.jobs) >= s.cfg.MaxJobs:
		return s.tooMany(h.ID)
	case h.R == nil:
		return refuse(ErrNoR, "job %v has no R, and there is no store to look it up in", h.ID)
	}
	err := s.pool.Adopt(h.ID, h.R, h.Free)
	held, ok := s.pool.Allocation(h.ID)
	if !ok || errors.Is(err, pool.ErrExists) {
		return err // nothing, or something else than the hello says
	}
	if s.unknown--; j == nil {
		s.jobs[h.ID] = &job{Job: Job{JobInfo: h.JobInfo}, state: holds}
		s.cfg.Logf("%v holds %v", named(h.ID), held.Held)
	}
	return err
}

// EndHello ends the responses to a hello, and returns the message to send then. The error is
// ErrNotReady if there is no inventory, or if it is not known what a job of the hello has; then
// say hello again. With the first response to another hello, or its EndHello, what is known of
// jobs is forgotten, and requests come again.
func (s *Scheduler) EndHello() (alloc.Ready, error) {
	s.enter()
	s.hear()
	unknown := s.unknown
	s.unknown, s.heard = 0, true
	switch {
	case s.pool == nil:
		return alloc.Ready{}, refuse(ErrNotReady, "not ready: there is no inventory, resource.acquire comes first")
	case unknown > 0:
		return alloc.Ready{}, refuse(ErrNotReady, "not ready: the resources of %s are unknown; send the hello again, with R", plural(unknown))
	}
	s.ready, s.full = true, true
	s.cfg.Logf("ready; %s with resources", plural(s.pool.Len()))
	return alloc.Ready{Limit: s.cfg.Limit}, nil
}

func plural(jobs int) string {
	if jobs == 1 {
		return "1 job"
	}
	return fmt.Sprint(jobs, " jobs")
}

func (s *Scheduler) tooMany(id jobid.ID) error {
	return refuse(ErrLimit, "job %v: Config.MaxJobs is %d, and as many wait or have resources", id, s.cfg.MaxJobs)
}

func (s *Scheduler) request(m alloc.Request) error {
	switch j := s.jobs[m.ID]; {
	case !s.ready:
		return refuse(ErrNotReady, "not ready: the hello has not ended well")
	case j != nil && j.state == holds:
		return refuse(ErrExists, "job %v has resources already", m.ID)
	case j != nil:
		return refuse(ErrExists, "job %v waits already", m.ID)
	case len(s.jobs) >= s.cfg.MaxJobs:
		return s.tooMany(m.ID)
	}
	q, err := s.understand(m.Jobspec)
	if err != nil {
		s.denied(m.ID, err)
		return nil
	}
	j := &job{Job: Job{JobInfo: m.JobInfo, Request: q}, need: needOf(q), state: waits}
	s.jobs[j.ID] = j
	s.shared += j.shares()
	s.queue.insert(j.entry())
	s.fresh = append(s.fresh, j)
	s.cfg.Logf("%v wants %v", named(j.ID), j.Request)
	return nil
}

func (j *job) entry() entry { return entry{j.key(), j.need, j} }

// shares returns 1 for a job that asks for something else than a number of whole nodes, or 0.
func (j *job) shares() int {
	if _, _, whole := j.Request.Least(); whole {
		return 0
	}
	return 1
}

// requests has what the last jobspecs ask for, since many jobs have the same.
type requests struct {
	known map[string]*pool.Request
	bytes int // of texts
}

// maxKnownBytes are the bytes of texts beyond which it forgets all.
const maxKnownBytes = 1 << 22

func (k *requests) of(text []byte) (*pool.Request, error) {
	if q, ok := k.known[string(text)]; ok {
		return q, nil
	}
	spec, err := jobspec.Parse(text)
	if err != nil {
		return nil, err
	}
	q, err := pool.NewRequest(spec)
	if err != nil {
		return nil, err
	}
	if k.bytes += len(text); k.known == nil || k.bytes > maxKnownBytes {
		k.known, k.bytes = make(map[string]*pool.Request), len(text)
	}
	k.known[string(text)] = q
	return q, nil
}

// understand returns what a jobspec asks for, if the inventory has it.
func (s *Scheduler) understand(text []byte) (*pool.Request, error) {
	q, err := s.requests.of(text)
	if err == nil {
		err = s.pool.Feasible(q)
	}
	return q, err
}

// cancel takes back a request. It touches no allocation: a canceled job may still run.
func (s *Scheduler) cancel(m alloc.Cancel) {
	j := s.jobs[m.ID]
	if j == nil || j.state == holds {
		s.cfg.Logf("cancel of %v ignored: it does not wait", named(m.ID))
		return
	}
	s.forget(j)
	s.full = true
	s.out = append(s.out, alloc.Response{ID: j.ID, Type: alloc.ResponseCancel})
}

func (s *Scheduler) forget(j *job) {
	s.leave(j)
	j.state = gone
	delete(s.jobs, j.ID)
}

func (s *Scheduler) leave(j *job) {
	s.unplan(j)
	s.queue.remove(j.key())
	s.shared -= j.shares()
}

func (s *Scheduler) prioritize(m alloc.Prioritize) {
	s.full = true
	for _, p := range m.Jobs {
		j := s.jobs[p.ID]
		if j == nil || j.state == holds {
			continue
		}
		s.queue.remove(j.key())
		j.Priority = p.Priority
		s.queue.insert(j.entry())
	}
}

func (s *Scheduler) free(m alloc.Free) error {
	if s.pool == nil {
		return errNoInventory()
	}
	rest, err := s.pool.Free(m.ID, m.R, m.Final)
	if err != nil {
		return err
	}
	if s.full = true; m.Final {
		delete(s.jobs, m.ID)
	}
	switch {
	case s.quiet: // what a Logf gets would be allocated for each node that is freed
	case !rest.IsEmpty():
		s.cfg.Logf("%v done; the fragments left out %v, which is free now", named(m.ID), rest)
	case m.Final:
		s.cfg.Logf("%v done", named(m.ID))
	default:
		s.cfg.Logf("%v gave back %v", named(m.ID), m.R)
	}
	return nil
}

func (s *Scheduler) expire(m alloc.Expiration) error {
	if s.pool == nil {
		return errNoInventory()
	}
	if err := s.pool.SetExpiration(m.ID, m.Expiration); err != nil {
		return err
	}
	s.full = true
	s.cfg.Logf("%v expires at %v, where 0 is never", named(m.ID), m.Expiration)
	return nil
}
