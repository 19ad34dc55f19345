package pool

import (
	"strconv"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/hostlist"
)

// Asked is what a Request says to the pool.
type Asked struct {
	Nodes, Slots jobspec.Count
	Span         int64
	Per          string // "core:4 gpu:1"
	Exclusive    bool
	Constrained  bool
}

// Asked returns the fields of the request.
func (q *Request) Asked() Asked {
	a := Asked{Nodes: q.nodes, Slots: q.slots, Span: q.nodesPerSlot, Exclusive: q.exclusive, Constrained: q.constraint != ""}
	for _, p := range q.per {
		if a.Per != "" {
			a.Per += " "
		}
		a.Per += p.kind + ":" + strconv.FormatInt(p.n, 10)
	}
	return a
}

// Smallest returns how many slots and how many of a kind the smallest grant
// has.
func (q *Request) Smallest(kind string) (slots, n int64) {
	nodes := int64(1)
	if !q.nodes.IsZero() {
		nodes = q.nodes.Min() * q.nodesPerSlot
	}
	for _, p := range q.per {
		if p.kind == kind {
			n = nodes * q.slots.Min() * p.n
		}
	}
	return q.nslots(nodes, q.slots.Min()), n
}

// Fake is an inventory for tests.
type Fake struct {
	All        *idset.Set
	Properties map[string]*idset.Set
	Hosts      *hostlist.List // nil: not known
	made       *Pool
}

// pool returns a pool with what constraints look at.
func (f *Fake) pool() *Pool {
	if f.made == nil {
		c := rset.Config{Properties: f.Properties}
		if !f.All.IsEmpty() {
			c.Entries = []rset.Entry{{Ranks: f.All, Children: map[string]*idset.Set{"core": idset.Of(0)}}}
		}
		r, err := rset.New(c)
		f.made = &Pool{ranks: f.All, inventory: must(r, err), hosts: newHostIndex(f.All, f.Hosts)}
	}
	return f.made
}

// RanksOfHosts returns the ranks on the hosts of a list.
func (f *Fake) RanksOfHosts(list *hostlist.List) *idset.Set { return f.pool().hosts.ranks(list) }

// Eligible returns what a request may have of the inventory, nil for all, as if nobody
// had asked before.
func (f *Fake) Eligible(q *Request) *idset.Set {
	p := f.pool()
	p.known = known{}
	return q.eligible(p)
}

// Match reads constraints and returns the ranks that they match, all of them
// for constraints that say nothing.
func (f *Fake) Match(constraints []byte) (*idset.Set, error) {
	constrained, err := readConstraint(constraints, new(idset.Set), nil)
	if err != nil {
		return nil, categorize(ErrRequest, err)
	}
	if !constrained {
		return f.All.Clone(), nil
	}
	return f.Eligible(&Request{constraint: string(constraints)}), nil
}

// The limits of constraints.
const (
	MaxConstraintBytes = maxConstraintBytes
	MaxConstraintDepth = maxConstraintDepth
	MaxTerms           = maxTerms
	MaxSpelled         = maxSpelled
)

// MaxAcquire is the largest number of bytes of a response.
const MaxAcquire = maxAcquire
