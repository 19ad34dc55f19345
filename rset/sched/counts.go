package sched

import (
	"cmp"

	"github.com/google/btree"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/children"
)

// counts are how much is free, and when how much more will be. If all nodes are alike and
// each job has or wants whole nodes, one node is as good as another: then the numbers say
// what a plan of the pool would, at a small part of its cost.
type counts struct {
	whole    *children.Set      // what each node of the inventory has; nil if they differ
	capacity int64              // cores of the inventory
	expires  eventlog.Timestamp // of the inventory; 0: never
	odd      int                // jobs that have or want something else than whole nodes

	counted bool       // what follows is right, as far as byCount says
	byCount bool       // whole is not nil, and odd is 0
	cores   int64      // that are up and free
	down    *idset.Set // ranks; never changed
	idle    int64      // byCount: nodes that are up and free
	kept    int64      // byCount: how many of these the head needs when it starts
	ends    *btree.BTreeG[ending]
}

// An ending is when a job gives nodes back.
type ending struct {
	at    eventlog.Timestamp // never: it does not
	id    jobid.ID
	nodes int64 // that are up
}

func (e ending) before(f ending) bool {
	return cmp.Or(cmp.Compare(e.at, f.at), cmp.Compare(e.id, f.id)) < 0
}

// inventory notes what the nodes of a new inventory have.
func (s *Scheduler) inventory() {
	r := s.pool.Inventory()
	s.capacity, s.whole = r.Count("core"), nil
	for pt := range r.Parts() {
		if s.whole != nil && !s.whole.Equal(pt.What) {
			s.whole = nil
			return
		}
		s.whole = pt.What
	}
	for h := range s.pool.Holders() { // a node may have come back with more
		if s.whole != nil && !s.wholeNodes(h.Held) {
			s.setOdd(s.jobs[h.ID], true)
		}
	}
}

// wholeNodes reports whether an R has whole nodes.
func (s *Scheduler) wholeNodes(r *rset.R) bool {
	for pt := range r.Parts() {
		if !pt.What.Equal(s.whole) {
			return false
		}
	}
	return s.whole != nil
}

func (s *Scheduler) setOdd(j *job, odd bool) {
	switch {
	case odd && !j.odd:
		s.odd++
	case !odd && j.odd:
		s.odd--
	}
	j.odd = odd
}

const degree = 32

// count counts what is free, unless it is known.
func (s *Scheduler) count() {
	if s.counted {
		return
	}
	s.counted = true
	s.down = s.pool.Down().Ranks()
	free := s.pool.Available()
	s.cores, s.idle = free.Count("core"), 0
	s.ends = btree.NewG(degree, ending.before)
	if !s.byCount {
		return
	}
	s.idle = int64(free.Len())
	for h := range s.pool.Holders() {
		j := s.jobs[h.ID]
		j.end = ending{}
		s.setEnd(j, h.Expiration, int64(s.up(h.Held).Len()))
	}
}

// up returns what of an R is on ranks that are up.
func (s *Scheduler) up(r *rset.R) *rset.R {
	ranks := r.Ranks()
	if !ranks.Intersects(s.down) {
		return r
	}
	up, err := r.Restrict(idset.Difference(ranks, s.down))
	if err != nil {
		panic("sched: broken invariant: " + err.Error()) // these are its ranks
	}
	return up
}

// setEnd notes that a job, which is to end at a time, has so many nodes.
func (s *Scheduler) setEnd(j *job, end eventlog.Timestamp, nodes int64) {
	if j.end.nodes > 0 {
		s.ends.Delete(j.end)
	}
	j.end = ending{cmp.Or(end, never), j.ID, nodes}
	if nodes > 0 {
		s.ends.ReplaceOrInsert(j.end)
	}
}

// given counts what a job got.
func (s *Scheduler) given(j *job, r *rset.R) {
	if !s.counted {
		return
	}
	s.cores -= r.Count("core")
	if s.byCount {
		s.idle -= j.nodes
		s.setEnd(j, r.Expiration(), j.nodes)
	}
}

// freed counts what a job gave back.
func (s *Scheduler) freed(j *job, r *rset.R) {
	if !j.odd && s.whole != nil && !s.wholeNodes(r) {
		s.setOdd(j, true) // it has a part of a node
		s.counted = false
	}
	if !s.counted {
		return
	}
	r = s.up(r)
	s.cores += r.Count("core")
	if s.byCount {
		s.idle += int64(r.Len())
		s.setEnd(j, j.end.at, j.end.nodes-int64(r.Len()))
	}
}

// moveEnd notes a new expiration of a job.
func (s *Scheduler) moveEnd(j *job, end eventlog.Timestamp) {
	if s.counted && s.byCount {
		s.setEnd(j, end, j.end.nodes)
	}
}

// earliest returns when so many nodes are free, if jobs end when they expire, and how many
// of those that are idle now are needed then: the others come from jobs that have ended.
// Jobs that should have ended are taken to end now.
func (s *Scheduler) earliest(nodes int64) (at eventlog.Timestamp, kept int64, ok bool) {
	at = s.now
	free := int64(0)
	s.ends.Ascend(func(e ending) bool {
		if e.at > at {
			if s.idle+free >= nodes || e.at == never {
				return false
			}
			at = e.at
		}
		free += e.nodes
		return true
	})
	ok = s.idle+free >= nodes && (s.expires == 0 || at < s.expires)
	return at, max(0, nodes-free), ok
}
