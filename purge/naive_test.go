package purge_test

import (
	"cmp"
	"slices"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// naiveJob is a resident job of a naive index.
type naiveJob struct {
	purge.Record
	pins    map[purge.Pin]bool
	leaving bool
	tries   int                // how often the store failed to remove it
	until   eventlog.Timestamp // it waits until then; 0: it does not wait
}

// naive is an index that is a sorted slice, and does everything by looking at all
// of it.
type naive struct {
	jobs          []*naiveJob
	tombs         []purge.Record
	clock         eventlog.Timestamp
	high, durable jobid.ID
	purged        []purge.Record
	count         int // of tombstones
	tombAge       jobstate.Optional[time.Duration]
}

func byTime(a, b purge.Record) int {
	return cmp.Or(cmp.Compare(a.Inactive, b.Inactive), cmp.Compare(a.ID, b.ID))
}

func (n *naive) find(id jobid.ID) *naiveJob {
	for _, j := range n.jobs {
		if j.ID == id {
			return j
		}
	}
	return nil
}

func (n *naive) tomb(id jobid.ID) *purge.Record {
	for i := range n.tombs {
		if n.tombs[i].ID == id {
			return &n.tombs[i]
		}
	}
	return nil
}

func (n *naive) add(j purge.Record) {
	n.jobs = append(n.jobs, &naiveJob{Record: j, pins: map[purge.Pin]bool{}})
	slices.SortFunc(n.jobs, func(a, b *naiveJob) int { return byTime(a.Record, b.Record) })
	n.high = max(n.high, j.ID)
}

// plan removes one job after the other, and asks anew before each.
func (n *naive) plan(now eventlog.Timestamp, l purge.Limits, batch int) (p purge.Plan) {
	p.Now = now
	there := 0
	for _, j := range n.jobs {
		if !j.leaving {
			there++
		}
	}
	var waiting []purge.Pinned // pinned ones behind the last job of the plan
	for _, j := range n.jobs {
		if j.leaving {
			continue
		}
		age := float64(now) - float64(j.Inactive)
		if d := l.MinAge; d.Set && age < d.Value.Seconds() {
			break
		}
		var why purge.Reason
		if d := l.MaxAge; d.Set && age > d.Value.Seconds() {
			why |= purge.ReasonAge
		}
		if most := l.MaxCount; most.Set && there > most.Value {
			why |= purge.ReasonCount
		}
		if why == 0 {
			break
		}
		if j.until > 0 {
			continue
		}
		if len(j.pins) > 0 {
			waiting = append(waiting, purge.Pinned{Record: j.Record, Pins: sortedPins(j.pins)})
			continue
		}
		if len(p.Jobs) == batch {
			p.More = true
			waiting = nil
			break
		}
		p.Pinned = append(p.Pinned, waiting...)
		waiting = nil
		p.Jobs = append(p.Jobs, purge.Candidate{Record: j.Record, Reason: why})
		there--
	}
	p.Pinned = append(p.Pinned, waiting...)
	if len(p.Pinned) > batch {
		p.Pinned = p.Pinned[:batch]
	}
	n.mark(&p)
	return p
}

func sortedPins(set map[purge.Pin]bool) []purge.Pin {
	var out []purge.Pin
	for p := range set {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b purge.Pin) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.By, b.By))
	})
	return out
}

// mark says whether the watermark has to be stored.
func (n *naive) mark(p *purge.Plan) {
	p.Watermark, p.NeedsWatermark = 0, false
	for _, c := range p.Jobs {
		if c.ID > n.durable {
			p.Watermark, p.NeedsWatermark = n.high, true
		}
	}
}

// trim leaves of a plan what a new one has too.
func (n *naive) trim(p purge.Plan, l purge.Limits, byID bool) purge.Plan {
	out := purge.Plan{Now: p.Now}
	now := n.plan(p.Now, l, len(p.Jobs))
	for _, c := range p.Jobs {
		j := n.find(c.ID)
		if byID {
			if j != nil && j.Record == c.Record && !j.leaving && len(j.pins) == 0 {
				out.Jobs = append(out.Jobs, c)
			}
			continue
		}
		for _, d := range now.Jobs {
			if d.Record == c.Record {
				out.Jobs = append(out.Jobs, d)
			}
		}
	}
	if !byID {
		out.More = now.More || len(out.Jobs) < len(now.Jobs)
	}
	if !byID && n.clock > 0 && p.Now > n.clock+50 {
		out.Jobs, out.More = nil, true
	}
	n.mark(&out)
	n.tombstones(&out, n.believed(p, byID))
	return out
}

// believed is the time of a plan, or an earlier one that somebody has checked.
func (n *naive) believed(p purge.Plan, byID bool) eventlog.Timestamp {
	if byID && n.clock > 0 {
		return min(p.Now, n.clock)
	}
	return p.Now
}

// tombstones adds tombstones for the youngest jobs of a plan, and lets the oldest
// tombstones end for them.
func (n *naive) tombstones(p *purge.Plan, at eventlog.Timestamp) {
	if len(p.Jobs) == 0 {
		return
	}
	for i, c := range p.Jobs {
		if i >= len(p.Jobs)-n.count {
			p.Tombstones = append(p.Tombstones, c.Record)
		}
	}
	old := slices.Clone(n.tombs)
	slices.SortFunc(old, byTime)
	left := len(old) + len(p.Tombstones)
	for _, j := range old {
		if left <= n.count && !(n.tombAge.Set && float64(at)-float64(j.Inactive) > n.tombAge.Value.Seconds()) {
			break
		}
		p.Expired = append(p.Expired, j.ID)
		left--
	}
}

// commit removes the jobs of a plan that was trimmed, except those that failed.
func (n *naive) commit(p purge.Plan, byID bool, failed []jobid.ID) {
	now := n.believed(p, byID)
	for _, c := range p.Jobs {
		if slices.Contains(failed, c.ID) {
			j := n.find(c.ID)
			j.leaving = false
			j.until = now + eventlog.Timestamp(min(60<<j.tries, 3600))
			j.tries++
			continue
		}
		n.jobs = slices.DeleteFunc(n.jobs, func(j *naiveJob) bool { return j.ID == c.ID })
		n.purged = append(n.purged, c.Record)
	}
	for _, j := range p.Tombstones {
		if !slices.Contains(failed, j.ID) {
			n.tombs = append(n.tombs, j)
		}
	}
	n.tombs = slices.DeleteFunc(n.tombs, func(j purge.Record) bool { return slices.Contains(p.Expired, j.ID) })
	n.durable = max(n.durable, p.Watermark)
}

// observe tells the time.
func (n *naive) observe(now eventlog.Timestamp) {
	n.clock = now
	for _, j := range n.jobs {
		if j.until <= now {
			j.until = 0
		}
	}
}

// stats counts everything.
func (n *naive) stats() (s purge.Stats) {
	count := func(c *purge.Counts, r jobstate.Result) {
		switch r {
		case 0:
			c.Unknown++
		case jobstate.ResultCompleted:
			c.Completed++
		case jobstate.ResultFailed:
			c.Failed++
		case jobstate.ResultCanceled:
			c.Canceled++
		case jobstate.ResultTimeout:
			c.Timeout++
		}
	}
	for _, j := range n.jobs {
		count(&s.Resident, j.Result)
		if j.leaving {
			s.Leaving++
		}
		if j.tries > 0 {
			s.Stuck++
		}
		if len(j.pins) > 0 {
			s.Pinned++
		}
	}
	for _, j := range n.purged {
		count(&s.Purged, j.Result)
	}
	for _, j := range n.tombs {
		count(&s.Tombstones, j.Result)
	}
	return s
}
