package joblife_test

import (
	"bytes"
	"errors"
	"maps"
	"slices"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
)

// scheduler is a scheduler with a pool, which says hello when it feels like it.
type scheduler struct {
	p       *play
	pool    *pool.Pool
	phase   int // 0: no session; 1: said hello; 2: was responded to; 3: said ready
	asked   []alloc.Request
	inbox   []joblife.Input // on their way to the Manager
	recalls map[jobid.ID]bool
	late    []joblife.SchedResponse // of sessions that are over
	old     *pool.Pool              // what it believed once
	stale   bool                    // it believes that again, whatever the hello tells
}

// lost ends the session: all that is on its way is lost.
func (s *scheduler) lost() {
	for _, in := range s.inbox {
		if r, ok := in.(joblife.SchedResponse); ok && s.p.rare(0.3) {
			s.late = append(s.late, r)
		}
	}
	s.phase, s.asked, s.inbox, s.recalls = 0, nil, nil, nil
}

// refused ends the session, as an answer that is refused does.
func (s *scheduler) refused() {
	if s.lost(); s.p.P(0.5) {
		s.p.Must(s.p.step(joblife.SchedLost{}))
	}
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

// hello takes the response to a hello.
func (s *scheduler) hello(a *alloc.Announcement) {
	if len(a.Failed) > 0 {
		s.p.Fail("hello: %v", a.Failed[0])
	}
	if s.stale = s.old != nil && s.p.rare(0.1); s.stale {
		s.pool = s.old.Clone()
		s.ups()
		s.phase = 2
		return
	}
	ranks := idset.Range(0, nodes-1)
	r, err := rset.New(rset.Config{Entries: []rset.Entry{{Ranks: ranks, Children: map[string]*idset.Set{"core": idset.Range(0, cores-1)}}}})
	s.p.Must(err)
	s.pool, err = pool.New(r, pool.Config{})
	s.p.Must(err)
	for _, h := range a.Responses {
		s.p.Say("hello %v holds %v, freed %v", h.ID, h.R.Ranks(), h.Free)
		s.p.Must(s.pool.Adopt(h.ID, h.R, h.Free))
	}
	s.ups()
	s.phase = 2
}

// ups tells the pool which nodes are up.
func (s *scheduler) ups() {
	if s.pool != nil {
		down := idset.Union(s.p.drained, s.p.offline)
		s.p.Must(s.pool.Update(pool.Change{Up: idset.Difference(idset.Range(0, nodes-1), down), Down: down}))
	}
}

func (s *scheduler) say(r alloc.Response) {
	s.inbox = append(s.inbox, joblife.SchedResponse(r))
}

// take takes a message.
func (s *scheduler) take(msg alloc.Message) {
	if s.phase < 2 {
		return // it is of an earlier session, which nobody reads any more
	}
	switch msg := msg.(type) {
	case alloc.Request:
		s.p.Say("request for %v", msg.ID)
		if slices.ContainsFunc(s.asked, func(r alloc.Request) bool { return r.ID == msg.ID }) {
			s.p.Fail("a second request for %v", msg.ID)
		}
		msg.Jobspec = bytes.Clone(msg.Jobspec)
		s.asked = append(s.asked, msg)
	case alloc.Cancel:
		s.p.Say("cancel of the request for %v", msg.ID)
		if i := s.index(msg.ID); i >= 0 && !s.p.rare(0.3) {
			s.asked = slices.Delete(s.asked, i, i+1)
			s.say(alloc.Response{ID: msg.ID, Type: alloc.ResponseCancel})
		}
	case alloc.Free:
		s.p.Say("free %v of %v final %v", msg.R.Ranks(), msg.ID, msg.Final)
		s.p.judgeServices(msg.ID, msg.R.Ranks())
		if _, err := s.pool.Free(msg.ID, msg.R, msg.Final); err != nil && !s.stale {
			s.p.Fail("free: %v", err)
		}
	}
}

func (s *scheduler) index(id jobid.ID) int {
	return slices.IndexFunc(s.asked, func(r alloc.Request) bool { return r.ID == id })
}

// work does something.
func (s *scheduler) work() {
	p := s.p
	switch {
	case s.phase == 0:
		if p.step(joblife.SchedHello{PartialOK: p.P(0.5)}) == nil {
			s.phase = 1
		}
		return
	case s.phase == 1:
		return
	case s.phase == 2:
		in := joblife.SchedReady{}
		if p.P(0.3) {
			in.Limit = 1 + p.N(3)
		}
		p.Must(p.step(in))
		s.phase = 3
		return
	case p.rare(0.02), p.honest && s.stale:
		s.refused()
		return
	case p.rare(0.04):
		s.old = s.pool.Clone()
		return
	case len(s.late) > 0 && p.rare(0.2):
		s.answerLate()
		return
	}
	if len(s.inbox) > 0 && (p.honest || p.P(0.6)) {
		in := s.inbox[0]
		s.inbox = s.inbox[1:]
		if err := p.step(in); err != nil && !p.stops {
			p.Fail("the scheduler's response %+v: %v", in, err)
		}
		return
	}
	if len(s.asked) > 0 {
		s.decide(p.N(len(s.asked)))
	}
}

// decide decides about a request.
func (s *scheduler) decide(i int) {
	p, req := s.p, s.asked[i]
	gone := func() { s.asked = slices.Delete(s.asked, i, i+1) }
	switch {
	case p.rare(0.02):
		gone()
		s.say(alloc.Response{ID: req.ID, Type: alloc.ResponseDeny, Note: "no"})
		return
	case p.rare(0.02):
		gone()
		s.say(alloc.Response{ID: req.ID, Type: alloc.ResponseCancel})
		return
	case p.rare(0.03):
		s.bookTwice(req.ID)
		return
	case p.rare(0.05):
		s.say(alloc.Response{ID: req.ID, Type: alloc.ResponseAnnotate, Annotations: []byte(`{"sched":{"t_estimate":5}}`)})
		return
	}
	spec, err := jobspec.Parse(req.Jobspec)
	p.Must(err)
	q, err := pool.NewRequest(spec)
	p.Must(err)
	r, err := s.pool.Alloc(req.ID, q, eventlog.FromTime(p.now))
	if err != nil {
		p.Say("%v: %v", req.ID, err)
		return
	}
	gone()
	p.Say("allocate %v to %v", r.Ranks(), req.ID)
	if s.stale {
		s.inbox = slices.DeleteFunc(s.inbox, func(in joblife.Input) bool { // what it said of the request before
			r, ok := in.(joblife.SchedResponse)
			return ok && r.ID == req.ID
		})
		switch err := p.step(joblife.SchedResponse{ID: req.ID, R: r}); {
		case err == nil:
			p.w.Allocated(req.ID, r)
		case errors.Is(err, joblife.ErrConflict) || p.stops:
			s.refused()
		default:
			p.Fail("the scheduler's response for %v: %v", req.ID, err)
		}
		return
	}
	p.w.Allocated(req.ID, r)
	s.say(alloc.Response{ID: req.ID, Type: alloc.ResponseSuccess, R: r})
}

// executor runs jobs, and survives the Manager.
type executor struct {
	p     *play
	on    bool
	jobs  map[jobid.ID]*running
	inbox []joblife.Input
}

// running is a job that the executor has.
type running struct {
	id       jobid.ID
	ranks    *idset.Set
	asked    bool // it was asked for in this session
	started  bool // it said so, in this session
	kill     bool
	finished bool // it said so, in this session
	released *idset.Set
	final    bool
	lost     bool // the executor does not have it any more
}

// lost ends the session.
func (x *executor) lost() {
	x.on, x.inbox = false, nil
	for _, j := range x.jobs {
		j.asked, j.started, j.finished, j.final, j.released = false, false, false, false, new(idset.Set)
	}
}

// die loses all jobs.
func (x *executor) die() {
	for id := range x.jobs {
		x.p.w.Ended(id, nil)
		x.jobs[id].lost = true
	}
}

func (x *executor) raised(r joblife.Raised) {
	if j := x.jobs[r.Job]; j != nil && r.Severity == 0 {
		j.kill = true
	}
}

// take takes one message.
func (x *executor) take(msgs []exec.Message) {
	s, ok := msgs[0].(exec.Start)
	if !ok || !x.on {
		return
	}
	p, j := x.p, x.jobs[s.ID]
	p.Say("executor: start %v on %v reattach %v, has %v", s.ID, s.R.Ranks(), s.Reattach, j != nil)
	if (j == nil || j.lost && len(p.logs[s.ID]) > 0 && !bytes.Contains(p.logs[s.ID], []byte(`"name":"start"`))) && s.Reattach || j == nil && p.rare(0.03) {
		if j != nil {
			p.w.Excuse(s.ID, nil) // it forgot that it ran the job, so that no epilog is due
		}
		x.inbox = append(x.inbox, joblife.ExecRefused{ID: s.ID, Note: "no"})
		return
	}
	if j == nil || j.lost && !s.Reattach {
		p.w.Do(&joblife.Ready{Exec: msgs})
		j = &running{id: s.ID, ranks: s.R.Ranks().Clone(), released: new(idset.Set)}
		x.jobs[s.ID] = j
	}
	j.asked = true
}

// work does something.
func (x *executor) work() {
	p := x.p
	switch {
	case !x.on:
		if p.step(joblife.ExecHello{}) == nil {
			x.on = true
		}
		return
	case p.rare(0.02):
		x.lost()
		if p.P(0.3) {
			p.Say("the executor dies with its jobs")
			x.die()
		}
		if p.P(0.5) {
			p.Must(p.step(joblife.ExecLost{}))
		}
		return
	}
	if len(x.inbox) > 0 && (p.honest || p.P(0.6)) {
		in := x.inbox[0]
		x.inbox = x.inbox[1:]
		err := p.step(in)
		if r, ok := in.(joblife.ExecRefused); ok && err != nil {
			x.jobs[r.ID] = &running{id: r.ID, lost: true, asked: true, released: new(idset.Set)}
		}
		return
	}
	ids := slices.Sorted(maps.Keys(x.jobs))
	if len(ids) == 0 {
		return
	}
	j := x.jobs[ids[p.N(len(ids))]]
	if p.honest {
		for _, id := range ids {
			x.run(x.jobs[id])
		}
		return
	}
	x.run(j)
}

// run lets a job go on.
func (x *executor) run(j *running) {
	p := x.p
	say := func(r exec.Response) { x.inbox = append(x.inbox, joblife.ExecResponse(r)) }
	switch {
	case j.final || !j.asked:
	case j.lost:
		say(exec.Response{ID: j.id, Type: exec.ResponseException, Exception: exec.Exception{Type: "exec", Note: "lost"}})
		say(exec.Response{ID: j.id, Type: exec.ResponseRelease, Final: true})
		j.final = true
	case !j.started && p.rare(0.03) && !p.ran(j.id):
		p.Say("%v: the executor gives up", j.id)
		p.w.Ended(j.id, nil)
		p.w.Excuse(j.id, nil) // without a start no epilog is due
		j.final = true
		say(exec.Response{ID: j.id, Type: exec.ResponseRelease, Final: true})
	case !j.started:
		j.started = true
		kind := exec.ResponseStart
		if p.ran(j.id) {
			kind = exec.ResponseReattached
		}
		say(exec.Response{ID: j.id, Type: kind})
	case x.live(j):
		for rank := range j.ranks.All() {
			if p.w.Runs(j.id, rank) && (p.honest || j.kill || p.P(0.5)) {
				p.Say("%v ends on rank %d", j.id, rank)
				p.w.Ended(j.id, idset.Of(rank))
			}
		}
	case !j.finished:
		j.finished = true
		r := exec.Response{ID: j.id, Type: exec.ResponseFinish}
		if j.kill {
			r.Status = 15
		} else if p.rare(0.2) {
			r.Status = 256
		}
		say(r)
	case p.rare(0.6):
		if some := idset.Difference(idset.Intersect(p.someRanks(0.5), j.ranks), j.released); !some.IsEmpty() {
			j.released.UnionWith(some)
			say(exec.Response{ID: j.id, Type: exec.ResponseRelease, Ranks: some})
		}
	default:
		say(exec.Response{ID: j.id, Type: exec.ResponseRelease, Final: true})
		j.final = true
	}
}

// ran reports whether the Manager knows that a job has started.
func (p *play) ran(id jobid.ID) bool {
	v, ok := p.m.Job(id)
	return ok && v.Job().Started()
}

func (x *executor) live(j *running) bool {
	for rank := range j.ranks.All() {
		if x.p.w.Runs(j.id, rank) {
			return true
		}
	}
	return false
}

// finish does all that is honest to bring every job to its end.
func (p *play) finish() {
	if p.stops {
		p.crash("after the shutdown")
	}
	p.now = p.now.Add(100 * 1e6)
	for _, name := range []string{"", "a", "b"} {
		if q, ok := p.m.Queue(name); ok && !q.Started {
			p.Must(p.step(joblife.StartQueue{Queue: name, Start: true}))
		}
	}
	if p.offline.Len() > 0 || p.drained.Len() > 0 {
		p.offline, p.drained = new(idset.Set), new(idset.Set)
		p.up = idset.Range(0, nodes)
		p.Must(p.step(joblife.Offline{}))
		p.sched.ups()
	}
	for range 6 {
		p.sched.work()
		p.act()
		p.exec.work()
		p.act()
	}
	p.nodesWork()
	p.endServices()
	p.operate()
	p.confirm()
	alone := false // users can make cycles with jobs of one name, as in flux-core
	for v := range p.m.Jobs(jobstate.StateDepend) {
		alone = alone || slices.Contains(v.Job().Dependencies(), "singleton")
	}
	for v := range p.m.Jobs(jobstate.StateNew | jobstate.StatePending) {
		id, state, name := v.ID(), v.State(), v.Jobspec().Name()
		if deps := v.Job().Dependencies(); state == jobstate.StateDepend && len(deps) > 0 && !slices.Contains(deps, "site") && !alone {
			continue // it ends by itself
		}
		if p.tired || v.Job().Urgency() == jobstate.UrgencyHold {
			if err := p.step(joblife.Raise{ID: id, Type: "cancel"}); err != nil && state != jobstate.StateNew {
				p.Fail("cancel: %v", err)
			}
		} else if state == jobstate.StatePriority && name == "ranked" {
			p.Must(p.step(joblife.Priority{ID: id, Priority: 5}))
		}
		if state == jobstate.StateNew {
			_ = p.step(joblife.Validated{ID: id})
		}
		break // what was iterated over has changed
	}
	if at, ok := p.m.Deadline(); ok && at.After(p.now) && p.tired {
		p.now = at
	}
	p.store1()
	p.Must(p.step(joblife.Tick{}))
}

// store1 tells the Manager what the store has done.
func (p *play) store1() {
	if len(p.inbox) > 0 {
		in := p.inbox[0]
		p.inbox = p.inbox[1:]
		p.Must(p.step(in))
	}
}

// confirm drains nodes, and says so.
func (p *play) confirm() {
	some := p.toDrain
	if !p.honest {
		some = idset.Intersect(p.toDrain, p.someRanks(0.6))
	}
	if some.IsEmpty() {
		return
	}
	p.drained.UnionWith(some)
	p.w.Excuse(0, some)
	done := some.Clone()
	p.toDrain.SubtractWith(done)
	p.sched.ups()
	p.Must(p.step(joblife.Drained{Ranks: done}))
}

// finished reports whether all is over.
func (p *play) finished() bool {
	if p.busy || p.stops || len(p.inbox)+len(p.sched.inbox)+len(p.exec.inbox) > 0 || p.sched.phase < 3 {
		return false
	}
	s := p.m.Stats()
	for state, n := range s.States {
		if state != jobstate.StateInactive && n > 0 {
			return false
		}
	}
	return s.Housekeeping == 0 && p.sched.pool.Len() == 0
}
