package purge

import (
	"github.com/google/btree"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A slot is where a shelf holds a job: its number, from 0. It is the job's until
// the job is removed, whatever else happens.
type slot = uint32

// chunkSize is how many jobs a chunk has. Chunks do not move when there are more,
// so adding a job costs the same however many there are.
const chunkSize = 1024

// A chunk holds jobs, by columns because a row would be padded to 24 bytes.
type chunk struct {
	ids   [chunkSize]jobid.ID
	times [chunkSize]eventlog.Timestamp
	metas [chunkSize]meta
}

// meta is what a shelf knows of a job beside its id and time: the place of the
// result in a Counts, whether it ran, and where the job is.
type meta uint8

const (
	metaResult meta = 7
	metaRan    meta = 1 << 3
	metaWhere  meta = 3 << 4
)

// Where a job of a shelf is. Of a slot without a job, it is 0.
const (
	whereFree    meta = 1 << 4
	wherePinned  meta = 2 << 4
	whereLeaving meta = 3 << 4
)

// A table finds slots by id. It is four maps of unequal shares: a map's memory
// doubles at certain numbers of entries, and up to there half of it is unused. The
// four do so at different numbers of jobs, so that there is never a number at which
// a job needs twice as much.
type table [4]map[jobid.ID]slot

// tableBounds are where the shares of the maps end: they are as 2^(0/4) to 2^(3/4),
// of 2^16 in all.
var tableBounds = [3]uint64{12400, 27146, 44682}

// share returns the map for an id.
func (t *table) share(id jobid.ID) int {
	h := uint64(id) * 0x9e3779b97f4a7c15 >> 48 // the golden ratio's bits: neighbours go far apart
	for i, end := range tableBounds {
		if h < end {
			return i
		}
	}
	return len(tableBounds)
}

// get returns the slot of an id.
func (t *table) get(id jobid.ID) (slot, bool) {
	at, ok := t[t.share(id)][id]
	return at, ok
}

// set makes at the slot of an id.
func (t *table) set(id jobid.ID, at slot) {
	m := &t[t.share(id)]
	if *m == nil {
		*m = make(map[jobid.ID]slot)
	}
	(*m)[id] = at
}

// remove forgets an id.
func (t *table) remove(id jobid.ID) { delete(t[t.share(id)], id) }

// len returns how many ids there are.
func (t *table) len() int { return len(t[0]) + len(t[1]) + len(t[2]) + len(t[3]) }

// A shelf holds jobs and finds them by id.
type shelf struct {
	chunks   []*chunk
	byID     table
	used     int    // slots that are or were a job's
	empty    slot   // one without a job, if there is any
	empties  int    // how many there are; the id of each is the next one's number
	compared uint64 // how often the order of two jobs was asked for
}

// put takes a job that it does not hold, and returns its slot.
func (s *shelf) put(j Job, where meta) slot {
	at := s.empty
	if s.empties > 0 {
		s.empties--
		s.empty = slot(s.chunks[at/chunkSize].ids[at%chunkSize])
	} else {
		at = slot(s.used)
		if s.used%chunkSize == 0 {
			s.chunks = append(s.chunks, new(chunk))
		}
		s.used++
	}
	c, i := s.chunks[at/chunkSize], at%chunkSize
	place, _ := j.Result.place()
	m := meta(place) | where
	if j.Ran {
		m |= metaRan
	}
	c.ids[i], c.times[i], c.metas[i] = j.ID, j.Inactive, m
	s.byID.set(j.ID, at)
	return at
}

// drop removes the job of a slot.
func (s *shelf) drop(at slot) {
	c, i := s.chunks[at/chunkSize], at%chunkSize
	s.byID.remove(c.ids[i])
	c.ids[i], c.times[i], c.metas[i] = jobid.ID(s.empty), 0, 0
	s.empty = at
	s.empties++
}

// len returns how many jobs there are.
func (s *shelf) len() int { return s.byID.len() }

// job returns the job of a slot.
func (s *shelf) job(at slot) Job {
	c, i := s.chunks[at/chunkSize], at%chunkSize
	j := Job{ID: c.ids[i], Inactive: c.times[i], Ran: c.metas[i]&metaRan != 0}
	if place := c.metas[i] & metaResult; place > 0 {
		j.Result = 1 << (place - 1)
	}
	return j
}

// where returns where the job of a slot is.
func (s *shelf) where(at slot) meta { return s.chunks[at/chunkSize].metas[at%chunkSize] & metaWhere }

// move notes where the job of a slot is.
func (s *shelf) move(at slot, where meta) {
	m := &s.chunks[at/chunkSize].metas[at%chunkSize]
	*m = *m&^metaWhere | where
}

// less is the order of the jobs of two slots.
func (s *shelf) less(a, b slot) bool {
	s.compared++
	ca, cb := s.chunks[a/chunkSize], s.chunks[b/chunkSize]
	ta, tb := ca.times[a%chunkSize], cb.times[b%chunkSize]
	return ta < tb || ta == tb && ca.ids[a%chunkSize] < cb.ids[b%chunkSize]
}

// degree is that of the trees: a node has up to 127 slots. A tree that grows at
// its end, as these do, has nodes that are half full.
const degree = 64

// An order is some slots of a shelf in the order of their jobs. The zero order is
// empty.
type order struct {
	tree *btree.BTreeG[slot]
}

// add puts a slot of s into the order, in which it is not.
func (o *order) add(s *shelf, at slot) {
	if o.tree == nil {
		o.tree = btree.NewG(degree, s.less)
	}
	o.tree.ReplaceOrInsert(at)
}

// remove takes a slot out of the order, in which it is.
func (o *order) remove(at slot) { o.tree.Delete(at) }

// len returns how many slots there are.
func (o *order) len() int {
	if o.tree == nil {
		return 0
	}
	return o.tree.Len()
}

// each calls f for the slots, oldest job first, until f returns false.
func (o *order) each(f func(slot) bool) {
	if o.tree != nil {
		o.tree.Ascend(f)
	}
}
