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
	jobstate.Summary
	pins    map[purge.Pin]bool
	leaving bool
	tries   int                // how often the store failed to remove it
	until   eventlog.Timestamp // it waits until then; 0: it does not wait
}

// naive is an index that is a sorted slice, and does everything by looking at all
// of it.
type naive struct {
	jobs    []*naiveJob
	tombs   []jobstate.Summary
	clock   eventlog.Timestamp
	high    jobid.ID
	purged  []jobstate.Summary
	count   int // of tombstones
	tombAge jobstate.Optional[time.Duration]
}

func byTime(a, b jobstate.Summary) int {
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

func (n *naive) tomb(id jobid.ID) *jobstate.Summary {
	for i := range n.tombs {
		if n.tombs[i].ID == id {
			return &n.tombs[i]
		}
	}
	return nil
}

func (n *naive) add(j jobstate.Summary) {
	n.jobs = append(n.jobs, &naiveJob{Summary: j, pins: map[purge.Pin]bool{}})
	slices.SortFunc(n.jobs, func(a, b *naiveJob) int { return byTime(a.Summary, b.Summary) })
	n.high = max(n.high, j.ID)
}

// plan removes one job after the other, and asks anew before each.
func (n *naive) plan(now eventlog.Timestamp, l purge.Limits, batch int) (p purge.Plan) {
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
			waiting = append(waiting, purge.Pinned{Summary: j.Summary, Pins: sortedPins(j.pins)})
			continue
		}
		if len(p.Jobs) == batch {
			p.More = true
			waiting = nil
			break
		}
		p.Pinned = append(p.Pinned, waiting...)
		waiting = nil
		p.Jobs = append(p.Jobs, purge.Candidate{Summary: j.Summary, Reason: why})
		there--
	}
	p.Pinned = append(p.Pinned, waiting...)
	if len(p.Pinned) > batch {
		p.Pinned = p.Pinned[:batch]
	}
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

// claim is what the index says of a plan that it claims.
func (n *naive) claim(p purge.Plan, at eventlog.Timestamp) purge.Plan {
	p.Pinned = nil
	for _, c := range p.Jobs {
		p.Watermark = max(p.Watermark, c.ID)
		j := n.find(c.ID)
		j.leaving, j.until = true, 0
	}
	n.tombstones(&p, at)
	return p
}

// tombstones adds tombstones for the youngest jobs of a plan, and lets the oldest
// tombstones end for them.
func (n *naive) tombstones(p *purge.Plan, at eventlog.Timestamp) {
	if len(p.Jobs) == 0 {
		return
	}
	for i, c := range p.Jobs {
		if i >= len(p.Jobs)-n.count {
			p.Tombstones = append(p.Tombstones, c.Summary)
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

// commit removes the jobs of a claimed plan, except those that failed.
func (n *naive) commit(p purge.Plan, now eventlog.Timestamp, failed map[jobid.ID]error) {
	for _, c := range p.Jobs {
		if failed[c.ID] != nil {
			j := n.find(c.ID)
			j.leaving = false
			j.until = now + eventlog.Timestamp(min(60<<j.tries, 3600))
			j.tries++
			continue
		}
		n.jobs = slices.DeleteFunc(n.jobs, func(j *naiveJob) bool { return j.ID == c.ID })
		n.purged = append(n.purged, c.Summary)
	}
	for _, j := range p.Tombstones {
		if failed[j.ID] == nil {
			n.tombs = append(n.tombs, j)
		}
	}
	n.tombs = slices.DeleteFunc(n.tombs, func(j jobstate.Summary) bool { return slices.Contains(p.Expired, j.ID) })
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
	count := func(c *purge.ResultCounts, r jobstate.Result) {
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
