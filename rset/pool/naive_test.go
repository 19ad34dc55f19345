package pool_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/hostlist"
	"github.com/joblife/joblife/rset/pool"
)

// A thing is one resource.
type thing struct {
	rank uint32
	kind string
	id   uint32
}

// things are the resources of an R, one by one, in order.
func things(r *rset.R) []thing {
	var out []thing
	for e := range r.Entries() {
		for rank := range e.Ranks.All() {
			for kind, ids := range e.Children {
				for id := range ids.All() {
					out = append(out, thing{rank, kind, id})
				}
			}
		}
	}
	slices.SortFunc(out, compareThings)
	return out
}

func compareThings(a, b thing) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id))
}

// bundle returns the R of resources, without hosts.
func bundle(t require.TestingT, list []thing) *rset.R {
	var c rset.Config
	nodes := make(map[uint32]map[string]*idset.Set)
	for _, x := range list {
		if nodes[x.rank] == nil {
			nodes[x.rank] = make(map[string]*idset.Set)
			c.Entries = append(c.Entries, rset.Entry{Ranks: idset.Of(x.rank), Children: nodes[x.rank]})
		}
		nodes[x.rank][x.kind] = idset.Union(nodes[x.rank][x.kind], idset.Of(x.id))
	}
	r, err := rset.New(c)
	require.NoError(t, err)
	return r
}

// A naiveJob is a job as one would write it first.
type naiveJob struct {
	r     *rset.R
	held  map[thing]bool // in the inventory or not
	since float64
	end   float64
}

// A naivePool is a pool as one would write it first: everything, one by one.
type naivePool struct {
	there map[thing]bool
	up    map[uint32]bool
	props map[string]map[uint32]bool
	jobs  map[jobid.ID]*naiveJob
}

// owners returns who holds a resource that is there, by id.
func (n *naivePool) owners(x thing) []jobid.ID {
	var out []jobid.ID
	for id, j := range n.jobs {
		if j.held[x] && n.there[x] {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// count returns how many of a kind a rank has for which keep is true.
func (n *naivePool) count(rank uint32, kind string, keep func(thing) bool) int {
	c := 0
	for x := range n.there {
		if x.rank == rank && x.kind == kind && keep(x) {
			c++
		}
	}
	return c
}

// ranks returns the ranks that are there.
func (n *naivePool) ranks() *idset.Set {
	out := new(idset.Set)
	for x := range n.there {
		out.Insert(x.rank)
	}
	return out
}

// text says what is there, whether it is up, and who holds it.
func (n *naivePool) text() string {
	var lines []string
	for x := range n.there {
		lines = append(lines, fmt.Sprintf("%05d %s %05d up=%v %v", x.rank, x.kind, x.id, n.up[x.rank], n.owners(x)))
	}
	for id, j := range n.jobs {
		for x := range j.held {
			if !n.there[x] {
				lines = append(lines, fmt.Sprintf("%05d %s %05d gone %v", x.rank, x.kind, x.id, id))
			}
		}
		lines = append(lines, fmt.Sprintf("job %v %v-%v %s", id, j.since, j.end, j.r))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// textOf says the same of a pool, by what it answers.
func textOf(p *pool.Pool) string {
	owners := map[thing][]jobid.ID{}
	var lines []string
	for h := range p.Allocations() {
		for _, x := range things(h.Held) {
			owners[x] = append(owners[x], h.ID)
		}
		for _, x := range things(h.Gone) {
			lines = append(lines, fmt.Sprintf("%05d %s %05d gone %v", x.rank, x.kind, x.id, h.ID))
		}
		lines = append(lines, fmt.Sprintf("job %v %v-%v %s", h.ID, float64(h.Since), float64(h.Expiration), h.R))
	}
	down := p.Down().Ranks()
	for _, x := range things(p.Inventory()) {
		lines = append(lines, fmt.Sprintf("%05d %s %05d up=%v %v", x.rank, x.kind, x.id, !down.Contains(x.rank), owners[x]))
		delete(owners, x)
	}
	for x, who := range owners {
		lines = append(lines, fmt.Sprintf("held and not there: %v %v", x, who))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// hostsFor returns the hosts of ranks, as each is called wherever it is.
func hostsFor(ranks *idset.Set) *hostlist.List {
	list := new(hostlist.List)
	for rank := range ranks.All() {
		_ = list.Append(fmt.Sprintf("n%d", rank))
	}
	return list
}
