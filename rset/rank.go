package rset

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/rset/hostlist"
)

// AssignHosts returns r with other hosts, in rank order, which it copies, and without the
// scheduling key. It is an error unless there are as many hosts as ranks, and [ErrLimit] if they
// are more than 2^24.
func (r *R) AssignHosts(list *hostlist.List) (*R, error) {
	if err := r.checkHosts(list); err != nil {
		return nil, categorize(err)
	}
	out := *r.orEmpty()
	out.hosts, out.scheduling = list.Clone(), nil
	return &out, nil
}

const (
	maxExpanded = 1 << 18 // hosts that are looked at one by one
	maxMoved    = 1 << 22 // ranks of properties
)

// few returns the cause of an [ErrLimit] if there are too many.
func few(what string, n, most int) error {
	if n > most {
		return tooMany(what, n, most)
	}
	return nil
}

// checkHosts returns the cause of an error unless there are as many hosts as ranks.
func (r *R) checkHosts(list *hostlist.List) error {
	if n, m := r.Len(), list.Len(); n != m {
		return guard.Cause(errHosts, fmt.Sprintf("number of hosts is %d, must be %d", m, n))
	}
	return few("hosts", r.Len(), maxHosts)
}

// Rerank returns r with new ranks, and without the scheduling key: the new rank of a node is the
// index of its host in the list, from 0. It is an error unless the list has exactly the hosts of
// r, each once, and [ErrLimit] if they are more than 2^18, or the ranks of all properties more
// than 2^22. It takes time in proportion to both.
func (r *R) Rerank(list *hostlist.List) (*R, error) {
	r = r.orEmpty()
	moves := 0
	for _, p := range r.properties {
		moves = min(moves+p.ranks.Len(), maxMoved+1)
	}
	if err := cmp.Or(r.checkHosts(list), few("hosts", r.Len(), maxExpanded), few("ranks of properties", moves, maxMoved)); err != nil {
		return nil, categorize(err)
	}
	if !r.IsEmpty() && r.hosts.IsEmpty() {
		first, _ := r.Ranks().Min()
		return nil, fmt.Errorf("%w: rank %d has no host", errHosts, first)
	}
	place := make(map[string]int, r.Len())
	var twice, unknown []string
	ranks, _ := r.Ranks().Slice(maxExpanded)
	for name := range r.hosts.All() {
		if _, ok := place[name]; ok {
			twice = append(twice, name)
		}
		place[name] = len(place)
	}
	to := make(map[uint32]uint32, len(ranks)) // old rank to new
	var made builder
	for name := range list.All() {
		switch i, ok := place[name]; {
		case !ok:
			unknown = append(unknown, name)
		case i < 0:
			twice = append(twice, name)
		default:
			at, _ := find(r.spans, ranks[i])
			rank := uint32(made.ranks)
			to[ranks[i]] = rank
			made.add(rank, rank, r.nodeAt(at))
		}
		place[name] = -1
	}
	switch {
	case len(twice) > 0:
		return nil, hostsNamed("duplicate hosts", twice)
	case len(unknown) > 0:
		return nil, hostsNamed("unknown hosts", unknown)
	}
	out := *r
	out.spans, out.nodes, out.hosts, out.scheduling = made.spans, made.nodes, list.Clone(), nil
	out.properties = slices.Clone(r.properties)
	for i, p := range out.properties {
		moved := new(idset.Set)
		for rank := range p.ranks.All() {
			moved.Insert(to[rank])
		}
		out.properties[i].ranks = moved
	}
	return &out, nil
}

// WithoutLocal returns r as a job gets it: without the scheduling key and the properties that
// begin with "+", which have a meaning in one instance only.
func (r *R) WithoutLocal() *R {
	local := func(p property) bool { return p.name[0] == '+' }
	if r != nil && r.scheduling == nil && !slices.ContainsFunc(r.properties, local) {
		return r
	}
	out := *r.orEmpty()
	out.properties = slices.DeleteFunc(slices.Clone(out.properties), local)
	out.scheduling = nil
	return &out
}
