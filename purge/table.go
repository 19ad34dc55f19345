package purge

import (
	"github.com/google/btree"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A slot is where a table holds a record: its number, from 0. Only shrink changes
// it.
type slot = uint32

// chunkSize is how many records a chunk has. Chunks do not move when there are
// more, so adding a record costs the same however many there are.
const chunkSize = 1024

// A chunk holds records by columns: a row would be padded to 24 bytes.
type chunk struct {
	ids   [chunkSize]jobid.ID
	times [chunkSize]eventlog.Timestamp
	metas [chunkSize]meta
}

// meta is the rest of a record: the place of its result, whether the job ran, and
// where the job is.
type meta uint8

const (
	metaResult meta = 7
	metaRan    meta = 1 << 3
	metaWhere  meta = 7 << 4
)

// Where a job is. An empty slot has 0.
const (
	whereFree    meta = 1 << 4 // it may be purged
	wherePinned  meta = 2 << 4
	whereLeaving meta = 3 << 4 // it is in a claimed plan
	whereWaiting meta = 4 << 4 // the store could not remove it; it is tried again later
)

// A table holds records and finds them by id.
type table struct {
	chunks   []*chunk
	byID     map[jobid.ID]slot
	used     int    // slots that hold or held a record
	empty    slot   // an empty slot, if there is one
	empties  int    // how many there are; the id of each is the number of the next
	compared uint64 // how often two records were compared
}

// get returns the slot of an id.
func (t *table) get(id jobid.ID) (slot, bool) {
	at, ok := t.byID[id]
	return at, ok
}

// put takes a record that it does not hold, and returns its slot.
func (t *table) put(r Record, where meta) slot {
	at := t.empty
	if t.empties > 0 {
		t.empties--
		t.empty = slot(t.chunks[at/chunkSize].ids[at%chunkSize])
	} else {
		at = slot(t.used)
		if t.used%chunkSize == 0 {
			t.chunks = append(t.chunks, new(chunk))
		}
		t.used++
	}
	c, i := t.chunks[at/chunkSize], at%chunkSize
	result, _ := place(r.Result)
	m := meta(result) | where
	if r.Ran {
		m |= metaRan
	}
	c.ids[i], c.times[i], c.metas[i] = r.ID, r.Inactive, m
	if t.byID == nil {
		t.byID = make(map[jobid.ID]slot)
	}
	t.byID[r.ID] = at
	return at
}

// drop removes the record of a slot.
func (t *table) drop(at slot) {
	c, i := t.chunks[at/chunkSize], at%chunkSize
	delete(t.byID, c.ids[i])
	c.ids[i], c.times[i], c.metas[i] = jobid.ID(t.empty), 0, 0
	t.empty = at
	t.empties++
}

// shrink moves all records into new memory if they need less than an eighth of
// what there is. The orders are those of the table. A removal pays for it with
// the share of a record that moves, at most a seventh.
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

// len returns how many records there are.
func (t *table) len() int { return len(t.byID) }

// record returns the record of a slot.
func (t *table) record(at slot) Record {
	c, i := t.chunks[at/chunkSize], at%chunkSize
	return Record{
		ID: c.ids[i], Inactive: c.times[i],
		Result: resultAt(int(c.metas[i] & metaResult)), Ran: c.metas[i]&metaRan != 0,
	}
}

// where returns where the job of a slot is.
func (t *table) where(at slot) meta { return t.chunks[at/chunkSize].metas[at%chunkSize] & metaWhere }

// move notes where the job of a slot is.
func (t *table) move(at slot, where meta) {
	m := &t.chunks[at/chunkSize].metas[at%chunkSize]
	*m = *m&^metaWhere | where
}

// less is the order of the records of two slots.
func (t *table) less(a, b slot) bool {
	t.compared++
	ca, cb := t.chunks[a/chunkSize], t.chunks[b/chunkSize]
	ta, tb := ca.times[a%chunkSize], cb.times[b%chunkSize]
	return ta < tb || ta == tb && ca.ids[a%chunkSize] < cb.ids[b%chunkSize]
}

// degree is that of the trees: a node has up to 127 slots. A tree that grows at
// its end, as these do, has nodes that are half full.
const degree = 64

// An order is some slots of a table in the order of their records. The zero order
// is empty.
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

// remove takes a slot out of the order, in which it is.
func (o *order) remove(at slot) { o.tree.Delete(at) }

// len returns how many slots there are.
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

// back calls f for the slots, newest first, until f returns false.
func (o *order) back(f func(slot) bool) {
	if o.tree != nil {
		o.tree.Descend(f)
	}
}
