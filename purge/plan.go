package purge

import (
	"slices"
	"strings"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
)

// Why says why a job goes. It is a set of the constants.
type Why uint8

// The reasons why a job goes.
const (
	ByAge   Why = 1 << iota // it is older than MaxAge
	ByCount                 // there are more than MaxCount
	ByID                    // somebody named it
)

// whyNames are the texts of the reasons, by bit.
var whyNames = [...]string{"age", "count", "id"}

// String returns the reasons, as "age,count".
func (w Why) String() string {
	var b strings.Builder
	for i, name := range whyNames {
		if w>>i&1 != 0 {
			if b.Len() > 0 {
				b.WriteByte(',')
			}
			b.WriteString(name)
		}
	}
	return b.String()
}

// A Candidate is a job that a plan removes.
type Candidate struct {
	Job
	Why Why
}

// A Kept is a job that would go, were it not for its pins.
type Kept struct {
	Job
	Pins []Pin // in their order
}

// A Plan says which jobs go. It is a value, refers to nothing in the index, and
// does nothing by itself: who drops it has had a dry run.
type Plan struct {
	// Now is the time that the plan was made for.
	Now eventlog.Timestamp
	// Jobs are those that go, oldest first.
	Jobs []Candidate
	// Pinned are those that stay although they are older, oldest first, at most
	// as many as a batch has; MorePinned tells that there are others. Where More
	// is false, they are all that would go, were they not pinned.
	Pinned     []Kept
	MorePinned bool
	// More tells that other jobs follow: they would go, too, but the batch is
	// full.
	More bool
	// Watermark is to be durable BEFORE any of the jobs is removed from the
	// store, if NeedsWatermark says so.
	Watermark      jobid.ID
	NeedsWatermark bool
	// Tombstones are those of the jobs that remain when the jobs are gone,
	// and Expired are the older tombstones that end with this batch; both are
	// oldest first. Only Claim fills them.
	Tombstones []Job
	Expired    []jobid.ID

	limits Limits
	byID   bool
	gen    uint64 // that of the index when the plan was made
	epoch  uint64 // that of the index's clock when the plan was made
	claim  uint64 // the number of the claim, 0 before Claim
}

// IDs returns the ids of the jobs that go, oldest first.
func (p Plan) IDs() []jobid.ID {
	ids := make([]jobid.ID, len(p.Jobs))
	for i, c := range p.Jobs {
		ids[i] = c.ID
	}
	return ids
}

// A rule says, of a job and of how many there are, whether the job goes.
type rule struct {
	now      eventlog.Timestamp
	limits   Limits
	resident int // how many jobs there are now
}

// rule returns the rule of some limits. Jobs that are leaving do not count: they
// are as good as gone.
func (x *Index) rule(now eventlog.Timestamp, l Limits) rule {
	return rule{now, l, x.free.len() + x.pinned.len()}
}

// why returns why a job goes when gone jobs have gone before it, 0 if it stays.
// In the order of jobs, once one stays all others do: none of them is older, and
// no fewer have gone.
func (r *rule) why(t eventlog.Timestamp, gone int) Why {
	if d, ok := r.limits.MinAge.Value(); ok && seconds(r.now, t) < d.Seconds() {
		return 0
	}
	var w Why
	if d, ok := r.limits.MaxAge.Value(); ok && older(r.now, t, d) {
		w |= ByAge
	}
	if n, ok := r.limits.MaxCount.Value(); ok && r.resident-gone > n {
		w |= ByCount
	}
	return w
}

// Plan returns which jobs go by the limits. It changes nothing: it is the dry run
// of a purge. Without a limit set nothing goes; see [PurgeAll].
//
// An error is a *LimitsError or a *ClockError. Plan costs O(log n) and what it
// returns, and allocates only that.
func (x *Index) Plan(now eventlog.Timestamp, l Limits) (Plan, error) {
	if err := l.check(); err != nil {
		return Plan{}, err
	}
	if err := x.checkClock(now); err != nil {
		return Plan{}, err
	}
	p := x.plan(now, l, l.batch())
	x.addPinned(&p, l.batch())
	x.setWatermark(&p)
	return p, nil
}

// plan returns which jobs go by the limits, at most batch.
func (x *Index) plan(now eventlog.Timestamp, l Limits, batch int) Plan {
	p := Plan{Now: now, limits: l, gen: x.gen, epoch: x.epoch}
	r := x.rule(now, l)
	x.free.each(func(at slot) bool {
		j := x.jobs.job(at)
		why := r.why(j.Inactive, len(p.Jobs))
		if why == 0 {
			return false
		}
		if len(p.Jobs) == batch {
			p.More = true
			return false
		}
		if p.Jobs == nil && batch <= MaxBatch {
			p.Jobs = make([]Candidate, 0, min(batch, x.free.len()))
		}
		p.Jobs = append(p.Jobs, Candidate{j, why})
		return true
	})
	return p
}

// addPinned adds the pinned jobs that would go in front of or among the jobs of
// the plan, at most batch, and after them if no job of another batch follows.
func (x *Index) addPinned(p *Plan, batch int) {
	r := x.rule(p.Now, p.limits)
	gone := 0
	x.pinned.each(func(at slot) bool {
		j := x.jobs.job(at)
		for gone < len(p.Jobs) && less(p.Jobs[gone].Job, j) {
			gone++
		}
		if p.More && gone == len(p.Jobs) || r.why(j.Inactive, gone) == 0 {
			return false
		}
		if len(p.Pinned) == batch {
			p.MorePinned = true
			return false
		}
		p.Pinned = append(p.Pinned, Kept{j, x.Pins(j.ID)})
		return true
	})
}

// setWatermark says whether the watermark has to be stored before the jobs of the
// plan are removed. It has if an id among them is greater than what is stored. It
// is the watermark that is stored then, not the id: that is mostly far greater, so
// that the batches after this one need no record.
func (x *Index) setWatermark(p *Plan) {
	p.Watermark, p.NeedsWatermark = 0, false
	for _, c := range p.Jobs {
		if c.ID > x.durable {
			p.Watermark, p.NeedsWatermark = x.high, true
			return
		}
	}
}

// PlanIDs returns a plan of the jobs with the given ids, whatever their age. Ids
// that are given twice count once. It is all or none: if one job can not be
// purged, the error tells of the first such, and is a *JobError of category
// ErrUnknown, ErrActive, ErrPurged, ErrPinned or ErrLeaving. More than MaxBatch
// ids are an *ExcessError, and a now that is no time is a *ClockError; otherwise
// the clock does not matter: no tombstone ends by a now beyond the latest time
// known. It costs O(1) per id and what sorting them does.
func (x *Index) PlanIDs(now eventlog.Timestamp, ids ...jobid.ID) (Plan, error) {
	if len(ids) > MaxBatch {
		return Plan{}, &ExcessError{What: "ids", Got: len(ids), Limit: MaxBatch}
	}
	if !isTime(now) {
		return Plan{}, &ClockError{Now: now, Last: x.newest}
	}
	p := Plan{Now: now, byID: true, gen: x.gen, Jobs: make([]Candidate, 0, len(ids))}
	for _, id := range ids {
		at, err := x.find(id)
		if err != nil {
			return Plan{}, err
		}
		switch x.jobs.where(at) {
		case wherePinned:
			return Plan{}, &JobError{ID: id, Pins: x.Pins(id), Err: ErrPinned}
		case whereLeaving:
			return Plan{}, &JobError{ID: id, Err: ErrLeaving}
		}
		p.Jobs = append(p.Jobs, Candidate{x.jobs.job(at), ByID})
	}
	slices.SortFunc(p.Jobs, func(a, b Candidate) int { return compare(a.Job, b.Job) })
	p.Jobs = slices.Compact(p.Jobs)
	x.setWatermark(&p)
	return p, nil
}
