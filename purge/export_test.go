package purge

import (
	"fmt"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// Compared returns how often the order of two jobs was asked for.
func (x *Index) Compared() uint64 { return x.jobs.compared }

// Abort is what CarryOut does where the store failed.
func (x *Index) Abort() { x.abort() }

// MaxPins is how many pins a job has at most.
const MaxPins = maxPins

// Retries are the delays after which a stuck job is tried again.
const RetryFirst, RetryMost = retryFirst, retryMost

// Check returns the first thing that is wrong with the index.
func (x *Index) Check() error {
	orders := map[meta]func(func(slot) bool){
		whereFree: x.free.each, wherePinned: x.pinned.each, wherePurged: x.ended.each,
	}
	if err := x.jobs.check("record", orders, x.leaving()+x.numWaiting()); err != nil {
		return err
	}
	var counts ResultCounts
	waiting := 0
	for id, at := range x.jobs.byID {
		if x.jobs.where(at) == wherePurged {
			if id > x.high {
				return fmt.Errorf("I9: %v is above the watermark %v", id, x.high)
			}
			continue
		}
		counts.add(x.jobs.record(at).Result, 1)
		if got := len(x.pins[id]) > 0; got != (x.jobs.where(at) == wherePinned) {
			return fmt.Errorf("%v has pins: %v, is pinned: %v", id, got, !got)
		}
		if id > x.high {
			return fmt.Errorf("I9: %v is above the watermark %v", id, x.high)
		}
		if x.jobs.where(at) == whereWaiting {
			waiting++
			if r, ok := x.retries[id]; !ok || !x.waiting.Has(r) {
				return fmt.Errorf("%v waits and is not to be tried again", id)
			}
		}
	}
	for id := range x.retries {
		if at, ok := x.jobs.byID[id]; !ok || x.jobs.where(at) == wherePinned {
			return fmt.Errorf("%v is to be tried again and is not free", id)
		}
	}
	switch {
	case waiting != x.numWaiting():
		return fmt.Errorf("%d jobs wait, %d are to be tried again", waiting, x.numWaiting())
	case counts != x.resident:
		return fmt.Errorf("%v are resident, counted are %v", counts, x.resident)
	case len(x.pins) != x.pinned.len():
		return fmt.Errorf("%d jobs have pins, %d are pinned", len(x.pins), x.pinned.len())
	}
	if x.buried.Total() != x.ended.len() {
		return fmt.Errorf("%d tombstones, counted are %v", x.ended.len(), x.buried)
	}
	if x.batch == nil {
		return nil
	}
	left := 0
	for _, c := range x.batch.Jobs {
		at := x.jobs.byID[c.ID]
		where := x.jobs.where(at)
		if x.jobs.record(at) != c.Summary || where != whereLeaving && where != whereAnswered {
			return fmt.Errorf("%v is in the batch and at %x", c.ID, where)
		}
		if where == whereLeaving {
			left++
		}
	}
	if left != x.batch.left {
		return fmt.Errorf("of %d jobs the store has said nothing, counted are %d", left, x.batch.left)
	}
	return nil
}

// check returns the first thing that is wrong with a table and its orders.
func (t *table) check(what string, orders map[meta]func(func(slot) bool), others int) error {
	if t.len()+t.empties != t.used {
		return fmt.Errorf("%ss: %d held, %d empty, %d used", what, t.len(), t.empties, t.used)
	}
	for id, at := range t.byID {
		if t.record(at).ID != id {
			return fmt.Errorf("%s %v is %v", what, id, t.record(at).ID)
		}
	}
	at := t.empty
	for range t.empties {
		c, i := t.chunks[at/chunkSize], at%chunkSize
		if c.rows[i].time != 0 || c.metas[i] != 0 {
			return fmt.Errorf("empty %s %d is not zero", what, at)
		}
		at = slot(c.rows[i].id)
	}
	n := others
	for where, each := range orders {
		var last *jobstate.Summary
		var err error
		each(func(at slot) bool {
			n++
			j := t.record(at)
			switch {
			case t.where(at) != where:
				err = fmt.Errorf("%s %v is in order %x and at %x", what, j.ID, where, t.where(at))
			case !t.is(j.ID, at):
				err = fmt.Errorf("%s %v is found elsewhere", what, j.ID)
			case last != nil && compare(*last, j) >= 0:
				err = fmt.Errorf("%s %v is after %v", what, *last, j)
			}
			last = &j
			return err == nil
		})
		if err != nil {
			return err
		}
	}
	if n != t.len() {
		return fmt.Errorf("%d %ss have a place, %d are held", n, what, t.len())
	}
	return nil
}

// is reports whether at is found for an id.
func (t *table) is(id jobid.ID, at slot) bool {
	got, ok := t.byID[id]
	return ok && got == at
}

// numWaiting returns how many jobs wait.
func (x *Index) numWaiting() int {
	if x.waiting == nil {
		return 0
	}
	return x.waiting.Len()
}
