package sched

import (
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset/pool"
)

// requests has what the last jobspecs ask for, since many jobs have the same.
type requests struct {
	known map[string]*pool.Request
	bytes int // of texts
}

// maxKnownBytes are the bytes of texts beyond which it forgets all.
const maxKnownBytes = 1 << 22

func (k *requests) of(text []byte) (*pool.Request, error) {
	if q, ok := k.known[string(text)]; ok {
		return q, nil
	}
	spec, err := jobspec.Parse(text)
	if err != nil {
		return nil, err
	}
	q, err := pool.NewRequest(spec)
	if err != nil {
		return nil, err
	}
	if k.bytes += len(text); k.known == nil || k.bytes > maxKnownBytes {
		k.known, k.bytes = make(map[string]*pool.Request), len(text)
	}
	k.known[string(text)] = q
	return q, nil
}

// shares returns 1 for a job that asks for something else than a number of whole nodes, or 0.
func (j *job) shares() int {
	if _, _, whole := j.Request.Least(); whole {
		return 0
	}
	return 1
}

func needOf(q *pool.Request) need {
	n := need{takes: never, request: q}
	n.nodes, n.cores, _ = q.Least()
	if d := q.Duration(); d > 0 {
		n.takes = eventlog.Timestamp(d.Seconds())
	}
	return n
}
