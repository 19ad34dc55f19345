package perilog

import (
	"bytes"
	"errors"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonscan"
)

// ControlPrefix begins a line that is meant for this library.
const ControlPrefix = "perilog-control:"

// Limits of control lines.
const (
	MaxControl     = 4 << 10 // the bytes of a line
	maxControlRank = 1 << 24 // the largest rank, as in an R
)

// A Control is what an action says on its standard output: that nodes have
// failed, while the action itself goes on with its work. The line is the prefix
// and one JSON object:
//
//	perilog-control: {"version":1,"failed":"3","note":"gpu 2 is gone"}
//
// version has to be 1. failed is an idset of ranks that is not empty; absent,
// it is the rank that prints the line. note is for administrators, and
// optional. Other keys are ignored.
type Control struct {
	Ranks *idset.Set // nil: the rank that printed the line; never empty
	Note  string
}

// What is wrong with a control line.
var (
	errControlLong    = errors.New("the line is too long")
	errControlVersion = errors.New("version is not 1")
	errControlFailed  = errors.New("failed is not an idset of ranks")
	errControlNote    = errors.New("note is not a string")
)

// ParseControl reads a line of output, with or without its newline. It returns
// false for a line without the prefix, which is plain output. So is a line with
// the prefix that is malformed or longer than MaxControl; then the error, a
// *ControlError, tells why. It retains nothing of line.
func ParseControl(line []byte) (Control, bool, error) {
	body, ok := bytes.CutPrefix(line, []byte(ControlPrefix))
	if !ok {
		return Control{}, false, nil
	}
	if len(line) > MaxControl {
		return Control{}, false, &ControlError{Offset: MaxControl, Err: errControlLong}
	}
	c, err := parseControl(body)
	if err != nil {
		err.Offset += len(ControlPrefix)
		return Control{}, false, err
	}
	return c, true, nil
}

// parseControl reads the object of a control line.
func parseControl(body []byte) (Control, *ControlError) {
	var c Control
	version := int64(0)
	cur := jsonscan.Object(body)
	for cur.Next() {
		bad := func(err error) (Control, *ControlError) {
			return Control{}, &ControlError{Offset: cur.Offset(), Err: err}
		}
		ok := true
		switch string(cur.Key()) {
		case "version":
			if version, ok = jsonscan.Int64(cur.Raw()); !ok || version != 1 {
				return bad(errControlVersion)
			}
		case "failed":
			text, isString := jsonscan.String(cur.Raw())
			ranks, err := idset.ParseLimit(text, maxControlRank)
			if !isString || err != nil || ranks.IsEmpty() {
				return bad(errControlFailed)
			}
			c.Ranks = ranks
		case "note":
			if c.Note, ok = jsonscan.String(cur.Raw()); !ok {
				return bad(errControlNote)
			}
		}
	}
	if err := cur.Err(); err != nil {
		offset := 0
		if at := (*jsonscan.SyntaxError)(nil); errors.As(err, &at) {
			offset, err = at.Offset, at.Err
		}
		return Control{}, &ControlError{Offset: offset, Err: err}
	}
	if version != 1 {
		return Control{}, &ControlError{Err: errControlVersion}
	}
	return c, nil
}
