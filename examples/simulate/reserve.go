package main

import (
	"cmp"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A reservation is what EASY keeps for the head. Jobs get whole nodes, and one is as good
// as another, so numbers say what a plan of the pool would, at a small part of its cost.
// The zero reservation keeps nothing.
type reservation struct {
	at   eventlog.Timestamp // when the head is to start
	idle int64              // how many nodes that are idle now it needs then
}

// reserve returns when so many nodes are free at the earliest, if jobs end when they
// expire. Those that should have ended are taken to end now. Idle nodes are kept only as
// far as too few others come free.
func (s *scheduler) reserve(nodes int64, now eventlog.Timestamp) reservation {
	at, free := now, int64(0)
	for _, e := range s.ends {
		if e.at > at {
			if s.idle+free >= nodes {
				break
			}
			at = e.at
		}
		free += e.nodes
	}
	if s.idle+free < nodes {
		return reservation{} // it waits for what is down, and no job delays it
	}
	return reservation{at, max(0, nodes-free)}
}

// admits reports whether a job for which there are nodes does not delay the head.
func (h *reservation) admits(w wish, now eventlog.Timestamp, idle int64) bool {
	return h.backInTime(w, now) || w.nodes <= idle-h.idle
}

// started takes a job into account that was admitted and has its nodes.
func (h *reservation) started(w wish, now eventlog.Timestamp) {
	if h.backInTime(w, now) {
		h.idle = max(0, h.idle-w.nodes)
	}
}

// backInTime reports whether a job that starts now gives its nodes back before the head starts.
func (h *reservation) backInTime(w wish, now eventlog.Timestamp) bool {
	return now+eventlog.Timestamp(w.Duration().Seconds()) <= h.at
}

// An ending is when a job gives nodes back.
type ending struct {
	at    eventlog.Timestamp
	id    jobid.ID
	nodes int64 // that are up
}

// holds notes that a job, which is to end at a time, has so many more nodes.
func (s *scheduler) holds(id jobid.ID, end eventlog.Timestamp, nodes int64) {
	if nodes == 0 {
		return
	}
	e := ending{at: end, id: id, nodes: nodes}
	i, found := slices.BinarySearchFunc(s.ends, e, func(a, b ending) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id))
	})
	switch {
	case !found:
		s.ends = slices.Insert(s.ends, i, e)
	case s.ends[i].nodes+nodes == 0:
		s.ends = slices.Delete(s.ends, i, i+1)
	default:
		s.ends[i].nodes += nodes
	}
}
