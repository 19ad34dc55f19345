package joblife

import (
	"fmt"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

const (
	eventAnnotations  = "annotations"         // volatile: the scheduler annotates a job that waits
	eventAllocRequest = "debug.alloc-request" // of a job with the flag debug
	eventStartRequest = "debug.start-request"
	flagBypass        = "alloc-bypass" // the job's resources do not come from the scheduler
)

// flagged refuses to say of a job's resources that they are not the scheduler's: it would
// not get them back.
func (m *Manager) flagged(j *job, c *jobstate.SetFlagsContext) error {
	if j.r != nil && !j.job().HasFlag(flagBypass) && slices.Contains(c.Flags, flagBypass) {
		return fmt.Errorf("%w: %v has the scheduler's resources", ErrInvalid, j.id)
	}
	return nil
}

// starts reports whether the jobs of a queue go to the scheduler.
func (m *Manager) starts(name string) bool { return !m.shutdown.begun && m.queues.starts(name) }

// block stops jobs that wait for the scheduler, or starts them.
func (m *Manager) block(stop bool, which func(*job) bool) {
	var ids []jobid.ID
	for _, j := range m.sorted(jobstate.StatePriority | jobstate.StateSched) {
		if j.queued && which(j) {
			ids = append(ids, j.id)
		}
	}
	m.blockIDs(stop, ids...)
}

func (m *Manager) blockIDs(stop bool, ids ...jobid.ID) {
	var err error
	if stop {
		m.sends, err = m.queue.Stop(m.sends[:0], ids...)
	} else {
		m.sends, err = m.queue.Start(m.sends[:0], ids...)
	}
	m.queueErr(err)
	m.send()
}

// queueErr panics on an error of the queue that only a bug of this package brings.
func (m *Manager) queueErr(err error) {
	if err != nil {
		panic("joblife: the queue and the jobs disagree: " + err.Error())
	}
}

// enqueue has a job wait for resources with its priority.
func (m *Manager) enqueue(j *job) {
	s := j.job()
	if s.State() != jobstate.StateSched || s.HasFlag(flagBypass) {
		return
	}
	info := infoOf(s)
	var err error
	if j.queued {
		m.sends, err = m.queue.Prioritize(m.sends[:0], []alloc.Priority{{ID: j.id, Priority: info.Priority}})
		m.queueErr(err)
		m.send()
		return
	}
	if m.starts(j.queue) {
		m.sends, err = m.queue.Add(m.sends[:0], info)
	} else {
		err = m.queue.AddStopped(info)
	}
	m.queueErr(err) // it has room for all
	j.queued = true
	m.send()
}

// renew has the scheduler forget a request whose jobspec has changed.
func (m *Manager) renew(j *job) {
	if !j.queued {
		return
	}
	m.blockIDs(true, j.id)
	if m.starts(j.queue) {
		m.blockIDs(false, j.id)
	}
}

// dequeue takes a job out of the queue, and its request back.
func (m *Manager) dequeue(j *job) {
	if !j.queued {
		return
	}
	var err error
	j.queued = false
	m.unannotate(j)
	m.sends, err = m.queue.Cancel(m.sends[:0], j.id)
	m.queueErr(err)
	m.send()
}

// send hands out what the queue wants sent.
func (m *Manager) send() {
	for _, s := range m.sends {
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
	m.sends = m.sends[:0]
}

// request returns the jobspec for a request.
func (j *job) request() []byte {
	if j.spec == nil || j.spec.Original() == j.spec {
		return j.text
	}
	b, _ := j.spec.MarshalJSON() // which never fails
	return b
}

// debug logs an event of a job that has the flag debug.
func (m *Manager) debug(j *job, name string) {
	if j.job().HasFlag("debug") {
		m.inbox.posts.push(post{in: Post{ID: j.id, Name: name}, job: j.id})
	}
}

// end ends a job with a fatal exception of the Manager's.
func (m *Manager) end(j *job, kind, note string) {
	must(m.apply(j, &jobstate.ExceptionContext{Type: kind, Note: sanitizeNote(note), UserID: jobstate.Some(m.cfg.Owner)}))
}

func (in SchedHello) dispatch(m *Manager) error {
	m.forget(m.queue.Hello(nil))
	holders := m.holders()
	a := alloc.Announce(holders, in.PartialOK)
	m.out.Hello, m.out.Sched = &a, m.out.Sched[:0] // for the one before
	m.freed = nil
	for _, e := range a.Failed {
		m.fault("", e.ID, e.Err)
	}
	// Of jobs of which only the end is missing, this scheduler has nothing to know.
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

func (in SchedReady) dispatch(m *Manager) error {
	sends, response, err := m.queue.Ready(m.sends[:0], alloc.Ready(in))
	if err != nil {
		return err
	}
	m.out.Sched = append(m.out.Sched, response)
	for _, f := range m.freed {
		m.out.Sched = append(m.out.Sched, f)
	}
	m.freed = nil
	m.sends = sends
	m.send()
	return nil
}

func (SchedLost) dispatch(m *Manager) error {
	m.forget(m.queue.Lost(nil))
	m.freed, m.out.Hello, m.out.Sched = nil, nil, m.out.Sched[:0]
	return nil
}

// forget drops the annotations of jobs whose requests are void.
func (m *Manager) forget(ids []jobid.ID) {
	for _, id := range ids {
		m.unannotate(m.jobs[id])
	}
}

// free gives a fragment back to the scheduler. Between hello and ready it waits; a
// scheduler that says hello later learns of it then.
func (m *Manager) free(f alloc.Free) {
	switch m.queue.Phase() {
	case alloc.PhaseOnline:
		m.out.Sched = append(m.out.Sched, f)
	case alloc.PhaseGreeting:
		m.freed = append(m.freed, f)
	}
}

func (in SchedResponse) dispatch(m *Manager) error {
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
	sends, outcome, err := m.queue.Response(m.sends[:0], r)
	if err != nil {
		return err
	}
	m.sends = sends
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

// allocated gives a job its resources. One that waits for a priority again does not
// take them.
func (m *Manager) allocated(j *job, r alloc.Response) {
	j.queued = false
	back := func() { m.free(alloc.Free{ID: j.id, R: r.R, Final: true}) }
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

func (in Alloc) dispatch(m *Manager) error {
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

// recordR returns the record of an R, with what the scheduler keeps in it for instances
// that run in jobs, if there is room.
func (m *Manager) recordR(r *rset.R, scheduling []byte) ([]byte, error) {
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

// give gives a job its R, in which no resource is local to the scheduler any more.
func (m *Manager) give(j *job, r *rset.R, c jobstate.AllocContext) error {
	own := r.WithoutLocal()
	if notes, err := j.merged(c.Annotations); err == nil { // or else the log has the rest in memos
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
		err = j.nodes.SetR(own)
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
	j.nodes.Offline(m.now, m.offline)
	must(m.applyEntry(j, e))
	return nil
}

func (m *Manager) expire(j *job, at eventlog.Timestamp) {
	if m.queue.Phase() == alloc.PhaseOnline {
		m.out.Sched = append(m.out.Sched, alloc.Expiration{ID: j.id, Expiration: at})
	}
	if m.exec && j.start == startSent {
		m.out.Exec = append(m.out.Exec, exec.Expiration{ID: j.id, Expiration: at})
	}
}
