package purge

import (
	"slices"
	"strings"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate/jobid"
)

// Reason says why a job is purged. It is a bit set of the constants.
type Reason uint8

// The reasons why a job is purged.
const (
	ReasonAge   Reason = 1 << iota // it is older than MaxAge
	ReasonCount                    // there are more than MaxCount
	ReasonID                       // its id was given
)

// reasonNames are the texts of the reasons, by bit.
var reasonNames = [...]string{"age", "count", "id"}

// String returns the reasons, such as "age,count".
func (r Reason) String() string {
	var b strings.Builder
	for i, name := range reasonNames {
		if r>>i&1 != 0 {
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
	Record
	Reason Reason
}

// Pinned is a job that would be purged if it had no pins.
type Pinned struct {
	Record
	Pins []Pin // in their order
}

// A Plan says which jobs to purge. It is a value and refers to nothing in the
// index. A plan that is not claimed is a dry run.
type Plan struct {
	// Now is the time that the plan was made for.
	Now eventlog.Timestamp
	// Jobs are the jobs to purge, oldest first.
	Jobs []Candidate
	// More says that the batch is full and other jobs are due.
	More bool
	// Pinned are jobs that would be purged if they had no pins, oldest first, at
	// most as many as a batch has. If More is set, there may be others.
	Pinned []Pinned
	// If NeedsWatermark is set, make Watermark durable BEFORE you remove a job
	// from the store.
	Watermark      jobid.ID
	NeedsWatermark bool
	// Make Tombstones durable BEFORE you remove the jobs from the store. Expired
	// are the older tombstones that expire with this plan. Both are oldest first.
	// Claim fills them in.
	Tombstones []Record
	Expired    []jobid.ID

	limits Limits
	byID   bool
	gen    uint64 // the index had it when the plan was made
	claim  uint64 // the number of the claim, 0 before Claim
	slots  []slot // where the jobs were, in the order of Jobs: spares finding them
	tombs  int    // how many tombstones come with the plan: the last of its jobs
	ends   []slot // where the expired tombstones are
}

// IDs returns the ids of Plan.Jobs, oldest first.
func (p Plan) IDs() []jobid.ID {
	ids := make([]jobid.ID, len(p.Jobs))
	for i, c := range p.Jobs {
		ids[i] = c.ID
	}
	return ids
}

// without returns the plan without some of its jobs.
func (p Plan) without(ids []jobid.ID) Plan {
	if len(ids) > 0 {
		p.Jobs = slices.DeleteFunc(slices.Clone(p.Jobs), func(c Candidate) bool { return slices.Contains(ids, c.ID) })
		p.Tombstones = slices.DeleteFunc(slices.Clone(p.Tombstones), func(r Record) bool { return slices.Contains(ids, r.ID) })
	}
	return p
}

// A rule says whether a job goes.
type rule struct {
	now      eventlog.Timestamp
	limits   Limits
	resident int // how many jobs there are now
}

// rule returns the rule of some limits. Jobs that are leaving do not count.
func (x *Index) rule(now eventlog.Timestamp, l Limits) rule {
	return rule{now, l, x.Len() - x.leaving}
}

// reason returns why a job goes when gone jobs have gone before it, 0 if it stays.
// Once a job stays, all later ones do: they are not older, and no more jobs go
// before them.
func (r *rule) reason(t eventlog.Timestamp, gone int) Reason {
	l := &r.limits
	if l.MinAge.Set && float64(r.now)-float64(t) < l.MinAge.Value.Seconds() {
		return 0
	}
	var why Reason
	if l.MaxAge.Set && older(r.now, t, l.MaxAge.Value) {
		why |= ReasonAge
	}
	if l.MaxCount.Set && r.resident-gone > l.MaxCount.Value {
		why |= ReasonCount
	}
	return why
}

// Plan returns which jobs the limits would purge at the time now. It changes
// nothing: it is a dry run. The error has category ErrLimits or ErrClock. Plan
// takes O(log n) plus the size of the result.
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
	p := Plan{Now: now, limits: l, gen: x.gen}
	r := x.rule(now, l)
	x.free.each(func(at slot) bool {
		j := x.jobs.record(at)
		why := r.reason(j.Inactive, len(p.Jobs))
		if why == 0 {
			return false
		}
		if len(p.Jobs) == batch {
			p.More = true
			return false
		}
		if p.Jobs == nil && batch <= MaxBatch {
			n := min(batch, x.free.len())
			p.Jobs, p.slots = make([]Candidate, 0, n), make([]slot, 0, n)
		}
		p.Jobs, p.slots = append(p.Jobs, Candidate{j, why}), append(p.slots, at)
		return true
	})
	return p
}

// addPinned adds the pinned jobs that would go before or among the jobs of the
// plan, at most batch, and those after them if no other batch follows.
func (x *Index) addPinned(p *Plan, batch int) {
	r := x.rule(p.Now, p.limits)
	gone := 0
	x.pinned.each(func(at slot) bool {
		j := x.jobs.record(at)
		for gone < len(p.Jobs) && less(p.Jobs[gone].Record, j) {
			gone++
		}
		if p.More && gone == len(p.Jobs) || r.reason(j.Inactive, gone) == 0 || len(p.Pinned) == batch {
			return false
		}
		p.Pinned = append(p.Pinned, Pinned{j, x.Pins(j.ID)})
		return true
	})
}

// setWatermark says whether the watermark has to be stored before the jobs of the
// plan are removed: if an id among them is greater than what is stored. What is
// stored then is the greatest id of all, so that the next batches need no record.
func (x *Index) setWatermark(p *Plan) {
	p.Watermark, p.NeedsWatermark = 0, false
	for _, c := range p.Jobs {
		if c.ID > x.durable {
			p.Watermark, p.NeedsWatermark = x.high, true
			return
		}
	}
}

// PlanIDs returns a plan of the jobs with the given ids, whatever the limits. An
// id that appears twice counts once. It plans all of them or none: the error is
// a *JobError of the first job that cannot be purged, of category ErrUnknown,
// ErrActive, ErrPurged, ErrPinned or ErrLeaving. The error is ErrExcess for more
// than MaxBatch ids, and ErrClock if now is not a valid time; otherwise the
// clock does not matter. It takes O(1) for each id, and sorts them.
func (x *Index) PlanIDs(now eventlog.Timestamp, ids ...jobid.ID) (Plan, error) {
	if len(ids) > MaxBatch {
		return Plan{}, excess("ids", len(ids), MaxBatch)
	}
	if !guard.IsTime(now) {
		return Plan{}, clockError(now, x.clock)
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
		p.Jobs = append(p.Jobs, Candidate{x.jobs.record(at), ReasonID})
	}
	slices.SortFunc(p.Jobs, func(a, b Candidate) int { return compare(a.Record, b.Record) })
	p.Jobs = slices.Compact(p.Jobs)
	x.setWatermark(&p)
	return p, nil
}
