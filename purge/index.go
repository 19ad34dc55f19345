package purge

import (
	"slices"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
)

const (
	// DefaultMaxJump is the Config.MaxJump that 0 stands for.
	DefaultMaxJump = 24 * time.Hour
	// DefaultTombstones is how many tombstones an index keeps unless
	// Config.TombstoneCount is set.
	DefaultTombstones = 100_000
)

// Config is what an [Index] is told once. The zero Config is complete.
type Config struct {
	// Active tells the state of a job that is not inactive, as "RUN", and false
	// if there is no such job. It makes errors better: an active job is not
	// unknown. Nil knows of no active jobs.
	Active func(id jobid.ID) (state string, ok bool)
	// Purged is called once for each batch that was committed, when the index
	// is up to date, before Commit returns. It may ask the index and must not
	// change it. Whoever keeps anything by job drops it here.
	Purged func(Notice)
	// MaxJump is how far a time, of a call or of a job, may be beyond the latest
	// one that was believed; 0 stands for DefaultMaxJump.
	MaxJump time.Duration
	// TombstoneCount is how many tombstones are kept; To(0) keeps none, unset
	// stands for DefaultTombstones.
	TombstoneCount Limit[int]
	// TombstoneAge is the age after which a tombstone ends, with the next batch.
	// Unset, there is none.
	TombstoneAge Limit[time.Duration]
}

// check returns a *LimitsError if something makes no sense.
func (c Config) check() error {
	if c.MaxJump < 0 {
		return &LimitsError{Key: "MaxJump", Reason: "must be 0 or more"}
	}
	if n, ok := c.TombstoneCount.Value(); ok && n < 0 {
		return &LimitsError{Key: "TombstoneCount", Reason: "must be 0 or more"}
	}
	if d, ok := c.TombstoneAge.Value(); ok && d < 0 {
		return &LimitsError{Key: "TombstoneAge", Reason: "must be 0 or more"}
	}
	return nil
}

// A Notice tells of a batch that was committed.
type Notice struct {
	Now  eventlog.Timestamp // of the plan
	Jobs []Candidate        // oldest first; the callee's to keep
}

// Counts are numbers of jobs by their results. None is of those of which the
// result is not known.
type Counts struct {
	None, Completed, Failed, Canceled, Timeout int
}

// Total returns the number of jobs.
func (c Counts) Total() int { return c.None + c.Completed + c.Failed + c.Canceled + c.Timeout }

// add counts n more jobs with a result.
func (c *Counts) add(r Result, n int) {
	switch r {
	case Completed:
		c.Completed += n
	case Failed:
		c.Failed += n
	case Canceled:
		c.Canceled += n
	case Timeout:
		c.Timeout += n
	default:
		c.None += n
	}
}

// Stats are the counts of an [Index]. Resident plus Purged grows by one with
// every job that is added, and never shrinks.
type Stats struct {
	Resident   Counts // in the index: free, pinned or leaving
	Purged     Counts // committed since the index was made
	Pinned     int    // of those resident
	Leaving    int    // of those resident
	Tombstones int
}

// noCopy makes vet complain of copies.
type noCopy struct{}

// Lock is for vet.
func (*noCopy) Lock() {}

// Unlock is for vet.
func (*noCopy) Unlock() {}

// An Index holds the inactive jobs in the order in which they became inactive.
// The zero Index is empty, has the zero Config and is ready for use. It must not
// be copied, and one goroutine at a time may use it.
type Index struct {
	_   noCopy
	cfg Config

	jobs   shelf
	free   order // those that may be purged
	pinned order
	pins   map[jobid.ID][]Pin // of the pinned ones, in their order

	tombs shelf
	ended order // all tombstones

	claims    map[uint64]claim
	lastClaim uint64
	leaving   int
	gen       uint64 // changes whenever plans may have become other ones

	clock    eventlog.Timestamp // the latest time that is believed, 0 at first
	newest   eventlog.Timestamp // the latest time known: clock, or that of a job beyond it
	epoch    uint64             // how often the clock was accepted
	high     jobid.ID           // the watermark
	durable  jobid.ID           // the watermark that the store has
	resident Counts
	purged   Counts
}

// Evidence is what a restart finds in the store.
type Evidence struct {
	// Jobs are the inactive jobs, in any order. One that is also among the
	// tombstones was being purged when the end came, and is resident.
	Jobs []Job
	// Active are the ids of all other jobs of which something is stored.
	Active []jobid.ID
	// Tombstones are the tombstones, in any order.
	Tombstones []Job
	// Watermark is the one that the store has, 0 if none.
	Watermark jobid.ID
}

// New returns an empty index. The error is a *LimitsError.
func New(cfg Config) (*Index, error) { return Recover(cfg, Evidence{}) }

// Recover returns an index of the jobs and tombstones that a restart finds. Its
// watermark is the greatest of all ids among the evidence. It costs O(n log n) for
// n jobs in any order, O(n) if they are in the order of the index.
//
// Pins are not evidence: whoever had them puts them on again before the first
// batch. Neither is the time: the latest that the index knows is that of the
// newest job, so that the first batch after a long rest is ErrClock. Who trusts
// the clock at a start says so by AcceptClock.
//
// An error is a *LimitsError, or a *JobError of category ErrJob or, if a job or
// tombstone is there twice, ErrDuplicate.
func Recover(cfg Config, ev Evidence) (*Index, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	x := &Index{cfg: cfg, gen: 1, high: ev.Watermark, durable: ev.Watermark}
	if err := fill(&x.jobs, &x.free, ev.Jobs, &table{}); err != nil {
		return nil, err
	}
	if err := fill(&x.tombs, &x.ended, ev.Tombstones, &x.jobs.byID); err != nil {
		return nil, err
	}
	for _, j := range ev.Jobs {
		x.resident.add(j.Result, 1)
		x.setClock(max(x.clock, j.Inactive))
		x.Saw(j.ID)
	}
	for _, j := range ev.Tombstones {
		x.setClock(max(x.clock, j.Inactive))
		x.Saw(j.ID)
	}
	for _, id := range ev.Active {
		x.Saw(id)
	}
	return x, nil
}

// fill puts jobs into a shelf and an order, which are empty, but for those that
// are in other. They are sorted first, so that neighbours in time are neighbours
// in memory and the tree grows at its end.
func fill(s *shelf, o *order, jobs []Job, other *table) error {
	sorted := slices.Clone(jobs)
	slices.SortFunc(sorted, compare)
	for _, j := range sorted {
		if err := j.check(); err != nil {
			return err
		}
		if _, ok := s.byID.get(j.ID); ok {
			return &JobError{ID: j.ID, Err: ErrDuplicate}
		}
		if _, ok := other.get(j.ID); !ok {
			o.add(s, s.put(j, whereFree))
		}
	}
	return nil
}

// Add takes a job that became inactive. It raises the watermark, and the latest
// time known if the job's is later; a time before that of others is no error.
// Equal times are none either. The time of a job that is more than Config.MaxJump
// after what was known is that of a clock that jumped: no time fits from then on,
// until AcceptClock says which does.
//
// An error is a *JobError of category ErrJob; ErrDuplicate or ErrLeaving if the
// job is resident; ErrPurged if it was purged and its tombstone is left.
func (x *Index) Add(j Job) error {
	if err := j.check(); err != nil {
		return err
	}
	if at, ok := x.jobs.byID.get(j.ID); ok {
		if x.jobs.where(at) == whereLeaving {
			return &JobError{ID: j.ID, Err: ErrLeaving}
		}
		return &JobError{ID: j.ID, Err: ErrDuplicate}
	}
	if at, ok := x.tombs.byID.get(j.ID); ok {
		return &JobError{ID: j.ID, Tomb: x.tombs.job(at), Err: ErrPurged}
	}
	x.free.add(&x.jobs, x.jobs.put(j, whereFree))
	x.resident.add(j.Result, 1)
	x.newest = max(x.newest, j.Inactive)
	if x.clock == 0 || !x.jumps(j.Inactive) {
		x.clock = max(x.clock, j.Inactive)
	}
	x.Saw(j.ID)
	x.gen++
	return nil
}

// Len returns the number of resident jobs.
func (x *Index) Len() int { return x.jobs.len() }

// Stats returns the counts as they are now.
func (x *Index) Stats() Stats {
	return Stats{
		Resident: x.resident, Purged: x.purged,
		Pinned: x.pinned.len(), Leaving: x.leaving, Tombstones: x.tombs.len(),
	}
}

// Lookup returns a resident job. An error is a *JobError of category ErrActive,
// ErrPurged or ErrUnknown: who waits for the job is told at once.
func (x *Index) Lookup(id jobid.ID) (Job, error) {
	at, err := x.find(id)
	if err != nil {
		return Job{}, err
	}
	return x.jobs.job(at), nil
}

// Ended returns a job that is resident or has a tombstone, which is all that a
// dependency needs. It returns false for other ids.
func (x *Index) Ended(id jobid.ID) (Job, bool) {
	if at, ok := x.jobs.byID.get(id); ok {
		return x.jobs.job(at), true
	}
	if at, ok := x.tombs.byID.get(id); ok {
		return x.tombs.job(at), true
	}
	return Job{}, false
}

// find returns the slot of a resident job, or a *JobError.
func (x *Index) find(id jobid.ID) (slot, error) {
	if at, ok := x.jobs.byID.get(id); ok {
		return at, nil
	}
	if at, ok := x.tombs.byID.get(id); ok {
		return 0, &JobError{ID: id, Tomb: x.tombs.job(at), Err: ErrPurged}
	}
	if x.cfg.Active != nil {
		if state, ok := x.cfg.Active(id); ok {
			return 0, &JobError{ID: id, State: state, Err: ErrActive}
		}
	}
	return 0, &JobError{ID: id, Err: ErrUnknown}
}

// Saw tells of an id that was handed out, and raises the watermark to it. Ids of
// jobs that are added need not be told.
func (x *Index) Saw(id jobid.ID) { x.high = max(x.high, id) }

// Watermark returns the greatest id ever seen, 0 if none. After a restart ids go
// on above it.
func (x *Index) Watermark() jobid.ID { return x.high }
