package pool

import (
	"cmp"
	"fmt"
	"time"

	"github.com/joblife/joblife/jobstate/jobspec"
)

// Needs is a request in numbers, for callers without a jobspec. The fields have the
// meaning that they have in [jobspec.Job].
type Needs struct {
	Nodes     int64         // 0: slots go wherever they fit
	Slots     int64         // on each node; in total if Nodes is 0. 0 means 1
	Cores     int64         // for each slot; 0 means 1
	GPUs      int64         // for each slot
	Exclusive bool          // whole nodes; Nodes must not be 0
	Duration  time.Duration // 0: no limit
}

// Request returns the request that [NewRequest] would make from a jobspec with the same
// numbers. The error is ErrRequest if a number is negative, or Exclusive comes without
// Nodes; or ErrLimit if a number is above jobspec.MaxCount, or a total above
// jobspec.MaxQuantity.
func (n Needs) Request() (*Request, error) {
	for _, v := range []int64{n.Nodes, n.Slots, n.Cores, n.GPUs} {
		switch {
		case v < 0:
			return nil, fmt.Errorf("%w: %d is negative", ErrRequest, v)
		case v > jobspec.MaxCount:
			return nil, fmt.Errorf("%w: %d, at most %d are allowed", ErrLimit, v, jobspec.MaxCount)
		}
	}
	switch {
	case n.Duration < 0:
		return nil, fmt.Errorf("%w: duration %v is negative", ErrRequest, n.Duration)
	case n.Exclusive && n.Nodes == 0:
		return nil, fmt.Errorf("%w: exclusive without a number of nodes", ErrRequest)
	}
	q := Request{
		slots: jobspec.Fixed(cmp.Or(n.Slots, 1)), nodesPerSlot: 1,
		per:       []need{{"core", cmp.Or(n.Cores, 1)}},
		exclusive: n.Exclusive, duration: n.Duration,
	}
	if n.Nodes > 0 {
		q.nodes = jobspec.Fixed(n.Nodes)
	}
	if n.GPUs > 0 {
		q.per = append(q.per, need{"gpu", n.GPUs})
	}
	if err := q.checkTotal(); err != nil {
		return nil, categorize(ErrRequest, err)
	}
	return &q, nil
}
