package joblife_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/attack"
	"github.com/joblife/joblife/joblifetest"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
)

// The harness: random embedders, users, schedulers, executors and nodes around a
// Manager, with faults in every place where the protocols allow them, and a crash
// between any two lines of the embedder's loop. A joblifetest.World judges.

// TestAttack runs fresh seeds for a second, or as long as JOBLIFE_SOAK says. Package
// attack has the other variables.
func TestAttack(t *testing.T) {
	attack.Soak(t, os.Getenv("JOBLIFE_SOAK"), func(t *attack.Tape) { newPlay(t).run() })
}

// TestAttackSeeds runs the same seeds each time.
func TestAttackSeeds(t *testing.T) {
	seeds := uint64(15)
	switch {
	case os.Getenv("JOBLIFE_DEEP") != "":
		seeds = 300
	case testing.Short():
		seeds = 8
	}
	panics := 0
	attack.Seeds(t, seeds, func(t *attack.Tape) {
		p := newPlay(t)
		defer func() { panics += p.panics }()
		p.run()
	})
	if panics == 0 {
		t.Fatal("no hook has panicked")
	}
}

// How large the world is.
const nodes, cores = 5, 2

// play is one run: an embedder, and all that is around it.
type play struct {
	*attack.Tape
	panics int // of hooks, that came out

	cfg     joblife.Config
	m       *joblife.Manager
	w       *joblifetest.World
	now     time.Time
	store   []joblife.Record // durable
	standby *joblife.Follower
	removed map[jobid.ID]bool // from the store, which no record says yet
	logging bool              // hooks log flux-restart
	logs    map[jobid.ID][]byte
	rd      joblife.Ready
	void    struct{ sched, exec bool } // of the Ready that is outstanding
	busy    bool                       // a Ready is outstanding
	stops   bool                       // a shutdown goes on
	stopAt  eventlog.Timestamp
	foreign map[jobid.ID][]*service
	served  int

	sched *scheduler
	exec  *executor

	inbox   []joblife.Input // of the store
	known   map[jobid.ID]bool
	keyed   map[string]jobid.ID // by user and key
	tags    map[uint64]any      // what was asked and has no answer
	tag     uint64
	reports map[launched]bool // those that need no more reports
	toDrain *idset.Set
	drained *idset.Set
	offline *idset.Set
	up      *idset.Set // ranks that were not offline at some time since the last Ready
	times   map[launched]due
	honest  bool
	tired   bool // at the end: jobs that wait are canceled
}

func newPlay(t *attack.Tape) *play {
	p := &play{
		Tape: t, now: time.Unix(1_600_000_000, 0), logs: make(map[jobid.ID][]byte),
		known: make(map[jobid.ID]bool), keyed: make(map[string]jobid.ID), tags: make(map[uint64]any), reports: make(map[launched]bool),
		foreign: make(map[jobid.ID][]*service), toDrain: new(idset.Set), drained: new(idset.Set), offline: new(idset.Set),
		up: idset.Range(0, nodes), times: make(map[launched]due),
		standby: new(joblife.Follower), removed: make(map[jobid.ID]bool),
	}
	t.Clock = func() string { return p.now.Format("05.000") }
	p.sched, p.exec = &scheduler{p: p, limits: make(map[jobid.ID]time.Duration)}, &executor{p: p, jobs: make(map[jobid.ID]*running)}
	return p
}

// configure makes a configuration.
func (p *play) configure() joblife.Config {
	c := joblife.Config{Epoch: time.Unix(1_500_000_000, 0), Owner: 1, Private: p.P(0.2)}
	if p.P(0.4) {
		c.Queues = []string{"a", "b"}[:1+p.N(2)]
	}
	for i := range p.N(2) + p.N(2) {
		c.Actions.Prologs = append(c.Actions.Prologs, p.action(i))
	}
	for i := range p.N(2) + p.N(2) {
		c.Actions.Epilogs = append(c.Actions.Epilogs, p.action(i))
	}
	if p.P(0.4) {
		h := &perilog.HousekeepingConfig{OnFailure: []jobstate.OnFailure{"", "hold", "drain", "release"}[p.N(4)]}
		if p.P(0.6) {
			d := fsd.Duration(time.Duration(p.N(3)*5) * time.Second)
			h.ReleaseAfter = &d
		}
		c.Actions.Housekeeping = h
	}
	if p.P(0.3) {
		c.Actions.Tolerate = perilog.Tolerate{Count: 1 + p.N(2), Drop: p.P(0.5), AnyFailure: p.P(0.3)}
		if p.P(0.2) {
			c.Actions.Tolerate.Ranks = idset.Of(uint32(p.N(nodes)))
		}
	}
	c.Actions.WholeJob = p.P(0.1)
	if p.P(0.5) {
		c.Limits.MaxCount = jobstate.Some(p.N(4))
		c.Limits.Batch = 1 + p.N(3)
	}
	if p.P(0.3) {
		c.Limits.MaxAge = jobstate.Some(time.Duration(1+p.N(60)) * time.Second)
	}
	if p.P(0.3) {
		c.TombstoneCount = jobstate.Some(p.N(3))
	}
	if p.P(0.2) {
		c.MaxActive = 3 + p.N(5)
	}
	if p.P(0.1) {
		c.MaxJobspec = 200 + p.N(100)
	}
	return c
}

func (p *play) action(i int) perilog.ActionConfig {
	a := perilog.ActionConfig{PerRank: !p.P(0.2), Kill: p.P(0.2), WaitOffline: p.P(0.3), Leader: uint32(p.N(nodes + 1))}
	if i > 0 {
		a.Description = fmt.Sprintf("act%d", i)
	}
	if p.P(0.2) {
		a.Ranks = p.someRanks(0.6)
	}
	if p.P(0.3) {
		a.Timeout, a.KillTimeout = fsd.Duration(time.Duration(5+p.N(40))*time.Second), fsd.Duration(time.Duration(2+p.N(9))*time.Second)
	}
	return a
}

func (p *play) someRanks(x float64) *idset.Set {
	s := new(idset.Set)
	for rank := range uint32(nodes) {
		if p.P(x) {
			s.Insert(rank)
		}
	}
	return s
}

// run plays.
func (p *play) run() {
	p.cfg = p.configure()
	p.cfg.Hooks, p.cfg.Distinct = p.hooks(), p.P(0.3)
	m, err := joblife.New(p.cfg)
	p.Must(err)
	p.m, p.w = m, joblifetest.NewWorld(p.cfg.Actions)
	for range p.N(300) {
		p.move()
		p.act()
		p.judge()
	}
	p.honest = true
	for i := 0; !p.finished(); i++ {
		if i == 400 {
			p.Fail("I10: it does not end:\n%s", joblife.DescribeAll(p.m))
		}
		p.tired = i > 40
		p.finish()
		p.act()
		p.judge()
	}
	p.judgeEnd()
}

// step passes an input to the Manager.
func (p *play) step(in joblife.Input) error {
	p.Steps++
	p.now = p.now.Add(time.Millisecond)
	before := ""
	if check := p.Steps%8 == 0; check {
		before = joblife.DescribeAll(p.m)
	}
	passed, tag := in, uint64(0)
	if !reflect.ValueOf(in).FieldByName("Tag").IsValid() && p.P(0.2) {
		tag = p.newTag("tagged")
		passed = joblife.Tagged{Tag: tag, In: in}
	}
	err := p.m.Step(p.now, passed)
	if err != nil {
		delete(p.tags, tag)
	}
	if p.Traced {
		p.Say("step %T %s: %v", in, clip(fmt.Sprintf("%+v", in)), err)
	}
	if err != nil && before != "" {
		if after := joblife.DescribeAll(p.m); after != before {
			p.Fail("I6: %T was refused with %v, and something changed:\n%s", in, err, diff(before, after))
		}
	}
	switch in := in.(type) {
	case joblife.ForceFinish: // what may run is told to stop
		p.mayStop(in.Action, err)
	case joblife.Rerun: // so is what may run on nodes that the job has dropped
		p.mayStop(in.Action, err)
	case joblife.SchedHello, joblife.SchedLost:
		p.void.sched = p.void.sched || err == nil
	case joblife.ExecHello, joblife.ExecLost:
		p.void.exec = p.void.exec || err == nil
	}
	return err
}

func clip(s string) string {
	if len(s) > 200 {
		return s[:200]
	}
	return s
}

func diff(a, b string) string {
	la, lb := strings.Split(a, "\n"), strings.Split(b, "\n")
	var out []string
	for _, l := range la {
		if !slices.Contains(lb, l) {
			out = append(out, "- "+l)
		}
	}
	for _, l := range lb {
		if !slices.Contains(la, l) {
			out = append(out, "+ "+l)
		}
	}
	return strings.Join(out, "\n")
}

// rare chooses a fault.
func (p *play) rare(x float64) bool { return !p.honest && p.P(x) }

// act is the embedder's loop.
func (p *play) act() {
	for !p.busy && p.m.Ready(&p.rd) {
		p.busy, p.void.sched, p.void.exec = true, false, false
		p.judgeReady()
		for p.rare(0.1) {
			p.move() // while the records are being stored
			if !p.busy {
				return // it crashed
			}
		}
		if crash := p.append(); crash {
			return
		}
		if crash := p.effects(); crash {
			return
		}
		if p.rare(0.01) {
			p.crash("before Done")
			return
		}
		p.Must(p.m.Done(p.rd.Seq))
		p.busy = false
	}
}

// append makes records durable, and reports whether it crashed.
func (p *play) append() bool {
	n, how := len(p.rd.Append), ""
	switch x := 0; {
	case p.honest:
	case p.P(0.02):
		if x = p.N(3); x == 0 {
			n, how = 0, "before Append"
		} else if n > 0 {
			n, how = p.N(n+1), "in Append"
		}
		if x == 2 {
			how = "abandon"
		}
	}
	for _, r := range p.rd.Append[:n] {
		p.Must(p.standby.Add(r))
		r.Data = bytes.Clone(r.Data)
		p.Say("store %v %v %s", r.Job, r.Kind, bytes.TrimSpace(r.Data))
		p.store = append(p.store, r)
		if p.Steps%8 == 0 {
			if fast, plain, err := bothTexts(r); err != nil || !bytes.Equal(fast, plain) {
				p.Fail("a record is written as %s, and without trust as %s: %v", fast, plain, err)
			}
		}
		fmt.Fprintf(p.Hash, "%v %v %s\n", r.Job, r.Kind, r.Data)
		p.judgeTime(r)
		switch r.Kind {
		case joblife.RecordEvent:
			p.logs[r.Job] = append(p.logs[r.Job], r.Data...)
			p.known[r.Job] = true
			p.Jobs = len(p.known)
		case joblife.RecordJobspec:
			if most := p.cfg.MaxJobspec; most > 0 && len(r.Data) > most {
				p.Fail("a jobspec of %d bytes is stored, and at most %d are taken", len(r.Data), most)
			}
		case joblife.RecordUnlinked:
			delete(p.removed, r.Job)
			delete(p.logs, r.Job)
			p.forget(r.Job)
		}
	}
	if how == "abandon" {
		p.Must(p.m.Abandon(p.rd.Seq))
		if err := p.m.Step(p.now, joblife.Tick{}); !errors.Is(err, joblife.ErrAbandoned) {
			p.Fail("a Step after Abandon: %v", err)
		}
	}
	if how != "" {
		p.crash(fmt.Sprintf("%s: %d of %d records", how, n, len(p.rd.Append)))
	}
	return how != ""
}

// forget drops what a store need not keep of a job that is gone: all, if there are no
// tombstones.
func (p *play) forget(id jobid.ID) {
	none := p.cfg.TombstoneCount.Set && p.cfg.TombstoneCount.Value == 0
	p.store = slices.DeleteFunc(p.store, func(r joblife.Record) bool {
		return r.Job == id && (none || r.Kind != joblife.RecordTombstone)
	})
}

// due is when a launch was logged, and its timeout.
type due struct {
	at      eventlog.Timestamp
	timeout time.Duration
}

// mayStop notes that a request may stop what was launched of an action.
func (p *play) mayStop(a joblife.Action, err error) {
	maps.DeleteFunc(p.times, func(l launched, _ due) bool { return err == nil && l.job == a.Job && l.action == a.Key })
}

// judgeReady judges where and when actions are launched, and told to stop.
func (p *play) judgeReady() {
	for _, l := range p.rd.Launch {
		if l.Attempt == 1 && !p.up.ContainsAll(l.Ranks) {
			p.Fail("%v of %v is launched on %v, and %v were not offline", l.Action, l.Job, l.Ranks, p.up)
		}
		p.times[launched{l.Job, l.Action, l.Attempt, 0}] = due{timeout: l.Timeout}
	}
	for _, s := range p.rd.Signal {
		key := launched{s.Job, s.Action, s.Attempt, 0}
		v, ok := p.m.Job(s.Job)
		d := p.times[key]
		if s.Signal.Signal != 15 || !ok || v.State() == jobstate.StateInactive || d.at == 0 || v.Job() == nil {
			continue
		}
		if _, fatal := v.Job().Cause(); !fatal && (d.timeout == 0 || eventlog.FromTime(p.now) < d.at+eventlog.Timestamp(d.timeout.Seconds())) {
			p.Fail("%v of %v is told to stop, launched at %v with a timeout of %v", s.Action, s.Job, d.at, d.timeout)
		}
	}
	p.up = idset.Difference(idset.Range(0, nodes), p.offline)
}

// judgeTime judges that a launch is logged when it is decided, that nothing is given up before
// it was told to stop, and that distinct times grow.
func (p *play) judgeTime(r joblife.Record) {
	if r.Kind != joblife.RecordEvent && r.Kind != joblife.RecordHousekeeping || bytes.Contains(r.Data, []byte(`"submit"`)) {
		return
	}
	e, err := eventlog.Parse(r.Data)
	p.Must(err)
	if p.cfg.Distinct && r.Kind == joblife.RecordEvent {
		log := p.logs[r.Job]
		last, err := eventlog.Parse(log[bytes.LastIndexByte(log[:len(log)-1], '\n')+1:])
		p.Must(err)
		if e.Timestamp <= last.Timestamp && (p.stopAt == 0 || e.Timestamp < last.Timestamp) {
			p.Fail("%s of %v is logged with the time %v after %s at %v", e.Name, r.Job, e.Timestamp, last.Name, last.Timestamp)
		}
	}
	var ev jobstate.Event
	if ev.Decode(e) != nil {
		return
	}
	logged := func(k jobstate.ActionKind, description string, attempt uint32) {
		if e.Timestamp < r.Time || e.Timestamp > r.Time && !p.cfg.Distinct || e.Timestamp > r.Time+1e-3 {
			p.Fail("%s of %v is logged with the time %v at %v", e.Name, r.Job, e.Timestamp, r.Time)
		}
		key := launched{r.Job, jobstate.ActionKey{Kind: k, Description: description}, attempt, 0}
		d := p.times[key]
		d.at = e.Timestamp
		p.times[key] = d
	}
	switch c := ev.Context().(type) {
	case *jobstate.ActionStartContext:
		if c.Attempt > 0 {
			logged(c.Kind, c.Description, c.Attempt)
		}
	case *jobstate.ActionLaunchContext:
		logged(c.Kind, c.Description, c.Attempt)
	case *jobstate.ActionFailContext:
		for _, q := range p.w.Processes() {
			if strings.HasSuffix(c.Cause, "timed-out") && q.Job == r.Job && q.Action == (jobstate.ActionKey{Kind: c.Kind, Description: c.Description}) &&
				q.Running && !q.Signal && len(q.Serves) == 1 && c.Ranks.Contains(q.Rank) {
				p.Fail("%v of %v is given up on rank %d, and was not told to stop", q.Action, q.Job, q.Rank)
			}
		}
	}
}

// effects carries out what a Ready has, one by one, and reports whether it crashed.
func (p *play) effects() bool {
	p.judgeJournal()
	rd := &p.rd
	var acts []func()
	add := func(f func()) { acts = append(acts, f) }
	if rd.Hello != nil && !p.void.sched {
		add(func() { p.w.Do(&joblife.Ready{Hello: rd.Hello}); p.sched.hello(rd.Hello) })
	}
	if !p.void.sched {
		for i := range rd.Sched {
			add(func() { p.w.Do(&joblife.Ready{Sched: rd.Sched[i : i+1]}); p.sched.take(rd.Sched[i]) })
		}
	}
	if !p.void.exec {
		for i := range rd.Exec {
			add(func() { p.exec.take(rd.Exec[i : i+1]) })
		}
		for _, r := range rd.Raised {
			add(func() { p.exec.raised(r) })
		}
	}
	for i := range rd.Signal { // what was given up before it was told to stop
		add(func() { p.Say("signal %+v", rd.Signal[i]); p.w.Do(&joblife.Ready{Signal: rd.Signal[i : i+1]}) })
	}
	for i := range rd.Launch {
		add(func() {
			l := rd.Launch[i]
			p.Say("launch %v %v attempt %d on %v serves %v", l.Job, l.Action, l.Attempt, l.Ranks, l.Serves)
			p.w.Do(&joblife.Ready{Launch: rd.Launch[i : i+1]})
		})
	}
	for i := range rd.Signal {
		add(func() { p.w.Do(&joblife.Ready{Signal: rd.Signal[i : i+1]}) })
	}
	for _, d := range rd.Drain {
		add(func() { p.Say("drain %v %s", d.Ranks, d.Reason); p.toDrain.UnionWith(d.Ranks) })
	}
	for _, a := range p.rd.Answers {
		add(func() { p.answered(a) })
	}
	if len(rd.Unlink) > 0 {
		ids := slices.Clone(rd.Unlink)
		add(func() { p.unlink(ids) })
	}
	for _, act := range acts {
		if p.rare(0.004) {
			p.crash("between effects")
			return true
		}
		act()
	}
	for _, f := range rd.Faults {
		p.Say("fault %v", f)
		if f.Hook == "flaky" {
			p.panics++
		} else if strings.Contains(f.Error(), "panicked") || f.Hook == "dependencies" {
			p.Fail("%v", f)
		}
	}
	return false
}

// unlink removes jobs from the store, as far as it can.
func (p *play) unlink(ids []jobid.ID) {
	failed := make(map[jobid.ID]error)
	for _, id := range ids {
		if p.rare(0.1) {
			failed[id] = errors.New("the disk is slow")
			continue
		}
		p.Say("unlink %v", id)
		if log := p.logs[id]; len(log) > 0 {
			p.judgeLog(id, log)
		}
		p.store = slices.DeleteFunc(p.store, func(r joblife.Record) bool {
			return r.Job == id && r.Kind != joblife.RecordTombstone && r.Kind != joblife.RecordUnlinked
		})
		delete(p.logs, id)
		p.removed[id] = true
	}
	p.inbox = append(p.inbox, joblife.Unlinked{IDs: ids, Failed: failed})
}

// answered takes an answer.
func (p *play) answered(a joblife.Answer) {
	asked, ok := p.tags[a.Tag]
	if !ok {
		p.Fail("an answer to %d, which is not outstanding: %+v", a.Tag, a)
	}
	delete(p.tags, a.Tag)
	switch asked := asked.(type) {
	case joblife.Submit:
		if asked.ID != 0 && asked.ID != a.Job {
			p.Fail("the job %v has the id %v", asked.ID, a.Job)
		}
		if !p.known[a.Job] {
			p.Fail("I4: %v is answered, and not durable", a.Job)
		}
		if key := fmt.Sprint(asked.By.UserID, asked.Key); asked.Key != "" {
			if last := p.keyed[key]; last != 0 && last != a.Job && !p.gone(last) {
				p.Fail("%v was submitted with the key %s, and now %v too", last, key, a.Job)
			}
			p.keyed[key] = a.Job
		}
	case reported:
		p.Say("answer %v to %+v", a.Report, asked)
		if asked.failed != nil {
			if a.Report == perilog.AckApplied {
				p.w.Failed(asked.process, asked.failed)
			}
			break
		}
		switch a.Report {
		case perilog.AckEnded, perilog.AckStale, perilog.AckUnknown:
			if asked.old {
				break
			}
			p.reports[launchedOf(asked.process)] = true
		}
		if asked.old && a.Report == perilog.AckApplied {
			p.Fail("I10: a report of attempt %d-1 is applied: %+v", asked.process.Attempt, asked.process)
		}
	}
}

// crash forgets all that is not durable and restores.
func (p *play) crash(where string) {
	p.Crashes++
	p.Say("crash %s", where)
	p.busy, p.stops = false, false
	p.rd = joblife.Ready{}
	clear(p.tags)
	p.inbox = nil
	p.sched.lost()
	p.exec.lost()
	p.now = p.now.Add(time.Duration(p.N(3)) * time.Second)
	p.logging = p.P(0.3)
	p.cfg.Hooks = p.hooks()
	p.cfg.Offline, p.up = p.offline.Clone(), idset.Difference(idset.Range(0, nodes), p.offline)
	clock := p.now
	if p.rare(0.1) { // another host takes over, whose clock is behind
		clock = clock.Add(-time.Duration(p.N(100)) * time.Second)
	}
	m, rec := p.takeOver(clock)
	if p.m = m; eventlog.FromTime(m.Now()) != max(rec.Time, eventlog.FromTime(clock)) || rec.Time > eventlog.FromTime(p.now)+1e-3 {
		p.Fail("the time after a restart at %v is %v, and that of the records %v", clock, m.Now(), rec.Time)
	}
	p.serviceLost()
	for _, q := range rec.Quarantined {
		p.Fail("quarantined %v: %v", q.Job, q.Err)
	}
	for id := range p.known {
		if _, ok := m.Job(id); !ok && !p.gone(id) {
			p.Fail("%v is lost", id)
		}
	}
}

// sorted returns records as a store may keep them: in one log, or those of each kind
// in a place of its own.
func (p *play) sorted(records []joblife.Record) []joblife.Record {
	if p.P(0.5) {
		return records
	}
	records = slices.Clone(records)
	order := []int{0, 5, 2, 3, 1, 4, 6, 7, 8, 9, 10} // housekeeping before events
	slices.SortStableFunc(records, func(a, b joblife.Record) int { return order[a.Kind] - order[b.Kind] })
	return records
}

// gone reports whether a job was purged, or may be invalid.
func (p *play) gone(id jobid.ID) bool {
	log := p.logs[id]
	return len(log) == 0 || bytes.Contains(log, []byte(`"name":"invalidate"`)) || !bytes.Contains(log, []byte(`"name":"validate"`))
}

// judge judges what can be seen after each step.
func (p *play) judge() {
	p.Must(p.w.Err())
	if err := joblife.Audit(p.m); err != nil {
		p.Fail("%v", err)
	}
	if p.Steps%5 == 0 {
		if err := joblifetest.Check(p.m); err != nil {
			p.Fail("%v", err)
		}
	}
	if joblife.Idle(p.m) && p.rare(0.1) {
		purging := len(p.inbox) > 0 // the store has removed jobs, and did not say so yet
		if !purging {
			p.judgeReplay(p.store, "the records")
		}
		var snap []joblife.Record
		for r := range p.m.Snapshot() {
			r.Data = bytes.Clone(r.Data)
			snap = append(snap, r)
		}
		if !purging {
			p.judgeReplay(snap, "a snapshot")
		}
		if len(p.removed) == 0 && p.P(0.3) {
			snap = p.compact()
			p.judgeReplay(snap, "a snapshot of the standby")
		}
		if p.P(0.3) {
			p.Say("snapshot")
			p.store = snap
			if p.P(0.5) {
				p.follow(snap)
			}
		}
	}
}

// judgeReplay compares what records tell with what is live.
func (p *play) judgeReplay(records []joblife.Record, what string) {
	cfg := p.cfg
	cfg.Hooks = nil
	m, err := joblife.Load(p.now, cfg, p.P(0.5), all(records))
	p.Must(err)
	if a, b := joblife.Describe(p.m), joblife.Describe(m); a != b {
		p.Fail("I5: %s tell otherwise:\n%s", what, diff(a, b))
	}
}

// judgeEnd judges that all is over.
func (p *play) judgeEnd() {
	p.judgeReplay(p.store, "the records")
	p.Must(p.w.End())
	for id, log := range p.logs {
		p.judgeLog(id, log)
		if v, ok := p.m.Job(id); ok && v.State() != jobstate.StateInactive {
			p.Fail("%v is in %v at the end", id, v.State())
		}
	}
	if n := p.sched.pool.Len(); n > 0 {
		p.Fail("I1: %d jobs hold resources at the end", n)
	}
	if s := p.m.Stats(); s.Waits != 0 || s.Housekeeping != 0 {
		p.Fail("at the end: %+v", s)
	}
	for tag, asked := range p.tags {
		p.Fail("no answer to %d: %T %+v", tag, asked, asked)
	}
}

// judgeLog judges the log of a job that is over.
func (p *play) judgeLog(id jobid.ID, log []byte) {
	for _, f := range jobstate.Validate(log) {
		if f.Level == jobstate.LevelError {
			p.Fail("%v: %v\n%s", id, f, log)
		}
	}
	if bytes.Contains(log, []byte(`"name":"invalidate"`)) {
		return
	}
	if j, err := jobstate.Replay(id, log); err != nil || j.State() != jobstate.StateInactive {
		p.Fail("I5: %v is over, and its log is not: %v\n%s", id, err, log)
	}
}

func respond(id jobid.ID, kind exec.ResponseType) joblife.ExecResponse {
	return joblife.ExecResponse{ID: id, Type: kind}
}

// A service is an action of a job that somebody else runs, and that may begin before the
// job has its resources.
type service struct {
	key   jobstate.ActionKey
	ranks *idset.Set // that it names
	gone  *idset.Set // of them, what had left the job before, or what it released
	ended bool
}

// serve lets a service start an action of some job, or end one.
func (p *play) serve() {
	id := p.someJob()
	v, ok := p.m.Job(id)
	if !ok || v.Job() == nil {
		return
	}
	for _, s := range p.foreign[id] {
		if !s.ended {
			p.endService(id, s, []int{0, 0, 0, 256}[p.N(4)])
			return
		}
	}
	p.served++
	s := &service{key: jobstate.ActionKey{Kind: jobstate.ActionEpilog, Description: fmt.Sprintf("dws%d.", p.served)}, ranks: idset.Range(0, nodes-1), gone: new(idset.Set)}
	if p.P(0.3) && !v.Job().Started() && v.State() != jobstate.StateCleanup {
		s.key.Kind = jobstate.ActionProlog
	}
	text := fmt.Sprintf(`{"description":%q}`, s.key.Description)
	if p.P(0.5) {
		s.ranks = p.someRanks(0.5)
		text = fmt.Sprintf(`{"description":%q,"ranks":"%v"}`, s.key.Description, s.ranks)
	}
	if n := v.Holds(); n != nil {
		s.gone.UnionWith(n.Released().Ranks)
	}
	if r := v.R(); r != nil { // not what was dropped
		s.gone.UnionWith(idset.Difference(idset.Range(0, nodes-1), r.Ranks()))
	}
	if p.post(id, s.key.Kind.String()+"-start", text) != nil {
		return
	}
	for a := range v.Job().Actions() {
		if a.Description == s.key.Description {
			p.foreign[id] = append(p.foreign[id], s)
		}
	}
}

func (p *play) post(id jobid.ID, name, context string) error {
	tag := p.newTag("service")
	return p.ask(tag, joblife.Post{Tag: tag, ID: id, Name: name, Context: json.RawMessage(context)})
}

func (p *play) endService(id jobid.ID, s *service, status int) {
	kind := s.key.Kind.String()
	if some := p.someRanks(0.5); p.rare(0.3) && p.post(id, kind+"-release", fmt.Sprintf(`{"description":%q,"ranks":"%v","status":0}`, s.key.Description, some)) == nil {
		s.gone.UnionWith(some)
		return
	}
	s.ended = p.post(id, kind+"-finish", fmt.Sprintf(`{"description":%q,"status":%d}`, s.key.Description, status)) == nil
}

// endServices lets each service end.
func (p *play) endServices() {
	var ids []jobid.ID
	for id := range p.foreign {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		for _, s := range p.foreign[id] {
			if !s.ended {
				p.endService(id, s, 0)
			}
		}
	}
}

// serviceLost forgets what services said that is not durable.
func (p *play) serviceLost() {
	for id, list := range p.foreign {
		p.foreign[id] = slices.DeleteFunc(list, func(s *service) bool {
			said := func(what string) bool {
				return bytes.Contains(p.logs[id], fmt.Appendf(nil, `"%v-%s","context":{"description":%q`, s.key.Kind, what, s.key.Description))
			}
			s.ended = said("finish")
			return !said("start")
		})
	}
}

// judgeServices judges that no service holds ranks that are freed.
func (p *play) judgeServices(id jobid.ID, ranks *idset.Set) {
	if !bytes.Contains(p.logs[id], []byte(`"name":"alloc"`)) {
		return // of an allocation that came too late
	}
	for _, s := range p.foreign[id] {
		if held := idset.Difference(idset.Intersect(s.ranks, ranks), s.gone); !s.ended && !held.IsEmpty() {
			p.Fail("I3: ranks %v of %v are freed, and %v holds them", held, id, s.key)
		}
	}
}

// jobspec1 is a jobspec with dependencies.
type jobspec1 struct {
	Nodes, Slots int
	Exclusive    bool
	Name, Queue  string
	Dependencies []map[string]string
}

func (j jobspec1) text() []byte {
	spec, err := jobspec.New(jobspec.Job{
		Nodes: int64(j.Nodes), Slots: int64(j.Slots), Exclusive: j.Exclusive, Name: j.Name, Queue: j.Queue, Command: []string{"true"},
	})
	if err != nil {
		panic(fmt.Sprint(j, err))
	}
	if len(j.Dependencies) > 0 {
		deps, _ := json.Marshal(j.Dependencies)
		if spec, err = spec.Update("attributes.system.dependencies", deps); err != nil {
			panic(err)
		}
	}
	b, _ := spec.MarshalJSON()
	return b
}

// hooks are those of a new Manager.
func (p *play) hooks() []joblife.Hooks {
	restarts := joblife.Hooks{}
	if p.logging {
		restarts = fluxRestarts()
	}
	return []joblife.Hooks{
		joblife.Dependencies(), restarts,
		{
			Name:     "site",
			Validate: byName,
			Priority: func(e *joblife.HookEvent) (uint32, bool) {
				if e.Job.Jobspec().Name() == "ranked" {
					_, ok := e.Job.Job().Priority()
					return 77, !ok
				}
				return uint32(e.Job.Job().Urgency()), false
			},
		},
		flaky(),
	}
}

// flaky are hooks that fail, with errors and panics, which must not hurt anybody.
func flaky() joblife.Hooks {
	one := func(e *joblife.HookEvent, of jobid.ID, what string) {
		if e.Job.ID()>>24%of == 0 { // the time is there
			panic(what)
		}
	}
	return joblife.Hooks{
		Name: "flaky",
		Validate: func(e *joblife.HookEvent) error {
			if e.Job.Jobspec().Name() == "boom" {
				one(e, 2, "validate")
				return errors.New("boom")
			}
			return nil
		},
		Dependency: func(e *joblife.HookEvent, d jobspec.Dependency) (bool, error) {
			if d.Scheme == "broken" {
				one(e, 2, "dependency")
				return true, errors.New("broken")
			}
			return false, nil
		},
		Event: func(e *joblife.HookEvent) {
			if e.Entry.Name != "submit" {
				one(e, 7, e.Entry.Name)
			}
		},
		Inactive: func(e *joblife.HookEvent) { one(e, 3, "inactive") },
		Removed:  func(e *joblife.HookEvent) { one(e, 3, "removed") },
	}
}
