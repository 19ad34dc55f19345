package joblife_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/joblifetest"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
)

// reported is a report that has no answer yet.
type reported struct {
	process joblifetest.Process
	old     bool
	failed  *idset.Set // ranks that it says failed
}

// move does one thing at random.
func (p *play) move() {
	if p.stops && p.stopAt != 0 && (p.stopAt < eventlog.FromTime(p.now.Add(9*time.Second)) || p.P(0.05)) {
		p.now = p.stopAt.Time().Add(time.Millisecond)
		if err := p.m.Step(p.now, joblife.Tick{}); !errors.Is(err, perilog.ErrStopped) {
			p.Fail("a Step after the deadline of a shutdown: %v", err)
		}
		p.crash("at the deadline of a shutdown")
		return
	}
	switch x := p.N(100); {
	case x < 5:
		p.now = p.now.Add(time.Duration(p.N(4)) * time.Second)
		_ = p.step(joblife.Tick{})
	case x < 30:
		p.sched.work()
	case x < 52:
		p.exec.work()
	case x < 66:
		p.nodesWork()
	case x < 68:
		p.confirm()
	case x < 69:
		p.setOffline()
	case x < 71:
		p.operate()
	case x < 81:
		p.submit()
	case x < 92:
		p.user()
	case x < 93:
		p.serve()
	case x < 96:
		p.administer()
	case x < 98:
		p.store1()
	case x < 99:
		if p.P(0.3) {
			p.drained = idset.Intersect(p.drained, p.someRanks(0.5)) // nodes return to service
			p.sched.ups()
		}
	default:
		if p.P(0.7) {
			p.crash("between steps")
		} else if p.P(0.2) {
			p.shutdown()
		}
	}
}

// shutdown begins the end of this life, which a crash is.
func (p *play) shutdown() {
	in := joblife.Shutdown{}
	if p.P(0.6) {
		in.Deadline = eventlog.FromTime(p.now.Add(time.Duration(10+p.N(30)) * time.Second))
	}
	if p.step(in) == nil {
		p.stops, p.stopAt = true, in.Deadline
	}
}

func (p *play) newTag(asked any) uint64 {
	p.tag++
	p.tags[p.tag] = asked
	return p.tag
}

// ask passes an input that has a tag, and forgets the tag if it is refused.
func (p *play) ask(tag uint64, in joblife.Input) error {
	err := p.step(in)
	if err != nil {
		delete(p.tags, tag)
	}
	return err
}

// by is somebody.
func (p *play) by() joblife.Cred {
	if p.P(0.3) {
		return joblife.Cred{UserID: 100 + uint32(p.N(2)), Guest: true}
	}
	return joblife.Cred{}
}

// someJob returns a job, or an id that is no job.
func (p *play) someJob() jobid.ID {
	ids := make([]jobid.ID, 0, len(p.known))
	for id := range p.known {
		ids = append(ids, id)
	}
	if len(ids) == 0 || p.P(0.03) {
		return 12345
	}
	slices.Sort(ids)
	return ids[len(ids)-1-p.N(min(len(ids), 12))]
}

// submit submits a job.
func (p *play) submit() {
	j := jobspec1{Nodes: p.N(4), Slots: 1 + p.N(2), Name: []string{"a", "b", "later", "never", "ranked", "boom"}[p.N(6)]}
	j.Exclusive = j.Nodes > 0 && p.P(0.3)
	if n := len(p.cfg.Queues); n > 0 && !p.P(0.03) {
		j.Queue = p.cfg.Queues[p.N(n)]
	}
	for p.P(0.15) {
		schemes := []string{"afterany", "afterok", "afternotok", "after", "afterstart", "afterexcept", "singleton", "begin-time", "bogus", "broken"}
		d := map[string]string{"scheme": schemes[p.N(len(schemes))], "value": p.someJob().String()}
		if d["scheme"] == "begin-time" {
			d["value"] = fmt.Sprint(p.now.Unix() + int64(p.N(20)))
		}
		j.Dependencies = append(j.Dependencies, d)
	}
	in := joblife.Submit{By: p.by(), Jobspec: j.text(), Urgency: jobstate.UrgencyDefault}
	if p.P(0.1) {
		in.Urgency = p.N(32)
	}
	if p.P(0.1) {
		in.Flags = jobstate.Flags(p.N(8))
	}
	if p.P(0.1) {
		in.ID = p.someJob() + jobid.ID([]int64{-2, -1, 0, 1, 2, 50_000 << 24}[p.N(6)]) // perhaps 50 seconds later
	}
	if p.P(0.1) {
		in.Time = eventlog.FromTime(p.now) + eventlog.Timestamp(p.N(100)-90)
	}
	if p.P(0.3) {
		in.Key = []string{"a", "b", "\"\n"}[p.N(3)]
	}
	in.Tag = p.newTag(in)
	err := p.ask(in.Tag, in)
	if err == nil && in.ID != 0 && in.Key == "" && p.known[in.ID] || err != nil && strings.Contains(err.Error(), "jobid: ") {
		p.Fail("I9: the id %v is given again, or there is none: %v", in.ID, err)
	}
}

// user lets a user do something.
func (p *play) user() {
	id, by := p.someJob(), p.by()
	tag := p.newTag("user")
	switch p.N(12) {
	case 0:
		_ = p.ask(tag, joblife.SetUrgency{Tag: tag, By: by, ID: id, Urgency: []int{0, 16, 31, 8, 33}[p.N(5)]})
	case 1:
		_ = p.ask(tag, joblife.Memo{Tag: tag, By: by, ID: id, Values: json.RawMessage(`{"a":1,"name":"clean"}`), Volatile: p.P(0.3)})
	case 2:
		p.update(tag, by, id)
	case 3:
		_ = p.ask(tag, joblife.Raise{Tag: tag, By: by, ID: id, Type: "cancel"})
	case 4:
		kind := "test"
		if by.Guest && p.P(0.5) {
			kind = "scheduler-restart" // which is the owner's
		}
		_ = p.ask(tag, joblife.Raise{Tag: tag, By: by, ID: id, Type: kind, Severity: p.N(9), Note: "n"})
	case 5, 6:
		_ = p.ask(tag, joblife.Wait{Tag: tag, By: by, ID: id, States: jobstate.State(1 << p.N(8))})
	case 7:
		_ = p.ask(tag, joblife.SetExpiration{Tag: tag, ID: id, Expiration: 1.7e9})
	case 8:
		_ = p.ask(tag, joblife.SetFlags{Tag: tag, ID: id, Flags: []string{"debug"}})
	case 9:
		delete(p.tags, tag)
		_ = p.step(joblife.SetPriority{ID: id, Priority: uint32(p.N(100))})
	case 10:
		delete(p.tags, tag)
		in := joblife.Validated{ID: id}
		if p.P(0.4) {
			in.Err = fmt.Errorf("bad")
		}
		_ = p.step(in)
	default:
		delete(p.tags, tag)
		if p.P(0.5) {
			_ = p.step(joblife.DependencyAdd{ID: id, Description: "site"})
		} else {
			_ = p.step(joblife.DependencyRemove{ID: id, Description: "site"})
		}
	}
}

// update updates a jobspec, by a request or by an event.
func (p *play) update(tag uint64, by joblife.Cred, id jobid.ID) {
	path, value := "attributes.system.duration", json.RawMessage(fmt.Sprint(p.N(100)))
	if p.P(0.3) {
		path, value = "attributes.system.job.name", json.RawMessage(`"b"`)
	} else if p.P(0.3) {
		path, value = "attributes.system.queue", json.RawMessage(`"b"`)
	}
	if !by.Guest && p.P(0.3) {
		_ = p.ask(tag, joblife.Post{Tag: tag, ID: id, Name: jobstate.EventJobspecUpdate, Context: json.RawMessage(fmt.Sprintf(`{%q:%s}`, path, value))})
		return
	}
	_ = p.ask(tag, joblife.UpdateJobspec{Tag: tag, By: by, ID: id, Updates: []jobstate.Update{{Path: path, Value: value}}})
}

// administer does what an owner does.
func (p *play) administer() {
	queue := []string{"", "a", "b"}[p.N(3)]
	tag := p.newTag("admin")
	switch p.N(8) {
	case 0:
		delete(p.tags, tag)
		_ = p.step(joblife.StartQueue{Queue: queue, Start: p.P(0.6), Reason: "r", Volatile: p.P(0.3)})
	case 1:
		delete(p.tags, tag)
		_ = p.step(joblife.EnableQueue{Queue: queue, Enable: p.P(0.8), Reason: "r"})
	case 2:
		delete(p.tags, tag)
		p.reload()
	case 3:
		_ = p.ask(tag, joblife.Purge{Tag: tag, By: p.by(), Limits: purge.Limits{MaxCount: jobstate.Some(p.N(5)), Batch: p.N(3)}, Force: p.P(0.7)})
	case 4:
		_ = p.ask(tag, joblife.PurgeIDs{Tag: tag, By: p.by(), IDs: []jobid.ID{p.someJob(), p.someJob()}[:1+p.N(2)], Force: p.P(0.8)})
	case 5:
		_ = p.ask(tag, joblife.WaitEmpty{Tag: tag, States: []jobstate.State{jobstate.StateActive, jobstate.StateRun}[p.N(2)]})
	case 6:
		delete(p.tags, tag)
		if tag = p.tag - uint64(p.N(5)); p.tags[tag] == "user" {
			return // it may be any request
		}
		_ = p.step(joblife.WaitCancel{Tag: p.tag + 1})
	default:
		// An owner who posts what is not true is not the Manager's fault.
		in := joblife.Post{Tag: tag, ID: p.someJob(), Name: []string{"flux-restart", "something-new"}[p.N(2)]}
		if p.P(0.1) {
			in.Context = json.RawMessage(`{"x":1}`)
		}
		_ = p.ask(tag, in)
	}
}

// reload replaces the configuration.
func (p *play) reload() {
	cfg := p.configure()
	cfg.Hooks, cfg.Epoch, cfg.TombstoneCount, cfg.MaxActive = p.cfg.Hooks, p.cfg.Epoch, p.cfg.TombstoneCount, p.cfg.MaxActive
	cfg.Owner, cfg.Distinct, cfg.MaxJobspec = p.cfg.Owner, p.cfg.Distinct, p.cfg.MaxJobspec
	if p.step(joblife.Reload{Config: cfg}) == nil {
		p.cfg = cfg
		p.w.Configure(cfg.Actions)
	}
}

func (p *play) setOffline() {
	p.offline = p.someRanks(0.15)
	p.up.UnionWith(idset.Difference(idset.Range(0, nodes), p.offline))
	if p.step(joblife.Offline{Ranks: p.offline.Clone()}) == nil {
		p.sched.ups()
	}
}

// nodesWork lets processes end, and helpers report.
func (p *play) nodesWork() {
	for _, q := range p.w.Processes() {
		if q.Running && (p.honest || p.P(0.4)) {
			status := int32(0)
			switch {
			case q.Signal:
				status = 15
			case p.rare(0.06):
				status = 256
			}
			if status == 256 && p.rare(0.5) {
				status = 68 << 8 // the node is lost, or nothing could be launched there
			}
			p.Say("%v of %v ends on rank %d with %d", q.Action, q.Job, q.Rank, status)
			p.w.Exit(q, status)
			q.Running, q.Status = false, status
		}
		if p.reports[launchedOf(q)] || !p.honest && !p.P(0.5) {
			continue
		}
		p.report(q)
	}
}

// launched names a process.
type launched struct {
	job     jobid.ID
	action  jobstate.ActionKey
	attempt uint32
	rank    uint32
}

func launchedOf(q joblifetest.Process) launched { return launched{q.Job, q.Action, q.Attempt, q.Rank} }

// report reports about a process, perhaps wrongly.
func (p *play) report(q joblifetest.Process) {
	in := joblife.Report{Job: q.Job, Report: perilog.Report{Action: q.Action, Kind: perilog.ReportExited, Attempt: q.Attempt, Rank: q.Rank, Status: q.Status}}
	asked := reported{process: q}
	switch {
	case p.rare(0.05) && q.Attempt > 1:
		in.Attempt--
		asked.old = true
	case q.Running && p.rare(0.1) && len(q.Serves) > 1:
		in.Kind = perilog.ReportOutput
		in.Line = fmt.Appendf(nil, `perilog-control: {"version":1,"released":"%d"}`, q.Serves[0])
		p.w.Released(q, idset.Of(q.Serves[0]))
	case q.Running && len(q.Serves) > 0 && p.rare(0.1):
		asked.failed = idset.Of(q.Serves[p.N(len(q.Serves))])
		in.Kind = perilog.ReportOutput
		in.Line = fmt.Appendf(nil, `perilog-control: {"version":1,"failed":"%v","note":"gpu"}`, asked.failed)
		in.Tag = p.newTag(asked)
		_ = p.ask(in.Tag, in)
		return
	case q.Running && len(q.Serves) == 1 && q.Serves[0] == q.Rank && p.rare(0.03):
		in.Kind = perilog.ReportUnreachable // it goes on
		_ = p.step(in)
		return
	case q.Running:
		in.Kind, in.Status = perilog.ReportStarted, 0
	case q.Status == 68<<8:
		in.Kind = []perilog.ReportKind{perilog.ReportUnreachable, perilog.ReportLaunchFailed}[p.N(2)]
	}
	if in.Kind == perilog.ReportOutput || in.Kind == perilog.ReportStarted {
		_ = p.step(in)
		return
	}
	in.Tag = p.newTag(asked)
	_ = p.ask(in.Tag, in)
	if p.rare(0.1) {
		in.Tag = 0
		_ = p.step(in)
	}
}

// operate lets an operator resolve what does not end by itself, who looks at the
// node first.
func (p *play) operate() {
	list := slices.Collect(p.m.Unresolved())
	for _, u := range list {
		if !p.honest && !p.P(0.5) {
			continue
		}
		for rank := range u.Ranks.All() {
			p.resolve(u, rank)
		}
	}
}

// resolve resolves an action on a rank.
func (p *play) resolve(u joblife.Unresolved, rank uint32) {
	a := joblife.Action{Job: u.Job, Key: u.Action, Ranks: idset.Of(rank)}
	if u.Reason == perilog.ReasonStart {
		return
	}
	for _, q := range p.w.Processes() {
		if q.Job == u.Job && q.Action == u.Action && q.Running && (q.Rank == rank || slices.Contains(q.Serves, rank)) {
			if u.Reason == perilog.ReasonLost && q.Rank == rank {
				_ = p.step(joblife.Reattach{Action: a})
			}
			return
		}
	}
	if p.N(2) == 0 && p.step(joblife.Rerun{Action: a}) == nil {
		return
	}
	if p.step(joblife.ForceFinish{Action: a, Status: 1, Operator: "root"}) != nil {
		a.Ranks = nil // a single command runs on its leader, which may be no rank of the job
		if p.step(joblife.ForceFinish{Action: a, Status: 1, Operator: "root"}) != nil {
			return
		}
	}
	for _, s := range p.foreign[u.Job] {
		s.ended = s.ended || s.key == u.Action
	}
	p.w.Excuse(u.Job, nil)
}

// scheduler is a scheduler with a pool, which says hello when it feels like it.
type scheduler struct {
	p      *play
	pool   *pool.Pool
	phase  int // 0: no session; 1: said hello; 2: was responded to; 3: said ready
	asked  []alloc.Request
	inbox  []joblife.Input            // on their way to the Manager
	limits map[jobid.ID]time.Duration // of the jobspec of the last request that it decided about
	late   []joblife.SchedResponse    // of sessions that are over
	old    *pool.Pool                 // what it believed once
	stale  bool                       // it believes that again, whatever the hello tells
}

// lost ends the session: all that is on its way is lost.
func (s *scheduler) lost() {
	for _, in := range s.inbox {
		if r, ok := in.(joblife.SchedResponse); ok && s.p.rare(0.3) {
			s.late = append(s.late, r)
		}
	}
	s.phase, s.asked, s.inbox, s.limits = 0, nil, nil, make(map[jobid.ID]time.Duration)
}

// refused ends the session, as an answer that is refused does.
func (s *scheduler) refused() {
	if s.lost(); s.p.P(0.5) {
		s.p.Must(s.p.step(joblife.SchedLost{}))
	}
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
		if err := s.answer(in.(joblife.SchedResponse)); err != nil && !p.stops {
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
	if s.stale && !joblife.Idle(p.m) {
		return // the Manager knows of a free that the world does not
	}
	gone := func() { s.asked = slices.Delete(s.asked, i, i+1) }
	spec, err := jobspec.Parse(req.Jobspec)
	p.Must(err)
	s.limits[req.ID] = spec.Duration()
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
			p.Must(p.step(joblife.SetPriority{ID: id, Priority: 5}))
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

// byName validates a job as its name says.
func byName(e *joblife.HookEvent) error {
	switch e.Job.Jobspec().Name() {
	case "later":
		return joblife.ErrLater
	case "never":
		return errors.New("never")
	}
	return nil
}
