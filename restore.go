package joblife

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

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

// Recovered is what a restart leaves to the caller.
type Recovered struct {
	// Jobs are those that are not over, by id.
	Jobs []jobid.ID
	// Running are the Jobs that have started and that the executor has not released: its
	// hello gets them again, with Reattach.
	Running []jobid.ID
	// Unresolved are actions without an owner: see [perilog.Job.Unresolved].
	Unresolved []Unresolved
	// Quarantined are the jobs whose records cannot be read, or that hold the same resources by
	// their records. The Manager does not have them, and their ids do not come back. Snapshots have
	// their records as they are, up to 64 MiB in all. Repair the records, and restore again.
	Quarantined []Quarantined
	// Time is the greatest time of the records, or of events, to the second, since some stores
	// keep only those; 0 without any. If now is before it, one of the clocks was wrong: the
	// Manager goes on from Time, so that no event goes back, and [Manager.Now] returns it.
	Time eventlog.Timestamp
}

// A Quarantined is a job that the Manager does not have, although there are records.
type Quarantined struct {
	Job jobid.ID
	Err error // with the line of the log, if it is at fault
	// R is what the job holds, as schedulers get it, so that they give it to
	// no other. It lacks what other jobs hold. It is nil if the records have no R, or say
	// that it was freed: if they are damaged, look after the nodes before the hello.
	R *rset.R
}

// setAside quarantines a job, and keeps its records for snapshots. Summaries come first, since
// others may be at fault because they come after one.
func (m *machine) setAside(id jobid.ID, f *Follower, err error, out *Recovered) {
	var list []Record
	if rec, ok := f.over[id]; ok {
		list = f.keys.inactive(rec)
		delete(f.over, id)
	}
	if rec, ok := f.tombs[id]; ok {
		list = append(list, Record{Job: id, Kind: RecordTombstone, Data: textOf(rec)})
		delete(f.tombs, id)
	}
	s := f.jobs[id]
	list = append(append(list, recordsOf(id, false, s.spec, s.r, s.keep, s.log)...), s.bad...)
	if !m.quarantine.add(id, list) {
		m.purger.idFloor = max(m.purger.idFloor, id)
		err = fmt.Errorf("%w; %w: a Snapshot will lack its records: more than %d bytes of such jobs", err, ErrLimit, maxQuarantine)
	}
	out.Quarantined = append(out.Quarantined, Quarantined{Job: id, Err: err})
}

// recordsOf returns the records of a job, sound if they were checked; what is nil has none.
func recordsOf(id jobid.ID, sound bool, spec, r, housekeeping, log []byte) []Record {
	var list []Record
	add := func(kind RecordKind, data []byte) {
		if data != nil {
			list = append(list, Record{Job: id, Kind: kind, sound: sound, Data: data})
		}
	}
	add(RecordJobspec, spec)
	add(RecordR, r)
	for line := range bytes.Lines(housekeeping) {
		add(RecordHousekeeping, line)
	}
	for line := range bytes.Lines(log) {
		add(RecordEvent, line)
	}
	return list
}

// restore fills a machine with what a Follower has. It returns the jobs with something left to do.
func (m *machine) restore(f *Follower, out *Recovered) ([]*job, error) {
	if f.scratch != nil {
		m.scratch = f.scratch
	}
	for name, status := range f.queues {
		if q := m.queues[name]; q != nil {
			*q = queue{status, status}
		} else {
			m.absent = put(m.absent, name, status)
		}
	}
	m.purger.idFloor = f.floor
	greatest := f.floor
	live := make([]*job, 0, len(f.jobs))
	for _, id := range slices.Sorted(maps.Keys(f.jobs)) {
		s := f.jobs[id]
		if len(s.log) > 0 || s.damaged != nil { // else the id was given to no job
			greatest = max(greatest, id)
		}
		if s.damaged == nil && s.unlinked {
			continue
		}
		j, rec, err := m.revive(id, s)
		if _, dead := f.tombs[id]; err == nil && rec == nil && j != nil && dead {
			m.move(j, 0)
			err = fmt.Errorf("%w: a tombstone of job %v, which has not ended", ErrInvalid, id)
		}
		switch {
		case err != nil:
			m.setAside(id, f, err, out)
		case j != nil:
			live = append(live, j)
		}
		if rec != nil {
			f.over = put(f.over, id, *rec)
		}
	}
	live = m.separate(live, f, out)
	m.restoreKeys(f)
	ev := purge.Snapshot{Watermark: m.purger.idFloor, Jobs: make([]jobstate.Summary, 0, len(f.over))}
	for _, j := range live {
		out.Time = max(out.Time, second(j.job().Last()))
		if j.state != jobstate.StateInactive {
			ev.Active = append(ev.Active, j.id)
		}
	}
	for id, rec := range f.over {
		greatest = max(greatest, id)
		out.Time = max(out.Time, second(rec.Inactive))
		ev.Jobs = append(ev.Jobs, rec)
	}
	for _, id := range slices.Sorted(maps.Keys(f.tombs)) {
		if _, over := f.over[id]; over { // its removal was cut short, and the next may leave none
			m.purger.record(Record{Job: id, Kind: RecordTombstone})
		} else {
			ev.Tombstones = append(ev.Tombstones, f.tombs[id])
		}
	}
	m.now = max(m.now, out.Time)
	ev.Now = m.now
	index, err := purge.Recover(m.purger.config(&m.cfg), ev)
	if err != nil {
		return nil, fmt.Errorf("joblife: %w", err)
	}
	m.index = index
	index.RaiseWatermark(greatest) // of quarantined and invalid jobs too; the records may not have it
	m.jobs = make(map[jobid.ID]*job, len(live))
	for _, j := range live {
		m.jobs[j.id] = j
	}
	return live, nil
}

// timeOf returns a time of the records, 0 if no clock can have shown it.
func timeOf(t eventlog.Timestamp) eventlog.Timestamp {
	if !guard.IsTime(t) || t > never {
		return 0
	}
	return t
}

// second cuts the time of an event to seconds: [Config.Distinct] makes some later than their Step.
func second(t eventlog.Timestamp) eventlog.Timestamp {
	return eventlog.Timestamp(math.Floor(float64(timeOf(t))))
}

// revive folds the log of a job, as far as its Follower did not. It returns the job if
// something is left to do for it, and the record of an inactive job.
func (m *machine) revive(id jobid.ID, s *stored) (*job, *jobstate.Summary, error) {
	if s.damaged != nil || len(s.log) == 0 { // without a log the submission was cut short: nobody knows of it
		return nil, nil, s.damaged
	}
	j := &job{id: id, text: s.spec, queue: s.queue, log: s.log, size: uint32(len(s.log)), noted: uint32(len(s.log)), housekept: len(s.keep) > 0, public: true}
	if j.housekept {
		j.ensureRare().keep = s.keep
	}
	if err := m.recover(j, s); err != nil {
		return nil, nil, err
	}
	state := j.job()
	if state.Closed() && state.State() != jobstate.StateInactive { // invalidated
		m.purger.unlinkInvalid(j)
		return nil, nil, nil
	}
	m.move(j, state.State())
	if state.State() != jobstate.StateInactive {
		return j, nil, nil
	}
	rec, _ := state.Summary()
	if j.life.Done() {
		m.move(j, 0)
		return nil, &rec, nil
	}
	return j, &rec, nil
}

// recover makes the life of a job, its jobspec if there are updates, and its queue.
func (m *machine) recover(j *job, s *stored) error {
	config := perilog.JobConfig{ID: j.id, Owner: m.cfg.Owner, Scratch: m.scratch, Distinct: m.cfg.Distinct}
	if s.life != nil && (s.set == nil || s.life.State().WasAllocated()) {
		if j.life, j.r = s.life, s.set; j.r != nil {
			config.Offline = m.offline // others learn it with alloc
		}
		if err := j.life.Resume(m.now, m.actions, config); err != nil {
			return err
		}
	} else if err := m.fold(j, s, config); err != nil {
		return err
	}
	if j.spec != nil {
		return j.respecify()
	}
	for range j.job().Updates() { // there are some
		return j.respecify()
	}
	return nil
}

// fold folds the logs of a job, and once more if there is an R but the alloc was not logged.
func (m *machine) fold(j *job, s *stored, config perilog.JobConfig) (err error) {
	if j.spec, err = jobspec.Parse(s.spec); err != nil {
		return fmt.Errorf("joblife: jobspec of %v: %w", j.id, err)
	}
	if s.r != nil {
		if j.r, err = rset.Parse(s.r); err != nil {
			return fmt.Errorf("joblife: R of %v: %w", j.id, err)
		}
		j.r = j.r.WithoutLocal()
	}
	for {
		if config.R = j.r; j.r != nil {
			config.Offline = m.offline
		}
		j.life, err = perilog.RecoverJob(m.now, m.actions, config, j.log, s.keep)
		if err != nil || j.r == nil || j.job().WasAllocated() {
			return err
		}
		j.r, config.Offline = nil, nil // somebody else may have the ranks (SM-10)
	}
}

// respecify reads the jobspec of a job, with its updates.
func (j *job) respecify() (err error) {
	if j.spec == nil {
		j.spec, err = jobspec.Parse(j.text)
	}
	if err == nil {
		j.spec, err = j.spec.UpdateAll(j.job().Updates())
	}
	if err != nil {
		return fmt.Errorf("joblife: jobspec of %v: %w", j.id, err)
	}
	j.queue = j.spec.Queue()
	j.forgetSpec()
	return nil
}

func (m *machine) resume(j *job, out *Recovered) {
	m.touch(j)
	s := j.job()
	if _, known := j.holding(); j.r != nil && (!known || bytes.Contains(j.log, []byte(`"leader":`))) { // of a configuration of before
		m.outside = put(m.outside, j.id, j)
	}
	if s.State() == jobstate.StateInactive {
		_, _ = m.index.Pin(j.id, purge.Pin{Kind: purge.PinHousekeeping}) // it was just added
		return
	}
	if s.State() == jobstate.StateNew {
		if err := m.validate(j); err != nil { // a hook put it off, or the crash came before it
			m.fault("", j.id, err)
			m.decided(j, jobstate.EventInvalidate)
			return
		}
	}
	out.Jobs = append(out.Jobs, j.id)
	switch s.State() {
	case jobstate.StateNew, jobstate.StateDepend:
		if err := m.dependencies(j); err != nil {
			m.doom(j, Raise{ID: j.id, Type: "dependency", Note: sanitizeNote(err.Error())})
		}
	case jobstate.StateSched:
		j.reranks = true
	case jobstate.StateRun, jobstate.StateCleanup:
		if !s.Released() && (s.Started() || j.life.Starting()) {
			j.handed = true
			if j.start = startSent; !s.Started() && s.State() == jobstate.StateRun {
				j.start = startAsk // until the job says that it may start
			}
		}
		if s.Started() && !s.Released() {
			out.Running = append(out.Running, j.id)
		}
	}
}

// Snapshot yields records that replace all earlier ones for [Restore]. Take it when no Ready is
// outstanding and Ready has nothing. An inactive job is one short record: its jobspec, R and log
// are the store's to keep until Ready.Unlink names it. The key scheduling of an R is in no
// snapshot. A volatile Manager yields nothing, nor does one that New made before its first Step.
func (m *Manager) Snapshot() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		if m.volatile || m.now == 0 {
			return
		}
		give := giving(yield, m.now)
		if !give(m.common()...) {
			return
		}
		for rec := range m.index.All() {
			if m.jobs[rec.ID] == nil && !give(m.keys.inactive(rec)...) {
				return
			}
		}
		jobs := m.sorted(jobstate.StateNew | jobstate.StateActive | jobstate.StateInactive)
		for _, id := range slices.Sorted(maps.Keys(m.invalid)) {
			jobs = append(jobs, m.invalid[id])
		}
		for _, j := range jobs {
			if !give(j.snapshot()...) {
				return
			}
		}
		for _, id := range slices.Sorted(maps.Keys(m.quarantine.jobs)) {
			if !give(m.quarantine.jobs[id]...) {
				return
			}
		}
	}
}

// giving returns a function that yields records of a time. It returns false when no more are wanted.
func giving(yield func(Record) bool, at eventlog.Timestamp) func(list ...Record) bool {
	return func(list ...Record) bool {
		for _, r := range list {
			r.Time, r.sound = at, r.sound || !r.Kind.holdsJSON()
			if !yield(r) {
				return false
			}
		}
		return true
	}
}

// common returns the records that are of no resident job.
func (m *machine) common() []Record {
	list := []Record{{Kind: RecordWatermark, Data: purge.AppendWatermark(nil, m.purger.idFloor)}}
	for _, name := range slices.Sorted(maps.Keys(m.queues)) {
		list = append(list, m.queues.record(name))
	}
	for _, name := range slices.Sorted(maps.Keys(m.absent)) {
		if m.queues[name] == nil {
			list = append(list, queueState{name, m.absent[name]}.record())
		}
	}
	plan, _ := m.index.Claimed() // its tombstones are durable, and count when the jobs are gone
	for _, t := range plan.Tombstones {
		list = append(list, Record{Job: t.ID, Kind: RecordTombstone, Data: textOf(t)})
	}
	for rec := range m.index.Tombstones() {
		list = append(list, Record{Job: rec.ID, Kind: RecordTombstone, Data: textOf(rec)}, Record{Job: rec.ID, Kind: RecordUnlinked})
	}
	return list
}

func (j *job) snapshot() []Record {
	var r []byte
	if j.r != nil {
		r = j.r.AppendJSON(nil)
	}
	return recordsOf(j.id, true, j.text, r, j.rareCopy().keep, j.log)
}

// separate adds what jobs hold by their records, and returns those jobs. It quarantines jobs that
// hold the same: when one ended, the resources of the other would be free.
func (m *machine) separate(live []*job, f *Follower, out *Recovered) []*job {
	for _, j := range slices.Backward(live) { // so that of several the first is named, and removed at once
		if h, ok := j.holding(); ok {
			m.allocations.add(j.id, heldOf(h))
		}
	}
	var held []alloc.HelloResponse
	for _, q := range out.Quarantined {
		if h, ok := f.jobs[q.Job].holding(q.Job); ok {
			held = append(held, h)
		}
	}
	faults := make(map[jobid.ID]error)
	for _, j := range live {
		if h, ok := j.holding(); ok {
			if err := m.allocations.conflict(j.id, heldOf(h)); err != nil {
				faults[j.id], held = err, append(held, h)
			}
		}
	}
	live = slices.DeleteFunc(live, func(j *job) bool {
		err := faults[j.id]
		if err != nil {
			m.move(j, 0)
			m.allocations.remove(j.id, j.r)
			delete(f.over, j.id)
			m.setAside(j.id, f, err, out)
		}
		return err != nil
	})
	m.addAside(held)
	slices.SortFunc(out.Quarantined, func(a, b Quarantined) int { return cmp.Compare(a.Job, b.Job) })
	for _, h := range m.quarantine.holdings {
		n, _ := slices.BinarySearchFunc(out.Quarantined, h.ID, func(q Quarantined, id jobid.ID) int { return cmp.Compare(q.Job, id) })
		out.Quarantined[n].R = h.R
	}
	return live
}

// holding returns what a job with damaged records may hold, as far as they can be read: all
// of R until the job, or its housekeeping, has freed all.
func (s *stored) holding(id jobid.ID) (h alloc.HelloResponse, ok bool) {
	r, err := rset.Parse(s.r)
	j, revoked := s.upToFault(id)
	freed := j.Closed() || j.WasAllocated() && !j.HasResources() || last(s.log).Name == jobstate.EventClean
	if freed && len(s.keep) > 0 && !revoked {
		var e jobstate.Event // without a context if it cannot be read
		_ = e.Decode(last(s.keep))
		release, ok := e.Context().(*jobstate.ReleaseContext)
		freed = ok && release.Final
	}
	if err != nil || r.IsEmpty() || freed || j.HasFlag(flagBypass) {
		return h, false
	}
	return alloc.HelloResponse{JobInfo: infoOf(j), R: r.WithoutLocal()}, true
}

// upToFault returns a job with damaged records as far as its log can be read, and whether a new
// scheduler did not take over what it held: no event says that this is free.
func (s *stored) upToFault(id jobid.ID) (j *jobstate.Job, revoked bool) {
	j = jobstate.NewJob(id)
	for line := range bytes.Lines(s.log) {
		e, err := eventlog.Parse(bytes.TrimSuffix(line, []byte("\n")))
		had := j.HasResources()
		if err == nil {
			_, err = j.Apply(e)
		}
		if err != nil {
			break
		}
		revoked = revoked || had && !j.HasResources() && e.Name == jobstate.EventException
	}
	return j, revoked
}

// last returns the last event of a log, the zero one if it cannot be read.
func last(log []byte) eventlog.Entry {
	log = bytes.TrimSuffix(log, []byte("\n"))
	e, _ := eventlog.Parse(log[bytes.LastIndexByte(log, '\n')+1:])
	return e
}

// addAside adds what quarantined jobs hold, without what other jobs hold.
func (m *machine) addAside(list []alloc.HelloResponse) {
	slices.SortFunc(list, func(a, b alloc.HelloResponse) int { return cmp.Compare(a.ID, b.ID) })
	for _, h := range list {
		if h.Submit == 0 { // it is not known, and schedulers need some time
			h.Submit = m.now
		}
		if h.R, h.Free = m.allocations.rest(h.ID, heldOf(h)), nil; !h.R.IsEmpty() {
			m.allocations.add(h.ID, h.R)
			m.quarantine.holdings = append(m.quarantine.holdings, h)
		}
	}
}
