package purge

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
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

// String returns the reasons, such as "age,count".
func (r Reason) String() string {
	var names []string
	for i, name := range [...]string{"age", "count", "id"} {
		if r>>i&1 != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// A Candidate is a job that a plan removes.
type Candidate struct {
	jobstate.Summary
	Reason Reason
}

// Pinned is a job that would be purged if it had no pins.
type Pinned struct {
	jobstate.Summary
	Pins []Pin // in their order
}

// A Plan says which jobs to purge. It is a value and refers to nothing in the index.
type Plan struct {
	// Jobs are the jobs to purge, oldest first.
	Jobs []Candidate
	// More says that the batch is full and other jobs are due.
	More bool
	// Pinned are jobs that would be purged if they had no pins, oldest first. There may be
	// others if More is set, or if these are as many as a batch has. A claimed plan has none.
	Pinned []Pinned

	// The rest is of a claimed plan.

	// Make Watermark, the greatest id of Jobs, durable BEFORE you remove a job from the
	// store: ids up to it do not come back. Lower ids than the greatest that is known may
	// still be on their way here.
	Watermark jobid.ID
	// Make Tombstones durable BEFORE you remove the jobs from the store. Expired are the
	// older tombstones that expire with this plan. Both are oldest first.
	Tombstones []jobstate.Summary
	Expired    []jobid.ID
}

// IDs returns the ids of Plan.Jobs, oldest first.
func (p Plan) IDs() []jobid.ID {
	ids := make([]jobid.ID, len(p.Jobs))
	for i, c := range p.Jobs {
		ids[i] = c.ID
	}
	return ids
}

func (p Plan) without(failed map[jobid.ID]error) Plan {
	if len(failed) > 0 {
		p.Jobs = slices.DeleteFunc(slices.Clone(p.Jobs), func(c Candidate) bool { return failed[c.ID] != nil })
		p.Tombstones = slices.DeleteFunc(slices.Clone(p.Tombstones), func(r jobstate.Summary) bool { return failed[r.ID] != nil })
	}
	return p
}

// reason returns why a job that ended at t goes when gone jobs have gone before it, 0 if it
// stays. Once a job stays, all later ones do: they are not older, and no more jobs go before them.
func (x *Index) reason(now, t eventlog.Timestamp, l *Limits, gone int) Reason {
	if l.MinAge.Set && float64(now)-float64(t) < l.MinAge.Value.Seconds() {
		return 0
	}
	var why Reason
	if l.MaxAge.Set && older(now, t, l.MaxAge.Value) {
		why |= ReasonAge
	}
	if l.MaxCount.Set && x.staying()-gone > l.MaxCount.Value {
		why |= ReasonCount
	}
	return why
}

// staying returns how many jobs there are; those that are leaving do not count.
func (x *Index) staying() int { return x.Len() - x.leaving() }

// Plan returns which jobs the limits would purge at the time now. It changes nothing: it
// is a dry run. It returns an error for limits that make no sense, or of category ErrClock.
// Plan takes O(log n) plus the size of the result.
func (x *Index) Plan(now eventlog.Timestamp, l Limits) (Plan, error) {
	if err := cmp.Or(l.check(), x.checkClock(now)); err != nil {
		return Plan{}, err
	}
	p := x.plan(now, l)
	x.addPinned(&p, now, l)
	return p, nil
}

// plan returns which jobs go by the limits.
func (x *Index) plan(now eventlog.Timestamp, l Limits) (p Plan) {
	batch := l.batch()
	x.free.each(func(at slot) bool {
		j := x.jobs.record(at)
		why := x.reason(now, j.Inactive, &l, len(p.Jobs))
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

// addPinned adds the pinned jobs that would go before or among the jobs of the plan, at most
// a batch, and those after them if no other batch follows.
func (x *Index) addPinned(p *Plan, now eventlog.Timestamp, l Limits) {
	gone := 0
	x.pinned.each(func(at slot) bool {
		j := x.jobs.record(at)
		for gone < len(p.Jobs) && compare(p.Jobs[gone].Summary, j) < 0 {
			gone++
		}
		if p.More && gone == len(p.Jobs) || x.reason(now, j.Inactive, &l, gone) == 0 || len(p.Pinned) == l.batch() {
			return false
		}
		p.Pinned = append(p.Pinned, Pinned{j, x.Pins(j.ID)})
		return true
	})
}

// Due returns when to look at the limits again: when they purge the next job, a job that
// failed is tried again, or the index must be told the time. -Inf means now, because of
// MaxCount. It is +Inf without MaxAge and MaxCount. It takes O(log n).
func (x *Index) Due(l Limits) eventlog.Timestamp {
	at := eventlog.Timestamp(math.Inf(1))
	if !l.MaxAge.Set && !l.MaxCount.Set {
		return at
	}
	at = x.clock + eventlog.Timestamp(maxJump.Seconds()/7)
	if x.waiting != nil && x.waiting.Len() > 0 {
		r, _ := x.waiting.Min()
		at = min(at, r.at)
	}
	oldest, ok := x.free.min()
	if !ok {
		return at
	}
	ended := x.jobs.record(oldest).Inactive
	// A rule compares strictly, or rounds: a millisecond later is after it.
	after := func(d time.Duration) eventlog.Timestamp { return ended + eventlog.Timestamp(d.Seconds()) + 0.001 }
	goes := eventlog.Timestamp(math.Inf(1))
	if l.MaxAge.Set {
		goes = after(l.MaxAge.Value)
	}
	if l.MaxCount.Set && x.staying() > l.MaxCount.Value {
		goes = eventlog.Timestamp(math.Inf(-1))
	}
	if l.MinAge.Set {
		goes = max(goes, after(l.MinAge.Value))
	}
	return min(at, goes)
}

// PlanIDs returns a plan of the jobs with the given ids, whatever the limits. An id that
// appears twice counts once. The error is about the first job that cannot be purged, of
// category ErrUnknown, ErrActive, ErrPurged, ErrPinned or ErrLeaving, or for more than
// MaxBatch ids. It takes O(n log n) for n ids.
func (x *Index) PlanIDs(ids ...jobid.ID) (Plan, error) {
	if len(ids) > MaxBatch {
		return Plan{}, excess("ids", len(ids), MaxBatch)
	}
	p := Plan{Jobs: make([]Candidate, 0, len(ids))}
	for _, id := range ids {
		at, err := x.find(id)
		if err != nil {
			return Plan{}, err
		}
		switch x.jobs.where(at) {
		case wherePinned:
			return Plan{}, pinnedError(id, x.pins[id])
		case whereLeaving, whereAnswered:
			return Plan{}, jobError(id, ErrLeaving, "")
		}
		p.Jobs = append(p.Jobs, Candidate{x.jobs.record(at), ReasonID})
	}
	slices.SortFunc(p.Jobs, func(a, b Candidate) int { return compare(a.Summary, b.Summary) })
	p.Jobs = slices.Compact(p.Jobs)
	return p, nil
}
