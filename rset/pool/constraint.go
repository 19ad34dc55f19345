package pool

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/hostlist"
)

// eligible returns the ranks, up or not, that the constraints allow; nil: all. Do not change it.
func (q *Request) eligible(p *Pool) *idset.Set {
	if q.constraint == "" {
		return nil
	}
	if a, ok := p.known.allowed[q.digest]; ok {
		return a.ranks
	}
	ranks := p.ranks.Clone()
	_, _ = readConstraint([]byte(q.constraint), ranks, p) // no fault: NewRequest has read it
	p.known.allow(q, ranks)
	return ranks
}

// known is what was found out about requests for one inventory. It keeps no long text alive.
type known struct {
	allowed  map[[sha256.Size]byte]allowed // by the digest of a constraint
	ranges   int                           // of ranks in allowed
	feasible map[*Request]struct{}         // requests that the inventory can meet
	cuts     [4]cut                        // the last ones
	last     int                           // of cuts
}

// allowed is the ranks that a constraint allows.
type allowed struct {
	ranks  *idset.Set
	ranges int // of these
}

// Beyond these, some of what is known is forgotten.
const (
	maxKnown       = 1 << 12 // constraints, and requests
	maxKnownRanges = 1 << 20 // ranges of ranks that constraints allow
	maxKnownText   = 1 << 10 // bytes of the constraint of a request; a longer one is not kept
)

// allow notes which ranks the constraint of a request allows.
func (k *known) allow(q *Request, ranks *idset.Set) {
	n := 0
	for range ranks.Ranges() {
		n++
	}
	if k.allowed == nil {
		k.allowed = make(map[[sha256.Size]byte]allowed)
	}
	for old, a := range k.allowed { // no matter which: all can be found out again
		if len(k.allowed) < maxKnown && k.ranges+n <= maxKnownRanges {
			break
		}
		delete(k.allowed, old)
		k.ranges -= a.ranges
	}
	k.allowed[q.digest] = allowed{ranks, n}
	k.ranges += n
}

// suffices notes that the inventory can meet a request.
func (k *known) suffices(q *Request) {
	if len(q.constraint) > maxKnownText {
		return
	}
	if k.feasible == nil {
		k.feasible = make(map[*Request]struct{})
	}
	for old := range k.feasible {
		if len(k.feasible) < maxKnown {
			break
		}
		delete(k.feasible, old)
	}
	k.feasible[q] = struct{}{}
}

// Limits of constraints.
const (
	maxConstraintBytes = 1 << 20
	maxConstraintDepth = 64      // levels, the outermost included
	maxTerms           = 4096    // operators, and properties
	maxConstraintHosts = 1 << 20 // hosts in one constraint, counted each time
	maxSpelled         = 1 << 16 // ranges of hosts, counted each time
)

// readConstraint reads the constraints of a jobspec, and removes the ranks of a pool that do not
// satisfy them, in time in proportion to the terms and to the ranges of ranks that they name.
// Without a pool it only reads. It reports whether there are constraints: else every rank passes.
func readConstraint(b []byte, ranks *idset.Set, p *Pool) (found bool, fault *jsonobj.Fault) {
	if b == nil {
		return false, nil
	}
	if len(b) > maxConstraintBytes {
		return false, tooLong(b, maxConstraintBytes)
	}
	doc := jsonobj.NewDoc(b)
	c := constraintReader{pool: p}
	c.all(doc.Root(), 1, ranks)
	return c.operators > 0, doc.Fault()
}

// A constraintReader counts what it reads of a constraint, for the limits.
type constraintReader struct {
	pool                      *Pool // nil: the constraint is only read
	operators, hosts, spelled int
}

// all removes the ranks that do not satisfy each operator of an object.
func (c *constraintReader) all(v jsonobj.Value, depth int, ranks *idset.Set) {
	if depth > maxConstraintDepth {
		v.Fail(guard.Cause(errLimit, fmt.Sprintf("more than %d constraints in each other", maxConstraintDepth)))
	}
	for o := v.Object(); o.Next(); {
		if c.pool == nil || !ranks.IsEmpty() {
			c.operator(string(o.Key()), o.Value(), depth, ranks)
		}
	}
}

func (c *constraintReader) operator(name string, v jsonobj.Value, depth int, ranks *idset.Set) {
	c.count(v)
	switch name {
	case "and":
		for a := v.Array(); a.Next(); {
			c.all(a.Value(), depth+1, ranks)
		}
	case "or":
		left, empty := ranks.Clone(), true // left is what no value has matched yet
		for a := v.Array(); a.Next(); empty = false {
			matched := left.Clone()
			c.all(a.Value(), depth+1, matched)
			left.SubtractWith(matched)
		}
		if !empty {
			ranks.SubtractWith(left)
		}
	case "not":
		matched := ranks.Clone()
		for a := v.Array(); a.Next(); {
			c.all(a.Value(), depth+1, matched)
		}
		ranks.SubtractWith(matched)
	case "properties":
		for a := v.Array(); a.Next(); {
			c.property(a.Value(), ranks)
		}
	case "hostlist":
		hosts := new(hostlist.List)
		for a := v.Array(); a.Next(); {
			c.hostlist(hosts, a.Value())
		}
		if c.pool != nil {
			hosts.Uniq() // a host that is named again would add all its ranks again
			ranks.IntersectWith(c.pool.hosts.ranks(hosts))
		}
	case "ranks":
		var runs []rankRun
		for a := v.Array(); a.Next(); {
			for first, last := range readIDs(a.Value(), idset.MaxID).Ranges() {
				runs = append(runs, rankRun{first, last})
			}
		}
		ranks.IntersectWith(setOf(runs)) // once: a union with each value would copy those before it
	default:
		v.Fail(fmt.Errorf("unknown operator %s", guard.Quote(name)))
	}
}

func (c *constraintReader) count(v jsonobj.Value) {
	if c.operators++; c.operators > maxTerms {
		v.Fail(guard.Cause(errLimit, fmt.Sprintf("more than %d operators and properties", maxTerms)))
	}
}

// property removes the ranks that lack a property, or have one after "^". The name of a host is
// a property of its ranks, as it is in instances.
func (c *constraintReader) property(v jsonobj.Value, ranks *idset.Set) {
	name, without := strings.CutPrefix(v.Text(), "^")
	c.count(v)
	if !rset.ValidProperty(name) {
		v.Fail(fmt.Errorf("%w: %s", errPropertyName, guard.Quote(v.Text())))
	}
	if c.pool == nil {
		return
	}
	have := c.pool.inventory.Property(name) // a copy
	host := new(hostlist.List)
	if host.Append(name) == nil { // else no host can have the name
		have.UnionWith(c.pool.hosts.ranks(host))
	}
	if without {
		ranks.SubtractWith(have)
	} else {
		ranks.IntersectWith(have)
	}
}

// hostlist reads a value of hostlist, and adds its hosts to others.
func (c *constraintReader) hostlist(all *hostlist.List, v jsonobj.Value) {
	// What is left of the limits; 0 would be the default.
	parser := hostlist.Parser{MaxHosts: maxConstraintHosts - c.hosts + 1, MaxSpelled: maxSpelled - c.spelled + 1}
	hosts := jsonobj.Parse(v, parser.Parse)
	c.hosts += hosts.Len()
	for range hosts.Ranges() {
		c.spelled++
	}
	if c.hosts > maxConstraintHosts || c.spelled > maxSpelled {
		v.Fail(guard.Cause(errLimit, fmt.Sprintf("more than %d hosts or %d ranges of hosts", maxConstraintHosts, maxSpelled)))
		return
	}
	all.AppendList(hosts)
}
