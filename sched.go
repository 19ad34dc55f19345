package joblife

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

const (
	eventAnnotations  = "annotations"         // volatile: the scheduler annotates a job that waits
	eventAllocRequest = "debug.alloc-request" // of a job with the flag debug
)

// queues are the named queues by name, or only the anonymous one, whose name is "".
type queues map[string]*queue

// A queue is one of them.
type queue struct {
	enable, start gate
	kept          gate // start, without volatile changes: as the records have it
}

// A gate is open, or closed for a reason.
type gate struct {
	open   bool
	reason string
}

// set opens or closes a gate for a reason in words from outside.
func (g *gate) set(open bool, reason string) {
	if *g = (gate{open, sanitizeNote(reason)}); open {
		g.reason = ""
	}
}

// named returns the queues of a configuration. Those that exist keep their state; started
// says whether new ones begin started. Without names it returns the anonymous queue, which
// begins started in any case.
func (q queues) named(names []string, started bool) (list queues, added []string) {
	list = make(queues)
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		if list[name] = q[name]; list[name] == nil {
			start := gate{open: name == "" || started}
			list[name] = &queue{gate{open: true}, start, start}
			added = append(added, name)
		}
	}
	return list, added
}

// admits returns an error if a queue takes no jobs, in flux-core's words.
func (q queues) admits(name string) error {
	found := q[name]
	switch {
	case found == nil:
		return noQueue(ErrRefused, name)
	case found.enable.open:
		return nil
	case name != "":
		name = " to " + plain(name)
	}
	return fmt.Errorf("%w: job submission%s is disabled: %s", ErrRefused, name, found.enable.reason)
}

// starts reports whether the jobs of a queue go to the scheduler.
func (q queues) starts(name string) bool {
	found := q[name]
	return found != nil && found.start.open
}

// noQueue returns an error about a queue that the configuration does not have.
func noQueue(category error, name string) error {
	if name == "" {
		return fmt.Errorf("%w: a named queue is required", category)
	}
	return fmt.Errorf("%w: '%s' is not a valid queue", category, plain(name))
}

// owned returns a queue that by may change.
func (q queues) owned(by Cred, name string) (*queue, error) {
	if err := owner(by); err != nil {
		return nil, err
	}
	found := q[name]
	if found == nil {
		return nil, noQueue(ErrInvalid, name)
	}
	return found, nil
}

// A QueueStatus is the state of a queue. A reason is "" while the queue is enabled or started.
type QueueStatus struct {
	Enabled       bool   `json:"enable"`
	Started       bool   `json:"start"`
	DisableReason string `json:"disable_reason,omitempty"`
	StopReason    string `json:"stop_reason,omitempty"`
}

// queueState is a queue as RecordQueue has it.
type queueState struct {
	Name string `json:"name"`
	QueueStatus
}

// record returns the record of a queue.
func (q queues) record(name string) Record {
	found := q[name]
	b, err := json.Marshal(queueState{name, QueueStatus{found.enable.open, found.kept.open, found.enable.reason, found.kept.reason}})
	if err != nil {
		panic("joblife: a queue that cannot be written: " + err.Error())
	}
	return Record{Kind: RecordQueue, Data: b}
}

// records returns the records of all queues, by name.
func (q queues) records() []Record {
	var list []Record
	for _, name := range slices.Sorted(maps.Keys(q)) {
		list = append(list, q.record(name))
	}
	return list
}

// restore reads a record. It ignores a queue that the configuration does not have.
func (q queues) restore(data []byte) error {
	var state queueState
	if err := json.Unmarshal(data, &state); err != nil {
		return fmt.Errorf("joblife: queue record: %w", err)
	}
	if found := q[state.Name]; found != nil {
		start := gate{state.Started, state.StopReason}
		*found = queue{gate{state.Enabled, state.DisableReason}, start, start}
	}
	return nil
}

// flagged refuses the flag alloc-bypass for a job with resources: the scheduler that gave
// them would not get them back.
func (m *machine) flagged(j *job, c *jobstate.SetFlagsContext) error {
	if j.r != nil && !j.job().HasFlag(flagBypass) && slices.Contains(c.Flags, flagBypass) {
		return fmt.Errorf("%w: %v has the scheduler's resources", ErrInvalid, j.id)
	}
	return nil
}

// A scheduler is the session of one, and the jobs that wait for it.
type scheduler struct {
	queue *alloc.Queue
	freed []alloc.Free // since hello
	sends []alloc.Send // what the queue wants sent
}

func newScheduler(jobs int) scheduler {
	return scheduler{queue: alloc.NewQueue(alloc.Config{MaxJobs: jobs})}
}

// starts reports whether the jobs of a queue go to the scheduler.
func (m *machine) starts(name string) bool { return !m.shutdown.begun && m.queues.starts(name) }

// block stops jobs that wait for the scheduler, or starts them.
func (m *machine) block(stop bool, which func(*job) bool) {
	var ids []jobid.ID
	for _, j := range m.sorted(jobstate.StatePriority | jobstate.StateSched) {
		if j.queued && which(j) {
			ids = append(ids, j.id)
		}
	}
	m.blockIDs(stop, ids...)
}

func (m *machine) blockIDs(stop bool, ids ...jobid.ID) {
	var err error
	if stop {
		m.sched.sends, err = m.sched.queue.Stop(m.sched.sends[:0], ids...)
	} else {
		m.sched.sends, err = m.sched.queue.Start(m.sched.sends[:0], ids...)
	}
	m.queueErr(err)
	m.send()
}

// queueErr panics on an error of the queue, which only a bug in this package can cause.
func (m *machine) queueErr(err error) {
	if err != nil {
		panic("joblife: the queue and the jobs disagree: " + err.Error())
	}
}

// enqueue makes a job wait for resources with its priority.
func (m *machine) enqueue(j *job) {
	s := j.job()
	if s.State() != jobstate.StateSched || s.HasFlag(flagBypass) {
		return
	}
	info := infoOf(s)
	var err error
	if j.queued {
		m.sched.sends, err = m.sched.queue.Prioritize(m.sched.sends[:0], []alloc.Priority{{ID: j.id, Priority: info.Priority}})
		m.queueErr(err)
		m.send()
		return
	}
	if m.starts(j.queue) {
		m.sched.sends, err = m.sched.queue.Add(m.sched.sends[:0], info)
	} else {
		err = m.sched.queue.AddStopped(info)
	}
	m.queueErr(err) // the queue has room for all active jobs
	j.queued = true
	m.send()
}

// renew replaces a request whose jobspec has changed.
func (m *machine) renew(j *job) {
	if !j.queued {
		return
	}
	m.blockIDs(true, j.id)
	if m.starts(j.queue) {
		m.blockIDs(false, j.id)
	}
}

// dequeue removes a job from the queue, which takes back its request.
func (m *machine) dequeue(j *job) {
	if !j.queued {
		return
	}
	var err error
	j.queued = false
	m.unannotate(j)
	m.sched.sends, err = m.sched.queue.Cancel(m.sched.sends[:0], j.id)
	m.queueErr(err)
	m.send()
}

// send adds the messages of the queue to the next Ready.
func (m *machine) send() {
	for _, s := range m.sched.sends {
		switch s.Kind {
		case alloc.SendAlloc:
			j := m.jobs[s.Job.ID]
			m.out.Sched = append(m.out.Sched, alloc.Request{JobInfo: s.Job, Jobspec: j.request()})
			m.debug(j, eventAllocRequest)
		case alloc.SendCancel:
			m.out.Sched = append(m.out.Sched, alloc.Cancel{ID: s.Job.ID})
		case alloc.SendPrioritize:
			m.out.Sched = append(m.out.Sched, alloc.Prioritize{Jobs: s.Jobs})
		case alloc.SendFree:
			m.out.Sched = append(m.out.Sched, alloc.Free{ID: s.Job.ID, R: s.R, Final: true})
		}
	}
	m.sched.sends = m.sched.sends[:0]
}

func (in SchedHello) dispatch(m *machine) error {
	m.forget(m.sched.queue.Hello(nil))
	holders := m.quarantine.holders(&m.jobTable)
	a := alloc.Announce(holders, in.PartialOK)
	m.out.Hello, m.out.Sched = &a, m.out.Sched[:0] // those were for the scheduler before
	m.sched.freed = nil
	for _, e := range a.Failed {
		m.fault("", e.ID, e.Err)
	}
	// The new scheduler need not know of jobs that hold nothing and only have to end.
	for _, j := range m.sorted(jobstate.StateRunning | jobstate.StateInactive) {
		j.hidden = j.r != nil
	}
	for _, h := range holders {
		if j := m.jobs[h.ID]; j != nil {
			j.hidden = false
		}
	}
	return nil
}

func (in SchedReady) dispatch(m *machine) error {
	sends, response, err := m.sched.queue.Ready(m.sched.sends[:0], alloc.Ready(in))
	if err != nil {
		return err
	}
	m.out.Sched = append(m.out.Sched, response)
	for _, f := range m.sched.freed {
		m.out.Sched = append(m.out.Sched, f)
	}
	m.sched.freed = nil
	m.sched.sends = sends
	m.send()
	return nil
}

func (SchedLost) dispatch(m *machine) error {
	m.forget(m.sched.queue.Lost(nil))
	m.sched.freed, m.out.Hello, m.out.Sched = nil, nil, m.out.Sched[:0]
	return nil
}

// forget drops the annotations of jobs whose requests are void.
func (m *machine) forget(ids []jobid.ID) {
	for _, id := range ids {
		m.unannotate(m.jobs[id])
	}
}

// free gives a fragment back to the scheduler. Between hello and ready the fragment waits. If
// there is no scheduler, the next one learns of it at its hello.
func (s *scheduler) free(o *outbox, f alloc.Free) {
	switch s.queue.Phase() {
	case alloc.PhaseOnline:
		o.out.Sched = append(o.out.Sched, f)
	case alloc.PhaseGreeting:
		s.freed = append(s.freed, f)
	}
}

func (in SchedResponse) dispatch(m *machine) error {
	r := alloc.Response(in)
	if r.Type == alloc.ResponseAnnotate {
		e, err := jobstate.NewEntry(m.now, &jobstate.AllocContext{Annotations: r.Annotations})
		if err == nil {
			err = fitsEntry(e)
		}
		if err != nil {
			return err
		}
	}
	if r.Type == alloc.ResponseSuccess {
		if err := m.bookings.conflict(r.ID, r.R); err != nil {
			return err
		}
	}
	sends, outcome, err := m.sched.queue.Response(m.sched.sends[:0], r)
	if err != nil {
		return err
	}
	m.sched.sends = sends
	m.send()
	j := m.jobs[r.ID]
	switch outcome {
	case alloc.OutcomeAllocated:
		m.allocated(j, r)
	case alloc.OutcomeAnnotated:
		m.annotate(j, r.Annotations)
	case alloc.OutcomeDenied:
		j.queued = false
		m.unannotate(j)
		m.end(j, "alloc", r.Note)
	case alloc.OutcomeRequeued:
		m.unannotate(j)
	}
	return nil
}

// allocated gives a job its resources, or frees them at once if the job went back to PRIORITY.
func (m *machine) allocated(j *job, r alloc.Response) {
	j.queued = false
	back := func() { m.sched.free(&m.outbox, alloc.Free{ID: j.id, R: r.R, Final: true}) }
	if j.job().State() != jobstate.StateSched {
		m.unannotate(j)
		back()
		return
	}
	if err := m.give(j, r.R, jobstate.AllocContext{Annotations: r.Annotations}); err != nil {
		m.unannotate(j)
		back()
		m.end(j, "alloc", err.Error())
	}
}

func (in Alloc) dispatch(m *machine) error {
	if err := owner(in.By); err != nil {
		return err
	}
	j, err := m.active(in.By, in.ID)
	switch {
	case err != nil:
		return err
	case j.state != jobstate.StateSched || !j.job().HasFlag(flagBypass):
		return fmt.Errorf("%w: %v is not in SCHED with the flag %s", ErrInvalid, in.ID, flagBypass)
	}
	if err := m.bookings.conflict(in.ID, in.R); err != nil {
		return err
	}
	if err := m.give(j, in.R, jobstate.AllocContext{Extra: []byte(`{"bypass":true}`)}); err != nil {
		return err
	}
	m.answer(Answer{Tag: in.Tag, Job: in.ID})
	return nil
}

// recordR returns the record of an R. It has the key scheduling, for an instance that runs in
// the job, if there is room.
func (m *machine) recordR(r *rset.R, scheduling []byte) ([]byte, error) {
	n := len(m.out.text)
	text := r.AppendJSON(m.out.text)
	if end := len(text) - len("}"); len(scheduling) > 0 {
		text = append(append(append(text[:end], `,"scheduling":`...), scheduling...), '}')
		if fits("R", text[n:], 0) != nil {
			text = append(text[:end], '}')
		}
	}
	m.out.text = text
	record := text[n:len(text):len(text)]
	return record, fits("R", record, 0)
}

// give gives a job its R, without the properties that only the scheduler's instance uses.
func (m *machine) give(j *job, r *rset.R, c jobstate.AllocContext) error {
	own := r.WithoutLocal()
	if notes, err := j.merged(c.Annotations); err == nil { // else the log has only memos
		c.Annotations = notes
	}
	e, text, err := jobstate.EncodeEntry(m.text[:0], m.now, &c)
	m.text = text
	if err == nil {
		err = fitsEntry(e)
	}
	var record []byte
	if err == nil && !m.volatile {
		record, err = m.recordR(own, r.Scheduling())
	}
	if err == nil {
		err = j.life.SetR(own)
	}
	if err != nil {
		return err
	}
	j.r, j.unreturned = own, j.job().HasFlag(flagBypass)
	m.bookings.add(j.id, own)
	if j.rare != nil {
		j.rare.notes = nil // the log has them now
	}
	m.record(Record{Job: j.id, Kind: RecordR, Data: record})
	j.life.Offline(m.now, m.offline)
	must(m.applyEntry(j, e))
	return nil
}

func (m *machine) expire(j *job, at eventlog.Timestamp) {
	if m.sched.queue.Phase() == alloc.PhaseOnline {
		m.out.Sched = append(m.out.Sched, alloc.Expiration{ID: j.id, Expiration: at})
	}
	if m.exec && j.start == startSent {
		m.out.Exec = append(m.out.Exec, exec.Expiration{ID: j.id, Expiration: at})
	}
}

// annotate merges what the scheduler says of a job that waits. Annotations are for people:
// if long memos leave no room for them, the session of the scheduler goes on.
func (m *machine) annotate(j *job, patch []byte) {
	notes, err := j.merged(patch)
	if err != nil {
		return
	}
	j.setNotes(notes)
	m.annotated(j, notes)
}

// annotated tells readers of the annotations of a job.
func (m *machine) annotated(j *job, notes []byte) {
	if len(notes) == 0 {
		notes = []byte("null")
	}
	m.journalVolatile(j.id, eventAnnotations, slices.Concat([]byte(`{"annotations":`), notes, []byte("}")))
}

// unannotate drops what the scheduler has said of a job: all but memos.
func (m *machine) unannotate(j *job) {
	old := j.rareCopy().notes
	if len(old) == 0 {
		return
	}
	var notes json.RawMessage
	doc := jsonobj.NewDoc(old)
	if memos := doc.Root().Member("user"); !memos.Absent() {
		notes = userNotes(memos.Raw())
	}
	if bytes.Equal(notes, old) {
		return
	}
	j.setNotes(notes)
	m.annotated(j, notes)
}
