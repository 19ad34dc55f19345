package lines

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
)

// damaged is the error of a record in the place of what a store found damaged: it says why.
var damaged = regexp.MustCompile(`^jobstate: offset \d+: ("[^"]*damaged: [^"]*"): malformed record: `)

// Why returns why the log of a job cannot be read, without the job's id, and with few colons:
//
//	line 2, offset 90, "start" in NEW: event is not legal in this state
func Why(err error) string {
	var stop *jobstate.EventError
	if !errors.As(err, &stop) {
		if m := damaged.FindStringSubmatch(err.Error()); m != nil {
			if text, err := strconv.Unquote(m[1]); err == nil {
				return text
			}
		}
		return err.Error()
	}
	var where []string
	if stop.Line > 0 { // it was read from a whole log
		where = append(where, fmt.Sprintf("line %d, offset %d", stop.Line, stop.Offset))
	}
	if stop.Event != "" {
		where = append(where, fmt.Sprintf("%q in %v", stop.Event, stop.State))
	}
	cause := stop.Err
	if bad := (*eventlog.SyntaxError)(nil); errors.As(cause, &bad) {
		cause = bad.Err // its position is that of stop
	}
	if len(where) == 0 {
		return cause.Error()
	}
	return strings.Join(where, ", ") + ": " + cause.Error()
}
