package joblifetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/sched"
)

// epoch returns when the ids of generated jobs begin.
func epoch() time.Time { return time.Unix(1_600_000_000, 0).UTC() }

const (
	maxNotes = 200    // that are printed
	maxLives = 8      // of an embedder in a run
	maxTicks = 10_000 // how often the time may be asked for
)

var (
	errTicks = errors.New("joblifetest: hooks ask for a time again and again")
	errCrash = errors.New("joblifetest: the embedder crashes here")
)

// runner plays a workload with an embedder. It is all that is around: users, scheduler,
// executor and nodes.
type runner struct {
	t      *rapid.T
	w      *World
	now    time.Time
	faulty bool // there are faults
	calm   bool // but not now
	begins bool // lives end between two inputs, too

	newEmbedder func(*Site) (Embedder, error)
	hooks       func() []joblife.Hooks // of each life; nil: none
	cfg         joblife.Config
	site        *Site
	e           Embedder
	lives       int
	stored      []joblife.Record
	logs        map[jobid.ID][]byte // of what is stored

	s     Scheduler
	judge *judge
	met   bool       // the scheduler was told who holds what
	asked *idset.Set // ranks to drain, not confirmed yet

	first    jobid.ID // of jobs without an id
	jobs     map[jobid.ID]*Arrival
	told     map[jobid.ID][]exec.Response // what the executor has said of each job
	forced   map[forced]bool              // an operator has ended it on some ranks
	began    map[jobid.ID]int             // the life in which its first action was launched
	queue    []event                      // in order
	todo     [2][]message                 // on their way to the embedder, in order: see fromSched
	conns    [2]int                       // the connections of the scheduler and the executor
	conn     int                          // the latest connection
	tag      uint64
	in       joblife.Input // that the embedder takes
	answered uint64        // the tag of the latest answer
	ticks    int
	small    int      // how many jobs more may be submitted: see hurry
	notes    []string // what happened
}

// Who sends to the embedder.
const (
	fromSched = iota
	fromExec
)

// forced is an action of a job.
type forced struct {
	job         jobid.ID
	description string
}

// message is an input under way on a connection.
type message struct {
	conn int
	in   joblife.Input
}

type event struct {
	at time.Time
	do func() error
}

func (r *runner) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf("%7s "+format, append([]any{clock(eventlog.FromTime(r.now))}, args...)...))
}

// clock returns a time as notes have it; 0 is never.
func clock(t eventlog.Timestamp) string {
	if t == 0 {
		return "never"
	}
	return fmt.Sprintf("%.0fs", t.Time().Sub(epoch().Add(time.Hour)).Seconds())
}

// newRunner returns a runner with the embedder and a scheduler of this package.
func newRunner(t *rapid.T, actions perilog.Config, nodes *rset.R) *runner {
	w := NewWorld(actions)
	return &runner{
		t: t, cfg: joblife.Config{Epoch: epoch(), Actions: actions}, first: 1000, w: w, s: NewScheduler(sched.Config{})(nodes), now: epoch().Add(time.Hour),
		newEmbedder: newLoop, judge: &judge{w: w, nodes: nodes, off: new(idset.Set)}, asked: new(idset.Set),
		jobs: make(map[jobid.ID]*Arrival), told: make(map[jobid.ID][]exec.Response), logs: make(map[jobid.ID][]byte),
		forced: make(map[forced]bool), began: make(map[jobid.ID]int),
	}
}

// RunHooks plays a workload with hooks from newHooks, injects the faults that the package
// documentation lists, and restarts the Manager between Steps, each time with new hooks.
// It fails t at a joblife.Fault, if a restart changes what a job waits for, its priority,
// or whether it was accepted, or if a job waits for something that never comes, unless it is
// held at urgency 0. Hooks may refuse jobs, at once or later. What the scheduler chooses is not
// judged, so jobspecs may have any constraints and counts. For dependencies between jobs, set
// Submit.ID in the workload; without it, an ID is 1000 and the index of the job. A job that a
// hook gives resources with joblife.Alloc cannot be tested: it is found to hold nothing.
func RunHooks(t *rapid.T, newHooks func() []joblife.Hooks, workload []Arrival) {
	must(t, runHooks(t, newHooks, workload))
}

func runHooks(t *rapid.T, newHooks func() []joblife.Hooks, workload []Arrival) error {
	r := newRunner(t, perilog.Config{}, Rs(6).Draw(t, "nodes"))
	r.hooks, r.faulty, r.begins, r.judge.trusts = newHooks, true, true, true
	return r.play(workload)
}

// greatIDs draws whether ids need all 63 bits: they would be of years to come since an epoch.
func (r *runner) greatIDs() {
	if rapid.Bool().Draw(r.t, "great ids") {
		r.first, r.cfg.Epoch = r.first+1<<62, time.Time{}
	}
}

func (r *runner) choose(most int) int { return rapid.IntRange(0, most).Draw(r.t, "choice") }

// fault reports whether one of some faults happens now.
func (r *runner) fault(most int) bool { return r.faulty && !r.calm && r.choose(most) == most }

func (r *runner) after(d time.Duration, do func() error) {
	e, i := event{r.now.Add(d), do}, len(r.queue)
	for i > 0 && r.queue[i-1].at.After(e.at) {
		i--
	}
	r.queue = slices.Insert(r.queue, i, e)
}

// insist does something after a time, and again in another life if this one ends.
func (r *runner) insist(d time.Duration, do func() error) {
	r.after(d, func() error {
		err := do()
		if errors.Is(err, errCrash) {
			r.insist(time.Second, do)
		}
		return err
	})
}

// play plays a workload to its end. Its error, or the log of t if what it calls panics or
// fails t, has what happened before.
func (r *runner) play(jobs []Arrival) error {
	failed := true
	defer func() {
		if failed {
			r.t.Log(r.story())
		}
	}()
	err := r.run(jobs)
	if failed = err == nil && r.t.Failed(); err == nil {
		return nil
	}
	return fmt.Errorf("%w\n%s", err, r.story())
}

func (r *runner) story() string {
	return fmt.Sprintf("the nodes are %v\n%s", r.judge.nodes, strings.Join(r.notes[max(0, len(r.notes)-maxNotes):], "\n"))
}

func (r *runner) run(jobs []Arrival) error {
	at := time.Duration(0)
	for i, a := range jobs {
		if at += a.After; a.Submit.ID == 0 {
			a.Submit.ID = r.first + jobid.ID(i)
		}
		if r.jobs[a.Submit.ID] != nil {
			return fmt.Errorf("joblifetest: two jobs of the workload have the id %v: a job without an ID gets 1000 and its index", a.Submit.ID)
		}
		r.jobs[a.Submit.ID] = &a
		r.insist(at, func() error { return r.submit(&a) })
	}
	more, err := true, errCrash // which begins the first life
	for more || err != nil {
		switch {
		case errors.Is(err, errCrash):
			if err = r.begin(); err == nil {
				err = r.connect()
			}
		case err != nil:
			return err
		default:
			more, err = r.turn()
		}
	}
	m := r.e.Manager()
	for v := range m.Jobs(jobstate.StateNew | jobstate.StateActive) {
		switch waits := v.State() == jobstate.StateSched; {
		case waits && (r.judge.lax.MayWait || v.Job().Urgency() == 0):
			continue
		case waits:
			return fmt.Errorf("joblifetest: job %v is left in SCHED: all nodes are free, and the scheduler neither gives it some nor denies it", v.ID())
		}
		return fmt.Errorf("joblifetest: job %v is left in %v, and nothing happens any more", v.ID(), v.State())
	}
	return errors.Join(r.w.End(), Check(m))
}

// turn lets the next thing happen, and reports whether there was one.
func (r *runner) turn() (more bool, err error) {
	at, ok := r.e.Manager().Deadline()
	switch {
	case ok && (len(r.queue) == 0 || r.queue[0].at.After(at)):
		if err = r.advance(at); err == nil {
			err = r.tick()
		}
		return true, err
	case len(r.queue) > 0:
		e := r.queue[0]
		r.queue = r.queue[1:]
		r.calm = false
		if err = r.advance(e.at); err == nil {
			err = e.do()
		}
		if err == nil {
			err = r.settle()
		}
		if err == nil {
			err = r.meddle()
		}
		return true, err
	case r.calm:
		return false, nil
	}
	r.calm = true // what is delayed comes now, and all nodes are up
	if !r.judge.off.IsEmpty() {
		err = r.update(r.judge.off.Clone(), "up")
	}
	if err == nil {
		err = r.settle()
	}
	return true, err
}

func (r *runner) tick() error {
	if r.ticks++; r.ticks > maxTicks {
		return errTicks
	}
	return r.pass(0, joblife.Tick{})
}

// advance lets time pass, which the scheduler learns before all that happens then.
func (r *runner) advance(to time.Time) error {
	r.now = to
	return r.decide()
}

// meddle does what one must bear.
func (r *runner) meddle() error {
	if r.begins && r.lives < maxLives && r.choose(3) == 3 {
		return r.restart()
	}
	m := r.e.Manager()
	jobs := func(state jobstate.State) jobid.ID {
		list := slices.Collect(m.Jobs(state))
		if len(list) == 0 {
			return 0
		}
		return list[r.choose(len(list)-1)].ID()
	}
	switch n := r.choose(19); {
	case n >= 17 && r.met:
		ranks := slices.Collect(r.judge.nodes.Ranks().All())
		rank, what := ranks[r.choose(len(ranks)-1)], "up"
		if !r.judge.off.Contains(rank) {
			what = []string{"down", "drained"}[r.choose(1)]
		}
		return r.update(idset.Of(rank), what)
	case n >= 11 && n < 17:
		return r.hurry()
	case n >= 7 && n < 11:
		if id := jobs(jobstate.StateSched); id != 0 {
			return r.pass(0, joblife.SetUrgency{ID: id, Urgency: 1 + r.choose(jobstate.UrgencyExpedite-1), Tag: r.newTag()})
		}
	case n == 6:
		r.note("the session of the scheduler is lost")
		if r.choose(1) == 1 {
			r.hangUp(fromSched)
			if err := r.step(r.conns[fromSched], joblife.SchedLost{}); err != nil {
				return err
			}
		}
		return r.session()
	case n == 5 && r.faulty:
		return r.hello() // another session begins at once
	}
	return nil
}

// hurry has all jobs end soon, and submits a small job that would end just after them. It
// must not delay the first, which waits for them.
func (r *runner) hurry() error {
	soon := time.Duration(1+r.choose(9)) * time.Second
	for _, id := range slices.Sorted(maps.Keys(r.jobs)) {
		if v, ok := r.e.Manager().Job(id); !ok || v.State() != jobstate.StateRun {
			continue
		}
		if err := r.pass(0, joblife.SetExpiration{ID: id, Expiration: eventlog.FromTime(r.now.Add(soon)), Tag: r.newTag()}); err != nil {
			return err
		}
	}
	if r.small == 0 || r.judge.first() == nil {
		return nil
	}
	r.small--
	spec, err := jobspec.New(jobspec.Job{Slots: 1, Cores: 1, Duration: soon + time.Second, Command: []string{"true"}})
	if err != nil {
		return err
	}
	a := &Arrival{Runs: soon, Submit: joblife.Submit{ID: r.first + jobid.ID(1000+r.small), Urgency: 1}}
	if a.Submit.Jobspec, err = spec.MarshalJSON(); err != nil {
		return err
	}
	r.jobs[a.Submit.ID] = a
	if err := r.submit(a); err != nil {
		return err
	}
	return r.settle()
}

// hangUp ends a connection. What was under way is lost, or comes later.
func (r *runner) hangUp(from int) {
	if from == fromSched {
		r.met = false
	}
	if !r.faulty || r.choose(1) == 0 {
		r.todo[from] = nil
	}
}

// dial begins a connection.
func (r *runner) dial(from int) int {
	r.hangUp(from)
	r.conn++
	r.conns[from] = r.conn
	return r.conn
}

func (r *runner) hello() error { return r.pass(r.dial(fromExec), joblife.ExecHello{}) }

// connect lets the executor and the scheduler say hello, and nodes and operators see to
// what was lost.
func (r *runner) connect() error {
	for _, u := range slices.Collect(r.e.Manager().Unresolved()) {
		if err := r.resolve(u); err != nil {
			return err
		}
	}
	if err := r.hello(); err != nil {
		return err
	}
	return r.session()
}

// resolve launches again what no node runs. What runs reports.
func (r *runner) resolve(u joblife.Unresolved) error {
	lost := u.Ranks.Clone()
	for _, p := range r.w.Processes() {
		if p.Job == u.Job && p.Action == u.Action && p.Running {
			lost.Remove(p.Rank)
		}
	}
	if lost.IsEmpty() || u.Reason == perilog.ReasonStart {
		return nil
	}
	a := joblife.Action{Job: u.Job, Key: u.Action, Ranks: lost}
	err := r.step(0, joblife.Rerun{Action: a})
	if err == nil || errors.Is(err, errCrash) {
		return err
	}
	r.forced[forced{u.Job, u.Action.Description}] = true
	return r.step(0, joblife.ForceFinish{Action: a, Status: 1, Operator: "root"})
}

func (r *runner) session() error {
	conn := r.dial(fromSched)
	if err := r.step(conn, joblife.SchedHello{PartialOK: true}); err != nil {
		return err
	}
	for r.fault(2) && conn == r.conns[fromSched] { // it takes its time to be ready
		if _, err := r.turn(); err != nil {
			return err
		}
	}
	in := joblife.SchedReady{Limit: max(0, r.choose(9)-6)}
	if conn == r.conns[fromSched] { // else it comes too late
		r.judge.ready, r.judge.limit = true, in.Limit
	}
	return r.pass(conn, in)
}

func (r *runner) newTag() uint64 {
	r.tag++
	return r.tag
}

// submit submits a job, unless it is known from an earlier life.
func (r *runner) submit(a *Arrival) error {
	in := a.Submit
	if _, known := r.e.Manager().Job(in.ID); !known {
		in.Tag = r.newTag()
		r.note("submit %#v as %v", *a, in.ID)
		err := r.step(0, in)
		if errors.Is(err, joblife.ErrRefused) && !strings.Contains(err.Error(), "panicked") {
			return nil // a hook's right
		}
		if err != nil {
			return err
		}
	}
	if a.Cancel == 0 {
		return nil
	}
	r.after(a.Cancel, func() error {
		if v, ok := r.e.Manager().Job(in.ID); ok && v.State() == jobstate.StateNew {
			return nil // it is not known yet
		}
		err := r.step(0, joblife.Raise{ID: in.ID, Type: "cancel", Tag: r.newTag()})
		refused := errors.Is(err, joblife.ErrUnknown) && r.logs[in.ID] == nil // later
		if refused || errors.Is(err, joblife.ErrInactive) {
			return nil
		}
		return err
	})
	return nil
}

// pass passes an input to the embedder, and lets all follow.
func (r *runner) pass(conn int, in joblife.Input) error {
	if err := r.step(conn, in); err != nil {
		return err
	}
	return r.settle()
}

// settle does all that follows, unless it is delayed.
func (r *runner) settle() error {
	for {
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
		if i == fromSched && r.fault(29) {
			r.note("the session of the scheduler is lost before its response comes")
			return r.session()
		}
		msg := r.todo[i][0] // what comes from one sender stays in order
		r.todo[i] = r.todo[i][1:]
		late, seq := msg.conn != r.conns[i], r.site.seq
		if late {
			r.note("too late: %s, on connection %d", what(msg.in), msg.conn)
		}
		err := r.step(msg.conn, msg.in)
		if late && (err != nil && !errors.Is(err, errCrash) || r.site.seq != seq) {
			return fmt.Errorf("joblifetest: the embedder takes %s, on connection %d, which has ended", what(msg.in), msg.conn)
		}
		if err != nil {
			if errors.Is(err, errCrash) || r.w.Err() != nil || r.site.err != nil {
				return err
			}
			return fmt.Errorf("joblifetest: %s is refused: %w", what(msg.in), err)
		}
	}
}

// what returns an input for people.
func what(in joblife.Input) string {
	switch in := in.(type) {
	case joblife.SchedResponse:
		return fmt.Sprintf("the scheduler's response %v to the request for job %v", in.Type, in.ID)
	case joblife.ExecResponse:
		return fmt.Sprintf("the executor's response %v for job %v", in.Type, in.ID)
	case joblife.Report:
		return fmt.Sprintf("the report of rank %d that %v of job %v %v with status %d", in.Rank, in.Action, in.Job, in.Kind, in.Status)
	}
	return fmt.Sprintf("%T", in)
}

func (r *runner) state() map[jobid.ID]string {
	all := make(map[jobid.ID]string)
	for v := range r.e.Manager().Jobs(jobstate.StateNew | jobstate.StatePending) {
		s := fmt.Sprintf("waits for %q", slices.Sorted(slices.Values(v.Job().Dependencies())))
		if p, ok := v.Job().Priority(); ok && v.State() == jobstate.StateSched {
			s = fmt.Sprintf("has the priority %d", p)
		}
		all[v.ID()] = s
	}
	return all
}

// restart ends a life between two inputs, and compares what jobs wait for.
func (r *runner) restart() error {
	for due := true; due; { // what a Tick begins may be due at once
		if err := r.tick(); err != nil {
			return err
		}
		at, ok := r.e.Manager().Deadline()
		due = ok && !at.After(r.now)
	}
	r.note("restart")
	before := r.state()
	if err := r.begin(); err != nil {
		return err // after a crash another restart does the rest
	}
	if err := Check(r.e.Manager()); err != nil {
		return err
	}
	after := r.state()
	for _, id := range slices.Sorted(maps.Keys(before)) {
		if after[id] == "" {
			after[id] = "does not wait any more"
		}
		if after[id] != before[id] {
			return fmt.Errorf("joblifetest: job %v %s before a restart, and %s after it", id, before[id], after[id])
		}
	}
	return r.connect()
}
