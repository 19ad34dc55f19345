package rset

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/joblife/joblife/internal/jsonobj"
)

// String returns one line for people, with a part such as "rank[0-3]/core[0-7],gpu[0-1]" for
// each group of ranks with equal children; "" for the empty set.
func (r *R) String() string {
	r = r.orEmpty()
	var dst []byte
	groups := r.groups()
	for i := range groups {
		if i > 0 {
			dst = append(dst, ' ')
		}
		dst = groups[i].AppendBrackets(append(dst, "rank"...))
		before := byte('/')
		for _, k := range r.nodes[i].Kinds() {
			dst = k.IDs.AppendBrackets(append(append(dst, before), k.Name...))
			before = ','
		}
	}
	return string(dst)
}

// GoString returns the text of String, for %#v, with which tests print what failed.
func (r *R) GoString() string { return r.String() }

// MarshalJSON returns the encoding of RFC 20, as AppendJSON does. The error is always nil.
func (r *R) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil), nil }

// UnmarshalJSON replaces r with what Parse returns. After an error r is as it was.
func (r *R) UnmarshalJSON(b []byte) error {
	parsed, err := Parse(b)
	if err != nil {
		return err
	}
	*r = *parsed
	return nil
}

// AppendJSON appends the encoding of RFC 20, compact and canonical: equal sets have equal bytes.
func (r *R) AppendJSON(dst []byte) []byte {
	// With a jsonobj.Writer, which looks at each key anew, few groups take 60 % longer.
	r = r.orEmpty()
	dst = append(dst, `{"version":1,"execution":{"R_lite":[`...)
	spans := r.byNode()
	for i, s := range spans {
		switch {
		case i > 0 && spans[i-1].node == s.node:
			dst = append(dst, ',')
		case i > 0:
			dst = append(dst, `,{"rank":"`...)
		default:
			dst = append(dst, `{"rank":"`...)
		}
		if dst = strconv.AppendUint(dst, uint64(s.first), 10); s.last > s.first {
			dst = strconv.AppendUint(append(dst, '-'), uint64(s.last), 10)
		}
		if i+1 == len(spans) || spans[i+1].node != s.node {
			dst = append(append(dst, `","children":`...), r.nodes[s.node].Text()...)
			dst = append(dst, '}')
		}
	}
	dst = jsonobj.AppendFloat(append(dst, `],"starttime":`...), float64(r.start))
	dst = jsonobj.AppendFloat(append(dst, `,"expiration":`...), float64(r.end))
	if r.slots > 0 {
		dst = strconv.AppendInt(append(dst, `,"nslots":`...), r.slots, 10)
	}
	if !r.hosts.IsEmpty() {
		dst = jsonobj.AppendString(append(dst, `,"nodelist":[`...), r.hosts.String())
		dst = append(dst, ']')
	}
	before := `,"properties":{`
	for _, p := range r.properties {
		dst = jsonobj.AppendString(append(dst, before...), p.name)
		dst, _ = p.ranks.AppendText(append(dst, `:"`...))
		dst = append(dst, '"')
		before = ","
	}
	if len(r.properties) > 0 {
		dst = append(dst, '}')
	}
	dst = append(appendMembers(dst, r.execution), '}')
	if r.scheduling != nil {
		dst = append(append(dst, `,"scheduling":`...), r.scheduling...)
	}
	return append(appendMembers(dst, r.top), '}')
}

// byNode returns the spans of each node together.
func (r *R) byNode() []span {
	byNode := func(a, b span) int { return cmp.Compare(a.node, b.node) }
	if slices.IsSortedFunc(r.spans, byNode) { // as most are
		return r.spans
	}
	spans := slices.Clone(r.spans)
	slices.SortStableFunc(spans, byNode)
	return spans
}

// appendMembers appends members of an object that has others before.
func appendMembers(dst []byte, members []member) []byte {
	for _, m := range members {
		dst = append(jsonobj.AppendString(append(dst, ','), m.key), ':')
		dst = append(dst, m.raw...)
	}
	return dst
}
