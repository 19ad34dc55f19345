package joblifetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
)

// An Embedder is what [RunEmbedder] tests: the loop around a Manager.
type Embedder interface {
	// Handle takes an input from a connection, and does what follows from it before it
	// returns. It returns the error of Manager.Step or of the Site. A scheduler and an
	// executor begin a connection with their hello, each with a number of its own; what
	// comes from an earlier connection of theirs is dropped. The number is 0 for all
	// others.
	Handle(now time.Time, connection int, in joblife.Input) error
	// Manager returns the Manager.
	Manager() *joblife.Manager
}

// A Site is what surrounds an embedder in one life: its store, and all that it acts on.
type Site struct {
	Now    time.Time      // when this life began
	Config joblife.Config // of the Manager

	r       *runner
	seq     uint64 // of the last Ready
	armed   int    // when it crashes: see crash
	crashed bool
	err     error // what was wrong in Do
}

// Where a life ends.
const (
	crashBefore = 1 + iota // the records are durable
	crashAfter
	crashDone // the effects are carried out, and Done is not called
)

// Records yields what is durable, for joblife.Restore.
func (s *Site) Records() iter.Seq2[joblife.Record, error] { return memory(s.r.stored) }

// Append makes records durable. After an error this life is over: return it.
func (s *Site) Append(list []joblife.Record) error {
	r := s.r
	if err := s.alive("writes records"); err != nil {
		return err
	}
	if r.lives < maxLives && r.fault(29) {
		s.armed = crashBefore + r.choose(2)
	}
	if s.armed == crashBefore {
		return s.crash("%d records are lost", len(list))
	}
	for _, rec := range list {
		r.append(rec)
	}
	return nil
}

// Do carries out the effects of a Ready. Pass all of it, Append too. After an error this
// life is over: return it.
func (s *Site) Do(rd *joblife.Ready) error {
	r := s.r
	if err := s.alive("acts"); err != nil {
		return err
	}
	if s.armed == crashAfter {
		return s.crash("the records are durable, and nothing else is done")
	}
	if rd.Seq <= s.seq {
		r.w.fail(0, "the embedder carries out Ready %d again", rd.Seq)
	}
	n := len(r.stored) - len(rd.Append)
	for i, rec := range rd.Append {
		if n < 0 || !same(r.stored[n+i], rec) {
			r.w.fail(rec.Job, "I4: the embedder acts, and this record of Ready %d is not durable: %v %s", rd.Seq, rec.Kind, rec.Data)
			break
		}
	}
	s.seq = rd.Seq
	if s.err = r.w.Err(); s.err == nil {
		s.err = r.do(rd)
	}
	if s.err == nil && s.armed == crashDone {
		return s.crash("all is done, and Done is not called")
	}
	return s.err
}

func (s *Site) crash(format string, args ...any) error {
	s.r.note("crash: "+format, args...)
	s.crashed = true
	return errCrash
}

// alive judges that an embedder ends with its life.
func (s *Site) alive(what string) error {
	if s.crashed {
		s.r.w.fail(0, "the embedder %s, and its store has failed before", what)
		return errCrash
	}
	return s.r.w.Err()
}

// append stores a record, and judges that it tells the truth.
func (r *runner) append(rec joblife.Record) {
	if now := eventlog.FromTime(r.now); rec.Time != now {
		r.w.fail(rec.Job, "the embedder has another clock than Handle: a record has the time %v, and now is %v", rec.Time, now)
	}
	rec = rec.Clone()
	r.stored = append(r.stored, rec)
	switch rec.Kind {
	case joblife.RecordEvent:
		r.logs[rec.Job] = append(r.logs[rec.Job], rec.Data...)
	case joblife.RecordHousekeeping:
	case joblife.RecordJobspec:
		if in, ok := r.in.(joblife.Submit); r.hooks == nil && !(ok && in.ID == rec.Job && string(in.Jobspec) == string(rec.Data)) {
			r.w.fail(rec.Job, "its jobspec is not what was submitted: %s", rec.Data)
		}
		return
	default:
		return
	}
	e, err := eventlog.Parse(rec.Data)
	var c struct {
		request
		Ranks       *idset.Set `json:"ranks"`
		Status      int32      `json:"status"`
		Description string     `json:"description"`
	}
	if err = errors.Join(err, json.Unmarshal(e.Context, &c)); err != nil && len(e.Context) > 0 {
		return // it has other keys
	}
	switch e.Name {
	case jobstate.EventInvalidate:
		delete(r.logs, rec.Job)
	case jobstate.EventDrained:
		if early := idset.Intersect(c.Ranks, r.asked); !early.IsEmpty() {
			r.w.fail(rec.Job, "I10: its log says that rank %v is drained, and nobody has confirmed it", early)
		}
	case jobstate.EventFinish:
		for _, said := range r.told[rec.Job] {
			if said.Type == exec.ResponseFinish && said.Status != c.Status {
				r.w.fail(rec.Job, "its log says that it ended with status %d, and the executor said %d", c.Status, said.Status)
			}
		}
	case jobstate.EventPrologFinish, jobstate.EventEpilogFinish:
		failed := false
		for _, p := range r.w.Processes() {
			if p.Job == rec.Job && p.Action.Description == c.Description {
				failed = failed || p.Running || p.Signal || p.Status != 0
			}
		}
		if failed != (c.Status != 0) && !r.forced[forced{rec.Job, c.Description}] && c.Status != 15 { // SIGTERM, perhaps decided in an earlier life
			r.w.fail(rec.Job, "its log says that %s ended with status %d, and its nodes did not", c.Description, c.Status)
		}
	case jobstate.EventException:
		switch c.Type {
		case "alloc", "exec", "prolog", "epilog":
			return // the Manager's own
		}
		fallthrough
	case jobstate.EventSubmit, jobstate.EventUrgency, jobstate.EventResourceUpdate:
		q, _ := requested(r.in)
		if c.id, c.event = rec.Job, e.Name; r.hooks == nil && c.request != q {
			r.w.fail(rec.Job, "its log has what nobody asked for: %s", rec.Data)
		}
	}
}

// A request is what the event of an input of a user has of it.
type request struct {
	id         jobid.ID
	event      string
	UserID     uint32             `json:"userid"`
	Urgency    int                `json:"urgency"`
	Type       string             `json:"type"`
	Severity   int                `json:"severity"`
	Expiration eventlog.Timestamp `json:"expiration"`
}

// requested returns what an input asks for, and the tag of its answer.
func requested(in joblife.Input) (q request, tag uint64) {
	switch in := in.(type) {
	case joblife.Submit:
		return request{id: in.ID, event: jobstate.EventSubmit, UserID: in.By.UserID, Urgency: in.Urgency}, in.Tag
	case joblife.SetUrgency:
		return request{id: in.ID, event: jobstate.EventUrgency, UserID: in.By.UserID, Urgency: in.Urgency}, in.Tag
	case joblife.SetExpiration:
		return request{id: in.ID, event: jobstate.EventResourceUpdate, Expiration: in.Expiration}, in.Tag
	case joblife.Raise:
		return request{id: in.ID, event: jobstate.EventException, UserID: in.By.UserID, Type: in.Type, Severity: in.Severity}, in.Tag
	case joblife.Report:
		return q, in.Tag
	}
	return q, 0
}

// loop is an embedder that is right.
type loop struct {
	m           *joblife.Manager
	site        site
	sched, exec int // the connections
}

// site is what a loop needs of a Site.
type site interface {
	Append([]joblife.Record) error
	Do(*joblife.Ready) error
}

func newLoop(s *Site) (Embedder, error) {
	m, _, err := joblife.Restore(s.Now, s.Config, s.Records())
	return &loop{m: m, site: s}, err
}

func (l *loop) Manager() *joblife.Manager { return l.m }

func (l *loop) Handle(now time.Time, connection int, in joblife.Input) error {
	switch in.(type) {
	case joblife.SchedHello:
		l.sched = connection
	case joblife.ExecHello:
		l.exec = connection
	}
	if connection != 0 && connection != l.sched && connection != l.exec {
		return nil // it comes too late
	}
	if err := l.m.Step(now, in); err != nil {
		return err
	}
	for rd := new(joblife.Ready); l.m.Ready(rd); {
		if err := l.site.Append(rd.Append); err != nil {
			return err
		}
		if err := l.site.Do(rd); err != nil {
			return err
		}
		if err := l.m.Done(rd.Seq); err != nil {
			return err
		}
	}
	return nil
}

// RunEmbedder plays random workloads with prologs, epilogs and housekeeping on an embedder
// from newEmbedder, which restores what is durable at each start, and injects the faults
// that the package documentation lists. RunEmbedder fails t if the embedder acts before
// records are durable or loses one, if an input with a Tag gets no answer, if it takes what is
// too late, if it confirms what nobody did, has another clock than Handle, forgets Done, or goes on
// after its store has failed, and if the [World] or [Check] finds a fault. It also fails t if a log has
// another user, jobspec, urgency, expiration or exception than was asked for, or says that a job, prolog
// or epilog ended otherwise than it did; if the scheduler is not told of a cancel, priority or
// expiration, or gets more requests than it allows; and if the prolog of a canceled job is not told to
// end. The Config must be the Site's: RunHooks tests hooks.
func RunEmbedder(t *rapid.T, newEmbedder func(*Site) (Embedder, error)) {
	must(t, runEmbedder(t, newEmbedder))
}

func runEmbedder(t *rapid.T, newEmbedder func(*Site) (Embedder, error)) error {
	actions := prologsAndEpilogs(t)
	if rapid.Bool().Draw(t, "housekeeping") {
		actions.Housekeeping = &perilog.HousekeepingConfig{}
	}
	r := newRunner(t, actions, Rs(4).Draw(t, "nodes"))
	r.newEmbedder, r.faulty, r.begins = newEmbedder, true, true
	r.greatIDs()
	return r.play(Workloads(6, 4).Draw(t, "workload"))
}

func (r *runner) begin() error {
	r.lives++
	for from := range r.conns { // what was under way may come in the new life, on a connection that has ended
		r.hangUp(from)
		r.conns[from] = 0
	}
	if r.hooks != nil {
		r.cfg.Hooks = r.hooks()
	}
	site := &Site{Now: r.now, Config: r.cfg, r: r}
	if r.site != nil {
		r.site.crashed = true
	}
	e, err := r.newEmbedder(site)
	r.site, r.e = site, e
	switch {
	case site.err != nil:
		return site.err
	case site.crashed && r.w.Err() == nil:
		return errCrash
	case err != nil:
		return err
	}
	if n := e.Manager().Stats().Quarantined; n > 0 {
		return fmt.Errorf("joblifetest: %d jobs are quarantined at a restart", n)
	}
	return r.step(0, joblife.Tick{})
}

// step passes an input to the embedder, and judges what it did.
func (r *runner) step(connection int, in joblife.Input) error {
	r.in = in
	r.w.input(in)
	err := r.e.Handle(r.now, connection, in)
	switch {
	case r.site.err != nil:
		return r.site.err
	case r.w.Err() != nil:
		return r.w.Err()
	case r.site.crashed:
		return errCrash
	case err != nil:
		return err
	}
	m := r.e.Manager()
	q, tag := requested(in)
	if r.hooks != nil && q.event == jobstate.EventSubmit {
		tag = 0 // its answer may come later
	}
	if tag != 0 && r.answered != tag {
		return fmt.Errorf("joblifetest: the embedder loses an input: there is no answer to %s", what(in))
	}
	if r.site.seq > 0 && m.Done(r.site.seq) == nil {
		return fmt.Errorf("joblifetest: the embedder does not call Done for Ready %d", r.site.seq)
	}
	if m.Ready(new(joblife.Ready)) {
		return fmt.Errorf("joblifetest: the embedder takes %s and does not ask for a Ready", what(in))
	}
	for _, id := range slices.Sorted(maps.Keys(r.logs)) {
		if v, ok := m.Job(id); !ok {
			return fmt.Errorf("joblifetest: job %v: I5: it is in the store, and the embedder has forgotten it", id)
		} else if v.State() != jobstate.StateInactive && string(v.Eventlog()) != string(r.logs[id]) {
			return fmt.Errorf("joblifetest: job %v: I5: its log is\n%sand in the store it is\n%s", id, v.Eventlog(), r.logs[id])
		}
	}
	if raised, ok := in.(joblife.Raise); ok && r.began[raised.ID] == r.lives { // after a restart nodes may have to be asked first
		for _, p := range r.w.Processes() {
			if p.Job == raised.ID && p.Action.Kind == jobstate.ActionProlog && p.Running && !p.Signal {
				return fmt.Errorf("joblifetest: job %v is canceled, and %v is not told to end on rank %d", p.Job, p.Action, p.Rank)
			}
		}
	}
	if r.met {
		return r.judge.knows(m)
	}
	return nil
}
