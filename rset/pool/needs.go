package pool

import (
	"fmt"
	"math"
	"time"

	"github.com/joblife/joblife/jobstate/jobspec"
)

// Needs is a request in numbers, for callers without a jobspec.
type Needs struct {
	Nodes    int           // how many nodes; 0: slots go wherever they fit
	Slots    int           // how many slots on each node, or in all if Nodes is 0; 0 means 1
	Cores    int           // of each slot; 0 with Nodes and without GPUs: whole nodes, whatever is on them
	GPUs     int           // of each slot
	Whole    bool          // the job gets all of its nodes
	Duration time.Duration // how long the job may run; 0: no limit
}

// Request returns the request. It is the one of a jobspec with the same numbers; see
// [NewRequest]. The error is ErrRequest if a number is negative, or if there are no
// cores although the job does not get whole nodes; or ErrLimit for more than
// jobspec.MaxQuantity of a kind in all.
func (n Needs) Request() (*Request, error) {
	slots := max(n.Slots, 1)
	for _, v := range []int{n.Nodes, n.Slots, n.Cores, n.GPUs, int(min(n.Duration, math.MaxInt32))} {
		if v < 0 {
			return nil, fmt.Errorf("%w: a number is negative: %+v", ErrRequest, n)
		}
	}
	for _, v := range []int{n.Nodes, slots, n.Cores, n.GPUs} {
		if int64(v) > jobspec.MaxCount {
			return nil, fmt.Errorf("%w: %d, at most %d are allowed", ErrLimit, v, jobspec.MaxCount)
		}
	}
	whole := n.Whole || n.Nodes > 0 && n.Cores == 0 && n.GPUs == 0
	q := Request{slots: jobspec.Fixed(int64(slots)), nodesPerSlot: 1, exclusive: whole, seconds: n.Duration.Seconds()}
	if n.Nodes > 0 {
		q.nodes = jobspec.Fixed(int64(n.Nodes))
	}
	if n.Cores > 0 {
		q.per = append(q.per, need{"core", int64(n.Cores)})
	}
	if n.GPUs > 0 {
		q.per = append(q.per, need{"gpu", int64(n.GPUs)})
	}
	switch {
	case whole && n.Nodes == 0:
		return nil, fmt.Errorf("%w: whole nodes without a number of nodes", ErrRequest)
	case n.Cores == 0 && !whole:
		return nil, fmt.Errorf("%w: %w", ErrRequest, errNoCores)
	}
	if err := q.checkTotal(); err != nil {
		return nil, categorize(ErrRequest, err)
	}
	return &q, nil
}
