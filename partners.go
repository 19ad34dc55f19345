package joblife

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

func (in SchedHello) dispatch(m *machine) error {
	m.sched.hello(in.PartialOK, m.quarantine.allHoldings(&m.jobTable))
	return nil
}

func (in SchedReady) dispatch(m *machine) error { return m.sched.ready(alloc.Ready(in)) }

func (SchedLost) dispatch(m *machine) error {
	m.sched.lost()
	return nil
}

func (in SchedResponse) dispatch(m *machine) error {
	r := alloc.Response(in)
	if r.Type == alloc.ResponseAnnotate {
		if _, err := m.entry(m.now, &jobstate.AllocContext{Annotations: r.Annotations}); err != nil {
			return err
		}
	}
	if r.Type == alloc.ResponseSuccess {
		if err := m.allocations.conflict(r.ID, r.R); err != nil {
			return err
		}
	}
	sends, outcome, err := m.sched.queue.Response(m.sched.sends, r)
	if err != nil {
		return err
	}
	m.sched.send(sends, nil)
	switch j := m.jobs[r.ID]; outcome {
	case alloc.OutcomeAllocated:
		j.queued = false
		m.allocated(j, r)
	case alloc.OutcomeAnnotated:
		notes, err := merge(j.annotations(), r.Annotations) // else long memos leave no room, and the session goes on
		if err == nil && !bytes.Equal(notes, j.annotations()) {
			m.sched.setNotes(j, notes)
		}
	case alloc.OutcomeDenied:
		m.sched.forget(j)
		m.end(j, "alloc", r.Note)
	case alloc.OutcomeRequeued:
		m.sched.unannotate(j)
	}
	return nil
}

// allocated gives a job its resources, or frees them at once if the job went back to PRIORITY.
func (m *machine) allocated(j *job, r alloc.Response) {
	waits := j.job().State() == jobstate.StateSched
	var err error
	if waits {
		if err = m.give(j, r.R, jobstate.AllocContext{Annotations: r.Annotations}); err == nil {
			return
		}
	}
	m.sched.unannotate(j)
	m.sched.inform(alloc.Free{ID: j.id, R: r.R, Final: true})
	if waits {
		m.end(j, "alloc", err.Error())
	}
}

func (in Alloc) dispatch(m *machine) error {
	j, err := m.activeOf(in.By, in.ID)
	switch {
	case err != nil:
		return err
	case j.state != jobstate.StateSched || !j.job().HasFlag(flagBypass):
		return fmt.Errorf("%w: %v is not in SCHED with the flag %s", ErrInvalid, in.ID, flagBypass)
	}
	if err := m.give(j, in.R, jobstate.AllocContext{Extra: []byte(`{"bypass":true}`)}); err != nil {
		return err
	}
	m.answer(Answer{Tag: in.Tag, Job: in.ID})
	return nil
}

// recordR returns the record of an R, with the key scheduling, for an instance in the job, if it fits.
func (m *machine) recordR(r *rset.R, scheduling []byte) ([]byte, error) {
	n := len(m.out.text)
	text := r.AppendJSON(m.out.text)
	if len(scheduling) > 0 && fits("R", text[n:], len(`,"scheduling":`)+len(scheduling)) == nil {
		text = append(append(append(text[:len(text)-len("}")], `,"scheduling":`...), scheduling...), '}')
	}
	m.out.text = text
	record := text[n:len(text):len(text)]
	return record, fits("R", record, 0)
}

// give gives a job its R, without the properties that only the scheduler's instance uses.
func (m *machine) give(j *job, r *rset.R, c jobstate.AllocContext) error {
	plain := r.WithoutLocal()
	notes, err := merge(j.annotations(), c.Annotations)
	noted := err == nil && fitNotes(maxData, notes, 0) == nil
	if noted { // else the log has only memos
		c.Annotations = notes
	}
	e, err := m.entry(m.now, &c)
	var record []byte
	if err == nil && !m.volatile {
		record, err = m.recordR(plain, r.Scheduling())
	}
	if err == nil {
		err = j.life.SetR(plain)
	}
	if err != nil {
		return err
	}
	j.r, j.noted = plain, maxData // a memo counts what there is now
	if j.hidden = j.job().HasFlag(flagBypass); j.hidden {
		m.outside = put(m.outside, j.id, j)
	} else {
		m.allocations.add(j.id, plain)
	}
	volatile := j.rare != nil && j.rare.notes != nil
	if volatile {
		j.rare.notes = nil // the log has them now
	}
	m.record(Record{Job: j.id, Kind: RecordR, Data: record})
	j.life.Offline(m.now, m.offline)
	must(notLegal, m.applyEntry(j, e))
	if volatile && noted && !bytes.Equal(j.annotations(), notes) { // but for what was removed: it cannot say that
		j.setNotes(notes)
	}
	return nil
}

func (ExecHello) dispatch(m *machine) error {
	m.exec.hello(m.shutdown.begun)
	return nil
}

func (ExecLost) dispatch(m *machine) error {
	m.exec.lost()
	return nil
}

// running returns a job that the executor was asked to start.
func (m *machine) running(id jobid.ID) (*job, error) {
	j := m.jobs[id]
	switch {
	case !m.exec.on:
		return nil, errors.New("joblife: not connected: no executor")
	case j == nil:
		return nil, fmt.Errorf("%w: %v", ErrUnknown, id)
	case j.start != startSent && j.start != startAsk:
		return nil, fmt.Errorf("%w: the executor was not asked to start %v", ErrInvalid, id)
	}
	return j, nil
}

func (in ExecResponse) dispatch(m *machine) error {
	j, err := m.running(in.ID)
	if err != nil {
		return err
	}
	switch s := j.job(); in.Type {
	case exec.ResponseStart, exec.ResponseReattached:
		if in.Type == exec.ResponseReattached {
			m.debug(j, eventReattached)
		}
		if s.Started() {
			return nil
		}
		return m.applyEntry(j, eventlog.Entry{Timestamp: m.now, Name: jobstate.EventStart})
	case exec.ResponseRelease:
		if s.Released() {
			return nil
		}
		ranks := jobstate.Ranks{All: in.Ranks == nil}
		if !ranks.All {
			if ranks.Set = j.unreleased(in.Ranks); ranks.Set.IsEmpty() && !in.Final {
				return nil
			}
		}
		return m.apply(j, &jobstate.ReleaseContext{Ranks: ranks, Final: in.Final})
	case exec.ResponseException:
		kind := sanitizeNote(in.Exception.Type)
		if kind == revocation {
			return fmt.Errorf("%w: the executor raises the scheduler's %s", ErrInvalid, revocation)
		}
		told := len(m.out.Raised)
		err := m.request(Cred{}, j, &jobstate.ExceptionContext{
			Type: kind, Severity: in.Exception.Severity, Note: sanitizeNote(in.Exception.Note),
			UserID: jobstate.Some(m.cfg.Owner),
		})
		// It knows of its own exception, and stops the job as it sees fit.
		m.out.Raised = slices.Delete(m.out.Raised, told, len(m.out.Raised))
		if errors.Is(err, ErrLimit) { // not the executor's fault, so its session goes on
			m.fault("", j.id, err)
			return nil
		}
		return err
	case exec.ResponseFinish:
		if s.Finished() {
			return nil
		}
		return m.apply(j, &jobstate.FinishContext{Status: in.Status})
	}
	return fmt.Errorf("%w: response type %d", ErrInvalid, in.Type)
}

// unreleased returns the ranks of a set that the executor has not released before.
func (j *job) unreleased(ranks *idset.Set) *idset.Set {
	for h := range j.life.Holds().Holders() {
		if h.Kind == perilog.HolderExecutor {
			return idset.Intersect(ranks, h.Ranks)
		}
	}
	return ranks
}

func (in ExecRefused) dispatch(m *machine) error {
	j, err := m.running(in.ID)
	switch {
	case err != nil:
		return err
	case j.job().Started():
		return fmt.Errorf("%w: %v has started", ErrInvalid, in.ID)
	}
	asked := j.start == startAsk
	j.start = startNone
	j.life.NotStarted(m.now)
	if j.state == jobstate.StateRun && !asked {
		m.end(j, "exec", in.Note)
	}
	m.touch(j)
	return nil
}

func (in SetExpiration) dispatch(m *machine) error {
	j, err := m.activeOf(in.By, in.ID)
	switch {
	case err != nil:
		return err
	case j.state != jobstate.StateRun:
		return fmt.Errorf("%w: %v is not in RUN", ErrInvalid, in.ID)
	case in.Expiration != 0 && j.r != nil && in.Expiration <= j.r.Start():
		return fmt.Errorf("%w: expiration %v is before the start of R", ErrInvalid, in.Expiration)
	}
	if err := m.change(in.By, j.id, in.Tag, &jobstate.ResourceUpdateContext{Expiration: in.Expiration}); err != nil {
		return err
	}
	if !j.hidden {
		m.sched.inform(alloc.Expiration{ID: j.id, Expiration: in.Expiration})
	}
	m.exec.expire(j, in.Expiration)
	return nil
}

func (in Report) dispatch(m *machine) error {
	a := perilog.AckUnknown
	if j := m.jobs[in.Job]; j != nil {
		a = j.life.Report(m.now, in.Report)
		m.touch(j)
	} else if _, ok := m.index.Ended(in.Job); ok {
		a = perilog.AckEnded
	} else if m.quarantine.has(in.Job) {
		a = perilog.AckRepeated
	}
	m.answer(Answer{Tag: in.Tag, Job: in.Job, Report: a})
	return nil
}

func (in Reports) dispatch(m *machine) error {
	for i := range in.List {
		_ = in.List[i].dispatch(m) // which never fails
	}
	return nil
}

func (in Drained) dispatch(m *machine) error {
	for _, j := range m.on(in.Ranks) {
		if j.life.Draining() {
			j.life.Drained(m.now, in.Ranks)
			m.touch(j)
		}
	}
	return nil
}

func (in Offline) dispatch(m *machine) error {
	changed := idset.Union(idset.Difference(in.Ranks, m.offline), idset.Difference(m.offline, in.Ranks))
	list := m.on(changed)
	if changed.Intersects(&m.leaders) {
		list = m.sorted(jobstate.StateRunning | jobstate.StateInactive)
	}
	m.offline = in.Ranks // others learn it with alloc
	for _, j := range list {
		j.life.Offline(m.now, in.Ranks)
		m.touch(j)
	}
	return nil
}

// on returns the jobs that hold some of a set of ranks, by id, and those of which it does not know.
func (m *machine) on(ranks *idset.Set) []*job {
	list := slices.Collect(maps.Values(m.outside))
	for first, last := range ranks.Ranges() {
		for _, s := range m.allocations.within(first, last) {
			for h := s.held; h != nil; h = h.next {
				if j := m.jobs[h.job]; j != nil { // else it is quarantined
					list = append(list, j)
				}
			}
		}
	}
	slices.SortFunc(list, byID)
	return slices.Compact(list)
}

func (in Reattach) dispatch(m *machine) error {
	return m.resolve(in.Action, func(j *job) error { return j.life.Reattach(m.now, in.Key, in.Ranks) })
}

func (in Rerun) dispatch(m *machine) error {
	return m.resolve(in.Action, func(j *job) error { return j.life.Rerun(m.now, in.Key, in.Ranks) })
}

func (in ForceFinish) dispatch(m *machine) error {
	return m.resolve(in.Action, func(j *job) error {
		return j.life.ForceFinish(m.now, in.Key, in.Ranks, in.Status, in.Operator)
	})
}

func (m *machine) resolve(a Action, f func(*job) error) error {
	j := m.jobs[a.Job]
	if j == nil {
		return fmt.Errorf("%w: %v", ErrUnknown, a.Job)
	}
	if err := f(j); err != nil {
		return err
	}
	m.touch(j)
	return nil
}
