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

	// Append has the records to make durable, in order: no record may be durable before
	// those before it. If that fails, call Abandon. It has the records of all Steps since the
	// last Ready; a store may append them in parts.
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

// An outbox collects what is to be stored and done, and keeps the account of what is
// outstanding.
type outbox struct {
	now      eventlog.Timestamp // of the Step that runs
	volatile bool               // no records are kept
	out      *batch             // the next Ready
	sent     *batch             // the one that is outstanding; or else empty
	busy     bool               // there is one
	seq      uint64
	frame    frame
	events   uint64 // in journals
	faults   uint64
}

func newOutbox(volatile bool) outbox {
	return outbox{volatile: volatile, out: new(batch), sent: new(batch)}
}

// A batch is a Ready and what belongs to it.
type batch struct {
	Ready
	text      []byte            // what its slices refer to
	submitted []*job            // whose submit it has
	ended     map[jobid.ID]*job // whose log ends in it: History has them until it is done
	parsed    []*job            // whose jobspec is in memory since it was begun
}

// Of a batch that was greater than this the memory is not kept.
const (
	maxText  = 4 << 20 // bytes
	maxEnded = 1 << 12 // records: or else clear takes long each time
)

// reset empties a batch and keeps its room. Of the longest lists it clears only what
// is not in its text.
func (b *batch) reset() {
	if clear(b.ended); len(b.Append) > maxEnded {
		b.ended = nil
	}
	for i := range b.Append {
		if b.Append[i].Kind == RecordJobspec {
			b.Append[i].Data = nil
		}
	}
	b.Ready = Ready{
		Append: b.Append[:0], Sched: clearTo(b.Sched), Exec: clearTo(b.Exec), Raised: clearTo(b.Raised),
		Launch: clearTo(b.Launch), Signal: clearTo(b.Signal), Drain: clearTo(b.Drain), Unlink: b.Unlink[:0],
		Journal: b.Journal[:0], Answers: clearTo(b.Answers), Outcomes: clearTo(b.Outcomes), Faults: clearTo(b.Faults),
	}
	b.submitted, b.parsed = clearTo(b.submitted), clearTo(b.parsed)
	if b.text = b.text[:0]; cap(b.text) > maxText {
		b.text, b.Append, b.Journal = nil, nil, nil
	}
}

// keep copies bytes into the text; none are nil.
func (b *batch) keep(data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	n := len(b.text)
	b.text = append(b.text, data...)
	return b.text[n:len(b.text):len(b.text)]
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
	m.out, m.sent = m.sent, m.out
	m.busy = true
	return true
}

// Done tells that all of a Ready is done. Effects may be on their way; records are
// durable. The error is ErrInvalid if the Ready is not outstanding, or ErrAbandoned.
func (m *Manager) Done(seq uint64) error {
	if err := m.outstanding(seq); err != nil {
		return err
	}
	m.busy = false
	for _, j := range m.sent.submitted {
		j.public = true
	}
	forgetSpecs(m.sent.parsed)
	m.saved(m.sent.Append)
	m.sent.reset()
	return nil
}

// leave has History show a job until the Ready is done that has its last event.
func (m *Manager) leave(j *job) {
	if m.volatile {
		return
	}
	if m.out.ended == nil {
		m.out.ended = make(map[jobid.ID]*job)
	}
	m.out.ended[j.id] = j
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
		j = m.out.ended[id]
	}
	switch {
	case j == nil:
		return nil
	case kind == RecordEvent:
		return &j.log
	}
	return &j.more().keep
}

// hasEvent reports whether the log of a job has an event, durable or not.
func (o *outbox) hasEvent(j *job, name string) bool {
	in := func(log []byte) bool {
		for e, err := range eventlog.Entries(log) {
			if err == nil && e.Name == name {
				return true
			}
		}
		return false
	}
	of := func(r Record) bool { return r.Job == j.id && r.Kind == RecordEvent && in(r.Data) }
	return in(j.log) || slices.ContainsFunc(o.sent.Append, of) || slices.ContainsFunc(o.out.Append, of)
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

// Abandon says that the records of a Ready could not be made durable. Do nothing of that
// Ready, and drop the Manager: [Restore] makes another from what is durable. The error is
// that of Done.
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

func (o *outbox) record(r Record) {
	if !o.volatile {
		r.Time, r.sound = o.now, true
		o.out.Append = append(o.out.Append, r)
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
func (o *outbox) journal(id jobid.ID, e *eventlog.Entry, context json.RawMessage) {
	o.events++
	o.out.Journal = append(o.out.Journal, JournalEntry{
		Job: id, Entry: eventlog.Entry{Timestamp: e.Timestamp, Name: e.Name, Context: context},
	})
}

// journalVolatile tells readers outside of an event that no log has.
func (o *outbox) journalVolatile(id jobid.ID, name string, context json.RawMessage) {
	o.out.Journal = append(o.out.Journal, JournalEntry{
		Job: id, Entry: eventlog.Entry{Timestamp: o.now, Name: name, Context: context}, Volatile: true,
	})
}

func (o *outbox) answer(a Answer) {
	if a.Tag != 0 {
		o.out.Answers = append(o.out.Answers, a)
	}
}

// fault reports what no input is to blame for. The name of a hook is "" for none.
func (o *outbox) fault(hook string, id jobid.ID, err error) {
	o.faults++
	o.out.Faults = append(o.out.Faults, Fault{Hook: hook, Job: id, Err: err})
}

// History yields the eventlog of each job that has one in memory, in the order of
// ids, as far as the last Ready that was done: of jobs that are not inactive, and of those
// that have ended since. A reader that reads it between Done and the next Ready, and then
// the Journals from that Ready on, sees each event once; the end of the iteration is the
// end of history. The logs must not be changed. A volatile Manager has none.
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
