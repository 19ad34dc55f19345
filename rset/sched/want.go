package sched

import (
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset/pool"
)

// A want is what a job asks for.
type want struct {
	request *pool.Request
	need    // nodes is 0 unless it asks for a number of whole nodes, whichever
}

// wants knows the last jobspecs, since many jobs have the same.
type wants struct {
	known map[string]want
	bytes int // of texts
}

// Beyond these it forgets all.
const (
	maxKnown      = 1 << 12
	maxKnownBytes = 1 << 22
)

// of returns what a jobspec asks for.
func (k *wants) of(text []byte) (want, error) {
	if w, ok := k.known[string(text)]; ok {
		return w, nil
	}
	spec, err := jobspec.Parse(text)
	if err != nil {
		return want{}, err
	}
	q, err := pool.NewRequest(spec)
	if err != nil {
		return want{}, err
	}
	w := want{q, needOf(spec)}
	if k.bytes += len(text); k.known == nil || len(k.known) == maxKnown || k.bytes > maxKnownBytes {
		k.known, k.bytes = make(map[string]want), len(text)
	}
	k.known[string(text)] = w
	return w, nil
}

// needOf returns the least that a job needs. Where it is not known, it is 0.
func needOf(spec *jobspec.Spec) need {
	n := need{takes: never}
	if d := spec.Duration(); d > 0 {
		n.takes = eventlog.Timestamp(d.Seconds())
	}
	shape, err := spec.Shape()
	if err != nil {
		return n
	}
	// Package pool limits the product.
	n.cores = max(shape.Nodes.Min(), 1) * shape.Slots.Min() * shape.Cores.Min()
	if nodes, ok := shape.Nodes.Fixed(); ok && shape.Exclusive && len(spec.Constraints()) == 0 {
		n.nodes = nodes
	}
	return n
}
