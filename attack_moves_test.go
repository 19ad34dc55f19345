package joblife_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/joblifetest"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/purge"
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
	if j.Nodes > 0 {
		j.Exclusive = p.P(0.3)
	}
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
		in.ID = p.someJob() + jobid.ID(p.N(5)) - 2
	}
	if p.P(0.1) {
		in.Time = eventlog.FromTime(p.now) + eventlog.Timestamp(p.N(100)-90)
	}
	in.Tag = p.newTag(in)
	if p.ask(in.Tag, in) == nil && in.ID != 0 && p.known[in.ID] {
		p.Fail("I9: the id %v is given again", in.ID)
	}
}

// user lets a user do something.
func (p *play) user() {
	id, by := p.someJob(), p.by()
	tag := p.newTag("user")
	switch p.N(12) {
	case 0:
		_ = p.ask(tag, joblife.Urgency{Tag: tag, By: by, ID: id, Urgency: []int{0, 16, 31, 8, 33}[p.N(5)]})
	case 1:
		_ = p.ask(tag, joblife.Memo{Tag: tag, By: by, ID: id, Values: json.RawMessage(`{"a":1,"name":"clean"}`), Volatile: p.P(0.3)})
	case 2:
		p.update(tag, by, id)
	case 3:
		_ = p.ask(tag, joblife.Raise{Tag: tag, By: by, ID: id, Type: "cancel"})
	case 4:
		_ = p.ask(tag, joblife.Raise{Tag: tag, By: by, ID: id, Type: "test", Severity: p.N(9), Note: "n"})
	case 5, 6:
		in := joblife.Wait{Tag: tag, By: by, ID: id}
		if in.States = jobstate.State(1 << p.N(8)); p.P(0.5) {
			in.States, in.Event = 0, []string{"start", "clean", "alloc", "free", "nonsense"}[p.N(5)]
		}
		_ = p.ask(tag, in)
	case 7:
		_ = p.ask(tag, joblife.SetExpiration{Tag: tag, ID: id, Expiration: 1.7e9})
	case 8:
		_ = p.ask(tag, joblife.SetFlags{Tag: tag, ID: id, Flags: []string{"debug"}})
	case 9:
		delete(p.tags, tag)
		_ = p.step(joblife.Priority{ID: id, Priority: uint32(p.N(100))})
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
	_ = p.ask(tag, joblife.Update{Tag: tag, By: by, ID: id, Updates: []jobstate.Update{{Path: path, Value: value}}})
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
	cfg.Owner = p.cfg.Owner
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
	action  perilog.Key
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
	if p.step(joblife.ForceFinish{Action: a, Status: 1, Who: "root"}) != nil {
		a.Ranks = nil // a single command runs on its leader, which may be no rank of the job
		if p.step(joblife.ForceFinish{Action: a, Status: 1, Who: "root"}) != nil {
			return
		}
	}
	for _, s := range p.foreign[u.Job] {
		s.ended = s.ended || s.key == u.Action
	}
	p.w.Excuse(u.Job, nil)
}
