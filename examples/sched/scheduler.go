package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
)

// scheduler decides. It knows nothing of lines: its methods are the messages,
// and what it says goes to answer. One that returns an error has changed
// nothing, unless it says so.
type scheduler struct {
	policy policy
	answer func(alloc.Response)
	logf   func(format string, args ...any)

	now     eventlog.Timestamp // of the message; it never goes back
	pool    *pool.Pool         // nil before the first resource.acquire
	extra   json.RawMessage    // the key scheduling of the inventory, nil if it has none
	ready   bool               // all that is held is known
	unknown int                // how many jobs of this hello it cannot account for
	limit   int                // of requests that wait; 0: none
	fit     pool.Fit
	jobs    map[jobid.ID]*job
	most    int // of them
	waiting queue
	stats   stats
}

// name is a job for people: its id as in the messages, and as Flux prints it.
type name jobid.ID

func (n name) String() string { return fmt.Sprintf("job %d (%v)", uint64(n), jobid.ID(n)) }

// ranks is a set of ranks for people.
type ranks struct{ *idset.Set }

func (r ranks) String() string {
	if r.IsEmpty() {
		return "none"
	}
	return r.Set.String()
}

// maxJobs is how many jobs may wait and hold resources, together.
const maxJobs = 1 << 20

// acquire takes the inventory, or a change of it.
func (s *scheduler) acquire(a pool.Acquire) error {
	p := s.pool
	switch {
	case a.Resources != nil && p != nil:
		return refuse(errno.Exists, "the inventory is known: only the first response may have resources")
	case a.Resources == nil && p == nil:
		return refuse(errno.Again, "there is no inventory: the first response must have resources")
	case p == nil:
		var err error
		if p, err = pool.New(a.Resources, pool.Config{MaxJobs: s.most, Fit: s.fit}); err != nil {
			return err
		}
	}
	if err := p.Update(a.Change); err != nil {
		return err
	}
	if s.pool = p; a.Resources != nil {
		s.extra = a.Resources.Scheduling()
	}
	c := a.Change
	if a.Resources != nil || c.Shrink != nil {
		s.stats.capacity = p.Inventory().Count("core")
	}
	s.logf("%d cores; ranks up: %v, down: %v, away: %v", s.stats.capacity, ranks{c.Up}, ranks{c.Down}, ranks{c.Shrink})
	if c.Expiration != nil {
		s.logf("all expires at %v, where 0 is never", *c.Expiration)
	}
	if len(c.AddProperties)+len(c.RemoveProperties) > 0 || c.Shrink != nil {
		s.denyHopeless()
	}
	s.schedule(nil)
	return nil
}

// denyHopeless denies what waits and can never be met with the inventory as it
// is now.
func (s *scheduler) denyHopeless() {
	for _, j := range slices.Clone(s.waiting) {
		if err := s.pool.Feasible(j.request); err != nil {
			s.deny(j, err)
		}
	}
}

// adopt takes a job that holds resources. The error may be a report of what is
// held twice or is not in the inventory: the job is adopted anyway. Until the
// last job of the hello has come, nothing starts.
func (s *scheduler) adopt(h alloc.HelloResponse) error {
	s.ready = false
	known, err := s.tryAdopt(h)
	if !known {
		s.unknown++
	}
	return err
}

// missed takes a line that cannot be read. While a hello goes on it may have
// been a job that holds resources.
func (s *scheduler) missed() {
	if !s.ready {
		s.unknown++
	}
}

// tryAdopt is adopt, and reports whether it is known what the job holds.
func (s *scheduler) tryAdopt(h alloc.HelloResponse) (known bool, err error) {
	j := s.jobs[h.ID]
	switch {
	case s.pool == nil:
		return false, refuse(errno.Again, "job %v holds resources and there is no inventory: resource.acquire comes first", h.ID)
	case j != nil && !j.running:
		return false, refuse(errno.Exists, "job %v holds resources, and a request of it waits here", h.ID)
	case j == nil && len(s.jobs) >= s.most:
		return false, refuse(errno.NoMemory, "job %v: at most %d jobs are allowed", h.ID, s.most)
	case h.R == nil:
		return false, refuse(errno.NoEntry, "job %v has no R, and there is no store to look it up in", h.ID)
	}
	err = s.pool.Adopt(h.ID, h.R, h.Free)
	held, ok := s.pool.Holder(h.ID)
	if !ok || errors.Is(err, pool.ErrExists) {
		return false, err // nothing, or something else than the hello says
	}
	if j == nil {
		j = &job{id: h.ID, priority: h.Priority, since: s.now, running: true}
		j.cores = held.Held.Count("core") + held.Gone.Count("core")
		s.jobs[j.id] = j
		s.stats.held += j.cores
		s.stats.adopted++
		s.logf("%v holds %v", name(j.id), held.Held)
	}
	return true, err
}

// adopted ends the jobs of a hello. The error says why the scheduler cannot be
// ready.
func (s *scheduler) adopted() error {
	unknown := s.unknown
	s.unknown = 0
	s.ready = false
	switch {
	case s.pool == nil:
		return refuse(errno.Again, "not ready: there is no inventory, resource.acquire comes first")
	case unknown > 0:
		return refuse(errno.Again, "not ready: the resources of %s are unknown; send the hello again, with R", lines.Count(unknown, "job"))
	}
	s.ready = true
	s.logf("ready; %s with resources", lines.Count(s.pool.Len(), "job"))
	return nil
}

// request takes a request for resources. One that cannot be met is denied,
// which is no error.
func (s *scheduler) request(q alloc.Request) error {
	switch {
	case !s.ready:
		return refuse(errno.Again, "not ready: the hello has not ended well")
	case s.jobs[q.ID] != nil && s.jobs[q.ID].running:
		return refuse(errno.Exists, "job %v has resources already", q.ID)
	case s.jobs[q.ID] != nil:
		return refuse(errno.Exists, "job %v waits already", q.ID)
	case len(s.jobs) >= s.most:
		return refuse(errno.NoMemory, "job %v: at most %d jobs are allowed", q.ID, s.most)
	}
	j := &job{id: q.ID, priority: q.Priority, since: s.now}
	if q.Submit > 0 {
		j.since = q.Submit
	}
	s.jobs[j.id] = j
	s.waiting.add(j)
	var err error
	if j.request, err = s.understand(q.Jobspec); err != nil {
		s.deny(j, err)
		return nil
	}
	s.logf("%v wants %v", name(j.id), j.request)
	s.schedule(j)
	return nil
}

// understand returns what a jobspec asks for, if the inventory has it.
func (s *scheduler) understand(text []byte) (*pool.Request, error) {
	spec, err := jobspec.Parse(text)
	if err != nil {
		return nil, err
	}
	q, err := pool.NewRequest(spec)
	if err != nil {
		return nil, err
	}
	return q, s.pool.Feasible(q)
}

// cancel takes back a request that waits. It never touches an allocation: only
// a free does, since a job that was canceled may still run.
func (s *scheduler) cancel(c alloc.Cancel) {
	j := s.jobs[c.ID]
	if j == nil || j.running {
		s.logf("cancel of %v ignored: it does not wait", name(c.ID))
		return
	}
	s.forget(j)
	s.stats.canceled++
	s.logf("%v canceled", name(j.id))
	s.answer(alloc.Response{ID: j.id, Type: alloc.ResponseCancel})
	s.schedule(nil)
}

// forget takes a job that waits out of the queue and the table.
func (s *scheduler) forget(j *job) {
	s.waiting.remove(j)
	delete(s.jobs, j.id)
}

// prioritize puts the queue into another order. Jobs that do not wait are
// ignored.
func (s *scheduler) prioritize(m alloc.Prioritize) {
	for _, p := range m.Jobs {
		if j := s.jobs[p.ID]; j != nil {
			j.priority = p.Priority
		}
	}
	s.waiting.sort()
	s.schedule(nil)
}

// free takes back a fragment of an allocation.
func (s *scheduler) free(f alloc.Free) error {
	if s.pool == nil {
		return refuse(errno.Again, "there is no inventory yet")
	}
	freed, err := s.pool.Free(f.ID, f.R, f.Final)
	if err != nil {
		return err
	}
	j := s.jobs[f.ID]
	cores := f.R.Count("core")
	if f.Final {
		cores = j.cores
		delete(s.jobs, j.id)
		s.stats.done++
	}
	j.cores -= cores
	s.stats.held -= cores
	switch {
	case !freed.Rest.IsEmpty():
		s.logf("%v done; the fragments left out %v, which is free now", name(f.ID), freed.Rest)
	case f.Final:
		s.logf("%v done", name(f.ID))
	default:
		s.logf("%v gave back %v", name(f.ID), f.R)
	}
	s.schedule(nil)
	return nil
}

// expire changes the expiration of an allocation.
func (s *scheduler) expire(e alloc.Expiration) error {
	if s.pool == nil {
		return refuse(errno.Again, "there is no inventory yet")
	}
	if err := s.pool.SetExpiration(e.ID, e.Expiration); err != nil {
		return err
	}
	s.logf("%v expires at %v, where 0 is never", name(e.ID), e.Expiration)
	s.schedule(nil)
	return nil
}

// schedule lets the policy start what may start. If the only
// change is a new request, arrived is that request; otherwise it is nil.
func (s *scheduler) schedule(arrived *job) {
	if s.ready {
		s.policy.schedule(s, arrived)
	}
}

// try gives a job resources of the pool, without a response. It returns nil if the job
// has to wait, or can never start and is denied.
func (s *scheduler) try(j *job) *rset.R {
	r, err := s.pool.Alloc(j.id, j.request, s.now)
	switch {
	case err == nil:
		return r
	case errors.Is(err, pool.ErrBusy):
	case errors.Is(err, pool.ErrExpired): // the pool has expired, which may be put off
		s.logf("%v has to wait: %v", name(j.id), err)
	default:
		s.deny(j, err)
	}
	return nil
}

// complete returns what the pool gave a job, with the scheduling of the inventory.
func (s *scheduler) complete(j *job, r *rset.R) *rset.R {
	if s.extra == nil {
		return r
	}
	text := append(bytes.TrimSuffix(r.AppendJSON(nil), []byte("}")), `,"scheduling":`...)
	r = must(rset.Parse(append(append(text, s.extra...), '}')))
	must(s.pool.Free(j.id, nil, true))
	if err := s.pool.Adopt(j.id, r, nil); err != nil { // a hello may tell of it in these words
		panic(err) // it was free
	}
	return r
}

// must returns the result of what cannot fail.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// keep makes an allocation of what try gave.
func (s *scheduler) keep(j *job, r *rset.R) {
	r = s.complete(j, r)
	s.waiting.remove(j)
	j.running = true
	j.cores = r.Count("core")
	s.stats.held += j.cores
	s.stats.start(j, s.now)
	s.logf("%v gets %v", name(j.id), r)
	s.answer(alloc.Response{ID: j.id, Type: alloc.ResponseSuccess, R: r, Annotations: summaryOf(j, r)})
	j.estimate = 0
}

// start starts a job if it fits.
func (s *scheduler) start(j *job) {
	if r := s.try(j); r != nil {
		s.keep(j, r)
	}
}

// deny answers a request that can never be met.
func (s *scheduler) deny(j *job, why error) {
	s.forget(j)
	s.stats.denied++
	s.logf("%v denied: %s", name(j.id), reason(why))
	s.answer(alloc.Response{ID: j.id, Type: alloc.ResponseDeny, Note: reason(why)})
}

// reason returns why a request cannot be met, for the user.
func reason(err error) string {
	text := strings.TrimPrefix(err.Error(), pool.ErrRequest.Error()+": ")
	if request, ok := strings.CutPrefix(text, pool.ErrInfeasible.Error()+": "); ok {
		return "unsatisfiable " + request // in the words of flux-core
	}
	return strings.TrimPrefix(text, "pool: ")
}

// annotate sends when a waiting job is to start; 0 means no longer known.
func (s *scheduler) annotate(j *job, at eventlog.Timestamp) {
	j.estimate = at
	if at > 0 {
		s.logf("%v is to start at %v", name(j.id), at)
	} else {
		s.logf("the start of %v is no longer known", name(j.id))
	}
	s.answer(alloc.Response{ID: j.id, Type: alloc.ResponseAnnotate, Annotations: estimateOf(at)})
}
