package joblife

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset/alloc"
)

// A Ready says what to store and to do. Make Append durable BEFORE anything else, and do
// the rest AFTER it, in the order of the fields. Each effect is idempotent, since it may
// come again after a crash. The slices, and what they refer to, are valid until
// [Manager.Done].
type Ready struct {
	// Seq is for Done and Abandon. It grows by one.
	Seq uint64

	// Append is what is to be made durable: if a record is durable, so are those
	// before it. If that fails, call Abandon.
	Append []Record

	// Hello responds to the hello of a scheduler: its Responses, then the failure
	// alloc.NoData. Nil: none asked.
	Hello *alloc.Announcement
	// Sched has messages for the scheduler (RFC 27): ReadyResponse, Request, Cancel,
	// Prioritize, Free, Expiration.
	Sched []alloc.Message
	// Exec has messages for the executor (RFC 32): Start, Expiration.
	Exec []exec.Message

	// Raised has the exceptions that were raised. The executor stops a job at one of
	// severity 0.
	Raised []Raised

	// Launch, Signal and Drain are of prologs, epilogs and housekeeping: see
	// [perilog.Effects].
	Launch []Launch
	Signal []Signal
	Drain  []Drain

	// Unlink names jobs to remove from the store: see [purge.Store]. Step takes the
	// outcome as [Unlinked]. No other jobs are named until then.
	Unlink []jobid.ID

	// Journal has the events, volatile ones too, for readers: see [Manager.History].
	Journal []JournalEntry
	// Answers are to inputs with a Tag.
	Answers []Answer
	// Outcomes say how actions ended, and Faults what went wrong, for an administrator's
	// log.
	Outcomes []Outcome
	Faults   []Fault
}

func (r *Ready) isEmpty() bool {
	return len(r.Append)+len(r.Sched)+len(r.Exec)+len(r.Raised)+len(r.Launch)+len(r.Signal)+len(r.Drain)+
		len(r.Unlink)+len(r.Journal)+len(r.Answers)+len(r.Outcomes)+len(r.Faults) == 0 && r.Hello == nil
}

// reset empties a Ready and keeps its room.
func (r *Ready) reset() {
	*r = Ready{
		Append: clearTo(r.Append), Sched: clearTo(r.Sched), Exec: clearTo(r.Exec), Raised: clearTo(r.Raised),
		Launch: clearTo(r.Launch), Signal: clearTo(r.Signal), Drain: clearTo(r.Drain), Unlink: clearTo(r.Unlink),
		Journal: clearTo(r.Journal), Answers: clearTo(r.Answers), Outcomes: clearTo(r.Outcomes), Faults: clearTo(r.Faults),
	}
}

func clearTo[T any](s []T) []T {
	clear(s)
	return s[:0]
}

// A Launch, a Signal, a Drain and an Outcome are those of package perilog, with
// their job.
type (
	Launch struct {
		Job jobid.ID
		perilog.Launch
	}
	Signal struct {
		Job jobid.ID
		perilog.Signal
	}
	Drain struct {
		Job jobid.ID
		perilog.Drain
	}
	Outcome struct {
		Job jobid.ID
		perilog.Outcome
	}
)

// A JournalEntry is an event of a job, for readers outside.
type JournalEntry struct {
	Job   jobid.ID
	Entry eventlog.Entry
	// Volatile tells that no log has the event: annotations and volatile memos.
	Volatile bool
}

// A Fault is something that went wrong without an input to blame: a hook panicked or
// posted what is refused, a job could not be removed, or the clock jumped.
type Fault struct {
	Hook string   // the name of the hook; "" for none
	Job  jobid.ID // 0: none
	Err  error
}

// Error returns the fault in one line.
func (f Fault) Error() string {
	text := "joblife: "
	if f.Hook != "" {
		text += fmt.Sprintf("hook %q: ", f.Hook)
	}
	if f.Job != 0 {
		text += fmt.Sprintf("job %v: ", f.Job)
	}
	return text + f.Err.Error()
}

// An Answer answers an input with a Tag. The fields other than Tag and Err depend on the
// input.
type Answer struct {
	Tag    uint64
	Err    error
	Job    jobid.ID       // of Submit, and of what names a job
	State  jobstate.State // of Wait: the job's
	Report perilog.Answer // of Report
	Count  int            // of Purge: how many jobs went, or would; of SchedReady
	Old    int            // of Urgency: the one before
}

// Ready fills rd with what is to be stored and done since the last call, and reports
// whether there is anything. It returns false while a Ready is outstanding: many
// Steps then share the next one.
func (m *Manager) Ready(rd *Ready) bool {
	if m.busy || m.dead || m.out.isEmpty() {
		return false
	}
	m.seq++
	m.out.Seq = m.seq
	*rd = m.out
	m.out, m.spare = m.spare, m.out
	m.busy = true
	m.given, m.fresh = m.fresh, m.given[:0]
	m.asked, m.parsed = m.parsed, m.asked[:0]
	return true
}

// Done tells that all of a Ready is done. Effects may be on their way; records are
// durable. The error is ErrInvalid if the Ready is not outstanding, or ErrAbandoned.
func (m *Manager) Done(seq uint64) error {
	if err := m.outstanding(seq); err != nil {
		return err
	}
	m.busy = false
	for _, j := range m.given {
		j.public = true
	}
	clear(m.given)
	forgetSpecs(m.asked)
	clear(m.asked)
	for _, r := range m.spare.Append {
		if j := m.jobs[r.Job]; j != nil && r.Kind == RecordEvent {
			j.saved += len(r.Data)
		}
	}
	m.spare.reset()
	return nil
}

// Abandon tells that the records of a Ready could not be made durable. Nothing of it
// may be done, and the Manager is of no use any more: [Restore] makes another of what
// is durable.
func (m *Manager) Abandon(seq uint64) error {
	if err := m.outstanding(seq); err != nil {
		return err
	}
	m.dead = true
	return nil
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

// record adds a record to what is to be stored.
func (m *Manager) record(r Record) {
	if !m.cfg.Volatile && !(len(m.out.Append) == 3 && m.mutated(mutationDroppedRecord)) {
		r.Time = m.now
		m.out.Append = append(m.out.Append, r)
	}
}

// journal tells readers outside of an event. Its context is that of its line in the
// log, which nothing changes, so that it lives as long as the Ready.
func (m *Manager) journal(j *job, e eventlog.Entry, line []byte) {
	m.events++
	if end := len(line) - len("}\n"); len(e.Context) > 0 {
		if from := end - len(e.Context); from > 0 && bytes.Equal(line[from:end], e.Context) {
			e.Context = line[from:end:end]
		} else {
			e.Context = m.clone(e.Context)
		}
	}
	m.out.Journal = append(m.out.Journal, JournalEntry{Job: j.id, Entry: e})
}

// sliceRoom is how many bytes short-lived slices share.
const sliceRoom = 8 << 10

// clone returns a copy that lives as long as the Ready.
func (m *Manager) clone(b []byte) []byte {
	n := len(m.room(len(b)))
	m.slices = append(m.slices, b...)
	return m.slices[n:len(m.slices):len(m.slices)]
}

// room returns m.slices with room for n bytes.
func (m *Manager) room(n int) []byte {
	if cap(m.slices)-len(m.slices) < n {
		m.slices = make([]byte, 0, max(sliceRoom, n))
	}
	return m.slices
}

// volatile tells readers outside of an event that no log has.
func (m *Manager) volatile(j *job, name string, context json.RawMessage) {
	m.out.Journal = append(m.out.Journal, JournalEntry{
		Job: j.id, Entry: eventlog.Entry{Timestamp: m.now, Name: name, Context: context}, Volatile: true,
	})
}

// answer answers an input, if it has a tag.
func (m *Manager) answer(a Answer) {
	if a.Tag != 0 {
		m.out.Answers = append(m.out.Answers, a)
	}
}

// fault tells of something that went wrong.
func (m *Manager) fault(h *Hooks, id jobid.ID, err error) {
	f := Fault{Job: id, Err: err}
	if h != nil {
		f.Hook = h.Name
	}
	m.faults++
	m.out.Faults = append(m.out.Faults, f)
}

// History yields the eventlog of each job that has one in memory, in the order of
// ids: jobs that are not inactive, as far as the last Ready that was done. A reader
// that reads it between Done and the next Ready, and then the Journals from that Ready
// on, sees each event once; the end of the iteration is the end of history (EL-5).
// The logs must not be changed. A volatile Manager has none.
func (m *Manager) History() iter.Seq2[jobid.ID, []byte] {
	return func(yield func(jobid.ID, []byte) bool) {
		for _, j := range m.sorted(jobstate.StateNew | jobstate.StateActive) {
			if n := j.saved; n > 0 && !yield(j.id, j.log[:n:n]) {
				return
			}
		}
	}
}
