package joblife

import (
	"cmp"
	"encoding/json"
	"iter"
	"slices"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// A View shows a job until the next Step; the zero View is invalid. What it returns must
// not be changed. Of an inactive job the Manager keeps what a purge.Record does; the store
// has the rest.
type View struct {
	m   *Manager
	j   *job         // nil: the job is inactive
	rec purge.Record // of an inactive job
}

// ID returns the id.
func (v View) ID() jobid.ID {
	if v.j == nil {
		return v.rec.ID
	}
	return v.j.id
}

// UserID returns the user whose job it is.
func (v View) UserID() uint32 {
	if v.j == nil {
		return v.rec.UserID
	}
	return v.j.job().UserID()
}

// State returns the state.
func (v View) State() jobstate.State {
	switch {
	case v.j == nil:
		return jobstate.StateInactive
	case v.j.state == 0: // being submitted, or invalid
		return v.j.job().State()
	}
	return v.j.state
}

// Result returns how the job ended, and false before CLEANUP.
func (v View) Result() (jobstate.Result, bool) {
	if v.j == nil {
		return v.rec.Result, v.rec.Result != 0
	}
	return v.j.job().Result()
}

// Job returns the job as its log tells, never nil. For an inactive job it knows only what a
// jobstate.Summary has.
func (v View) Job() *jobstate.Job {
	if v.j == nil {
		return jobstate.Summary(v.rec).Job()
	}
	return v.j.job()
}

// Nodes returns the holds on the job's nodes, never nil. An inactive job has none;
// [Manager.Holders] has those of its housekeeping.
func (v View) Nodes() *perilog.Holds {
	if v.j == nil {
		return perilog.EndedHolds(v.Job())
	}
	return v.j.nodes.Holds()
}

// Jobspec returns the jobspec with its updates; nil for an inactive job.
func (v View) Jobspec() *jobspec.Spec {
	if v.j == nil {
		return nil
	}
	return v.m.jobspec(v.j)
}

// R returns the allocation, without dropped ranks and with the present expiration; nil if
// there is none, and for an inactive job.
func (v View) R() *rset.R {
	if v.j == nil {
		return nil
	}
	return v.j.current()
}

// Annotations returns all annotations as RFC 27 merges them: those of the log, what the
// scheduler says of a job that waits, and volatile memos; nil if there are none, and for
// an inactive job.
func (v View) Annotations() json.RawMessage {
	if v.j == nil {
		return nil
	}
	return v.j.annotations()
}

// Eventlog returns the job's log as far as it is durable; nil for an inactive job and in a
// volatile Manager.
func (v View) Eventlog() []byte {
	if v.j == nil {
		return nil
	}
	return v.j.log[:len(v.j.log):len(v.j.log)]
}

// view returns a job, durable or not.
func (m *Manager) view(id jobid.ID) (View, bool) {
	if j := m.jobs[id]; j != nil && j.state != jobstate.StateInactive {
		return View{m: m, j: j}, true
	}
	rec, err := m.index.Lookup(id)
	return View{m: m, rec: rec}, err == nil
}

// Job returns an active or inactive job, and false for one that is purged, unknown, or
// not durable yet.
func (m *Manager) Job(id jobid.ID) (View, bool) { return m.As(Cred{}).Job(id) }

// Jobspec returns the jobspec of an active job with its updates, and false if there is
// none. A scheduler in the same process asks for it when it gets an alloc.Request,
// before the Ready is done.
func (m *Manager) Jobspec(id jobid.ID) (*jobspec.Spec, bool) {
	if j := m.jobs[id]; j != nil {
		return m.jobspec(j), true
	}
	return nil, false
}

// Jobs yields the jobs in the states of a mask, in the order of ids; inactive ones
// follow, oldest first. It leaves out jobs whose submission is not durable; a mask of 0
// yields nothing. The Manager must not change meanwhile.
func (m *Manager) Jobs(mask jobstate.State) iter.Seq[View] { return m.As(Cred{}).Jobs(mask) }

// A Lens shows what somebody may see of a Manager.
type Lens struct {
	m  *Manager
	by Cred
}

// As returns what by may see: in a private instance a guest sees only its own jobs. A
// service that serves users should ask only through a Lens.
func (m *Manager) As(by Cred) Lens { return Lens{m, by} }

// Job is [Manager.Job] for what the Lens shows.
func (l Lens) Job(id jobid.ID) (View, bool) {
	v, ok := l.m.view(id)
	if !ok || v.j != nil && !v.j.public || !l.m.sees(l.by, v.UserID()) {
		return View{}, false
	}
	return v, true
}

// Jobs is [Manager.Jobs] for what the Lens shows.
func (l Lens) Jobs(mask jobstate.State) iter.Seq[View] {
	return func(yield func(View) bool) {
		for _, j := range l.m.sorted(mask &^ jobstate.StateInactive) {
			v := View{m: l.m, j: j}
			if j.public && l.m.sees(l.by, v.UserID()) && !yield(v) {
				return
			}
		}
		if !jobstate.StateInactive.In(mask) {
			return
		}
		for rec := range l.m.index.All() {
			if l.m.sees(l.by, rec.UserID) && !yield(View{m: l.m, rec: rec}) {
				return
			}
		}
	}
}

// sorted returns the jobs of m.jobs in some states, in the order of ids.
func (m *Manager) sorted(mask jobstate.State) []*job {
	var out []*job
	for i := range m.lists {
		if mask&(1<<i) != 0 {
			out = append(out, m.lists[i]...)
		}
	}
	slices.SortFunc(out, byID)
	return out
}

func byID(a, b *job) int { return cmp.Compare(a.id, b.id) }

func (m *Manager) count(mask jobstate.State) int {
	n := 0
	for i := range m.lists {
		if mask&(1<<i) != 0 {
			n += len(m.lists[i])
		}
	}
	return n
}

// A Holder says who holds which ranks of a job.
type Holder struct {
	Job jobid.ID
	perilog.Holder
}

// Holders yields what is held, by job: its resources, and whose they are. The Manager must
// not change meanwhile.
func (m *Manager) Holders() iter.Seq[Holder] {
	return func(yield func(Holder) bool) {
		for _, j := range m.sorted(jobstate.StateRunning | jobstate.StateInactive) {
			for h := range j.nodes.Holders() {
				if !yield(Holder{j.id, h}) {
					return
				}
			}
		}
	}
}

// Unresolved yields the actions that hold ranks and that nothing known will end, by
// job: see [perilog.Job.Unresolved]. The Manager must not change meanwhile.
func (m *Manager) Unresolved() iter.Seq[Unresolved] {
	return func(yield func(Unresolved) bool) {
		for _, j := range m.sorted(jobstate.StateRunning | jobstate.StateInactive) {
			for _, u := range j.nodes.Unresolved() {
				if !yield(Unresolved{j.id, u}) {
					return
				}
			}
		}
	}
}

// Queue returns the state of a queue by its name, "" for the anonymous one, and false
// if the configuration does not have it.
func (m *Manager) Queue(name string) (QueueStatus, bool) {
	q := m.queues[name]
	if q == nil {
		return QueueStatus{}, false
	}
	return QueueStatus{q.enable.open, q.start.open, q.enable.reason, q.start.reason}, true
}

// Stats are counts. They follow from sets, so they cannot drift. Waits is the number of
// inputs Wait and WaitEmpty without an answer, Faults that of all [Fault] values.
type Stats struct {
	States       map[jobstate.State]int // of each state that a job is in; INACTIVE are those of Purge
	Housekeeping int                    // inactive jobs whose housekeeping goes on
	Actions      int                    // jobs of which an action runs; a Shutdown is complete when it is 0
	Queue        alloc.Stats            // of the queue for the scheduler
	Waits        int
	Quarantined  int // jobs that Restore could not read
	Faults       uint64
	Events       uint64 // journal entries since the Manager was made
	Purge        purge.Stats
	MaxID        jobid.ID // the greatest id that was given; 0: none
}

// Stats returns the counts. It costs a look at each job that has resources.
func (m *Manager) Stats() Stats {
	s := Stats{
		States: make(map[jobstate.State]int), Queue: m.queue.Stats(), Waits: m.waits.n,
		Quarantined: len(m.quarantine.jobs), Faults: m.faults, Events: m.events, Purge: m.index.Stats(),
		MaxID: m.index.Watermark(), Housekeeping: m.count(jobstate.StateInactive),
	}
	for i, l := range m.lists {
		if state := jobstate.State(1 << i); state != jobstate.StateInactive && len(l) > 0 {
			s.States[state] = len(l)
		}
	}
	for _, mask := range []jobstate.State{jobstate.StateRun, jobstate.StateCleanup, jobstate.StateInactive} {
		for _, j := range m.lists[list(mask)] {
			if j.nodes.Running() {
				s.Actions++
			}
		}
	}
	if n := m.index.Len(); n > 0 {
		s.States[jobstate.StateInactive] = n
	}
	return s
}
