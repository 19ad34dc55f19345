package run

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonscan"
)

// ControlPrefix begins a line of output that is meant for this library.
const ControlPrefix = "perilog-control:"

// Limits of control lines.
const (
	MaxControl     = 4 << 10 // the bytes of a line
	maxControlRank = 1 << 24 // the largest rank, as in an R
)

// A Control is what an action says on its standard output.
type Control struct {
	Failed   *idset.Set // nodes that failed; nil: none
	Released *idset.Set // nodes on which the action is done; nil: none
	Self     bool       // failed is true: the node that printed the line failed
	Note     string
}

// ErrControl is wrapped by the error of a control line that is not understood.
var ErrControl = errors.New("bad control line")

// ParseControl reads a line of output, with or without its newline. It returns
// false for a line without the prefix, which is plain output. The error, which
// wraps ErrControl, says where a line with the prefix is not understood. It
// retains nothing of line.
func ParseControl(line []byte) (Control, bool, error) {
	body, ok := bytes.CutPrefix(line, []byte(ControlPrefix))
	if !ok {
		return Control{}, false, nil
	}
	if len(line) > MaxControl {
		return Control{}, true, fmt.Errorf("%w: longer than %d bytes", ErrControl, MaxControl)
	}
	c, at, err := parseControl(body)
	if err != nil {
		return Control{}, true, fmt.Errorf("%w: offset %d: %w", ErrControl, at+len(ControlPrefix), err)
	}
	return c, true, nil
}

// What is wrong with a control line.
var (
	errVersion  = errors.New("version is not 1")
	errFailed   = errors.New("failed is neither a boolean nor an idset of ranks")
	errReleased = errors.New("released is not an idset of ranks")
	errNote     = errors.New("note is not a string")
)

// parseControl reads the object of a control line. After an error it returns
// the offset.
func parseControl(body []byte) (c Control, offset int, err error) {
	version := int64(0)
	cur := jsonscan.Object(body)
	for cur.Next() {
		ok := true
		switch string(cur.Key()) {
		case "version":
			if version, ok = jsonscan.Int64(cur.Raw()); !ok || version != 1 {
				return c, cur.Offset(), errVersion
			}
		case "failed":
			if c.Self, ok = jsonscan.Bool(cur.Raw()); ok {
				continue
			}
			if c.Failed, ok = ranksOf(cur.Raw()); !ok {
				return c, cur.Offset(), errFailed
			}
		case "released":
			if c.Released, ok = ranksOf(cur.Raw()); !ok {
				return c, cur.Offset(), errReleased
			}
		case "note":
			if c.Note, ok = jsonscan.String(cur.Raw()); !ok {
				return c, cur.Offset(), errNote
			}
		}
	}
	if err := cur.Err(); err != nil {
		var at *jsonscan.SyntaxError
		if errors.As(err, &at) {
			return c, at.Offset, at.Err
		}
		return c, cur.Offset(), err
	}
	if version != 1 {
		return c, 0, errVersion
	}
	return c, 0, nil
}

// ranksOf reads an idset that is not empty.
func ranksOf(raw []byte) (*idset.Set, bool) {
	text, ok := jsonscan.String(raw)
	if !ok {
		return nil, false
	}
	ranks, err := idset.ParseLimit(text, maxControlRank)
	if err != nil || ranks.IsEmpty() {
		return nil, false
	}
	return ranks, true
}
