package pool

import (
	"cmp"
	"math"
	"slices"

	"github.com/google/btree"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/children"
)

// Config configures a pool. In each field 0 or less means the default.
type Config struct {
	MaxJobs       int // number of jobs that have resources, and of planned jobs; default 2^20
	MaxProperties int // number of different properties; default 2^16
	Fit           Fit // the order in which nodes are taken; default FitBest
}

// A Fit is the order in which jobs get the nodes that have room.
type Fit uint8

const (
	// FitBest takes fuller nodes first: see the package documentation.
	FitBest Fit = iota + 1
	// FitWorst takes the nodes with the most free cores first, which spreads jobs. Of
	// those it takes the ones with the most free gpus, then with the most of each other
	// kind by name, then idle ones, then the lowest rank.
	FitWorst
)

// memory is room that a search or a forecast had, for the next one.
type memory struct {
	grants, later   []grant
	touched, gained []*span
}

// Pool is the scheduler's view of an instance. [New] makes one; the zero Pool is invalid. Do
// not copy a Pool: use Clone.
type Pool struct {
	cfg        Config
	inventory  *rset.R    // properties up to date; with the scheduling key
	bare       *rset.R    // what allocations are cut from: no times, no properties of this instance alone
	ranks      *idset.Set // of the inventory; never changed, only replaced
	hosts      *hostIndex // of the inventory; never changed, only replaced
	known      known      // what was found out about requests
	expiration eventlog.Timestamp
	memory     memory
	shrinks    int // updates in which ranks left

	tally
	alike     bool                            // all nodes of the inventory have the same
	whole     *btree.BTreeG[fitItem]          // the inventory as if it were up and idle; never changed, only replaced
	spans     *btree.BTreeG[rankItem]         // all ranks
	fit       *btree.BTreeG[fitItem]          // the spans that are up and have something free
	shortages []shortage                      // since the last update, in the order in which they were found
	holders   *btree.BTreeG[jobItem[*holder]] // the jobs, by id
	planned   *btree.BTreeG[jobItem[*plan]]   // the planned jobs, by id
	starts    *btree.BTreeG[event]            // of planned jobs
	ends      *btree.BTreeG[event]            // of planned jobs and holders, except those that never end
}

// New returns a pool with the given inventory, which may be nil or empty until [Change].Grow
// adds ranks. All ranks are down, and no job holds anything. The pool expires when the inventory
// does. More properties than Config.MaxProperties are an error.
func New(inventory *rset.R, cfg Config) (*Pool, error) {
	cfg.MaxJobs = cmp.Or(max(cfg.MaxJobs, 0), 1<<20)
	cfg.MaxProperties = cmp.Or(max(cfg.MaxProperties, 0), 1<<16)
	cfg.Fit = cmp.Or(cfg.Fit, FitBest)
	p := &Pool{
		cfg:        cfg,
		expiration: inventory.Expiration(),
		spans:      newRankTree(),
		fit:        newFitTree(cfg.Fit),
		holders:    newJobTree[*holder](),
		planned:    newJobTree[*plan](),
		starts:     newEventTree(),
		ends:       newEventTree(),
	}
	p.setInventory(bareOf(inventory))
	if err := p.checkProperties(p.inventory); err != nil {
		return nil, err
	}
	for _, sp := range spansOf(p.inventory) {
		p.insert(sp)
	}
	return p, nil
}

// spansOf returns the ranks of an R, down and free, in order.
func spansOf(r *rset.R) []*span {
	var spans []*span
	for pt := range r.Parts() {
		spans = append(spans, &span{pt.First, pt.Last, state{all: pt.What, free: pt.What}})
	}
	return spans
}

// setInventory makes r the inventory. It leaves the spans alone.
func (p *Pool) setInventory(r *rset.R) {
	p.ranks = r.Ranks()
	p.hosts = newHostIndex(p.ranks, r.Nodelist())
	p.setProperties(r)
	p.whole, p.alike = newFitTree(p.cfg.Fit), true
	spans := spansOf(r)
	for _, sp := range spans {
		p.alike = p.alike && sp.all.Equal(spans[0].all)
		sp.up = true
		p.whole.ReplaceOrInsert(sp.item())
	}
}

// setProperties makes r the inventory, which differs only in properties.
func (p *Pool) setProperties(r *rset.R) {
	local := make(map[string]*idset.Set)
	for name := range r.Properties() {
		if name[0] == '+' {
			local[name] = nil
		}
	}
	if p.inventory, p.bare = r, r; len(local) > 0 {
		p.bare = must(r.WithProperties(local))
	}
	p.known = known{}
}

// bareOf returns the resources, hosts, properties and scheduling key of r alone.
func bareOf(r *rset.R) *rset.R { return r.Cut(slices.Collect(r.Parts()), 0, 0, 0) }

// must returns the result of an operation that cannot fail while the invariants hold.
func must(r *rset.R, err error) *rset.R {
	if err != nil {
		panic("pool: broken invariant: " + err.Error())
	}
	return r
}

// Clone returns an independent copy in constant time: shared parts are copied when one pool
// changes them. Clone writes to p. Afterwards two goroutines may each use one of the pools.
func (p *Pool) Clone() *Pool {
	c := *p
	c.spans, c.fit, c.holders = p.spans.Clone(), p.fit.Clone(), p.holders.Clone()
	c.planned, c.starts, c.ends = p.planned.Clone(), p.starts.Clone(), p.ends.Clone()
	c.shortages = slices.Clone(p.shortages)
	c.known, c.memory = known{}, memory{}
	return &c
}

// Inventory returns all resources, with hosts, properties, the expiration of the pool, and, until
// ranks join, the scheduling key that it was made with. It is empty after all ranks have left.
func (p *Pool) Inventory() *rset.R { return must(p.inventory.WithTimes(0, p.expiration)) }

// Available returns what no job holds on the ranks that are up. Like Allocated and Down, it
// takes time in proportion to the ranges.
func (p *Pool) Available() *rset.R {
	return p.present(func(sp *span) *children.Set {
		if sp.up {
			return sp.free
		}
		return nil
	})
}

// Allocated returns the resources of the inventory that jobs hold, on ranks up or down.
func (p *Pool) Allocated() *rset.R {
	return p.present(func(sp *span) *children.Set { return sp.all.Subtract(sp.free) })
}

// Down returns the resources of the ranks that are down, including what jobs hold.
func (p *Pool) Down() *rset.R {
	return p.present(func(sp *span) *children.Set {
		if sp.up {
			return nil
		}
		return sp.all
	})
}

// Idle returns how much is up and free: nodes that are idle, those of them on which no job is
// planned, and cores. It takes constant time.
func (p *Pool) Idle() (nodes, spare, cores int64) { return p.idle, p.spare, p.cores }

// Uniform reports whether one node is as good as another: all have the same, and jobs have whole
// ones. It takes constant time.
func (p *Pool) Uniform() bool { return p.alike && p.parts == 0 }

// present returns some of each span with its hosts and properties, without the scheduling key.
func (p *Pool) present(some func(sp *span) *children.Set) *rset.R {
	var all parts
	p.spans.Ascend(func(it rankItem) bool {
		all = all.add(it.first, it.sp.last, some(it.sp))
		return true
	})
	r := p.inventory.Cut(all, 0, 0, 0)
	return must(r.Restrict(r.Ranks()))
}

// parts are children of ranks in ascending order.
type parts []children.Part

// add appends children of a range of ranks, unless they are none.
func (ps parts) add(first, last uint32, k *children.Set) parts {
	if k == nil {
		return ps
	}
	return append(ps, children.Part{First: first, Last: last, What: k})
}

// r returns the R, without hosts and times.
func (ps parts) r() *rset.R { return (*rset.R)(nil).Cut(ps, 0, 0, 0) }

// checkTime returns an error unless a time is one of RFC 20.
func checkTime(what string, t eventlog.Timestamp) error {
	if !(t >= 0 && t <= math.MaxFloat64) {
		return invalid("%s must be a finite time of 0 or later: %v", what, t)
	}
	return nil
}
