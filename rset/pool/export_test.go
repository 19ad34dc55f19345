package pool

import (
	"slices"

	"github.com/joblife/joblife/rset/internal/children"
)

// Breaks are ways to break a pool in which job 1 has all of rank 0, job 2 some
// of it too, rank 1 is idle and rank 2 down; and what Check says.
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
		"index of conflicts":             func(p *Pool) { p.clashes.Delete(rankItem{first: 0}) },
		"in the index of conflicts":      func(p *Pool) { p.clashes.ReplaceOrInsert(rankItem{1, p.at(1)}) },
		"an index has ranks":             func(p *Pool) { p.clashes.ReplaceOrInsert(rankItem{77, p.at(1)}) },
		"ranks that are not there":       func(p *Pool) { p.fit.ReplaceOrInsert(fitItem{nil, 77, true, p.at(1)}) },
		"looked for in the inventory":    func(p *Pool) { p.whole = newFitTree() },
		"ranks 0-0 and job ƒ2 do not": func(p *Pool) {
			p.reshare(1, false, 0, 0, func(*children.Set) *children.Set { return nil })
		},
		"ranks 1-1 and job ƒ2 do not": func(p *Pool) {
			p.reshare(1, false, 1, 1, func(*children.Set) *children.Set { return p.at(1).all })
		},
		"ranks 9-9 and job ƒ2 do not": func(p *Pool) {
			p.reshare(1, false, 9, 9, func(*children.Set) *children.Set { return p.at(1).all })
		},
		"job ƒ2 do not agree": func(p *Pool) {
			p.reshare(1, true, 1, 1, func(*children.Set) *children.Set { return p.at(1).all })
		},
		"job ƒ8 do not agree": func(p *Pool) {
			p.reshare(7, true, 99, 99, func(*children.Set) *children.Set { return p.at(1).all })
		},
		"job ƒ3 do not agree": func(p *Pool) {
			p.shares.ReplaceOrInsert(share{2, false, 0, 0, p.at(1).all})
		},
		"holds more than it has": func(p *Pool) {
			p.reshare(1, true, 99, 99, func(*children.Set) *children.Set { return p.at(1).all })
		},
		"which is not noted": func(p *Pool) {
			h, _ := p.holder(1)
			c := *h
			c.cut = false
			p.setHolder(&c)
		},
	}
}
