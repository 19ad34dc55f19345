package purge

import (
	"cmp"
	"time"

	"github.com/google/btree"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
)

// When a job that the store could not remove is tried again, as Index.Unlinked says.
const (
	retryFirst = time.Minute
	retryMost  = time.Hour
)

// A retry is when a job is tried again.
type retry struct {
	at    eventlog.Timestamp
	id    jobid.ID
	tries int
}

// putOff has a job of the batch wait, since the store could not remove it.
func (x *Index) putOff(id jobid.ID, now eventlog.Timestamp) {
	r := x.retries[id]
	delay := min(retryFirst<<min(r.tries, 10), retryMost)
	r = retry{at: now + eventlog.Timestamp(delay.Seconds()), id: id, tries: r.tries + 1}
	if x.waiting == nil {
		x.retries = make(map[jobid.ID]retry)
		x.waiting = btree.NewG(degree, func(a, b retry) bool {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) < 0
		})
	}
	x.retries[id] = r
	x.waiting.ReplaceOrInsert(r)
	x.jobs.move(x.jobs.byID[id], whereWaiting)
}

// release frees the jobs that are to be tried again by now.
func (x *Index) release(now eventlog.Timestamp) {
	for x.waiting != nil && x.waiting.Len() > 0 {
		r, _ := x.waiting.Min()
		if r.at > now {
			return
		}
		x.waiting.DeleteMin()
		x.setFree(r.id)
	}
}

func (x *Index) setFree(id jobid.ID) {
	at := x.jobs.byID[id]
	x.jobs.move(at, whereFree)
	x.free.add(&x.jobs, at)
}
