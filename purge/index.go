package purge

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/google/btree"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

const defaultTombstones = 10_000

// Config configures an [Index]. The zero Config is valid.
type Config struct {
	// Active returns the state of a job that is not inactive, and false if there
	// is no such job. nil means that no job is active.
	Active func(id jobid.ID) (jobstate.State, bool)
	// TombstoneCount is how many tombstones are kept; the oldest expire first.
	// Unset means 10,000, since dependencies name recent jobs.
	TombstoneCount jobstate.Optional[int]
	// TombstoneAge is the age at which a tombstone expires; the next batch
	// removes it. Unset means that tombstones do not expire by age.
	TombstoneAge jobstate.Optional[time.Duration]
}

func (c Config) check() error {
	return cmp.Or(notNegative("TombstoneCount", c.TombstoneCount.Value), notNegative("TombstoneAge", c.TombstoneAge.Value))
}

// ResultCounts are numbers of jobs by result: Completed, Failed, Canceled, Timeout, or
// Unknown.
type ResultCounts struct {
	Unknown, Completed, Failed, Canceled, Timeout int
}

// Total returns the number of jobs.
func (c ResultCounts) Total() int { return c.Unknown + c.Completed + c.Failed + c.Canceled + c.Timeout }

// add counts n more jobs with a result.
func (c *ResultCounts) add(r jobstate.Result, n int) {
	*[...]*int{&c.Unknown, &c.Completed, &c.Failed, &c.Canceled, &c.Timeout}[place(r)] += n
}

// Stats are the counts of an [Index]. Resident plus Purged grows by one with every
// job that is added, and never shrinks. After a restart Purged begins at 0;
// Tombstones counts what was purged before.
type Stats struct {
	Resident   ResultCounts // in the index
	Purged     ResultCounts // since the index was made
	Pinned     int          // of those resident
	Leaving    int          // of those resident
	Stuck      int          // of those resident: the store could not remove them last time
	Tombstones ResultCounts
}

// An Index holds the inactive jobs in the order in which they became inactive. The zero
// Index is empty and ready for use. It must not be copied.
type Index struct {
	_   guard.NoCopy
	cfg Config

	jobs   table
	free   order // the jobs that may be purged
	pinned order
	pins   map[jobid.ID][]Pin // of the pinned ones, in their order

	retries map[jobid.ID]retry // of the jobs that the store could not remove last time
	waiting *btree.BTreeG[retry]

	ended order // the tombstones

	batch *batch // what the store is removing; nil if nothing is

	clock    eventlog.Timestamp // the last time that the index was told, 0 at first
	high     jobid.ID           // the watermark
	resident ResultCounts
	purged   ResultCounts
	buried   ResultCounts // of the tombstones
}

// Snapshot is what a restart finds in the store.
type Snapshot struct {
	// Now is the current time by a clock that the caller trusts, however long the process
	// was down. 0 means the newest time of the jobs and tombstones. If that time is wrong,
	// or more than a week ago, every time is ErrClock until AcceptClock.
	Now eventlog.Timestamp
	// Jobs are the inactive jobs, in any order. A job that is also in
	// Tombstones was being purged when the process ended; it is resident.
	Jobs []jobstate.Summary
	// Active are the ids of all other jobs that the store has.
	Active []jobid.ID
	// Tombstones are the tombstones, in any order.
	Tombstones []jobstate.Summary
	// Watermark is the watermark in the store; 0 if there is none.
	Watermark jobid.ID
}

// New returns an empty index. It returns an error if cfg makes no sense.
func New(cfg Config) (*Index, error) { return Recover(cfg, Snapshot{}) }

// Recover returns an index of what a restart finds. Its watermark is the greatest id in ev.
// For n jobs it takes O(n log n), or O(n) if they are in the order of the index. Pins are
// not stored: their owners pin the jobs again before the first batch.
//
// The error has category ErrClock if Snapshot.Now is neither 0 nor a valid time. Another
// error names a record that is not valid, or is there twice.
func Recover(cfg Config, ev Snapshot) (*Index, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if ev.Now != 0 && !guard.IsTime(ev.Now) {
		return nil, clockError(ev.Now, 0)
	}
	x := &Index{cfg: cfg, high: ev.Watermark}
	if err := x.fill(&x.free, whereFree, &x.resident, ev.Jobs); err != nil {
		return nil, err
	}
	if err := x.fill(&x.ended, wherePurged, &x.buried, ev.Tombstones); err != nil {
		return nil, err
	}
	for _, id := range ev.Active {
		x.RaiseWatermark(id)
	}
	if ev.Now != 0 {
		x.clock = ev.Now
	}
	return x, nil
}

// fill puts records into the table and an order, which is empty, sorted: so neighbors in time
// are neighbors in memory. It notes their ids and times. The tombstone of a resident job is left out.
func (x *Index) fill(o *order, where meta, counts *ResultCounts, records []jobstate.Summary) error {
	sorted := slices.Clone(records)
	slices.SortFunc(sorted, compare)
	for _, r := range sorted {
		if err := check(r); err != nil {
			return err
		}
		x.RaiseWatermark(r.ID)
		x.clock = max(x.clock, r.Inactive)
		if at, ok := x.jobs.byID[r.ID]; ok {
			if x.jobs.where(at) != where {
				continue
			}
			return jobError(r.ID, errDuplicate, "")
		}
		o.add(&x.jobs, x.jobs.put(r, where))
		counts.add(r.Result, 1)
	}
	return nil
}

// Add takes a job that became inactive, and raises the watermark to its id. A job whose time
// is ahead of the clock delays no other; age purges it after that time, PlanIDs at once. Add
// costs O(log n).
//
// It returns an error if the record is not valid or the job is resident, of category
// ErrPurged if it has a tombstone.
func (x *Index) Add(r jobstate.Summary) error {
	if err := check(r); err != nil {
		return err
	}
	if at, ok := x.jobs.byID[r.ID]; ok {
		if x.jobs.where(at) == wherePurged {
			return purgedError(x.jobs.record(at))
		}
		return jobError(r.ID, errDuplicate, "")
	}
	x.free.add(&x.jobs, x.jobs.put(r, whereFree))
	x.resident.add(r.Result, 1)
	x.RaiseWatermark(r.ID)
	return nil
}

// Len returns the number of resident jobs.
func (x *Index) Len() int { return x.jobs.len() - x.ended.len() }

// Tombstones yields the tombstones, oldest first. The index must not change meanwhile.
func (x *Index) Tombstones() iter.Seq[jobstate.Summary] {
	return func(yield func(jobstate.Summary) bool) {
		x.ended.each(func(at slot) bool { return yield(x.jobs.record(at)) })
	}
}

// All yields the resident jobs, oldest first, also those that are pinned, leaving or stuck.
// The index must not change meanwhile. All takes memory for the jobs that cannot be purged now.
func (x *Index) All() iter.Seq[jobstate.Summary] {
	return func(yield func(jobstate.Summary) bool) { x.all(yield) }
}

func (x *Index) all(yield func(jobstate.Summary) bool) {
	rest := make([]slot, 0, x.Len()-x.free.len())
	x.pinned.each(func(at slot) bool {
		rest = append(rest, at)
		return true
	})
	if x.batch != nil {
		for _, c := range x.batch.Jobs {
			rest = append(rest, x.jobs.byID[c.ID])
		}
	}
	for id := range x.retries {
		if at := x.jobs.byID[id]; x.jobs.where(at) == whereWaiting {
			rest = append(rest, at)
		}
	}
	slices.SortFunc(rest, func(a, b slot) int { return compare(x.jobs.record(a), x.jobs.record(b)) })
	x.jobs.merge(rest, &x.free, func(at slot) bool { return yield(x.jobs.record(at)) })
}

// Stats returns the counts. It costs O(1).
func (x *Index) Stats() Stats {
	return Stats{
		Resident: x.resident, Purged: x.purged, Pinned: x.pinned.len(),
		Leaving: x.leaving(), Stuck: len(x.retries), Tombstones: x.buried,
	}
}

// Lookup returns a resident job, and false for other ids. It costs O(1).
func (x *Index) Lookup(id jobid.ID) (jobstate.Summary, bool) {
	at, ok := x.jobs.job(id)
	if !ok {
		return jobstate.Summary{}, false
	}
	return x.jobs.record(at), true
}

// Ended is Lookup for a job that is resident or has a tombstone, as for a dependency.
func (x *Index) Ended(id jobid.ID) (jobstate.Summary, bool) {
	at, ok := x.jobs.byID[id]
	if !ok {
		return jobstate.Summary{}, false
	}
	return x.jobs.record(at), true
}

// find returns the slot of a resident job, or why there is none.
func (x *Index) find(id jobid.ID) (slot, error) {
	if at, ok := x.jobs.job(id); ok {
		return at, nil
	}
	if tomb, ok := x.Ended(id); ok {
		return 0, purgedError(tomb)
	}
	if x.cfg.Active != nil {
		if state, ok := x.cfg.Active(id); ok {
			return 0, jobError(id, ErrActive, ": "+state.String())
		}
	}
	return 0, jobError(id, ErrUnknown, "")
}

// RaiseWatermark raises the watermark to an id that was handed out; Add does so itself.
func (x *Index) RaiseWatermark(id jobid.ID) { x.high = max(x.high, id) }

// Watermark returns the greatest id that the index knows of; 0 if there is none. Hand out
// only greater ids after a restart.
func (x *Index) Watermark() jobid.ID { return x.high }
