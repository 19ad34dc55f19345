package joblifetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// epoch returns when the ids of generated jobs begin.
func epoch() time.Time { return time.Unix(1_600_000_000, 0).UTC() }

// A Scheduler is what [RunScheduler] tests. It decides when it is asked.
type Scheduler interface {
	// Hello begins a session, perhaps after another: forget what was before. These jobs
	// hold resources, and no others do. All nodes are up.
	Hello(alloc.Announcement) error
	// Take takes a message of the Manager: alloc.Request, Cancel, Prioritize, Free or
	// Expiration. The response to a Request comes from Decide. So does that to a Cancel,
	// alloc.ResponseCancel; a Cancel of a Request that has a response gets none. Take may
	// keep the message.
	Take(alloc.Message) error
	// Decide returns responses. It is called after Hello, after messages, and when time
	// has passed.
	Decide(now eventlog.Timestamp) []alloc.Response
}

// RunScheduler plays a random workload on random nodes with a scheduler from newScheduler,
// and injects the faults that the package documentation lists. It also limits how many
// requests are open, cancels jobs, changes urgencies and expirations, and frees
// allocations in parts. It fails t if two jobs get the same resources, if a job gets
// resources that do not exist, if a response is missing or not legal, if a job is denied
// that fits, or if a job still waits when all nodes are free.
func RunScheduler(t *rapid.T, newScheduler func(nodes *rset.R) Scheduler) {
	if err := runScheduler(t, newScheduler); err != nil {
		t.Fatal(err)
	}
}

func runScheduler(t *rapid.T, newScheduler func(nodes *rset.R) Scheduler) error {
	nodes := Rs(6).Draw(t, "nodes")
	jobs := Workloads(12, 6).Draw(t, "workload")
	r, err := newRunner(t, joblife.Config{Epoch: epoch()}, nodes, newScheduler(nodes))
	if err != nil {
		return err
	}
	r.faulty = true
	return r.explain(r.play(jobs))
}

// runner is an embedder that plays a workload.
type runner struct {
	m      *joblife.Manager
	life   int // how many Managers there were before
	cfg    joblife.Config
	hooks  func() []joblife.Hooks // of each Manager; nil: none
	stored []joblife.Record
	w      *World
	s      Scheduler
	nodes  *rset.R
	now    time.Time
	t      *rapid.T
	faulty bool              // there are faults
	calm   bool              // but not now
	met    bool              // the scheduler was told who holds what
	open   map[jobid.ID]bool // requests without a response
	jobs   map[jobid.ID]*Arrival
	told   map[jobid.ID][]exec.Response // what the executor has said of each job
	queue  []event
	log    []byte
	todo   [3][]joblife.Input // on their way to the Manager, in order: see fromSched
	seen   jobid.ID
	ticks  int
	notes  []note // what happened
}

// A note is a line for people, to be printed if a run fails.
type note struct {
	at     time.Time
	format string
	args   []any
}

func (r *runner) note(format string, args ...any) {
	r.notes = append(r.notes, note{r.now, format, args})
}

// explain adds to an error what happened before.
func (r *runner) explain(err error) error {
	if err == nil {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "the nodes are %v", r.nodes)
	for _, n := range r.notes[max(0, len(r.notes)-maxNotes):] {
		fmt.Fprintf(&b, "\n%6.0fs "+n.format, append([]any{n.at.Sub(epoch().Add(time.Hour)).Seconds()}, n.args...)...)
	}
	return fmt.Errorf("%w\n%s", err, b.String())
}

// Who sends to the Manager.
const (
	fromSched = iota
	fromExec
	fromNodes
)

// maxNotes is how many notes are printed.
const maxNotes = 200

// maxLives is how often a Manager crashes in a run.
const maxLives = 8

// event is what happens at a time.
type event struct {
	at time.Time
	do func() error
}

func newRunner(t *rapid.T, cfg joblife.Config, nodes *rset.R, s Scheduler) (*runner, error) {
	m, err := joblife.New(cfg)
	return &runner{
		m: m, cfg: cfg, w: NewWorld(cfg.Actions), s: s, nodes: nodes, now: epoch().Add(time.Hour), t: t,
		jobs: make(map[jobid.ID]*Arrival), told: make(map[jobid.ID][]exec.Response),
	}, err
}

// choose draws a number from 0 to most.
func (r *runner) choose(most int) int { return rapid.IntRange(0, most).Draw(r.t, "choice") }

// fault reports whether one of some faults happens now.
func (r *runner) fault(most int) bool { return r.faulty && !r.calm && r.choose(most) == most }

// play plays a workload to its end.
func (r *runner) play(jobs []Arrival) error {
	at := r.now
	for i := range jobs {
		at = at.Add(jobs[i].After)
		r.after(at, func() error { return r.submit(&jobs[i]) })
	}
	err := r.connect()
	for err == nil {
		if at, ok := r.m.Deadline(); ok && !slices.ContainsFunc(r.queue, func(e event) bool { return !e.at.After(at) }) {
			r.now = at
			if r.ticks++; r.ticks > maxTicks {
				return errTicks
			}
			err = r.step(joblife.Tick{})
			continue
		}
		if len(r.queue) == 0 {
			if r.calm {
				break
			}
			r.calm = true // what is delayed comes now
			err = r.settle()
			continue
		}
		i := 0
		for k := range r.queue {
			if r.queue[k].at.Before(r.queue[i].at) {
				i = k
			}
		}
		e := r.queue[i]
		r.queue = slices.Delete(r.queue, i, i+1)
		r.now, r.calm = e.at, false
		if err = e.do(); err == nil {
			err = r.meddle()
		}
	}
	if err != nil {
		return err
	}
	for v := range r.m.Jobs(jobstate.StateNew | jobstate.StateActive) {
		if v.State() == jobstate.StateSched {
			return fmt.Errorf("joblifetest: job %v is left in SCHED: all nodes are free, and the scheduler neither gives it some nor denies it", v.ID())
		}
		return fmt.Errorf("joblifetest: job %v is left in %v, and nothing happens any more", v.ID(), v.State())
	}
	for id := range r.open {
		return fmt.Errorf("joblifetest: job %v: there is no response to its request, which was canceled", id)
	}
	return errors.Join(r.w.End(), Check(r.m))
}

// meddle does what a scheduler must bear.
func (r *runner) meddle() error {
	if r.hooks != nil && r.choose(3) == 3 {
		return r.restart()
	}
	switch r.choose(15) {
	case 15:
		r.note("the session is lost")
		if r.choose(1) == 0 {
			return r.session() // another begins at once
		}
		life := r.life
		r.todo[fromSched], r.met = nil, false
		if err := r.step(joblife.SchedLost{}); err != nil || r.life != life {
			return err
		}
		return r.session()
	case 14, 13:
		for v := range r.m.Jobs(jobstate.StateSched) {
			return r.step(joblife.Urgency{ID: v.ID(), Urgency: 1 + r.choose(jobstate.UrgencyExpedite-1)})
		}
	case 12:
		for v := range r.m.Jobs(jobstate.StateRun) {
			at := eventlog.FromTime(r.now.Add(time.Duration(1+r.choose(60)) * time.Second))
			return r.step(joblife.SetExpiration{ID: v.ID(), Expiration: at})
		}
	case 11:
		if r.faulty {
			r.todo[fromExec] = nil
			return r.step(joblife.ExecHello{}) // another session begins at once
		}
	}
	return nil
}

func (r *runner) after(at time.Time, do func() error) { r.queue = append(r.queue, event{at, do}) }

// connect lets the executor and the scheduler say hello.
func (r *runner) connect() error {
	life := r.life
	if err := r.step(joblife.ExecHello{}); err != nil || r.life != life {
		return err // after a crash another connect did it
	}
	return r.session()
}

// session begins a session of the scheduler. What is under way in an earlier one is lost.
func (r *runner) session() error {
	life := r.life
	r.todo[fromSched], r.met = nil, false
	if err := r.step(joblife.SchedHello{PartialOK: true}); err != nil || r.life != life {
		return err
	}
	return r.step(joblife.SchedReady{Limit: max(0, r.choose(9)-6)})
}

func (r *runner) submit(a *Arrival) error {
	in := a.Submit
	in.Tag = uint64(len(r.jobs) + 1)
	r.jobs[0] = a
	last := r.seen
	err := r.step(in)
	if errors.Is(err, joblife.ErrRefused) {
		return nil // a hook's right
	}
	if err == nil && r.seen == last {
		return r.submit(a) // it was lost in a crash
	}
	if a.Cancel > 0 {
		id := r.seen
		r.after(r.now.Add(a.Cancel), func() error {
			if err := r.step(joblife.Raise{ID: id, Type: "cancel"}); !errors.Is(err, joblife.ErrInactive) {
				return err
			}
			return nil
		})
	}
	return err
}

// step passes an input to the Manager, and does all that follows.
func (r *runner) step(in joblife.Input) error {
	if err := r.m.Step(r.now, in); err != nil {
		return err
	}
	return r.settle()
}

// settle does all that follows, unless it is delayed.
func (r *runner) settle() error {
	for {
		var rd joblife.Ready
		for r.m.Ready(&rd) {
			if r.life < maxLives && r.fault(29) {
				if r.choose(1) == 1 {
					r.store(&rd)
				}
				return r.crash()
			}
			r.store(&rd)
			if err := r.do(&rd); err != nil {
				return err
			}
			if err := r.m.Done(rd.Seq); err != nil {
				return err
			}
		}
		if !r.fault(9) {
			if err := r.decide(); err != nil {
				return err
			}
		}
		next := r.next()
		if next == nil {
			return r.w.Err()
		}
		if err := r.m.Step(r.now, next); err != nil {
			return fmt.Errorf("joblifetest: %T: %w", next, err)
		}
	}
}

// next returns what reaches the Manager next, and nil if nothing does now. What comes
// from one sender stays in order.
func (r *runner) next() joblife.Input {
	var from []int
	for i := range r.todo {
		if len(r.todo[i]) > 0 {
			from = append(from, i)
		}
	}
	if len(from) == 0 || r.fault(9) {
		return nil
	}
	i := from[0]
	if len(from) > 1 && r.faulty {
		i = from[r.choose(len(from)-1)]
	}
	in := r.todo[i][0]
	r.todo[i] = r.todo[i][1:]
	return in
}

// store keeps what a Ready has to store.
func (r *runner) store(rd *joblife.Ready) {
	for _, rec := range rd.Append {
		if rec.Kind == joblife.RecordEvent {
			r.log = append(r.log, rec.Data...)
		}
		if r.faulty {
			r.stored = append(r.stored, rec.Clone())
		}
	}
}

// do does what a Ready says.
func (r *runner) do(rd *joblife.Ready) error {
	for _, f := range rd.Faults {
		return fmt.Errorf("joblifetest: %w", f)
	}
	for _, a := range rd.Answers {
		r.jobs[a.Job], r.seen = r.jobs[0], a.Job
		r.note("submit %v: %#v", a.Job, *r.jobs[0])
	}
	r.w.Do(rd)
	if rd.Hello != nil {
		r.met, r.open = true, make(map[jobid.ID]bool)
		r.note("hello: %d jobs", len(rd.Hello.Responses))
		for _, h := range rd.Hello.Responses {
			r.note("hello: %v has %v, of which rank %q is free", h.ID, h.R, h.Free.String())
		}
		if err := r.s.Hello(*rd.Hello); err != nil {
			return fmt.Errorf("joblifetest: hello: %w", err)
		}
	}
	for _, msg := range rd.Sched {
		switch m := msg.(type) {
		case alloc.ReadyResponse:
			continue
		case alloc.Request:
			m.Jobspec = bytes.Clone(m.Jobspec) // the Ready's is gone when that is done
			msg = m
			r.open[m.ID] = true
			r.note("request for %v, priority %d", m.ID, m.Priority)
		case alloc.Prioritize:
			m.Jobs = slices.Clone(m.Jobs)
			msg = m
		case alloc.Cancel:
			r.note("cancel the request for %v", m.ID)
		case alloc.Free:
			r.note("free %v of %v, final %v", m.R, m.ID, m.Final)
		}
		if err := r.s.Take(msg); err != nil {
			return fmt.Errorf("joblifetest: %T: %w", msg, err)
		}
	}
	for _, msg := range rd.Exec {
		if s, ok := msg.(exec.Start); ok {
			r.start(s)
		}
	}
	for _, l := range rd.Launch {
		for _, report := range Reports(l).Draw(r.t, "reports") {
			if report.Kind != perilog.ReportStarted {
				r.w.Exit(Process{Job: l.Job, Action: l.Action, Attempt: l.Attempt, Rank: report.Rank}, report.Status)
			}
			r.say(fromNodes, report)
		}
	}
	for _, d := range rd.Drain {
		r.w.Excuse(0, d.Ranks)
		r.say(fromNodes, joblife.Drained{Ranks: d.Ranks.Clone()})
	}
	return nil
}

// say has an input reach the Manager.
func (r *runner) say(from int, in joblife.Input) { r.todo[from] = append(r.todo[from], in) }

// decide lets the scheduler decide.
func (r *runner) decide() error {
	if !r.met {
		return nil
	}
	for _, resp := range r.s.Decide(eventlog.FromTime(r.now)) {
		r.note("  response: %v %v %v%s", resp.Type, resp.ID, resp.R, resp.Note)
		if resp.Type != alloc.ResponseAnnotate {
			delete(r.open, resp.ID)
		}
		if resp.Type == alloc.ResponseDeny && r.fits(resp.ID) {
			return fmt.Errorf("joblifetest: job %v is denied, and fits when all nodes are free", resp.ID)
		}
		if resp.Type == alloc.ResponseSuccess {
			if now := eventlog.FromTime(r.now); resp.R.Start() > now {
				return fmt.Errorf("joblifetest: job %v: its R starts at %v, and now is %v: take the time from Decide", resp.ID, resp.R.Start(), now)
			}
			r.w.Allocated(resp.ID, resp.R)
			for _, c := range cores(resp.R, resp.R.Ranks()) {
				if ids := r.nodes.Children(c.rank, c.kind); !ids.Contains(c.id) {
					return fmt.Errorf("joblifetest: job %v: rank %d has no %s %d", resp.ID, c.rank, c.kind, c.id)
				}
			}
		}
		r.say(fromSched, joblife.SchedResponse(resp))
	}
	return r.w.Err()
}

// fits reports whether the nodes have room for a job when they are free.
func (r *runner) fits(id jobid.ID) bool {
	f, a := newFirst(r.nodes), r.jobs[id]
	if a == nil || f.Hello(alloc.Announcement{}) != nil {
		return false
	}
	f.waiting[id] = alloc.Request{JobInfo: alloc.JobInfo{ID: id}, Jobspec: a.Submit.Jobspec}
	out := f.Decide(0)
	return len(out) == 1 && out[0].Type == alloc.ResponseSuccess
}

// start runs a job for its time. An executor that has it already repeats what it said.
func (r *runner) start(s exec.Start) {
	said, has := r.told[s.ID]
	switch {
	case has:
		for _, resp := range said {
			r.say(fromExec, joblife.ExecResponse(resp))
		}
		return
	case s.Reattach:
		r.say(fromExec, joblife.ExecRefused{ID: s.ID, Note: "it was never started"})
		return
	}
	tell := func(resp exec.Response) {
		resp.ID = s.ID
		r.told[s.ID] = append(r.told[s.ID], resp)
		r.say(fromExec, joblife.ExecResponse(resp))
	}
	tell(exec.Response{Type: exec.ResponseStart})
	ranks := s.R.Ranks()
	r.after(r.now.Add(r.jobs[s.ID].Runs), func() error {
		r.w.Ended(s.ID, nil)
		tell(exec.Response{Type: exec.ResponseFinish, Status: r.jobs[s.ID].Status})
		if first, _ := ranks.Min(); ranks.Len() > 1 && r.choose(1) == 1 {
			tell(exec.Response{Type: exec.ResponseRelease, Ranks: idset.Of(first)})
		}
		tell(exec.Response{Type: exec.ResponseRelease, Final: true})
		return r.settle()
	})
}
