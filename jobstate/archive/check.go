package archive

import (
	"bytes"
	"errors"

	"github.com/joblife/joblife/internal/jsonobj"
)

var errNoName = errors.New("event has no name")

// event is what counts of an entry of an eventlog.
type event struct {
	name      string
	versioned bool // its context has a version: after submit, the job is to be validated
}

func parseEvent(line []byte) (e event, err error) {
	d := jsonobj.NewDoc(line)
	o := d.Object()
	for o.Next() {
		switch string(o.Key()) {
		case "name":
			e.name = o.Text()
		case "context":
			v := o.Value().Member("version")
			e.versioned = !v.Absent() && v.Kind() != jsonobj.KindNull
		}
	}
	o.Require("name")
	if err = d.Err(); err == nil && e.name == "" {
		err = errNoName
	}
	return e, err
}

// checkLog returns why a job with this eventlog is set aside: no submit, or never validated.
// It looks at no more of the log than it must; a reducer finds what is wrong in the rest.
func checkLog(log []byte) (line int, cause error) {
	for len(log) > 0 {
		var text []byte
		text, log, _ = bytes.Cut(log, []byte("\n"))
		line++
		e, err := parseEvent(text)
		switch {
		case err != nil:
			return line, because(errEventlog, err)
		case line == 1 && e.name != "submit":
			return line, errNoSubmit
		case line == 1 && !e.versioned, e.name == "validate":
			return 0, nil
		}
	}
	if line == 0 {
		return 0, errNoSubmit
	}
	return 0, errNotValidated
}
