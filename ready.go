package joblife

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"

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
	// before it. If that fails, call Abandon. It has what all Steps since have made: a
	// store that takes less at a time gets it in parts, in order.
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

// An outbox is a Ready and the memory of what it refers to.
type outbox struct {
	Ready
	text []byte
}

// maxText is how many bytes an outbox keeps for the next Ready.
const maxText = 4 << 20

// reset empties an outbox and keeps its room. Of the longest lists it clears only what
// is not in its text.
func (o *outbox) reset() {
	for i := range o.Append {
		if o.Append[i].Kind == RecordJobspec {
			o.Append[i].Data = nil
		}
	}
	o.Ready = Ready{
		Append: o.Append[:0], Sched: clearTo(o.Sched), Exec: clearTo(o.Exec), Raised: clearTo(o.Raised),
		Launch: clearTo(o.Launch), Signal: clearTo(o.Signal), Drain: clearTo(o.Drain), Unlink: o.Unlink[:0],
		Journal: o.Journal[:0], Answers: clearTo(o.Answers), Outcomes: clearTo(o.Outcomes), Faults: clearTo(o.Faults),
	}
	if o.text = o.text[:0]; cap(o.text) > maxText {
		o.text, o.Append, o.Journal = nil, nil, nil
	}
}

// keep copies bytes into the text; none are nil.
func (o *outbox) keep(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	n := len(o.text)
	o.text = append(o.text, b...)
	return o.text[n:len(o.text):len(o.text)]
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
	m.signaled()
	m.seq++
	m.out.Seq = m.seq
	*rd = m.out.Ready
	m.out, m.spare = m.spare, m.out
	m.busy = true
	m.given, m.fresh = m.fresh, m.given[:0]
	m.asked, m.parsed = m.parsed, m.asked[:0]
	m.ending, m.leaving = m.leaving, m.ending
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
	m.saved(m.spare.Append)
	if clear(m.leaving); len(m.spare.Append) > maxLeaving { // or else clear takes long each time
		m.leaving = nil
	}
	m.spare.reset()
	return nil
}

// maxLeaving is how many records a Ready has of which the memory for jobs that ended is
// kept.
const maxLeaving = 1 << 12

// leave has History show a job until the Ready is done that has its last event.
func (m *Manager) leave(j *job) {
	if m.cfg.Volatile {
		return
	}
	if m.ending == nil {
		m.ending = make(map[jobid.ID]*job)
	}
	m.ending[j.id] = j
}

// saved adds what is durable now to the logs of the jobs that go on.
func (m *Manager) saved(list []Record) {
	for len(list) > 0 {
		id, kind, n, size := list[0].Job, list[0].Kind, 0, 0
		for ; n < len(list) && list[n].Job == id && list[n].Kind == kind; n++ {
			size += len(list[n].Data)
		}
		if log := m.logOf(id, kind); log != nil {
			*log = room(*log, size)
			for i := range n {
				*log = append(*log, list[i].Data...)
			}
		}
		list = list[n:]
	}
}

// logOf returns the log for records of a kind, nil if nobody asks for it any more, or there
// is none.
func (m *Manager) logOf(id jobid.ID, kind RecordKind) *[]byte {
	if kind != RecordEvent && kind != RecordHousekeeping {
		return nil
	}
	j := m.jobs[id]
	if j == nil {
		j = m.invalid[id]
	}
	if j == nil {
		j = m.ending[id]
	}
	switch {
	case j == nil:
		return nil
	case kind == RecordEvent:
		return &j.log
	}
	return &j.more().keep
}

// room returns a log with room for n bytes more. At first there is room for no others,
// since many jobs may wait for long.
func room(log []byte, n int) []byte {
	if cap(log)-len(log) >= n {
		return log
	}
	if n += len(log); len(log) > 0 {
		n += max(64, n/4)
	}
	return append(make([]byte, 0, n), log...)
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

func (m *Manager) record(r Record) {
	if !m.cfg.Volatile {
		r.Time, r.sound = m.now, true
		m.out.Append = append(m.out.Append, r)
	}
}

// A frame is how lines begin that have the same time.
type frame struct {
	time eventlog.Timestamp
	text []byte
}

// line appends an entry to a text as eventlog.AppendEntry does, and reports whether the
// context is there as it was. The entry was read and checked.
func (f *frame) line(dst []byte, e *eventlog.Entry) (text []byte, same bool, err error) {
	c := e.Context
	if !isPlain(e.Name) || len(c) > 0 && (c[0] != '{' || c[len(c)-1] != '}' || bytes.IndexByte(c, '\n') >= 0) {
		text, err = eventlog.AppendEntry(dst, *e)
		return text, len(c) == 0, err
	}
	if f.time != e.Timestamp {
		f.time = 0
		if f.text, err = eventlog.AppendEntry(f.text[:0], eventlog.Entry{Timestamp: e.Timestamp, Name: "-"}); err != nil {
			return dst, false, err
		}
		f.time, f.text = e.Timestamp, bytes.TrimSuffix(f.text, []byte("-\"}\n"))
	}
	dst = append(append(append(dst, f.text...), e.Name...), '"')
	if len(c) > 0 {
		dst = append(append(dst, `,"context":`...), c...)
	}
	return append(dst, "}\n"...), true, nil
}

// isPlain reports whether a name needs no escapes.
func isPlain(name string) bool {
	for i := range len(name) {
		if c := name[i]; c != '-' && c != '.' && (c < 'a' || c > 'z') {
			return false
		}
	}
	return name != ""
}

// journal tells readers outside of an event. Its context is that of its line, if it has one
// that is its own.
func (m *Manager) journal(j *job, e *eventlog.Entry, context json.RawMessage) {
	m.events++
	m.out.Journal = append(m.out.Journal, JournalEntry{
		Job: j.id, Entry: eventlog.Entry{Timestamp: e.Timestamp, Name: e.Name, Context: context},
	})
}

// volatile tells readers outside of an event that no log has.
func (m *Manager) volatile(j *job, name string, context json.RawMessage) {
	m.out.Journal = append(m.out.Journal, JournalEntry{
		Job: j.id, Entry: eventlog.Entry{Timestamp: m.now, Name: name, Context: context}, Volatile: true,
	})
}

func (m *Manager) answer(a Answer) {
	if a.Tag != 0 {
		m.out.Answers = append(m.out.Answers, a)
	}
}

func (m *Manager) fault(h *Hooks, id jobid.ID, err error) {
	f := Fault{Job: id, Err: err}
	if h != nil {
		f.Hook = h.Name
	}
	m.faults++
	m.out.Faults = append(m.out.Faults, f)
}

// History yields the eventlog of each job that has one in memory, in the order of
// ids, as far as the last Ready that was done: of jobs that are not inactive, and of those
// that have ended since. A reader that reads it between Done and the next Ready, and then
// the Journals from that Ready on, sees each event once; the end of the iteration is the
// end of history (EL-5). The logs must not be changed. A volatile Manager has none.
func (m *Manager) History() iter.Seq2[jobid.ID, []byte] {
	return func(yield func(jobid.ID, []byte) bool) {
		list := m.sorted(jobstate.StateNew | jobstate.StateActive)
		list = slices.AppendSeq(slices.AppendSeq(list, maps.Values(m.ending)), maps.Values(m.leaving))
		slices.SortFunc(list, byID)
		for _, j := range list {
			if n := len(j.log); n > 0 && !yield(j.id, j.log[:n:n]) {
				return
			}
		}
	}
}
