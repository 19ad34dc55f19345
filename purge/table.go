package purge

import (
	"github.com/google/btree"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A slot is where a table holds a record: its number, from 0. Only shrink changes it.
type slot = uint32

// chunkSize is how many records a chunk has. Chunks do not move when there are
// more, so adding a record costs the same however many there are.
const chunkSize = 1024

// A chunk holds records; with the meta in its row a row would be padded to 24 bytes.
type chunk struct {
	rows  [chunkSize]row
	users [chunkSize]uint32
	metas [chunkSize]meta
}

type row struct {
	id   jobid.ID
	time eventlog.Timestamp
}

// meta is the rest of a record: the place of its result, how far the job came, where it is. A
// job that was stopped has the bits of one that ran and of one that did not start.
type meta uint8

const (
	metaResult    meta = 7
	metaRan       meta = 1 << 3
	metaWhere     meta = 7 << 4
	metaUnstarted meta = 1 << 7
)

// Where a job is. An empty slot has 0.
const (
	whereFree     meta = 1 << 4 // it may be purged
	wherePinned   meta = 2 << 4
	whereLeaving  meta = 3 << 4 // it is in the batch
	whereAnswered meta = 4 << 4 // it is in the batch, and its outcome is known
	whereWaiting  meta = 5 << 4 // the store could not remove it; it is tried again later
	wherePurged   meta = 6 << 4 // it is gone: this is its tombstone
)

// A table holds the records of resident jobs and tombstones, and finds them by id.
type table struct {
	chunks   []*chunk
	byID     map[jobid.ID]slot
	used     int    // slots that hold or held a record
	empty    slot   // an empty slot, if there is one
	empties  int    // how many there are; the id of each is the number of the next
	compared uint64 // how often two records were compared
}

// job returns the slot of a resident job.
func (t *table) job(id jobid.ID) (slot, bool) {
	at, ok := t.byID[id]
	return at, ok && t.where(at) != wherePurged
}

// put takes a record that it does not hold, and returns its slot.
func (t *table) put(r jobstate.Summary, where meta) slot {
	at := t.empty
	if t.empties > 0 {
		t.empties--
		t.empty = slot(t.chunks[at/chunkSize].rows[at%chunkSize].id)
	} else {
		at = slot(t.used)
		if t.used%chunkSize == 0 {
			t.chunks = append(t.chunks, new(chunk))
		}
		t.used++
	}
	c, i := t.chunks[at/chunkSize], at%chunkSize
	m := meta(place(r.Result)) | where
	if r.Ran {
		m |= metaRan
	}
	if r.Unstarted || r.Stopped {
		m |= metaUnstarted
	}
	c.rows[i], c.users[i], c.metas[i] = row{r.ID, r.Inactive}, r.UserID, m
	if t.byID == nil {
		t.byID = make(map[jobid.ID]slot)
	}
	t.byID[r.ID] = at
	return at
}

func (t *table) drop(at slot) {
	c, i := t.chunks[at/chunkSize], at%chunkSize
	delete(t.byID, c.rows[i].id)
	c.rows[i], c.users[i], c.metas[i] = row{id: jobid.ID(t.empty)}, 0, 0
	t.empty = at
	t.empties++
}

// shrink moves all records into new memory if they need less than an eighth of what there
// is: so each removal pays for a seventh of a move. The orders are all that know slots.
func (t *table) shrink(orders ...*order) {
	if t.used <= 8*chunkSize || t.len() >= t.used/8 {
		return
	}
	small := table{byID: make(map[jobid.ID]slot, t.len()), compared: t.compared}
	moved := make([]slot, t.used)
	for at := range slot(t.used) {
		if where := t.where(at); where != 0 {
			moved[at] = small.put(t.record(at), where)
		}
	}
	old := *t
	*t = small
	for _, o := range orders {
		was := *o
		*o = order{}
		was.each(func(at slot) bool {
			o.add(t, moved[at])
			return true
		})
	}
	clear(old.chunks)
}

func (t *table) len() int { return len(t.byID) }

func (t *table) record(at slot) jobstate.Summary {
	c, i := t.chunks[at/chunkSize], at%chunkSize
	ran, mark := c.metas[i]&metaRan != 0, c.metas[i]&metaUnstarted != 0
	return jobstate.Summary{
		ID: c.rows[i].id, Inactive: c.rows[i].time, UserID: c.users[i],
		Result: resultAt(int(c.metas[i] & metaResult)), Ran: ran, Unstarted: mark && !ran, Stopped: mark && ran,
	}
}

func (t *table) where(at slot) meta { return t.chunks[at/chunkSize].metas[at%chunkSize] & metaWhere }

func (t *table) move(at slot, where meta) {
	m := &t.chunks[at/chunkSize].metas[at%chunkSize]
	*m = *m&^metaWhere | where
}

// less is the order of the records of two slots.
func (t *table) less(a, b slot) bool {
	t.compared++
	ra, rb := &t.chunks[a/chunkSize].rows[a%chunkSize], &t.chunks[b/chunkSize].rows[b%chunkSize]
	return ra.time < rb.time || ra.time == rb.time && ra.id < rb.id
}

// degree has the nodes of the trees hold up to 127 slots.
const degree = 64

// An order is some slots of a table in the order of their records. It is a tree since jobs
// do not end in the order of their ids: with up to an hour between neighbors, a sorted slice
// of 100,000 jobs took more than twenty times as long.
type order struct {
	tree *btree.BTreeG[slot]
}

// add puts a slot of t into the order, in which it is not.
func (o *order) add(t *table, at slot) {
	if o.tree == nil {
		o.tree = btree.NewG(degree, t.less)
	}
	o.tree.ReplaceOrInsert(at)
}

// remove takes a slot out of the order, in which it is. The oldest needs no comparison.
func (o *order) remove(at slot) {
	if first, _ := o.tree.Min(); first == at {
		o.tree.DeleteMin()
		return
	}
	o.tree.Delete(at)
}

// min returns the slot of the oldest record, and false if there is none.
func (o *order) min() (slot, bool) {
	if o.tree == nil {
		return 0, false
	}
	return o.tree.Min()
}

func (o *order) len() int {
	if o.tree == nil {
		return 0
	}
	return o.tree.Len()
}

// each calls f for the slots, oldest first, until f returns false.
func (o *order) each(f func(slot) bool) {
	if o.tree != nil {
		o.tree.Ascend(f)
	}
}

// merge calls f for some slots that are in order and those of an order, oldest first, until f
// returns false.
func (t *table) merge(slots []slot, o *order, f func(slot) bool) {
	more := true
	o.each(func(at slot) bool {
		for ; more && len(slots) > 0 && t.less(slots[0], at); slots = slots[1:] {
			more = f(slots[0])
		}
		more = more && f(at)
		return more
	})
	for ; more && len(slots) > 0; slots = slots[1:] {
		more = f(slots[0])
	}
}
