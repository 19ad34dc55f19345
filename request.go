package joblife

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
)

func (in DependencyAdd) dispatch(m *machine) error {
	j, err := m.live(Cred{}, in.ID)
	switch {
	case err != nil:
		return err
	case j.job().WaitsFor(in.Description):
		return nil
	case !j.state.In(jobstate.StateNew | jobstate.StateDepend):
		return fmt.Errorf("%w: %v does not wait for dependencies any more", ErrInvalid, in.ID)
	case m.inbox.posting && j.job().HasDependency(in.Description):
		return nil // after a restart, hooks may add again what was satisfied
	}
	err = m.applyUpTo(m.cfg.maxLog(Cred{}), j, &jobstate.DependencyAddContext{Description: in.Description})
	if m.inbox.posting && errors.Is(err, ErrLimit) { // the job must not go on without it
		m.doom(j, Raise{ID: j.id, Type: "dependency", Note: sanitizeNote(err.Error())})
		return nil
	}
	return err
}

func (in DependencyRemove) dispatch(m *machine) error {
	j, err := m.live(Cred{}, in.ID)
	if m.inbox.posting && err != nil {
		return nil // the job is over, so it does not matter
	}
	if err != nil || !j.state.In(jobstate.StateNew|jobstate.StateDepend) || !j.job().WaitsFor(in.Description) {
		return err
	}
	return m.apply(j, &jobstate.DependencyRemoveContext{Description: in.Description})
}

func (in Submit) dispatch(m *machine) error {
	if again, err := m.repeated(in); again || err != nil {
		return err
	}
	text, err := in.text()
	if err != nil {
		return err
	}
	if err := fitsIn(m.cfg.maxJobspec(), maxDepth, "jobspec", text, 0); err != nil {
		return err
	}
	spec := in.Spec
	if spec == nil || spec.Original() != spec { // what is submitted is an original
		if spec, err = jobspec.Parse(text); err != nil {
			return err
		}
	}
	at, err := m.submitTime(in)
	if err != nil {
		return err
	}
	if err := m.queues.admits(spec.Queue()); err != nil {
		return err
	}
	id, err := m.newID(in.ID)
	if err != nil {
		return err
	}
	if m.shutdown.begun {
		return perilog.ErrStopped
	}
	life, err := perilog.NewJob(m.actions, perilog.JobConfig{ID: id, Owner: m.cfg.Owner, Scratch: m.scratch, Distinct: m.cfg.Distinct})
	if err != nil {
		return err
	}
	j := &job{id: id, life: life, spec: spec, queue: spec.Queue(), text: text}
	e, err := m.entry(at, &jobstate.SubmitContext{
		UserID: in.By.UserID, Urgency: uint8(in.Urgency), Flags: in.Flags, Version: jobstate.LogVersion, Extra: keyExtra(in.Key),
	})
	if err != nil {
		return err
	}
	if _, err := life.Apply(m.now, e); err != nil {
		return err
	}
	posts := m.posts.len()
	m.inbox.staged = m.inbox.staged[:0]
	err = m.validate(j)
	if err == nil {
		err = m.dependencies(j)
	}
	if err == nil {
		err = m.fitPosts(in.By, j.id, lineSize(e), m.posts.list[m.posts.head+posts:])
	}
	if err != nil {
		m.posts.cut(posts)
		m.inbox.staged = m.inbox.staged[:0]
		return err
	}
	m.jobs[id] = j
	if in.Key != "" {
		m.keys.add(id, submitKey{in.By.UserID, in.Key})
	}
	m.index.RaiseWatermark(id)
	m.record(Record{Job: id, Kind: RecordJobspec, Data: j.text})
	m.out.submitted = append(m.out.submitted, j)
	m.parsed = append(m.parsed, id)
	m.log(j)
	m.touch(j)
	m.answer(Answer{Tag: in.Tag, Job: id})
	return nil
}

// fitPosts returns an error if the log of a job that is submitted, of size bytes, has no room
// for what the job waits for, as hooks have posted it.
func (m *machine) fitPosts(by Cred, id jobid.ID, size int, posts []post) error {
	for _, p := range posts {
		var c jobstate.Context
		switch in := p.in.(type) {
		case DependencyAdd:
			c = &jobstate.DependencyAddContext{Description: in.Description}
		case Raise:
			c = &jobstate.ExceptionContext{Type: in.Type, Note: sanitizeNote(in.Note), UserID: jobstate.Some(m.cfg.Owner)}
		default:
			continue
		}
		e, err := m.entry(m.now, c)
		if err != nil {
			continue // its dispatch tells
		}
		if err := fitsLog(m.cfg.maxLog(by), id, size, e); err != nil {
			return err
		}
		size += lineSize(e)
	}
	return nil
}

func (in Submit) text() ([]byte, error) {
	switch {
	case in.Spec != nil && len(in.Jobspec) > 0:
		return nil, fmt.Errorf("%w: a Submit has Jobspec and Spec: set one of them", ErrInvalid)
	case in.Spec == nil && len(in.Jobspec) == 0:
		return nil, fmt.Errorf("%w: a Submit has no jobspec: set Jobspec or Spec", ErrInvalid)
	case in.Spec == nil:
		return in.Jobspec, nil
	case in.Spec.Text() == nil:
		return nil, fmt.Errorf("%w: Spec is zero: use jobspec.New or Parse", ErrInvalid)
	}
	return in.Spec.Text(), nil
}

// checkUrgency returns an error if by may not ask for an urgency: a guest gets at most most.
func checkUrgency(by Cred, urgency, most int) error {
	switch {
	case urgency < 0 || urgency > jobstate.UrgencyExpedite:
		return fmt.Errorf("%w: urgency %d, not 0 to %d", ErrInvalid, urgency, jobstate.UrgencyExpedite)
	case by.Guest && urgency > most:
		return fmt.Errorf("%w: a guest may ask for an urgency of at most %d", ErrDenied, most)
	}
	return nil
}

// submitTime returns the time of the event submit, or why nobody may submit such a job.
func (m *machine) submitTime(in Submit) (eventlog.Timestamp, error) {
	if err := checkUrgency(in.By, in.Urgency, jobstate.UrgencyDefault); err != nil {
		return 0, err
	}
	if in.Time != 0 && !guard.IsTime(in.Time) {
		return 0, fmt.Errorf("%w: time %v", ErrInvalid, in.Time)
	}
	if n := len(m.jobs) + m.sched.queue.Stats().Canceled; n >= m.cfg.maxActive() {
		return 0, fmt.Errorf("%w: %d jobs are active, or have housekeeping or a canceled request without a response; MaxActive is %d", ErrLimit, n, m.cfg.maxActive())
	}
	return min(m.now, cmp.Or(in.Time, m.now)), nil // the clock of another host may be ahead
}

// newID returns an id that was never given (I9). It counts as given when the job is accepted.
func (m *machine) newID(id jobid.ID) (_ jobid.ID, err error) {
	made := id == 0
	if made {
		if id, err = m.generateID(); err != nil {
			return 0, err
		}
	}
	_, ended := m.index.Ended(id)
	switch {
	case id > math.MaxInt64: // RFC 27's messages carry no greater one
		return 0, fmt.Errorf("%w: id %v is too large: ids last for 17 years from Config.Epoch", ErrInvalid, id)
	case made:
	case !m.cfg.Epoch.IsZero() && id.Time(m.cfg.Epoch).Sub(m.now.Time()) > time.Minute:
		return 0, fmt.Errorf("%w: id %v is of a time to come", ErrInvalid, id)
	case id > m.index.Watermark():
	case ended || m.jobs[id] != nil || m.quarantine.has(id):
		return 0, fmt.Errorf("%w: id %v was given before", ErrInvalid, id)
	case id <= m.purger.idFloor:
		return 0, fmt.Errorf("%w: id %v may have been given before: ids up to %v are not given again", ErrInvalid, id, m.purger.idFloor)
	}
	return id, nil
}

// generateID makes an id greater than all before it. Those may be of a time to come, if the clock
// of another host is ahead, or if a millisecond had more than its share: then it goes on from there.
func (m *machine) generateID() (jobid.ID, error) {
	epoch, at, last := m.cfg.Epoch, m.now.Time(), m.index.Watermark()
	if epoch.IsZero() {
		return 0, fmt.Errorf("%w: a Submit without an ID needs Config.Epoch", ErrInvalid)
	}
	ids, err := jobid.NewGenerator(m.cfg.Generator, epoch)
	if err != nil {
		return 0, err
	}
	if t := last.Time(epoch); t.After(at) && at.After(epoch) { // else the epoch is wrong
		at = t
	}
	ids.After(last)
	id, err := ids.Next(at)
	if err != nil { // all ids of that millisecond are used
		id, err = ids.Next(at.Add(time.Millisecond))
	}
	return id, err
}

func (in Validated) dispatch(m *machine) error {
	j, err := m.live(Cred{}, in.ID)
	switch {
	case err != nil:
		return err
	case !j.later:
		return fmt.Errorf("%w: %v is not being validated", ErrInvalid, in.ID)
	}
	if in.Err != nil {
		return m.applyEntry(j, eventlog.Entry{Timestamp: m.now, Name: jobstate.EventInvalidate})
	}
	j.later = false
	m.touch(j)
	return nil
}

func (in SetUrgency) dispatch(m *machine) error {
	j, err := m.active(in.By, in.ID)
	if err != nil {
		return err
	}
	old := j.job().Urgency()
	if err := checkUrgency(in.By, in.Urgency, max(jobstate.UrgencyDefault, old)); err != nil {
		return err
	}
	if !j.job().State().In(jobstate.StateNew | jobstate.StatePending) {
		return fmt.Errorf("%w: %v has its resources", ErrInvalid, in.ID)
	}
	if err := m.request(in.By, j, &jobstate.UrgencyContext{UserID: in.By.UserID, Urgency: uint8(in.Urgency)}); err != nil {
		return err
	}
	m.answer(Answer{Tag: in.Tag, Job: j.id, Old: old})
	return nil
}

func (in SetPriority) dispatch(m *machine) error {
	j, err := m.live(Cred{}, in.ID)
	if err != nil {
		return err
	}
	if p, ok := j.job().Priority(); ok && j.state == jobstate.StateSched {
		if now := jobstate.PriorityOf(j.job().Urgency(), in.Priority); now != p {
			err = m.request(Cred{}, j, &jobstate.PriorityContext{Priority: now})
		}
	}
	if err != nil {
		return err
	}
	j.computed, j.ranked = in.Priority, true
	m.touch(j)
	return nil
}

func (in UpdateJobspec) dispatch(m *machine) error {
	return m.change(in.By, in.ID, in.Tag, &jobstate.JobspecUpdateContext{Updates: in.Updates})
}

func (in Memo) dispatch(m *machine) error {
	c := &jobstate.MemoContext{Values: in.Values}
	if !in.Volatile {
		return m.change(in.By, in.ID, in.Tag, c)
	}
	j, err := m.active(in.By, in.ID)
	if err != nil {
		return err
	}
	e, err := m.entry(m.now, c)
	if err != nil {
		return err
	}
	notes, err := merge(j.annotations(), userNotes(e.Context))
	if err != nil {
		return err
	}
	j.setNotes(notes)
	m.journal(j, m.now, jobstate.EventMemo, m.out.keep(e.Context), true)
	m.answer(Answer{Tag: in.Tag, Job: j.id})
	return nil
}

// revocation is the type of a fatal exception that takes back what a job has (RFC 21).
const revocation = "scheduler-restart"

func (in Raise) dispatch(m *machine) error {
	if m.inbox.posting {
		if j := m.jobs[in.ID]; j != nil && j.state == jobstate.StateNew && in.Severity == 0 {
			m.doom(j, in)
			return nil
		}
		in.By.UserID = m.cfg.Owner
	}
	switch {
	case in.Severity < 0 || in.Severity > jobstate.MaxSeverity:
		return fmt.Errorf("%w: severity %d", ErrInvalid, in.Severity)
	case in.Type == "":
		return fmt.Errorf("%w: an exception without a type", ErrInvalid)
	case in.Type == revocation && in.By.Guest:
		return fmt.Errorf("%w: the type %s is the scheduler's", ErrDenied, in.Type)
	case len(in.Type) > maxNote:
		return fmt.Errorf("%w: an exception with a type of %d bytes, at most %d", ErrLimit, len(in.Type), maxNote)
	}
	return m.change(in.By, in.ID, in.Tag, &jobstate.ExceptionContext{
		Type: in.Type, Severity: uint8(in.Severity), Note: sanitizeNote(in.Note),
		UserID: jobstate.Some(in.By.UserID), WaitStatus: in.WaitStatus,
	})
}

func (in Post) dispatch(m *machine) error {
	j, err := m.activeOf(in.By, in.ID)
	if err != nil {
		return err
	}
	if in.Name == jobstate.EventSubmit || in.Name == jobstate.EventAlloc || in.Name == jobstate.EventInvalidate {
		return fmt.Errorf("%w: the event %s", ErrInvalid, guard.Quote(in.Name))
	}
	e := eventlog.Entry{Timestamp: m.now, Name: in.Name, Context: in.Context}
	size := j.size
	if err = fitsLog(m.cfg.maxLog(in.By), j.id, int(j.size), e); err == nil {
		err = m.applyEntry(j, e)
	}
	if starts := in.Name == jobstate.EventPrologStart || in.Name == jobstate.EventEpilogStart; err == nil && starts && j.size == size { // two holds would be one
		err = fmt.Errorf("%w: the log has the event %s of this time already: post it later", ErrInvalid, guard.Quote(in.Name))
	}
	if err != nil {
		return err
	}
	m.answer(Answer{Tag: in.Tag, Job: j.id})
	return nil
}

func (in SetFlags) dispatch(m *machine) error {
	if err := owner(in.By); err != nil {
		return err
	}
	return m.change(in.By, in.ID, in.Tag, &jobstate.SetFlagsContext{Flags: in.Flags})
}

func (in Wait) dispatch(m *machine) error {
	if err := m.waits.check("Wait", in.Tag, in.States); err != nil {
		return err
	}
	v, ok := m.visible(in.By, in.ID)
	switch {
	case !ok:
		m.answer(Answer{Tag: in.Tag, Job: in.ID, Err: fmt.Errorf("%w: %v", ErrUnknown, in.ID)})
	case v.State().In(in.States):
		m.answer(Answer{Tag: in.Tag, Job: in.ID, State: v.State()})
	case v.State() == jobstate.StateInactive:
		m.answer(Answer{Tag: in.Tag, Job: in.ID, State: v.State(), Err: fmt.Errorf("%w: %v", ErrInactive, in.ID)})
	default:
		m.waits.add(in)
	}
	return nil
}

func (in WaitEmpty) dispatch(m *machine) error {
	if err := m.waits.check("WaitEmpty", in.Tag, in.States); err != nil {
		return err
	}
	m.waits.add(Wait{Tag: in.Tag, States: in.States})
	return nil
}

func (in WaitCancel) dispatch(m *machine) error {
	m.waits.cancel(in.Tag)
	return nil
}

func (in EnableQueue) dispatch(m *machine) error {
	q, err := m.queues.forOwner(in.By, in.Queue)
	if err != nil {
		return err
	}
	for _, s := range []*QueueStatus{&q.now, &q.kept} {
		s.Enabled, s.DisableReason = in.Enable, reasonFor(in.Enable, in.Reason)
	}
	m.record(m.queues.record(in.Queue))
	m.answer(Answer{Tag: in.Tag})
	return nil
}

func (in StartQueue) dispatch(m *machine) error {
	names := []string{in.Queue}
	if in.All {
		names = slices.Sorted(maps.Keys(m.queues))
	}
	for _, name := range names {
		q, err := m.queues.forOwner(in.By, name)
		if err != nil {
			return err
		}
		q.now.Started, q.now.StopReason = in.Start, reasonFor(in.Start, in.Reason)
		if !in.Volatile {
			q.kept = q.now
			m.record(m.queues.record(name))
		}
	}
	m.answer(Answer{Tag: in.Tag})
	m.sched.block(m.starts)
	return nil
}

func (in Reload) dispatch(m *machine) error {
	rested := !limited(m.purger.limits)
	if err := m.configure(in.Config); err != nil {
		return err
	}
	if rested {
		_ = m.purger.passTime() // which Step has checked
	}
	for _, j := range m.sorted(jobstate.StateNew | jobstate.StateActive | jobstate.StateInactive) {
		must("a configuration that was checked", j.life.SetConfig(m.actions))
		if !j.state.In(jobstate.StateNew | jobstate.StatePending) {
			j.life.Offline(m.now, m.offline) // a new leader may be a node that did not matter
			m.touch(j)
		}
	}
	m.sched.block(m.starts)
	m.purger.rest = 0
	return nil
}

func (in Shutdown) dispatch(m *machine) error {
	if in.Deadline != 0 && !guard.IsTime(in.Deadline) {
		return fmt.Errorf("%w: deadline %v", ErrInvalid, in.Deadline)
	}
	m.shutdown = shutdown{true, in.Deadline}
	for _, j := range m.sorted(jobstate.StateNew | jobstate.StateActive | jobstate.StateInactive) {
		j.life.Shutdown(m.now, 0) // Step heeds the deadline: a Step that goes on, as that of a hook, ends well
	}
	m.sched.block(m.starts)
	return nil
}

func (in Tagged) dispatch(m *machine) error {
	_, has := in.In.(Reports)
	if t := reflect.TypeOf(in.In); !has && t != nil && t.Kind() == reflect.Struct {
		_, has = t.FieldByName("Tag") // of the type: a nil pointer that is embedded has no value
	}
	if has {
		return fmt.Errorf("%w: input %T in a Tagged has a Tag of its own", ErrInvalid, in.In)
	}
	if err := m.dispatch(in.In); err != nil {
		return err
	}
	m.answer(Answer{Tag: in.Tag})
	return nil
}

func (Tick) dispatch(m *machine) error {
	m.signaled()
	for t, ok := m.timers.pop(m.now); ok; t, ok = m.timers.pop(m.now) {
		if t.job == nil {
			m.posts.push(t.post)
			continue
		}
		t.job.rare.timer = due{}
		t.job.life.Tick(m.now)
		m.touch(t.job)
	}
	m.purger.byLimits()
	return nil
}

func (AcceptClock) dispatch(m *machine) error {
	if err := m.index.AcceptClock(m.now); err != nil {
		return err
	}
	m.purger.rest, m.purger.clockSuspectUntil = 0, 0
	return nil
}

func (in Purge) dispatch(m *machine) error { return m.purger.ask(in) }

func (in PurgeIDs) dispatch(m *machine) error { return m.purger.askIDs(in) }

func (in Unlinked) dispatch(m *machine) error {
	m.purger.unlinked(in, m.removed)
	return nil
}
