package joblife

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/rset"
)

// A Follower folds records as another Manager makes them durable, and decides nothing. So a standby
// can take over at once, and another process can make a snapshot. It keeps the text of each job
// that is not over, and a summary of each inactive one. The zero Follower is ready for use. One
// goroutine at a time uses it. It must not be copied.
type Follower struct {
	_       guard.NoCopy
	jobs    map[jobid.ID]*stored          // those that are not over, or whose records cannot be read
	over    map[jobid.ID]jobstate.Summary // inactive ones
	tombs   map[jobid.ID]jobstate.Summary
	queues  map[string]QueueStatus // of the last record of each
	keys    keys                   // only by job
	floor   jobid.ID               // ids up to it do not come back
	time    eventlog.Timestamp
	scratch *perilog.Scratch // of each stored.life
	none    perilog.Config   // without actions: never changed
}

// stored is what the records have of a job.
type stored struct {
	spec, r, log, keep []byte
	damaged            error    // a record of it cannot be read
	bad                []Record // those records
	unlinked           bool
	expires            bool // that it was unlinked may be forgotten with its tombstone
	unsound            bool // a record of it was not checked

	// What its log comes to, as long as that depends on no configuration. Else, or if there
	// is a doubt, the log is folded at the takeover.
	life   *perilog.Job
	set    *rset.R // of r
	queue  string
	cold   bool // there is a doubt
	clean  bool // the log has that event
	final  bool // housekeeping freed everything
	closes int  // how often it was looked at whether the job is over
}

const (
	usualLog  = 320 // bytes
	maxCloses = 4
)

// Add adds the next record, as for [Restore], and keeps nothing of it. A record of a job that cannot
// be read is no error, but quarantines that job at the takeover. An error is about a record that
// is of no job, and then nothing has changed.
func (f *Follower) Add(r Record) error {
	_, over := f.over[r.Job]
	switch r.Kind {
	case RecordWatermark:
		id, err := purge.ParseWatermark(r.Data)
		if err != nil {
			return err
		}
		f.floor = max(f.floor, id)
	case RecordQueue:
		var q queueState
		if err := json.Unmarshal(r.Data, &q); err != nil {
			return fmt.Errorf("joblife: queue record: %w", err)
		}
		f.queues = put(f.queues, q.Name, q.QueueStatus)
	case RecordInactive, RecordTombstone:
		f.addSummary(r)
	case RecordUnlinked:
		f.unlinked(r.Job)
	case RecordKey:
		var key submitKey
		if err := cmp.Or(json.Unmarshal(r.Data, &key), key.check()); err != nil {
			s := f.job(r.Job)
			s.damaged, s.bad = err, append(s.bad, r.Clone())
		}
		f.keys.put(r.Job, key)
	case RecordHousekeeping:
		s := f.job(r.Job)
		s.keep = append(s.keep, r.Data...)
		s.unsound = s.unsound || !r.sound
		s.cool()
		s.final = s.final || bytes.Contains(r.Data, []byte(`"final":true`))
		if over {
			s.damaged = fmt.Errorf("%w: a record of housekeeping after the end of job %v: those of housekeeping come first", ErrInvalid, r.Job)
		}
		if s.final {
			f.close(s, r.Job)
		}
	case RecordEvent, RecordJobspec, RecordR:
		if !over {
			f.addText(f.job(r.Job), r)
		}
	default:
		return fmt.Errorf("%w: record of kind %v", ErrInvalid, r.Kind)
	}
	if r.Job == 0 && r.Kind != RecordWatermark && r.Kind != RecordQueue {
		f.job(0).damaged = fmt.Errorf("%w: a record of kind %v that names no job", ErrInvalid, r.Kind)
	}
	f.time = max(f.time, timeOf(r.Time))
	return nil
}

func put[K comparable, V any](m map[K]V, key K, value V) map[K]V {
	if m == nil {
		m = make(map[K]V)
	}
	m[key] = value
	return m
}

// job returns what there is of a job, to add to it.
func (f *Follower) job(id jobid.ID) *stored {
	s := f.jobs[id]
	if s == nil {
		s = new(stored)
		f.jobs = put(f.jobs, id, s)
	}
	return s
}

// addText adds a record of a job that is not over.
func (f *Follower) addText(s *stored, r Record) {
	if s.unlinked {
		return
	}
	s.unsound = s.unsound || !r.sound
	switch r.Kind {
	case RecordEvent:
		if s.log == nil {
			f.keys.readKey(r.Job, r.Data)
			s.log = make([]byte, 0, usualLog)
		}
		s.log = append(room(s.log, len(r.Data)), r.Data...)
		f.fold(s, r.Job, r.Data)
		if s.life != nil {
			s.clean = s.life.State().State() == jobstate.StateInactive
		} else if bytes.Contains(r.Data, []byte(`"name":"`+jobstate.EventClean+`"`)) { // perhaps in a memo
			e, err := eventlog.Parse(r.Data)
			s.clean = s.clean || err == nil && e.Name == jobstate.EventClean
		}
	case RecordJobspec:
		if s.spec != nil || s.log != nil {
			s.cool()
		}
		s.spec = bytes.Clone(r.Data)
	case RecordR:
		if s.life = nil; s.r != nil { // else the log is folded once more, with it
			s.cool()
		}
		s.r = bytes.Clone(r.Data)
	}
	f.close(s, r.Job)
}

// addSummary adds what is known of a job that is over.
func (f *Follower) addSummary(r Record) {
	if r.Kind == RecordTombstone && len(r.Data) == 0 {
		delete(f.tombs, r.Job)
		if s := f.jobs[r.Job]; s != nil && s.expires {
			delete(f.jobs, r.Job)
		}
		return
	}
	var rec jobstate.Summary
	err := rec.UnmarshalText(r.Data)
	if err == nil && rec.ID != r.Job {
		err = fmt.Errorf("%w: the summary of %v", ErrInvalid, rec.ID)
	}
	switch {
	case err != nil:
		s := f.job(r.Job)
		s.damaged, s.bad = err, append(s.bad, r.Clone())
	case r.Kind == RecordInactive && f.jobs[r.Job] != nil && f.jobs[r.Job].unlinked:
	case r.Kind == RecordInactive:
		f.over = put(f.over, r.Job, rec)
		if s := f.jobs[r.Job]; s != nil && s.damaged == nil {
			delete(f.jobs, r.Job)
		}
	default:
		f.tombs = put(f.tombs, r.Job, rec)
		f.floor = max(f.floor, r.Job)
	}
}

// unlinked forgets a job. It remembers that if it has not read the job's end, since a store
// that keeps each kind apart may yield the rest later, tombstones too if there was none before.
func (f *Follower) unlinked(id jobid.ID) {
	f.floor = max(f.floor, id)
	_, over := f.over[id]
	if s := f.jobs[id]; s != nil && s.life != nil {
		over = s.life.State().Closed() // it was invalidated
	}
	delete(f.over, id)
	delete(f.keys.of, id)
	if delete(f.jobs, id); !over {
		_, dead := f.tombs[id]
		f.jobs = put(f.jobs, id, &stored{unlinked: true, expires: dead})
	}
}

// cool leaves the log to the takeover.
func (s *stored) cool() { s.life, s.set, s.cold = nil, nil, true }

// fold folds a line that the log has now.
func (f *Follower) fold(s *stored, id jobid.ID, line []byte) {
	if s.cold {
		return
	}
	if s.life == nil {
		if err := f.begin(s, id); err != nil {
			s.cool()
			return
		}
		line = s.log
	}
	if s.life.Replay(line) != nil {
		s.cool() // the takeover tells what is wrong
	}
}

// begin begins to fold the log of a job.
func (f *Follower) begin(s *stored, id jobid.ID) error {
	spec, err := jobspec.Parse(s.spec)
	if err == nil && s.r != nil {
		if s.set, err = rset.Parse(s.r); err == nil {
			s.set = s.set.WithoutLocal()
		}
	}
	if err != nil {
		return err
	}
	if f.scratch == nil {
		f.scratch = new(perilog.Scratch)
	}
	s.queue = spec.Queue()
	s.life, err = perilog.NewJob(&f.none, perilog.JobConfig{ID: id, R: s.set, Scratch: f.scratch})
	return err
}

// close reduces a job that is over to what the index needs.
func (f *Follower) close(s *stored, id jobid.ID) {
	if !s.clean || s.spec == nil || s.damaged != nil || s.closes == maxCloses {
		return // the jobspec may come later; if it does not, the takeover reports that
	}
	if len(s.keep) > 0 && !s.final && !bytes.Contains(s.log, []byte(revocation)) {
		return // housekeeping holds something, unless all was taken back
	}
	s.closes++
	var job *jobstate.Job
	switch {
	case len(s.keep) > 0:
		r, _ := rset.Parse(s.r)
		life, err := perilog.RecoverJob(0, &f.none, perilog.JobConfig{ID: id, R: r}, s.log, s.keep)
		if err != nil || !life.Done() {
			return
		}
		job = life.State()
	case s.life != nil:
		job = s.life.State()
	default:
		var err error
		if job, err = jobstate.Replay(id, s.log); err != nil {
			return // reported at the takeover
		}
	}
	if rec, ok := job.Summary(); ok {
		f.over = put(f.over, id, rec)
		delete(f.jobs, id)
	}
}

// Restore makes a Manager of all that was added, as the function [Restore] does. The Follower is
// empty then. An error says what is wrong with cfg or now, and leaves it as it is.
func (f *Follower) Restore(now time.Time, cfg Config) (*Manager, Recovered, error) {
	m, live, out, err := f.load(now, cfg)
	if err != nil {
		return nil, Recovered{}, err
	}
	for i := range m.cfg.Hooks {
		if h := &m.cfg.Hooks[i]; h.Restored != nil {
			for _, j := range live {
				if j.state != jobstate.StateInactive {
					m.call(h, j, h.Restored)
				}
			}
		}
	}
	for _, j := range live {
		m.resume(j, &out)
	}
	m.run()
	over := func(id jobid.ID) bool { j := m.jobs[id]; return j == nil || j.job().Closed() }
	out.Jobs = slices.DeleteFunc(out.Jobs, over) // a hook may have invalidated some
	out.Unresolved = slices.Collect(m.Unresolved())
	return m, out, nil
}

// load makes a Manager that has decided nothing. It returns the jobs with something left to do.
func (f *Follower) load(now time.Time, cfg Config) (m *Manager, live []*job, out Recovered, err error) {
	if cfg.Volatile {
		return nil, nil, out, fmt.Errorf("%w: a volatile Manager has no records", ErrInvalid)
	}
	if m, err = New(cfg); err != nil {
		return nil, nil, out, err
	}
	if m.clock, m.now = now, eventlog.FromTime(now); !guard.IsTime(m.now) {
		return nil, nil, out, fmt.Errorf("%w: %v", ErrClock, now)
	}
	out.Time = f.time
	m.now = max(m.now, f.time) // a clock behind the records stamps nothing before them
	if live, err = m.restore(f, &out); err != nil {
		return nil, nil, Recovered{}, err
	}
	if out.Time > eventlog.FromTime(now) {
		m.clock = notBefore(out.Time)
	}
	*f = Follower{}
	return m, live, out, nil
}

// Restore makes a Manager from the durable records of an earlier one: from all of them,
// or from a snapshot and those after it. Without records it is New. A [Follower] reads the
// records as they come, and takes over at once.
//
// The caller trusts the time now, unless it is before [Recovered.Time], and Config.Offline. The
// first Ready has what follows at once: interrupted submissions go on, and the priority of each
// job in SCHED is computed again. A job gets the event priority only if that changes it, and
// flux-restart (RFC 21) only if it has to wait in PRIORITY for an input [SetPriority]. To log
// flux-restart for each such job, as flux-core does, let [Hooks.Restored] post it. Nothing
// goes to a scheduler or an executor before it says hello.
//
// A job that cannot be read stops no other: see [Recovered.Quarantined]. The error is one
// of New, or the one with which the records ended.
func Restore(now time.Time, cfg Config, records iter.Seq2[Record, error]) (*Manager, Recovered, error) {
	f := new(Follower)
	for r, err := range records {
		if err == nil {
			err = f.Add(r)
		}
		if err != nil {
			return nil, Recovered{}, err
		}
	}
	return f.Restore(now, cfg)
}

// Snapshot yields records that replace all that were added, as [Manager.Snapshot] does: it may
// begin between any two records, and those that come later go on from it. It knows no
// configuration, so it keeps each queue, and each tombstone until a record says that it
// expired. The Follower must not change meanwhile.
func (f *Follower) Snapshot() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		if f.time == 0 && f.floor == 0 && len(f.queues)+len(f.tombs)+len(f.over)+len(f.jobs) == 0 {
			return
		}
		give := giving(yield, cmp.Or(f.time, 1)) // a line needs some time
		list := []Record{{Kind: RecordWatermark, Data: purge.AppendWatermark(nil, f.floor)}}
		for _, name := range slices.Sorted(maps.Keys(f.queues)) {
			list = append(list, queueState{name, f.queues[name]}.record())
		}
		for _, id := range slices.Sorted(maps.Keys(f.tombs)) {
			list = append(list, Record{Job: id, Kind: RecordTombstone, Data: textOf(f.tombs[id])})
		}
		if !give(list...) {
			return
		}
		for _, id := range slices.Sorted(maps.Keys(f.over)) {
			if !give(f.keys.inactive(f.over[id])...) {
				return
			}
		}
		for _, id := range slices.Sorted(maps.Keys(f.jobs)) {
			s := f.jobs[id]
			list := append(recordsOf(id, !s.unsound, s.spec, s.r, s.keep, s.log), s.bad...)
			if s.unlinked {
				list = slices.Insert(list, 0, Record{Job: id, Kind: RecordUnlinked})
			}
			if !give(list...) {
				return
			}
		}
	}
}
