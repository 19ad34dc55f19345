package joblife

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// A Manager decides what follows from each input, and returns what to store and to do as a
// [Ready]. It does no I/O, starts no goroutine and reads no clock. The package documentation
// shows the loop and its duties.
//
// New and Restore make a Manager; the zero Manager is invalid. One goroutine at a time uses it. It
// must not be copied, nor change while an iterator of it runs.
type Manager struct {
	_ guard.NoCopy
	machine

	clock time.Time // as the caller said now
	dead  bool      // abandoned
}

// New returns a Manager without jobs. It keeps the slices and sets of cfg, which
// must not change. The error names what is wrong with cfg.
func New(cfg Config) (*Manager, error) {
	m := new(Manager)
	if err := m.begin(cfg); err != nil {
		return nil, err
	}
	return m, nil
}

// Step dispatches one input at the time now, and decides what follows. After an error nothing
// has changed. Without an error the input is accepted, but not durable before the next Ready
// is done: answer nobody until then. That Ready has the answer if the input has a Tag.
//
// now must not be before that of the last Step; it is rounded to an [eventlog.Timestamp].
// After the deadline of a Shutdown the error is perilog.ErrStopped. Step panics if a hook
// calls it.
func (m *Manager) Step(now time.Time, in Input) error {
	if m.inbox.running != nil {
		panic("joblife: a hook calls Step: it must use Event.Post")
	}
	if m.dead {
		return ErrAbandoned
	}
	t := eventlog.FromTime(now)
	switch {
	case !guard.IsTime(t):
		return fmt.Errorf("%w: no event can have the time %v", ErrClock, t)
	case t < m.now:
		return fmt.Errorf("%w: %v is %v before the time of the last input", ErrClock, t, m.now.Time().Sub(t.Time()))
	}
	if m.shutdown.over(t) {
		m.shutdown.at = min(m.shutdown.at, m.now) // so that no later clock revokes it
		return perilog.ErrStopped
	}
	last := m.now
	m.now = t
	if err := m.dispatch(in); err != nil {
		m.now = last
		return err
	}
	m.clock = now
	m.run()
	return nil
}

// Deadline returns when to call Step with a [Tick], and false if never, as after Abandon and after
// the deadline of a Shutdown. The time of the last Step means at once.
func (m *Manager) Deadline() (time.Time, bool) {
	if m.dead || m.shutdown.over(m.now) {
		return time.Time{}, false
	}
	at := m.purger.due()
	if m.shutdown.begun && m.shutdown.at != 0 {
		at = min(at, m.shutdown.at)
	}
	if t, ok := m.timers.tree.Min(); ok {
		at = min(at, t.at)
	}
	switch {
	case at > never:
		return time.Time{}, false
	case at <= m.now: // rounding may have made it later than the caller's clock
		return m.clock, true
	}
	return notBefore(at), true
}

// notBefore returns a time that Step does not take for an earlier one.
func notBefore(at eventlog.Timestamp) time.Time {
	t := at.Time()
	if eventlog.FromTime(t) < at { // rounded down, which happens near the epoch
		t = t.Add(time.Nanosecond)
	}
	return t
}

// Now returns the time of the last Step or, before the first, that of Restore, which may be
// later than what its caller said: see [Recovered.Time]. After New it is zero.
func (m *Manager) Now() time.Time { return m.clock }

// Ready fills rd with what to store and to do since the last Ready, and reports whether there is
// anything. It returns false while one is outstanding: many Steps then share the next.
func (m *Manager) Ready(rd *Ready) bool {
	if m.busy || m.dead || m.out.isEmpty() {
		return false
	}
	m.signaled()
	m.exec.handOut()
	m.seq++
	m.out.Seq = m.seq
	*rd = m.out.Ready
	m.out, m.sent = m.sent, m.out
	m.busy = true
	return true
}

// Done says that the records of a Ready are durable and its effects under way. The error is
// ErrInvalid if the Ready is not outstanding, or ErrAbandoned.
func (m *Manager) Done(seq uint64) error {
	if err := m.outstanding(seq); err != nil {
		return err
	}
	m.busy = false
	for _, j := range m.sent.submitted {
		j.public = true
	}
	m.forgetSpecs()
	m.saved(m.sent.Append)
	m.sent.reset()
	return nil
}

// Abandon says that the records of a Ready could not be made durable. Do nothing of that Ready, and
// drop the Manager: [Restore] makes another from what is durable. The errors are those of Done.
func (m *Manager) Abandon(seq uint64) error {
	if err := m.outstanding(seq); err != nil {
		return err
	}
	m.dead = true
	return nil
}

// Stopped reports whether a [Shutdown] is complete: no action runs, or its deadline has passed.
func (m *Manager) Stopped() bool {
	return m.shutdown.begun && (m.shutdown.over(m.now) || m.acting == 0)
}

func (m *Manager) outstanding(seq uint64) error {
	switch {
	case m.dead:
		return ErrAbandoned
	case !m.busy || seq != m.seq:
		return fmt.Errorf("%w: Ready %d is not outstanding", ErrInvalid, seq)
	}
	return nil
}

// History yields the eventlog of each job that has one in memory, in the order of ids, as far as
// the last Ready that was done: of jobs that are not inactive, and of those that have ended
// since. A reader that reads it between Done and the next Ready, and then the Journals from that
// Ready on, sees each event once. The logs must not be changed. A volatile Manager has none.
func (m *Manager) History() iter.Seq2[jobid.ID, []byte] {
	return func(yield func(jobid.ID, []byte) bool) {
		list := m.sorted(jobstate.StateNew | jobstate.StateActive)
		list = slices.AppendSeq(slices.AppendSeq(list, maps.Values(m.out.ended)), maps.Values(m.sent.ended))
		slices.SortFunc(list, byID)
		for _, j := range list {
			if n := len(j.log); n > 0 && !yield(j.id, j.log[:n:n]) {
				return
			}
		}
	}
}

// Job returns an active or inactive job, and false if it is purged, unknown, or not durable yet.
func (m *Manager) Job(id jobid.ID) (View, bool) { return m.As(Cred{}).Job(id) }

// Jobspec returns the jobspec of an active job with its updates, and false if there is none. A
// scheduler in the same process may ask for it before the Ready with the alloc.Request is done.
func (m *Manager) Jobspec(id jobid.ID) (*jobspec.Spec, bool) {
	if j := m.jobs[id]; j != nil {
		return m.spec(j), true
	}
	return nil, false
}

// Jobs yields the jobs in the states of a mask, in the order of ids; inactive ones follow, oldest
// first. It leaves out jobs whose submission is not durable; a mask of 0 yields nothing.
func (m *Manager) Jobs(mask jobstate.State) iter.Seq[View] { return m.As(Cred{}).Jobs(mask) }

// An Access shows what somebody may see of a Manager.
type Access struct {
	m  *machine
	by Cred
}

// As returns what by may see: in a private instance a guest sees only its own jobs. A
// service that serves users should ask only through an Access.
func (m *Manager) As(by Cred) Access { return Access{&m.machine, by} }

// Job is [Manager.Job] for what the Access shows.
func (a Access) Job(id jobid.ID) (View, bool) { return a.m.visible(a.by, id) }

// Jobs is [Manager.Jobs] for what the Access shows.
func (a Access) Jobs(mask jobstate.State) iter.Seq[View] {
	return func(yield func(View) bool) {
		for _, j := range a.m.sorted(mask &^ jobstate.StateInactive) {
			v := View{table: &a.m.jobTable, j: j}
			if j.public && a.m.cfg.sees(a.by, v.UserID()) && !yield(v) {
				return
			}
		}
		if !jobstate.StateInactive.In(mask) {
			return
		}
		for rec := range a.m.index.All() {
			if a.m.isPublic(rec.ID) && a.m.cfg.sees(a.by, rec.UserID) && !yield(View{rec: rec}) {
				return
			}
		}
	}
}

// A Holder says who holds which ranks of a job.
type Holder struct {
	Job jobid.ID
	perilog.Holder
}

// Holders yields what is held, by job: its resources, and whose they are.
func (m *Manager) Holders() iter.Seq[Holder] {
	return func(yield func(Holder) bool) {
		for _, j := range m.sorted(jobstate.StateRunning | jobstate.StateInactive) {
			for h := range j.life.Holders() {
				if !yield(Holder{j.id, h}) {
					return
				}
			}
		}
	}
}

// An Unresolved is an action that does not end by itself.
type Unresolved struct {
	Job jobid.ID
	perilog.Unresolved
}

// Unresolved yields the actions that hold ranks and that nothing known will end, by job: see
// [perilog.Job.Unresolved].
func (m *Manager) Unresolved() iter.Seq[Unresolved] {
	return func(yield func(Unresolved) bool) {
		for _, j := range m.sorted(jobstate.StateRunning | jobstate.StateInactive) {
			for _, u := range j.life.Unresolved() {
				if !yield(Unresolved{j.id, u}) {
					return
				}
			}
		}
	}
}

// Allocated yields what each job holds of the scheduler's resources, by id: its R without the ranks
// that were freed. It has jobs whose housekeeping goes on, and quarantined ones whose R is known.
func (m *Manager) Allocated() iter.Seq2[jobid.ID, *rset.R] {
	return func(yield func(jobid.ID, *rset.R) bool) {
		for _, h := range m.quarantine.allHoldings(&m.jobTable) {
			if !yield(h.ID, heldOf(h)) {
				return
			}
		}
	}
}

// A QueueStatus is the state of a queue.
type QueueStatus struct {
	Enabled       bool   `json:"enable"`                   // it takes jobs
	Started       bool   `json:"start"`                    // it sends them to the scheduler
	DisableReason string `json:"disable_reason,omitempty"` // "" while it is enabled
	StopReason    string `json:"stop_reason,omitempty"`    // "" while it is started
}

// Queue returns the state of a queue by its name, "" for the anonymous one, and false
// if the configuration does not have it.
func (m *Manager) Queue(name string) (QueueStatus, bool) {
	q := m.queues[name]
	if q == nil {
		return QueueStatus{}, false
	}
	return q.now, true
}

// Stats are counts.
type Stats struct {
	States       map[jobstate.State]int // of each state that a job is in; INACTIVE are those of Purge
	Housekeeping int                    // inactive jobs whose housekeeping goes on
	Actions      int                    // jobs of which an action runs
	Queue        alloc.Stats            // of the queue for the scheduler
	Waits        int                    // inputs Wait and WaitEmpty without an answer
	Quarantined  int                    // jobs that Restore could not read
	Faults       uint64                 // all of them
	Events       uint64                 // journal entries since the Manager was made
	Purge        purge.Stats
	MaxID        jobid.ID // the greatest id that was given; 0: none
}

// Stats returns the counts.
func (m *Manager) Stats() Stats {
	s := Stats{
		States: make(map[jobstate.State]int), Queue: m.sched.queue.Stats(), Waits: m.waits.len(),
		Quarantined: len(m.quarantine.jobs), Faults: m.faults, Events: m.events, Purge: m.index.Stats(),
		MaxID: m.index.Watermark(), Housekeeping: m.count(jobstate.StateInactive), Actions: m.acting,
	}
	for i, l := range m.lists {
		if state := jobstate.State(1 << i); state != jobstate.StateInactive && len(l) > 0 {
			s.States[state] = len(l)
		}
	}
	if n := m.index.Len(); n > 0 {
		s.States[jobstate.StateInactive] = n
	}
	return s
}
