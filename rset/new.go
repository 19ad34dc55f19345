package rset

import (
	"math"
	"strings"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonscan"
	"github.com/joblife/joblife/rset/hostlist"
)

// Config is what New makes an R of.
type Config struct {
	Entries    []Entry               // in any order; a rank may be in several, each resource once
	Hosts      *hostlist.List        // in rank order; nil or empty if they are not known
	Properties map[string]*idset.Set // the ranks that have each property
	Start      eventlog.Timestamp    // 0: not limited
	Expiration eventlog.Timestamp    // 0: never
	Slots      int64                 // 0: not known
}

// New returns the R that a configuration describes. It retains nothing of it.
// What Parse would refuse of its encoding is refused with the same error, with
// offsets that mean nothing.
func New(c Config) (*R, error) {
	d := decoder{Parser: Parser{}.withDefaults(), r: &R{slots: c.Slots}, bytes: math.MaxInt32}
	var at value
	for _, e := range c.Entries {
		kinds := make([]kind, 0, len(e.Children))
		for name, ids := range e.Children {
			if most, _ := ids.Max(); most > MaxChild {
				return nil, under("R_lite", at.fail(idset.ErrRange))
			}
			kinds = append(kinds, kind{name, ids.Clone()})
		}
		if most, ok := e.Ranks.Max(); !ok {
			return nil, under("R_lite", at.fail(errNoRank))
		} else if most > MaxRank {
			return nil, under("R_lite", at.fail(idset.ErrRange))
		}
		d.entries = append(d.entries, entry{ranks: e.Ranks, node: newNode(sortKinds(kinds))})
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

// WithTimes returns r with other times. Either may be 0, as in Config. The
// error is a *ParseError: a time is negative or not finite, or expiration is
// not after start. It keeps all else.
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
