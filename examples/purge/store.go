package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/purge/dirstore"
)

// A found is a store, and what a restart finds in it.
type found struct {
	store    purge.Store
	close    func() error
	active   map[jobid.ID]string // the states of the jobs that have not ended
	evidence purge.Evidence
	how      string // the jobs came here
}

// openStore returns made-up jobs in memory, or the jobs of a directory, which is
// filled if it is new.
func openStore(o options, stderr io.Writer) (found, error) {
	if o.dir == "" {
		jobs, active, err := draw(o.jobs, o.seed, stderr)
		// Active is in any order: only the greatest id counts.
		ev := purge.Evidence{Jobs: jobs, Active: slices.Collect(maps.Keys(active))}
		return found{&memory{}, func() error { return nil }, active, ev, "made up"}, err
	}
	how := "read"
	store, err := dirstore.Open(o.dir, dirstore.Options{})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, dirstore.ErrNotStore) {
		if store, err = dirstore.Create(o.dir, dirstore.Options{}); err == nil {
			how = "written and read"
			err = fillDir(store, o, stderr)
		}
	}
	if err != nil {
		return found{}, errors.Join(err, closeDir(store))
	}
	f, err := readDir(store, stderr)
	if err != nil {
		return found{}, errors.Join(err, closeDir(store))
	}
	f.how = how
	return f, nil
}

// closeDir closes a store if there is one.
func closeDir(s *dirstore.Store) error {
	if s == nil {
		return nil
	}
	return s.Close()
}

// fillDir writes made-up jobs into a store.
func fillDir(s *dirstore.Store, o options, stderr io.Writer) error {
	jobs, active, err := draw(o.jobs, o.seed, stderr)
	if err != nil {
		return err
	}
	bar := newProgress(stderr, "writing", len(jobs))
	defer bar.done()
	for i, j := range jobs {
		bar.show(i)
		log, err := logOf(j)
		if err != nil {
			return err
		}
		if err := s.Add(dirstore.Job{ID: j.ID, Eventlog: log}); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(active)) {
		log, err := activeLog(id, active[id])
		if err != nil {
			return err
		}
		if err := s.Add(dirstore.Job{ID: id, Eventlog: log}); err != nil {
			return err
		}
	}
	return nil
}

// An event is one of a made-up life.
type event struct{ name, context string }

// life is the life of a job that succeeds.
var life = []event{
	{jobstate.EventSubmit, `{"userid":5588,"urgency":16,"flags":0,"version":1}`},
	{jobstate.EventValidate, ""},
	{jobstate.EventDepend, ""},
	{jobstate.EventPriority, `{"priority":16}`},
	{jobstate.EventAlloc, ""},
	{jobstate.EventStart, ""},
	{jobstate.EventFinish, `{"status":0}`},
	{jobstate.EventRelease, `{"ranks":"all","final":true}`},
	{jobstate.EventFree, ""},
	{jobstate.EventClean, ""},
}

// activeLog returns a log that leads to a state.
func activeLog(id jobid.ID, name string) ([]byte, error) {
	at := eventlog.FromTime(id.Time(epoch))
	for _, state := range activeStates {
		if state.name == name {
			return newLog(life[:state.events], at, at)
		}
	}
	return nil, nil
}

// logOf returns a log by which a job ended as it did.
func logOf(j purge.Job) ([]byte, error) {
	events := slices.Clone(life)
	const started, finish = 6, 6 // events before, and index
	switch {
	case !j.Ran: // canceled in SCHED
		events = append(events[:4:4], event{jobstate.EventException, `{"type":"cancel","severity":0,"note":""}`}, life[len(life)-1])
		return newLog(events, eventlog.FromTime(j.ID.Time(epoch)), j.Inactive)
	case j.Result == purge.Failed:
		events[finish].context = `{"status":256}`
	case j.Result == purge.Canceled, j.Result == purge.Timeout:
		kind := map[purge.Result]string{purge.Canceled: "cancel", purge.Timeout: "timeout"}[j.Result]
		events[finish].context = `{"status":15}`
		events = slices.Insert(events, started, event{jobstate.EventException, `{"type":"` + kind + `","severity":0,"note":""}`})
	}
	return newLog(events, eventlog.FromTime(j.ID.Time(epoch)), j.Inactive)
}

// newLog returns a log of events: up to start, or an exception, all happens at
// once, and the rest at the end.
func newLog(events []event, begin, end eventlog.Timestamp) ([]byte, error) {
	var log []byte
	at := begin
	for _, e := range events {
		if e.name == jobstate.EventException || e.name == jobstate.EventFinish {
			at = end
		}
		var err error
		if log, err = eventlog.AppendEntry(log, eventlog.Entry{Timestamp: at, Name: e.name, Context: []byte(e.context)}); err != nil {
			return nil, err
		}
	}
	return log, nil
}

// readDir does what a restart does: it folds each log into a job, which is
// inactive or not. A job that can not be read is told and left alone. The
// watermark of a directory covers the ids of those, and of active jobs.
func readDir(s *dirstore.Store, stderr io.Writer) (found, error) {
	f := found{store: s, close: s.Close, active: map[jobid.ID]string{}}
	f.evidence.Watermark = s.Watermark()
	for stored, err := range s.Jobs() {
		var quarantine *dirstore.JobError
		switch {
		case errors.As(err, &quarantine):
			fmt.Fprintln(stderr, "purge: passed over:", err)
			continue
		case err != nil:
			return f, err
		}
		j, err := jobstate.Replay(stored.ID, stored.Eventlog)
		if err != nil {
			fmt.Fprintln(stderr, "purge: passed over:", err)
			continue
		}
		since, _ := j.Since()
		result, ended := j.Result()
		if j.State() != jobstate.StateInactive || !ended {
			f.active[j.ID()] = j.State().String()
			continue
		}
		f.evidence.Jobs = append(f.evidence.Jobs, purge.Job{ID: j.ID(), Inactive: since, Result: purge.Result(result), Ran: j.Started()})
	}
	for tomb, err := range s.Tombstones() {
		if err != nil {
			return f, err
		}
		f.evidence.Tombstones = append(f.evidence.Tombstones, tomb)
	}
	return f, nil
}

// memory is the store: where the data of the jobs would be it counts. What a
// store has to do is in package purge; here nothing survives the process.
type memory struct {
	watermark  jobid.ID
	tombstones int // put
	unlinked   int // jobs
}

var _ purge.Store = (*memory)(nil)

// PutWatermark never lowers the watermark.
func (m *memory) PutWatermark(_ context.Context, id jobid.ID) error {
	m.watermark = max(m.watermark, id)
	return nil
}

// PutTombstones counts: the index has its own.
func (m *memory) PutTombstones(_ context.Context, put []purge.Job, _ []jobid.ID) error {
	m.tombstones += len(put)
	return nil
}

// Unlink checks what the library promises: no id goes that is not covered by
// the watermark, or else it could come back.
func (m *memory) Unlink(_ context.Context, ids []jobid.ID) error {
	for _, id := range ids {
		if id > m.watermark {
			return fmt.Errorf("%v is above the watermark %v", id, m.watermark)
		}
	}
	m.unlinked += len(ids)
	return nil
}
