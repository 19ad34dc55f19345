package exec

import (
	"cmp"
	"container/heap"

	"github.com/joblife/joblife/eventlog"
)

// timers is a heap of the jobs that have a timer.
type timers []*job

func (t timers) Len() int { return len(t) }

func (t timers) Less(i, k int) bool {
	return cmp.Or(cmp.Compare(t[i].due, t[k].due), cmp.Compare(t[i].id, t[k].id)) < 0
}

func (t timers) Swap(i, k int) {
	t[i], t[k] = t[k], t[i]
	t[i].place, t[k].place = i+1, k+1
}

func (t *timers) Push(v any) {
	j := v.(*job)
	*t = append(*t, j)
	j.place = len(*t)
}

func (t *timers) Pop() any {
	last := len(*t) - 1
	j := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	j.place = 0
	return j
}

// setTimer replaces the timer of a job; 0 means never.
func (x *Executor) setTimer(j *job, at eventlog.Timestamp) {
	if j.place > 0 {
		heap.Remove(&x.timers, j.place-1)
	}
	if j.due = at; at > 0 {
		heap.Push(&x.timers, j)
	}
}

// next returns when the next timer is due.
func (t timers) next() (eventlog.Timestamp, bool) {
	if len(t) == 0 {
		return 0, false
	}
	return t[0].due, true
}
