package archive

import (
	"bytes"

	"github.com/joblife/joblife/internal/jsonobj"
)

// parseEvent returns what counts of an entry of an eventlog: its name, and whether its context
// has a version. After a submit with one, the job is to be validated.
func parseEvent(line []byte) (name string, versioned bool, err error) {
	d := jsonobj.NewDoc(line)
	o := d.Object()
	for o.Next() {
		switch string(o.Key()) {
		case "name":
			name = o.Text()
		case "context":
			v := o.Value().Member("version")
			versioned = !v.Absent() && v.Kind() != jsonobj.KindNull
		}
	}
	o.Require("name")
	if err = d.Err(); err == nil && name == "" {
		err = errNoName
	}
	return name, versioned, err
}

// checkLog returns why a job with this eventlog is set aside: no submit, or never validated.
// It looks at no more of the log than it must; a reducer finds what is wrong in the rest.
func checkLog(log []byte) (line int, cause error) {
	for len(log) > 0 {
		var text []byte
		text, log, _ = bytes.Cut(log, []byte("\n"))
		line++
		name, versioned, err := parseEvent(text)
		switch {
		case err != nil:
			return line, because(errEventlog, err)
		case line == 1 && name != "submit":
			return line, errNoSubmit
		case line == 1 && !versioned, name == "validate":
			return 0, nil
		}
	}
	if line == 0 {
		return 0, errNoSubmit
	}
	return 0, errNotValidated
}
