package purge_test

import (
	"cmp"
	"slices"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// naiveJob is a resident job of a naive index.
type naiveJob struct {
	purge.Job
	pins    map[purge.Pin]bool
	leaving bool
}

// naive is an index that is a sorted slice, and does everything by looking at all
// of it.
type naive struct {
	jobs          []*naiveJob
	tombs         []purge.Job
	clock, newest eventlog.Timestamp
	high, durable jobid.ID
	purged        []purge.Job
	count         int // of tombstones
	tombAge       purge.Limit[time.Duration]
}

func byTime(a, b purge.Job) int {
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

func (n *naive) tomb(id jobid.ID) *purge.Job {
	for i := range n.tombs {
		if n.tombs[i].ID == id {
			return &n.tombs[i]
		}
	}
	return nil
}

func (n *naive) add(j purge.Job) {
	n.jobs = append(n.jobs, &naiveJob{Job: j, pins: map[purge.Pin]bool{}})
	slices.SortFunc(n.jobs, func(a, b *naiveJob) int { return byTime(a.Job, b.Job) })
	if n.clock == 0 || j.Inactive <= n.clock+50 {
		n.clock = max(n.clock, j.Inactive)
	}
	n.newest, n.high = max(n.newest, j.Inactive), max(n.high, j.ID)
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
	var waiting []purge.Kept // pinned ones behind the last job of the plan
	for _, j := range n.jobs {
		if j.leaving {
			continue
		}
		age := float64(now) - float64(j.Inactive)
		if d, ok := l.MinAge.Value(); ok && age < d.Seconds() {
			break
		}
		var why purge.Why
		if d, ok := l.MaxAge.Value(); ok && age > d.Seconds() {
			why |= purge.ByAge
		}
		if most, ok := l.MaxCount.Value(); ok && there > most {
			why |= purge.ByCount
		}
		if why == 0 {
			break
		}
		if len(j.pins) > 0 {
			waiting = append(waiting, purge.Kept{Job: j.Job, Pins: sortedPins(j.pins)})
			continue
		}
		if len(p.Jobs) == batch {
			p.More = true
			waiting = nil
			break
		}
		p.Pinned = append(p.Pinned, waiting...)
		waiting = nil
		p.Jobs = append(p.Jobs, purge.Candidate{Job: j.Job, Why: why})
		there--
	}
	p.Pinned = append(p.Pinned, waiting...)
	if len(p.Pinned) > batch {
		p.Pinned, p.MorePinned = p.Pinned[:batch], true
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
func (n *naive) trim(p purge.Plan, l purge.Limits, byID, clockStands bool) purge.Plan {
	out := purge.Plan{Now: p.Now}
	now := n.plan(p.Now, l, len(p.Jobs))
	for _, c := range p.Jobs {
		j := n.find(c.ID)
		if byID {
			if j != nil && j.Job == c.Job && !j.leaving && len(j.pins) == 0 {
				out.Jobs = append(out.Jobs, c)
			}
			continue
		}
		for _, d := range now.Jobs {
			if d.Job == c.Job {
				out.Jobs = append(out.Jobs, d)
			}
		}
	}
	if !byID {
		out.More = now.More || len(out.Jobs) < len(now.Jobs)
	}
	if !byID && !clockStands {
		out.Jobs, out.More = nil, true
	}
	n.mark(&out)
	at := p.Now
	if byID {
		at = min(at, n.clock)
	}
	n.bury(&out, at)
	return out
}

// bury lets the oldest of all tombstones end.
func (n *naive) bury(p *purge.Plan, at eventlog.Timestamp) {
	if len(p.Jobs) == 0 {
		return
	}
	all := slices.Clone(n.tombs)
	for _, c := range p.Jobs {
		all = append(all, c.Job)
	}
	slices.SortFunc(all, byTime)
	for i, j := range all {
		d, ok := n.tombAge.Value()
		ends := i < len(all)-n.count || ok && float64(at)-float64(j.Inactive) > d.Seconds()
		old := n.tomb(j.ID) != nil
		switch {
		case ends && old:
			p.Expired = append(p.Expired, j.ID)
		case !ends && !old:
			p.Tombstones = append(p.Tombstones, j)
		}
	}
}

// commit removes the jobs of a plan that was trimmed.
func (n *naive) commit(p purge.Plan) {
	for _, c := range p.Jobs {
		n.jobs = slices.DeleteFunc(n.jobs, func(j *naiveJob) bool { return j.ID == c.ID })
		n.purged = append(n.purged, c.Job)
	}
	n.tombs = append(n.tombs, p.Tombstones...)
	n.tombs = slices.DeleteFunc(n.tombs, func(j purge.Job) bool { return slices.Contains(p.Expired, j.ID) })
	n.durable = max(n.durable, p.Watermark)
}

// stats counts everything.
func (n *naive) stats() (s purge.Stats) {
	count := func(c *purge.Counts, r purge.Result) {
		switch r {
		case 0:
			c.None++
		case purge.Completed:
			c.Completed++
		case purge.Failed:
			c.Failed++
		case purge.Canceled:
			c.Canceled++
		case purge.Timeout:
			c.Timeout++
		}
	}
	for _, j := range n.jobs {
		count(&s.Resident, j.Result)
		if j.leaving {
			s.Leaving++
		}
		if len(j.pins) > 0 {
			s.Pinned++
		}
	}
	for _, j := range n.purged {
		count(&s.Purged, j.Result)
	}
	s.Tombstones = len(n.tombs)
	return s
}
