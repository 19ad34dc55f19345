package joblife

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/logline"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset/alloc"
)

// A Ready says what to store and to do. Make Append durable BEFORE anything else, and do the rest
// AFTER it, in the order of the fields. Each effect is idempotent: it may come again after a
// crash. The slices, and what they refer to, are valid until [Manager.Done].
type Ready struct {
	// Seq is for Done and Abandon. It grows by one.
	Seq uint64

	// Append has the records to make durable, in order: no record may be durable before those
	// before it. If that fails, call Abandon. A store that limits what it appends at once may
	// append them in parts, cut between any two records: the first n are a log that [Restore]
	// reads, whatever n is. What else the Ready has comes after the last part.
	Append []Record

	// Hello responds to the hello of a scheduler: its Responses, then the failure
	// alloc.NoData. Nil: none asked. It is the session mark: Sched of this Ready and of
	// later ones is for the scheduler that asked, and for none before it.
	Hello *alloc.Announcement
	// Sched has messages for the scheduler (RFC 27): ReadyResponse, Request, Cancel,
	// Prioritize, Free, which says which ranks of a job are free, Expiration. After Restore no
	// Free comes for what is free already: [Manager.Allocated] has what is not.
	Sched []alloc.Message
	// Exec has messages for the executor (RFC 32): Start, Expiration.
	Exec []exec.Message

	// Raised has the exceptions that were raised, but those of the executor itself. The
	// executor stops a job at one of severity 0.
	Raised []Raised

	// Launch, Signal and Drain are of prologs, epilogs and housekeeping: see [perilog.Effects].
	Launch []Launch
	Signal []Signal
	Drain  []Drain

	// Over names jobs of which nothing goes on, housekeeping neither: nodes may forget their tasks.
	Over []jobid.ID

	// Unlink names jobs to remove from the store: see [purge.Store]. Step takes the
	// outcome as [Unlinked]. Until then it names no other jobs but those that are invalidated.
	Unlink []jobid.ID

	// Journal has the events, volatile ones too, for readers: see [Manager.History]. A crash
	// after Append may lose it: no Ready has it again. After Restore, History has the logs of
	// jobs that go on; of those in Jobs(jobstate.StateInactive), tell users what you have not
	// told them.
	Journal []JournalEntry
	// Answers are to inputs with a Tag.
	Answers []Answer
	// Results say how actions ended, and Faults what went wrong, for an administrator's log.
	Results []ActionResult
	Faults  []Fault
}

func (r *Ready) isEmpty() bool {
	return len(r.Append)+len(r.Sched)+len(r.Exec)+len(r.Raised)+len(r.Launch)+len(r.Signal)+len(r.Drain)+
		len(r.Over)+len(r.Unlink)+len(r.Journal)+len(r.Answers)+len(r.Results)+len(r.Faults) == 0 && r.Hello == nil
}

// An outbox collects what is to be stored and done.
type outbox struct {
	now      eventlog.Timestamp // of the Step that runs
	volatile bool               // no records are kept
	out      *batch             // the next Ready
	sent     *batch             // the outstanding Ready; empty if there is none
	busy     bool               // a Ready is outstanding
	seq      uint64
	frame    frame
	events   uint64 // in journals
	faults   uint64
}

// A core is what the parts of a machine share.
type core struct {
	outbox
	jobTable
}

// A batch is a Ready and what belongs to it.
type batch struct {
	Ready
	text      []byte            // what its slices refer to
	submitted []*job            // whose submit it has
	ended     map[jobid.ID]*job // whose log ends in it: History has them until it is done
}

// A batch that was greater than this does not keep its memory.
const (
	maxText  = 4 << 20 // bytes
	maxEnded = 1 << 12 // records; clear takes time for all that the map ever had
)

// reset keeps the room of a batch. Of the longest lists it clears only what is not in its text.
func (b *batch) reset() {
	if clear(b.ended); len(b.Append) > maxEnded {
		b.ended = nil
	}
	for i := range b.Append {
		if b.Append[i].Kind == RecordJobspec {
			b.Append[i].Data = nil
		}
	}
	b.Hello = nil
	b.Append, b.Over, b.Unlink, b.Journal = b.Append[:0], b.Over[:0], b.Unlink[:0], b.Journal[:0]
	b.Sched, b.Exec, b.Raised = clearTo(b.Sched), clearTo(b.Exec), clearTo(b.Raised)
	b.Launch, b.Signal, b.Drain = clearTo(b.Launch), clearTo(b.Signal), clearTo(b.Drain)
	b.Answers, b.Results, b.Faults = clearTo(b.Answers), clearTo(b.Results), clearTo(b.Faults)
	b.submitted = clearTo(b.submitted)
	if b.text = b.text[:0]; cap(b.text) > maxText {
		b.text, b.Append, b.Journal = nil, nil, nil
	}
}

func (b *batch) keep(data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	n := len(b.text)
	b.text = append(b.text, data...)
	return b.text[n:len(b.text):len(b.text)]
}

// What package perilog wants done, and what became of it, with the job.
type (
	// A Launch is a command to start on ranks of a job.
	Launch struct {
		Job jobid.ID
		perilog.Launch
	}
	// A Signal goes to the processes of an action of a job.
	Signal struct {
		Job jobid.ID
		perilog.Signal
	}
	// A Drain asks to take ranks out of service, on account of a job.
	Drain struct {
		Job jobid.ID
		perilog.Drain
	}
	// An ActionResult says how an action of a job ended.
	ActionResult struct {
		Job jobid.ID
		perilog.ActionResult
	}
)

// A JournalEntry is an event of a job, for readers outside.
type JournalEntry struct {
	Job    jobid.ID
	UserID uint32 // whose job it is
	Entry  eventlog.Entry
	// Volatile is set if no log has the event: annotations and volatile memos.
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
	return text + strings.TrimPrefix(f.Err.Error(), "joblife: ")
}

// An Answer answers an input with a Tag.
type Answer struct {
	Tag    uint64
	Err    error
	Job    jobid.ID       // of Submit, and of what names a job
	State  jobstate.State // of Wait: the job's
	Report perilog.Ack    // of Report
	Count  int            // of Purge and PurgeIDs: how many jobs went, or without Force would go
	Old    int            // of SetUrgency: the old urgency
}

// leave keeps a job in History until the Ready with its last event is done.
func (o *outbox) leave(j *job) { o.out.ended = put(o.out.ended, j.id, j) }

// isPublic returns false for a job whose submission is not durable, even if it has ended.
func (c *core) isPublic(id jobid.ID) bool {
	if len(c.out.submitted)+len(c.sent.submitted) == 0 {
		return true
	}
	j := cmp.Or(c.jobs[id], c.out.ended[id], c.sent.ended[id])
	return j == nil || j.public
}

// saved appends records that are durable now to the logs of jobs that go on.
func (c *core) saved(list []Record) {
	for len(list) > 0 {
		id, kind, n, size := list[0].Job, list[0].Kind, 0, 0
		for ; n < len(list) && list[n].Job == id && list[n].Kind == kind; n++ {
			size += len(list[n].Data)
		}
		if log := c.logOf(id, kind); log != nil {
			*log = room(*log, size)
			for i := range n {
				*log = append(*log, list[i].Data...)
			}
		}
		list = list[n:]
	}
}

// logOf returns the log for records of a kind, nil if none is needed any more.
func (c *core) logOf(id jobid.ID, kind RecordKind) *[]byte {
	if kind != RecordEvent && kind != RecordHousekeeping {
		return nil
	}
	j := cmp.Or(c.jobs[id], c.invalid[id], c.out.ended[id])
	switch {
	case j == nil:
		return nil
	case kind == RecordEvent:
		return &j.log
	}
	return &j.ensureRare().keep
}

// room returns a log with room for n bytes more. The first are all that a job that waits needs.
func room(log []byte, n int) []byte {
	if cap(log)-len(log) >= n {
		return log
	}
	if n += len(log); len(log) > 0 {
		n += max(64, n/4)
	}
	return append(make([]byte, 0, n), log...)
}

func (o *outbox) record(r Record) {
	if !o.volatile {
		r.Time, r.sound = o.now, true
		o.out.Append = append(o.out.Append, r)
	}
}

// line records an event. It returns the length of its line, and its context, kept as the Ready is.
func (o *outbox) line(id jobid.ID, r *perilog.LogEntry) (int, json.RawMessage) {
	if o.volatile {
		return len(r.Entry.Name) + len(r.Entry.Context) + lineFrame, o.out.keep(r.Entry.Context)
	}
	n := len(o.out.text)
	text, same, err := o.frame.line(o.out.text, &r.Entry)
	must("an event that cannot be written", err)
	kind := RecordEvent
	if r.Log == perilog.LogHousekeeping {
		kind = RecordHousekeeping
	}
	o.out.text = text
	o.record(Record{Job: id, Kind: kind, Data: text[n:len(text):len(text)]})
	if end := len(text) - len("}\n"); same {
		return len(text) - n, text[end-len(r.Entry.Context) : end : end]
	}
	return len(text) - n, o.out.keep(r.Entry.Context)
}

// A frame is the beginning of lines that have the same time, so that it is printed once.
type frame struct {
	time eventlog.Timestamp
	text [64]byte // more than it takes
	n    int
}

// line appends an entry to a text as eventlog.AppendEntry does, and reports whether the bytes
// of the context are unchanged. The entry was read and checked.
func (f *frame) line(dst []byte, e *eventlog.Entry) (text []byte, same bool, err error) {
	c := e.Context
	if !logline.IsPlain(e.Name) || len(c) > 0 && (c[0] != '{' || c[len(c)-1] != '}' || bytes.IndexByte(c, '\n') >= 0) {
		text, err = eventlog.AppendEntry(dst, *e)
		return text, len(c) == 0, err
	}
	if f.n == 0 || f.time != e.Timestamp {
		f.n = 0
		head, err := eventlog.AppendEntry(f.text[:0], eventlog.Entry{Timestamp: e.Timestamp, Name: "-"})
		if err != nil {
			return dst, false, err
		}
		f.time, f.n = e.Timestamp, len(head)-len("-\"}\n")
	}
	dst = append(append(append(dst, f.text[:f.n]...), e.Name...), '"')
	if len(c) > 0 {
		dst = append(append(dst, `,"context":`...), c...)
	}
	return append(dst, "}\n"...), true, nil
}

func (o *outbox) journal(j *job, at eventlog.Timestamp, name string, context json.RawMessage, volatile bool) {
	if !volatile {
		o.events++
	}
	o.out.Journal = append(o.out.Journal, JournalEntry{
		Job: j.id, UserID: j.job().UserID(), Entry: eventlog.Entry{Timestamp: at, Name: name, Context: context}, Volatile: volatile,
	})
}

func (o *outbox) answer(a Answer) {
	if a.Tag != 0 {
		o.out.Answers = append(o.out.Answers, a)
	}
}

func (o *outbox) fault(hook string, id jobid.ID, err error) {
	o.faults++
	o.out.Faults = append(o.out.Faults, Fault{Hook: hook, Job: id, Err: err})
}

// A Raised is an exception of a job. If its severity is 0, the executor stops the job.
type Raised struct {
	Job jobid.ID
	jobstate.ExceptionContext
}
