package pool

import (
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// Earliest returns when Plan would let a job start, and plans nothing.
func (p *Pool) Earliest(q *Request, now eventlog.Timestamp) (eventlog.Timestamp, error) {
	s, err := p.search(q)
	if err != nil {
		return 0, err
	}
	f := forecast{search: s}
	return f.earliest(now)
}

// Breaks are ways to break a pool in which job 1 has all of rank 0, job 2 some
// of it too until 77, rank 1 is idle, rank 2 down, and job 8 planned; and what Check says.
func Breaks() map[string]func(p *Pool) {
	rank := func(p *Pool, rank uint32, change func(s *state)) {
		p.edit(rank, rank, func(_, _ uint32, s *state) {
			s.owners = slices.Clone(s.owners)
			change(s)
		})
	}
	return map[string]func(p *Pool){
		"what is held and what is free": func(p *Pool) {
			rank(p, 1, func(s *state) { s.free = lowest(s.free, []need{{"core", 1}}, 1) })
		},
		"held and what is free": func(p *Pool) { rank(p, 0, func(s *state) { s.free = s.all }) },
		"the ranks have": func(p *Pool) {
			rank(p, 1, func(s *state) {
				one := lowest(s.all, []need{{"core", 1}}, 1)
				*s = state{all: one, free: one}
			})
		},
		"whether two jobs hold": func(p *Pool) { rank(p, 0, func(s *state) { s.clash = false }) },
		"holds nothing, or is out of order": func(p *Pool) {
			rank(p, 0, func(s *state) { s.owners[0], s.owners[1] = s.owners[1], s.owners[0] })
		},
		"job ƒ3 holds nothing": func(p *Pool) {
			rank(p, 0, func(s *state) { s.owners[1].what, s.clash = nil, false })
		},
		"are in one state": func(p *Pool) {
			sp := p.at(2)
			p.replace([]*span{sp}, []*span{{2, 2, sp.state}, {3, 3, sp.state}})
		},
		"ranks 3-2 are out of order": func(p *Pool) {
			sp := p.at(2)
			p.replace([]*span{sp}, []*span{{3, 2, sp.state}})
		},
		"index of what can be allocated": func(p *Pool) { p.fit.Delete(p.at(1).item()) },
		"in the index of what can":       func(p *Pool) { p.fit.ReplaceOrInsert(p.at(2).item()) },
		"an index has ranks":             func(p *Pool) { p.clashes-- },
		"ranks that are not there":       func(p *Pool) { p.fit.ReplaceOrInsert(fitItem{first: 77, idle: true, sp: p.at(1)}) },
		"looked for in the inventory":    func(p *Pool) { p.whole = newFitTree(FitBest) },
		"job ƒ8 holds resources": func(p *Pool) {
			rank(p, 1, func(s *state) { s.take(&[1]owner{{7, never, s.all}}, nil) })
		},
		"is gone is in the inventory": func(p *Pool) {
			h, _ := p.holder(1)
			rank(p, 0, func(s *state) { s.drop(1, s.all) })
			p.setGone(h, must(rset.Difference(h.r, h.gone)))
		},
		"job ƒ2 holds more": func(p *Pool) {
			rank(p, 1, func(s *state) { s.take(&[1]owner{{1, never, s.all}}, nil) })
		},
		"holds more than it has": func(p *Pool) {
			h, _ := p.holder(1)
			p.setGone(h, h.r) // rank 0 is held as well
		},
		"the end of job ƒ3 is not known":            func(p *Pool) { p.ends.Delete(event{at: 77, id: 2}) },
		"the start of job ƒ9 is not known":          func(p *Pool) { p.starts.Clear(false) },
		"1 nodes have 4 cores, at most 0 are known": func(p *Pool) { p.shortages.add(shortage{4, 0, 0}) },
		"of a job is known that is not":             func(p *Pool) { p.addEnd(event{at: 5, id: 6}) },
		"has a claim and no plan":                   func(p *Pool) { p.planned.Clear(false); p.starts.Clear(false) },
		"the end of job ƒ2 is another": func(p *Pool) {
			rank(p, 0, func(s *state) { s.owners[0].end = 5 })
		},
		"which is not noted": func(p *Pool) {
			h, _ := p.holder(1)
			c := *h
			c.cut = false
			p.setHolder(&c)
		},
	}
}

// Claim is what a planned job is to have of a rank.
type Claim struct {
	Job        jobid.ID
	Rank       uint32
	Slots      int64
	Start, End eventlog.Timestamp
}

// Claims returns what planned jobs are to have, by rank.
func (p *Pool) Claims() (out []Claim) {
	p.each(func(sp *span) {
		for rank := sp.first; rank <= sp.last; rank++ {
			for _, c := range sp.claims {
				out = append(out, Claim{c.plan.id, rank, c.slots, c.plan.start, c.plan.end})
			}
		}
	})
	return out
}

// Known returns how much is known of requests.
func (p *Pool) Known() int { return len(p.known.allowed) + len(p.known.feasible) }

// MaxKnown is how much may be.
const MaxKnown = maxKnown
