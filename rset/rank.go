package rset

import (
	"slices"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset/hostlist"
)

// AssignHosts returns r with the given hosts, in rank order. The error is a
// *HostsError with both numbers unless there are as many hosts as ranks. It
// drops what the scheduler kept with r. It copies the list.
func (r *R) AssignHosts(list *hostlist.List) (*R, error) {
	if r.Len() != list.Len() {
		return nil, &HostsError{Ranks: r.Len(), Hosts: list.Len()}
	}
	out := *r.orEmpty()
	out.hosts, out.scheduling = hostsOf(list.Clone()), nil
	return &out, nil
}

// Rerank returns r with other ranks: the place of its host in the list, from 0,
// is the new rank of each. The list has the hosts of r, each once: the
// error is a *HostsError that gives both numbers, or names the hosts that are
// on one side only or given twice. It drops what the scheduler kept with r,
// which speaks of the old ranks. It costs by hosts.
func (r *R) Rerank(list *hostlist.List) (*R, error) {
	r = r.orEmpty()
	if r.Len() != list.Len() {
		return nil, &HostsError{Ranks: r.Len(), Hosts: list.Len()}
	}
	if !r.IsEmpty() && len(r.hosts) == 0 {
		first, _ := r.Ranks().Min()
		return nil, &HostsError{Rank: first, Reason: "has no host"}
	}
	place := make(map[string]int, r.Len())
	var twice, unknown []string
	ranks, names := r.expand()
	for i, name := range names {
		if _, ok := place[name]; ok {
			twice = append(twice, name)
		}
		place[name] = i
	}
	from := make([]int, 0, len(names))
	for name := range list.All() {
		i, ok := place[name]
		switch {
		case !ok:
			unknown = append(unknown, name)
		case i < 0:
			twice = append(twice, name)
		}
		place[name] = -1
		from = append(from, i)
	}
	switch {
	case len(twice) > 0:
		return nil, &HostsError{Names: capNames(twice), Reason: "hosts are there more than once"}
	case len(unknown) > 0:
		return nil, &HostsError{Names: capNames(unknown), Reason: "hosts are not there"}
	}
	to := make(map[uint32]uint32, len(ranks)) // old rank to new
	var made builder
	for k, i := range from {
		to[ranks[i]] = uint32(k)
		at, _ := find(r.spans, ranks[i])
		made.add(uint32(k), uint32(k), r.nodeAt(at))
	}
	return r.moved(made, hostsOf(list.Clone()), to), nil
}

// expand returns the ranks in order, and their hosts.
func (r *R) expand() (ranks []uint32, names []string) {
	ranks = make([]uint32, 0, r.Len())
	for _, s := range r.spans {
		for rank := s.first; rank <= s.last; rank++ {
			ranks = append(ranks, rank)
		}
	}
	for name := range r.hosts.list().All() {
		names = append(names, name)
	}
	return ranks, names
}

// moved returns r with other spans and hosts, its properties on their new ranks.
func (r *R) moved(made builder, h hosts, to map[uint32]uint32) *R {
	out := *r
	out.spans, out.nodes, out.hosts, out.scheduling = made.spans, made.nodes, h, nil
	out.properties = slices.Clone(r.properties)
	for i := range out.properties {
		set := new(idset.Set)
		for rank := range r.properties[i].ranks.All() {
			set.Insert(to[rank])
		}
		out.properties[i].ranks = set
	}
	return &out
}

// capNames returns copies of the first names, short enough to print, in order.
func capNames(names []string) []string {
	slices.Sort(names)
	names = slices.Compact(names)
	out := make([]string, 0, maxNames)
	for _, name := range names[:min(len(names), maxNames)] {
		out = append(out, quoted(name))
	}
	return out
}

// Remap returns r with ranks 0, 1, 2, … in the order of the old ones, and on
// each rank cores 0, 1, 2, … in their order: what an instance that runs in an
// allocation calls its resources. Other children keep their ids, which name
// devices. It drops what the scheduler kept with r. It costs by ranks.
func (r *R) Remap() *R {
	r = r.orEmpty()
	nodes := make([]*node, len(r.nodes))
	for i, n := range r.nodes {
		kinds := slices.Clone(n.kinds)
		for k := range kinds {
			if kinds[k].name == "core" {
				cores := new(idset.Set)
				cores.InsertRange(0, uint32(kinds[k].ids.Len()-1))
				kinds[k].ids = cores
			}
		}
		nodes[i] = newNode(kinds)
	}
	var made builder
	to := make(map[uint32]uint32)
	for _, s := range r.spans {
		made.add(uint32(s.before), uint32(s.before+s.len()-1), nodes[s.node])
		for rank := s.first; len(r.properties) > 0 && rank <= s.last; rank++ {
			to[rank] = uint32(s.before) + rank - s.first
		}
	}
	return r.moved(made, r.hosts, to)
}

// RanksOf returns a new set of the ranks on a host: none if it is not there,
// several if it is there more than once. It costs by hosts.
func (r *R) RanksOf(host string) *idset.Set {
	one := new(hostlist.List)
	if one.Append(host) != nil {
		return new(idset.Set)
	}
	ranks, err := r.HostsToRanks(one)
	if err != nil {
		return new(idset.Set)
	}
	return ranks
}

// HostsToRanks returns a new set of the ranks on the given hosts, all of them
// where a host has several. The error is a *HostsError that names hosts which
// are not there. It costs by hosts of both.
func (r *R) HostsToRanks(list *hostlist.List) (*idset.Set, error) {
	r = r.orEmpty()
	wanted := make(map[string]bool, list.Len()) // whether it was found
	for name := range list.All() {
		wanted[name] = false
	}
	out := new(idset.Set)
	if len(wanted) > 0 {
		ranks, names := r.expand()
		for i, name := range names {
			if _, ok := wanted[name]; ok {
				wanted[name] = true
				out.Insert(ranks[i])
			}
		}
	}
	var unknown []string
	for name := range list.All() {
		if !wanted[name] {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return nil, &HostsError{Names: capNames(unknown), Reason: "hosts are not there"}
	}
	return out, nil
}

// WithoutLocal returns r without the properties that begin with "+", which mean
// something in one instance only: what a job is given. It drops what the
// scheduler kept with r.
func (r *R) WithoutLocal() *R {
	out := *r.orEmpty()
	out.properties = slices.DeleteFunc(slices.Clone(out.properties), func(p property) bool { return p.name[0] == '+' })
	out.scheduling = nil
	return &out
}
