package perilog

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonobj"
)

// ControlPrefix begins each control line: see the package documentation.
const ControlPrefix = "perilog-control:"

// Limits of control lines.
const (
	maxControl     = 4 << 10 // the bytes of a line
	maxControlRank = 1 << 24 // the largest rank, as in an R
)

// A control is what an action says on its standard output.
type control struct {
	Failed   *idset.Set // nodes that failed; nil: none
	Released *idset.Set // nodes on which the action is done; nil: none
	Self     bool       // failed is true: the node that printed the line failed
	Note     string
}

// errControl is the category of what is wrong with a control line.
var (
	errControl = errors.New("bad control line")
	errVersion = errors.New("must be 1")
	errFailed  = errors.New("must be true, false or an idset of ranks")
	errEmpty   = errors.New("must not be empty")
)

// parseControl reads a line of output, with or without its newline. It returns false for a
// line without the prefix, which is plain output. The error says where a line with the prefix
// is not understood. It retains nothing of line.
func parseControl(line []byte) (control, bool, error) {
	body, ok := bytes.CutPrefix(line, []byte(ControlPrefix))
	if !ok {
		return control{}, false, nil
	}
	if len(line) > maxControl {
		return control{}, true, fmt.Errorf("%w: longer than %d bytes", errControl, maxControl)
	}
	var c control
	d := jsonobj.NewDoc(body)
	o := d.Object()
	for o.Next() {
		v := o.Value()
		switch string(o.Key()) {
		case "version":
			if n, ok := jsonobj.Int64(v.Raw()); !ok || n != 1 {
				v.Fail(errVersion)
			}
		case "failed":
			switch v.Kind() {
			case jsonobj.KindBool:
				c.Self = v.Bool()
			case jsonobj.KindString:
				c.Failed = ranksOf(v)
			default:
				v.Fail(errFailed)
			}
		case "released":
			c.Released = ranksOf(v)
		case "note":
			c.Note = v.Text()
		}
	}
	o.Require("version")
	if fault := d.Fault(); fault != nil {
		fault.Offset += len(ControlPrefix)
		return control{}, true, fmt.Errorf("%w: %w", errControl, fault)
	}
	return c, true, nil
}

// ranksOf reads an idset that is not empty.
func ranksOf(v jsonobj.Value) *idset.Set {
	return jsonobj.Parse(v, func(s string) (*idset.Set, error) {
		ranks, err := idset.ParseLimit(s, maxControlRank)
		if err == nil && ranks.IsEmpty() {
			err = errEmpty
		}
		return ranks, err
	})
}
