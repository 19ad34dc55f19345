package rset

import (
	"math"
	"strings"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonscan"
	"github.com/joblife/joblife/rset/hostlist"
	"github.com/joblife/joblife/rset/internal/children"
)

// Config describes an R for [New]. The zero Config is the empty set.
type Config struct {
	Entries    []Entry               // in any order; a rank may be in several, each resource in one
	Hosts      *hostlist.List        // in rank order; nil or empty: none
	Properties map[string]*idset.Set // ranks by property
	Start      eventlog.Timestamp    // 0: always valid
	Expiration eventlog.Timestamp    // 0: never
	Slots      int64                 // 0: not known
}

// New returns the R that c describes. It retains nothing of c. It refuses what
// Parse would refuse, with the same errors but without a useful offset.
func New(c Config) (*R, error) {
	d := decoder{limits: limits{rank: MaxRank}, r: &R{slots: c.Slots}, size: math.MaxInt32}
	var at value
	for _, e := range c.Entries {
		kinds := make(map[string]*idset.Set, len(e.Children))
		for name, ids := range e.Children {
			if most, _ := ids.Max(); most > maxChild {
				return nil, under("R_lite", at.fail(idset.ErrRange))
			}
			kinds[name] = ids.Clone()
		}
		if most, ok := e.Ranks.Max(); !ok {
			return nil, under("R_lite", at.fail(errNoRank))
		} else if most > MaxRank {
			return nil, under("R_lite", at.fail(idset.ErrRange))
		}
		d.read = append(d.read, entry{ranks: e.Ranks, node: newNode(children.FromMap(kinds))})
	}
	if err := d.merge(at); err != nil {
		return nil, under("R_lite", err)
	}
	if !c.Hosts.IsEmpty() {
		with, err := d.r.AssignHosts(c.Hosts)
		if err != nil {
			return nil, err
		}
		d.r = with
	}
	if c.Slots < 0 {
		return nil, under("nslots", at.fail(errSlots))
	}
	if len(c.Properties) > 0 {
		text := []byte{'{'}
		for name, ranks := range c.Properties {
			if len(text) > 1 {
				text = append(text, ',')
			}
			text = append(jsonscan.AppendString(text, strings.ToValidUTF8(name, "")), `:"`...)
			text, _ = ranks.AppendText(text)
			text = append(text, '"')
		}
		d.properties = value{raw: append(text, '}')}
		if err := d.props(); err != nil {
			return nil, under("properties", err)
		}
	}
	return d.r.WithTimes(c.Start, c.Expiration)
}

// WithTimes returns r with other times, which mean what they mean in Config. The
// error is ErrSyntax if a time is negative or not finite, or if expiration is not
// after start.
func (r *R) WithTimes(start, expiration eventlog.Timestamp) (*R, error) {
	for _, t := range []eventlog.Timestamp{start, expiration} {
		if !(t >= 0 && t <= math.MaxFloat64) {
			return nil, under("starttime or expiration", value{}.fail(errTime))
		}
	}
	if expiration > 0 && expiration <= start {
		return nil, under("expiration", value{}.fail(errExpiration))
	}
	out := *r.orEmpty()
	out.start, out.end = start+0, expiration+0
	return &out, nil
}
