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

// eligible returns the ranks of the inventory that the constraints of the request allow,
// up or not; nil if there are no constraints, which allow all. The set must not change.
func (q *Request) eligible(p *Pool) *idset.Set {
	if q.constraint == "" {
		return nil
	}
	if a, ok := p.known.allowed[q.digest]; ok {
		return a.ranks
	}
	ranks := p.ranks.Clone()
	pass, _ := parseConstraint([]byte(q.constraint)) // no fault: NewRequest has read it
	pass(ranks, p)
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

// A filter removes the ranks that do not satisfy a constraint, or a part of it. It takes
// time in proportion to the terms and to the ranges of ranks that they name.
type filter func(ranks *idset.Set, p *Pool)

// all is what satisfies each of some filters.
func all(filters []filter) filter {
	return func(ranks *idset.Set, p *Pool) {
		for _, f := range filters {
			if ranks.IsEmpty() {
				return
			}
			f(ranks, p)
		}
	}
}

// some is what satisfies one of some filters, or all ranks if there is none.
func some(filters []filter) filter {
	return func(ranks *idset.Set, p *Pool) {
		if len(filters) == 0 {
			return
		}
		left := ranks.Clone() // what no value has matched yet
		for _, f := range filters {
			matched := left.Clone()
			f(matched, p)
			left.SubtractWith(matched)
		}
		ranks.SubtractWith(left)
	}
}

// not is what does not satisfy a filter.
func not(f filter) filter {
	return func(ranks *idset.Set, p *Pool) {
		matched := ranks.Clone()
		f(matched, p)
		ranks.SubtractWith(matched)
	}
}

// property is what has a property, or lacks it. The name of a host, nil if no host can have the
// name, is a property of its ranks, as it is in instances.
func property(name string, host *hostlist.List, without bool) filter {
	return func(ranks *idset.Set, p *Pool) {
		have := p.inventory.Property(name)
		if host != nil {
			have.UnionWith(p.hosts.ranks(host)) // Property returns a copy
		}
		if without {
			ranks.SubtractWith(have)
		} else {
			ranks.IntersectWith(have)
		}
	}
}

// Limits of constraints.
const (
	maxConstraintBytes = 1 << 20
	maxConstraintDepth = 64      // levels, the outermost included
	maxTerms           = 4096    // operators, and properties
	maxConstraintHosts = 1 << 20 // hosts in one constraint, counted each time
	maxSpelled         = 1 << 16 // ranges of hosts, counted each time
)

// parseConstraint reads the constraints of a jobspec. It returns nil if every rank passes. The
// filter can be large: of 20 bytes, 4 MB of hosts. So a Request keeps the text.
func parseConstraint(b []byte) (filter, *jsonobj.Fault) {
	if b == nil {
		return nil, nil
	}
	if len(b) > maxConstraintBytes {
		return nil, tooLong(b, maxConstraintBytes)
	}
	doc := jsonobj.NewDoc(b)
	o := doc.Object()
	var p constraintParser
	terms := p.terms(&o, 1)
	switch {
	case doc.Failed():
		return nil, doc.Fault()
	case len(terms) == 0:
		return nil, nil
	}
	return all(terms), nil
}

// constraintParser counts what it reads of a constraint, for the limits.
type constraintParser struct {
	operators, hosts, spelled int
}

func (p *constraintParser) terms(o *jsonobj.Reader, depth int) (terms []filter) {
	for o.Next() {
		terms = append(terms, p.term(string(o.Key()), o.Value(), depth))
	}
	return terms
}

func (p *constraintParser) term(name string, v jsonobj.Value, depth int) filter {
	var values []filter
	hosts := new(hostlist.List)
	var ranks []rankRun
	read := func(e jsonobj.Value) {
		if depth == maxConstraintDepth {
			e.Fail(guard.Cause(errLimit, fmt.Sprintf("more than %d constraints in each other", maxConstraintDepth)))
		}
		o := e.Object()
		values = append(values, all(p.terms(&o, depth+1)))
	}
	switch name {
	case "and", "or", "not":
	case "properties":
		read = func(e jsonobj.Value) { values = append(values, p.property(e)) }
	case "hostlist":
		read = func(e jsonobj.Value) { p.hostlist(hosts, e) }
	case "ranks":
		read = func(e jsonobj.Value) {
			for first, last := range readIDs(e, idset.MaxID).Ranges() {
				ranks = append(ranks, rankRun{first, last})
			}
		}
	default:
		v.Fail(fmt.Errorf("unknown operator %s", guard.Quote(name)))
		return nil
	}
	p.count(v)
	for a := v.Array(); a.Next(); {
		read(a.Value())
	}
	switch name {
	case "or":
		return some(values)
	case "not":
		return not(all(values))
	case "hostlist":
		hosts.Uniq() // a host that is named again would add all its ranks again
		return func(set *idset.Set, p *Pool) { set.IntersectWith(p.hosts.ranks(hosts)) }
	case "ranks":
		allowed := setOf(ranks) // once: a union with each value would copy those before it
		return func(set *idset.Set, _ *Pool) { set.IntersectWith(allowed) }
	}
	return all(values)
}

func (p *constraintParser) count(v jsonobj.Value) {
	if p.operators++; p.operators > maxTerms {
		v.Fail(guard.Cause(errLimit, fmt.Sprintf("more than %d operators and properties", maxTerms)))
	}
}

func (p *constraintParser) property(v jsonobj.Value) filter {
	name, without := strings.CutPrefix(v.Text(), "^")
	p.count(v)
	if !rset.ValidProperty(name) {
		v.Fail(fmt.Errorf("%w: %s", errPropertyName, guard.Quote(v.Text())))
		return nil
	}
	host := new(hostlist.List)
	if host.Append(name) != nil {
		host = nil
	}
	return property(name, host, without)
}

// hostlist reads a value of hostlist, and adds its hosts to others.
func (p *constraintParser) hostlist(all *hostlist.List, v jsonobj.Value) {
	// What is left of the limits; 0 would be the default.
	parser := hostlist.Parser{MaxHosts: maxConstraintHosts - p.hosts + 1, MaxSpelled: maxSpelled - p.spelled + 1}
	hosts := jsonobj.Parse(v, parser.Parse)
	p.hosts += hosts.Len()
	for range hosts.Ranges() {
		p.spelled++
	}
	if p.hosts > maxConstraintHosts || p.spelled > maxSpelled {
		v.Fail(guard.Cause(errLimit, fmt.Sprintf("more than %d hosts or %d ranges of hosts", maxConstraintHosts, maxSpelled)))
		return
	}
	all.AppendList(hosts)
}
