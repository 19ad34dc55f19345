package rset

import (
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/internal/jsonscan"
)

// String returns one line for people, such as "rank[0-3]/core[0-7],gpu[0-1]" for
// each group of ranks with equal children; "" for the empty set.
func (r *R) String() string {
	r = r.orEmpty()
	var dst []byte
	for i, ranks := range r.groups() {
		if i > 0 {
			dst = append(dst, ' ')
		}
		dst = ranks.AppendFormat(append(dst, "rank"...), idset.FormatBrackets)
		dst = r.nodes[i].appendText(append(dst, '/'))
	}
	return string(dst)
}

// MarshalJSON returns the encoding of RFC 20, as AppendJSON does. The error is
// always nil.
func (r *R) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil), nil }

// UnmarshalJSON replaces r with what Parse returns. After an error r is as it
// was.
func (r *R) UnmarshalJSON(b []byte) error {
	parsed, err := Parse(b)
	if err != nil {
		return err
	}
	*r = *parsed
	return nil
}

// AppendJSON appends the encoding of RFC 20. It is compact, canonical and
// minimal: equal sets have equal bytes.
func (r *R) AppendJSON(dst []byte) []byte {
	r = r.orEmpty()
	w := jsonobj.Write(dst, jsonscan.Limits{})
	w.Int("version", 1)
	w.Open("execution")
	w.Key("R_lite")
	w.Out = append(w.Out, '[')
	for i, ranks := range r.groups() {
		if i > 0 {
			w.Out = append(w.Out, ',')
		}
		w.Out, _ = ranks.AppendText(append(w.Out, `{"rank":"`...))
		w.Out = append(append(w.Out, `","children":`...), r.nodes[i].key...)
		w.Out = append(w.Out, '}')
	}
	w.Out = append(w.Out, ']')
	w.Float("starttime", float64(r.start))
	w.Float("expiration", float64(r.end))
	if r.slots > 0 {
		w.Int("nslots", r.slots)
	}
	if len(r.hosts) > 0 {
		w.Texts("nodelist", []string{r.hosts.list().String()})
	}
	if len(r.properties) > 0 {
		w.Open("properties")
		for _, p := range r.properties {
			w.Key(p.name)
			w.Out, _ = p.ranks.AppendText(append(w.Out, '"'))
			w.Out = append(w.Out, '"')
		}
		w.Close()
	}
	writeMembers(&w, r.execution)
	w.Close()
	if r.scheduling != nil {
		writeMembers(&w, []member{{"scheduling", r.scheduling}})
	}
	writeMembers(&w, r.top)
	out, _ := w.End(nil) // every text was checked when r was made
	return out
}

// writeMembers writes members, which were checked when they were read.
func writeMembers(w *jsonobj.Writer, members []member) {
	for _, m := range members {
		w.Key(m.key)
		w.Out = append(w.Out, m.raw...)
	}
}
