package pool

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/google/btree"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/internal/children"
)

// Config configures a pool. In each field 0 or less means the default.
type Config struct {
	MaxJobs       int // number of jobs that have resources; default 2^20
	MaxProperties int // number of different properties; default 2^16
	Fit           Fit // the order in which nodes are taken; default FitBest
}

// A Fit is the order in which jobs get the nodes that have room.
type Fit uint8

const (
	// FitBest takes fuller nodes first, which leaves room for large jobs: see the
	// package documentation.
	FitBest Fit = iota + 1
	// FitWorst takes the nodes with the most free cores first, which spreads jobs. Of
	// those it takes the ones with the most free gpus, then with the most of each other
	// kind by name, then idle ones, then the lowest rank.
	FitWorst
)

// What the zero Config means.
const (
	defaultMaxJobs       = 1 << 20
	defaultMaxProperties = 1 << 16
)

// Pool is the scheduler's view of an instance: an inventory of resources, which of its
// ranks are up, and which job holds what. [New] makes one; the zero Pool is invalid. Do
// not copy a Pool: use Clone. One goroutine at a time may use it; another one may use a
// clone.
type Pool struct {
	cfg        Config
	inventory  *rset.R               // properties up to date
	bare       *rset.R               // what allocations are cut from: no times, no properties of this instance alone
	ranks      *idset.Set            // of the inventory; never changed, only replaced
	properties map[string]*idset.Set // the same
	hosts      *hostIndex            // the same
	expiration eventlog.Timestamp

	whole   *btree.BTreeG[fitItem]    // the inventory as if it were up and idle; never changed, only replaced
	spans   *btree.BTreeG[rankItem]   // all ranks
	fit     *btree.BTreeG[fitItem]    // the spans that are up and have something free
	clashes int                       // how many spans have resources that two jobs hold
	holders *btree.BTreeG[holderItem] // the jobs, by id
}

// New returns a pool with the given inventory. All ranks are down, and no job holds
// anything. The pool expires when the inventory does. A nil inventory is empty: no
// request is feasible before [Change].Grow adds ranks. The error is ErrLimit.
func New(inventory *rset.R, cfg Config) (*Pool, error) {
	cfg.MaxJobs = cmp.Or(max(cfg.MaxJobs, 0), defaultMaxJobs)
	cfg.MaxProperties = cmp.Or(max(cfg.MaxProperties, 0), defaultMaxProperties)
	cfg.Fit = cmp.Or(cfg.Fit, FitBest)
	p := &Pool{
		cfg:        cfg,
		expiration: inventory.Expiration(),
		spans:      newRankTree(),
		fit:        newFitTree(cfg.Fit),
		holders:    btree.NewG(degree, func(a, b holderItem) bool { return a.id < b.id }),
	}
	properties := maps.Collect(inventory.Properties())
	if err := p.checkProperties(properties); err != nil {
		return nil, err
	}
	p.setInventory(must(withProperties(inventory, properties)))
	for _, sp := range spansOf(p.inventory) {
		p.replace(nil, []*span{sp})
	}
	return p, nil
}

// spansOf returns the ranks of an R, down and free, in order.
func spansOf(r *rset.R) []*span {
	var spans []*span
	for e := range r.Entries() {
		all := children.New(e.Children)
		for first, last := range e.Ranks.Ranges() {
			spans = append(spans, &span{first, last, state{all: all, free: all}})
		}
	}
	slices.SortFunc(spans, func(a, b *span) int { return cmp.Compare(a.first, b.first) })
	return spans
}

// setInventory makes r the inventory. It leaves the spans alone.
func (p *Pool) setInventory(r *rset.R) {
	p.inventory, p.ranks, p.properties = r, r.Ranks(), maps.Collect(r.Properties())
	p.hosts = newHostIndex(p.ranks, r.Nodelist())
	p.bare = r.WithoutLocal()
	p.whole = newFitTree(p.cfg.Fit)
	for _, sp := range spansOf(r) {
		sp.up = true
		p.whole.ReplaceOrInsert(sp.item())
	}
}

// withProperties returns the resources and hosts of r, with other properties.
func withProperties(r *rset.R, properties map[string]*idset.Set) (*rset.R, error) {
	return rset.New(rset.Config{
		Entries:    slices.Collect(r.Entries()),
		Hosts:      r.Nodelist(),
		Properties: properties,
	})
}

// must returns the result of an operation that cannot fail while the
// invariants hold.
func must(r *rset.R, err error) *rset.R {
	if err != nil {
		panic("pool: broken invariant: " + err.Error())
	}
	return r
}

// Clone returns an independent copy in constant time: shared parts are copied when one
// pool changes them. Clone writes to p, so no other goroutine may use p meanwhile.
// Afterwards two goroutines may each use one of the pools.
func (p *Pool) Clone() *Pool {
	c := *p
	c.spans, c.fit, c.holders = p.spans.Clone(), p.fit.Clone(), p.holders.Clone()
	return &c
}

// Inventory returns all resources, with hosts, properties and the expiration of the
// pool. It is empty after all ranks have left.
func (p *Pool) Inventory() *rset.R { return must(p.inventory.WithTimes(0, p.expiration)) }

// Available returns the resources that can be allocated now: what no job holds on the
// ranks that are up. It takes time in proportion to the ranges.
func (p *Pool) Available() *rset.R {
	return p.present(func(sp *span) *children.Set {
		if sp.up {
			return sp.free
		}
		return nil
	})
}

// Allocated returns the resources of the inventory that jobs hold, those of ranks that are
// down too. It takes time in proportion to the ranges.
func (p *Pool) Allocated() *rset.R {
	return p.present(func(sp *span) *children.Set { return sp.all.Subtract(sp.free) })
}

// Down returns the resources of the ranks that are down, including what jobs hold. It
// takes time in proportion to the ranges.
func (p *Pool) Down() *rset.R {
	return p.present(func(sp *span) *children.Set {
		if sp.up {
			return nil
		}
		return sp.all
	})
}

// each calls f with all spans, in order.
func (p *Pool) each(f func(sp *span)) {
	p.spans.Ascend(func(it rankItem) bool {
		f(it.sp)
		return true
	})
}

// present returns some of each span with the hosts and properties of the inventory.
func (p *Pool) present(some func(sp *span) *children.Set) *rset.R {
	var c collector
	p.each(func(sp *span) { c.add(sp.first, sp.last, some(sp)) })
	r := c.r(rset.Config{})
	return must(rset.Intersect(must(p.inventory.Restrict(r.Ranks())), r))
}

// A collector gathers children of ranks, to make an R of them.
type collector struct {
	sets  []*children.Set
	ranks []*idset.Set
	index map[*children.Set]int // nil while a search is as fast
}

// maxSearch is the number of sets from which on a collector keeps a map.
const maxSearch = 8

// add adds children of a range of ranks, which does not have them yet.
func (c *collector) add(first, last uint32, k *children.Set) {
	if k == nil {
		return
	}
	i := c.find(k)
	if i < 0 {
		i = len(c.sets)
		c.sets, c.ranks = append(c.sets, k), append(c.ranks, new(idset.Set))
		if c.index != nil {
			c.index[k] = i
		}
	}
	c.ranks[i].InsertRange(first, last)
}

// find returns where the ranks of a set are, or -1.
func (c *collector) find(k *children.Set) int {
	if c.index == nil && len(c.sets) < maxSearch {
		return slices.Index(c.sets, k)
	}
	if c.index == nil {
		c.index = make(map[*children.Set]int)
		for i, k := range c.sets {
			c.index[k] = i
		}
	}
	if i, ok := c.index[k]; ok {
		return i
	}
	return -1
}

// r returns the R with the rest of a Config, or the empty R.
func (c *collector) r(cfg rset.Config) *rset.R {
	if len(c.sets) == 0 {
		return new(rset.R)
	}
	cfg.Entries = make([]rset.Entry, len(c.sets))
	for i, k := range c.sets {
		cfg.Entries[i] = rset.Entry{Ranks: c.ranks[i], Children: k.Map()}
	}
	return must(rset.New(cfg))
}

// validTime reports whether a time is one of RFC 20.
func validTime(t eventlog.Timestamp) bool { return t >= 0 && t <= math.MaxFloat64 }

// checkTime returns an error unless a time is one of RFC 20.
func checkTime(what string, t eventlog.Timestamp) error {
	if !validTime(t) {
		return invalid("%s %w: %v", what, errTime, t)
	}
	return nil
}
