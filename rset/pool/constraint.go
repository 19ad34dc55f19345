package pool

import (
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
	if q.constraint == nil {
		return nil
	}
	if ranks, ok := p.known.allowed[q.constraint.text]; ok {
		return ranks
	}
	ranks := p.ranks.Clone()
	q.constraint.filter(ranks, p)
	p.known.room(q)
	p.known.allowed[q.constraint.text] = ranks
	return ranks
}

// known is what was found out about requests. It belongs to one pool and one inventory.
type known struct {
	allowed  map[string]*idset.Set // the ranks that constraints allow, by text
	feasible map[*Request]struct{} // requests that the inventory can meet
	bytes    int                   // of constraints that these keep
	cuts     [4]cut                // the last ones
	last     int                   // of cuts
}

// Beyond these, what is known is forgotten.
const (
	maxKnown      = 1 << 12 // requests and constraints
	maxKnownBytes = 1 << 22 // bytes of constraints
)

// room makes room for something about a request.
func (k *known) room(q *Request) {
	n := 0
	if q.constraint != nil {
		n = len(q.constraint.text)
	}
	if k.bytes += n; k.allowed == nil || len(k.allowed)+len(k.feasible) >= maxKnown || k.bytes > maxKnownBytes {
		k.allowed, k.feasible, k.bytes = make(map[string]*idset.Set), make(map[*Request]struct{}), n
	}
}

// A constraint is one of RFC 31: its terms, all of which a rank must satisfy.
// It is never changed.
type constraint struct {
	text  string // of the outermost
	terms []term
}

// A term is an operator and its values.
type term struct {
	operator operator
	names    []propertyName // of opProperties
	hosts    *hostlist.List // of opHostlist, each once
	ranks    *idset.Set     // of opRanks
	args     []*constraint  // of opAnd, opOr and opNot
}

// operator is an operator of RFC 31. The zero operator is invalid.
type operator uint8

const (
	opProperties operator = iota + 1
	opHostlist
	opRanks
	opAnd
	opOr
	opNot
)

// A propertyName is a property that a rank must have, or must not.
type propertyName struct {
	name string
	not  bool
	host *hostlist.List // the host of that name; nil if no host can have it
}

// filter removes the ranks that do not satisfy the constraint. It takes time in
// proportion to the terms and to the ranges of ranks that they name.
func (c *constraint) filter(ranks *idset.Set, p *Pool) {
	for i := range c.terms {
		if ranks.IsEmpty() {
			return
		}
		c.terms[i].filter(ranks, p)
	}
}

// filter removes the ranks that do not satisfy the term.
func (t *term) filter(ranks *idset.Set, p *Pool) {
	switch t.operator {
	case opProperties:
		for i := range t.names {
			t.names[i].filter(ranks, p)
		}
	case opHostlist:
		ranks.IntersectWith(p.hosts.ranks(t.hosts))
	case opRanks:
		ranks.IntersectWith(t.ranks)
	case opAnd:
		for _, c := range t.args {
			c.filter(ranks, p)
		}
	case opNot:
		// A not negates its values together, as instances do; without values
		// it matches nothing.
		matched := ranks.Clone()
		for _, c := range t.args {
			c.filter(matched, p)
		}
		ranks.SubtractWith(matched)
	case opOr:
		t.filterOr(ranks, p)
	}
}

// filterOr removes the ranks that satisfy no value of an or. An or without values
// removes nothing.
func (t *term) filterOr(ranks *idset.Set, p *Pool) {
	if len(t.args) == 0 {
		return
	}
	left := ranks.Clone() // what no value has matched yet
	for _, c := range t.args {
		matched := left.Clone()
		c.filter(matched, p)
		left.SubtractWith(matched)
	}
	ranks.SubtractWith(left)
}

// filter removes the ranks that lack the property, or have it. The name of a
// host is a property that its ranks have, as it is in instances.
func (n *propertyName) filter(ranks *idset.Set, p *Pool) {
	have := p.inventory.Property(n.name)
	if n.host != nil {
		if host := p.hosts.ranks(n.host); !host.IsEmpty() {
			have = idset.Union(have, host)
		}
	}
	if n.not {
		ranks.SubtractWith(have)
	} else {
		ranks.IntersectWith(have)
	}
}

// Limits of constraints.
const (
	maxConstraintBytes = 1 << 20
	maxConstraintDepth = 64      // levels, the outermost included
	maxTerms           = 4096    // operators, and properties
	maxConstraintHosts = 1 << 24 // hosts in one constraint, counted each time
	maxSpelled         = 1 << 16 // ranges of hosts, counted each time
)

// parseConstraint reads the constraints of a jobspec. It returns nil if there are
// none, so that every rank passes. It copies b.
func parseConstraint(b []byte) (*constraint, *jsonobj.Fault) {
	if b == nil {
		return nil, nil
	}
	if len(b) > maxConstraintBytes {
		return nil, tooLong(b, maxConstraintBytes)
	}
	doc := jsonobj.NewDoc(b)
	o := doc.Object()
	var p constraintParser
	c := p.operators(&o, 1)
	if doc.Failed() {
		return nil, doc.Fault()
	}
	if len(c.terms) == 0 {
		return nil, nil
	}
	c.text = string(b)
	return c, nil
}

// constraintParser reads a constraint within the limits.
type constraintParser struct {
	terms, hosts, spelled int
}

// operators reads an object of operators.
func (p *constraintParser) operators(o *jsonobj.Reader, depth int) *constraint {
	c := new(constraint)
	for o.Next() {
		c.terms = append(c.terms, p.term(string(o.Key()), o.Value(), depth))
	}
	return c
}

// term reads the values of an operator.
func (p *constraintParser) term(name string, v jsonobj.Value, depth int) term {
	var t term
	var read func(e jsonobj.Value)
	switch name {
	case "properties":
		t.operator = opProperties
		read = func(e jsonobj.Value) { p.property(&t, e) }
	case "hostlist":
		t.operator, t.hosts = opHostlist, new(hostlist.List)
		read = func(e jsonobj.Value) { p.hostlist(&t, e) }
	case "ranks":
		t.operator, t.ranks = opRanks, new(idset.Set)
		read = func(e jsonobj.Value) { t.ranks.UnionWith(readIDs(e, idset.MaxID)) }
	case "and":
		t.operator = opAnd
	case "or":
		t.operator = opOr
	case "not":
		t.operator = opNot
	default:
		v.Fail(fmt.Errorf("unknown operator %s", guard.Quote(name)))
		return t
	}
	if read == nil {
		read = func(e jsonobj.Value) {
			if depth == maxConstraintDepth {
				e.Fail(guard.Cause(errLimit, fmt.Sprintf("more than %d constraints in each other", maxConstraintDepth)))
			}
			o := e.Object()
			t.args = append(t.args, p.operators(&o, depth+1))
		}
	}
	p.count(v)
	for a := v.Array(); a.Next(); {
		read(a.Value())
	}
	if t.hosts != nil {
		t.hosts.Uniq() // a host that is named again would add all its ranks again
	}
	return t
}

// count counts an operator or a property.
func (p *constraintParser) count(v jsonobj.Value) {
	if p.terms++; p.terms > maxTerms {
		v.Fail(guard.Cause(errLimit, fmt.Sprintf("more than %d operators and properties", maxTerms)))
	}
}

// property reads a value of properties.
func (p *constraintParser) property(t *term, v jsonobj.Value) {
	name, not := strings.CutPrefix(v.Text(), "^")
	p.count(v)
	if !rset.ValidProperty(name) {
		v.Fail(fmt.Errorf("%w: %s", errPropertyName, guard.Quote(v.Text())))
		return
	}
	host := new(hostlist.List)
	if host.Append(name) != nil {
		host = nil
	}
	t.names = append(t.names, propertyName{name, not, host})
}

// hostlist reads a value of hostlist.
func (p *constraintParser) hostlist(t *term, v jsonobj.Value) {
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
	t.hosts.AppendList(hosts)
}
