package archive

import (
	"bytes"
	"encoding/json"

	"github.com/joblife/joblife/internal/jsonscan"
)

// event is what is looked at of an entry of an eventlog.
type event struct {
	Name    string
	Context json.RawMessage
}

// parseEvent reads a line as encoding/json does, which reads what quickEvent leaves.
func parseEvent(line []byte) (e event, err error) {
	e, ok := quickEvent(line)
	if !ok {
		e = event{}
		err = json.Unmarshal(line, &e)
	}
	return e, err
}

// quickEvent reads a line with no other keys than those of an event.
func quickEvent(line []byte) (e event, ok bool) {
	c := jsonscan.Object(line)
	for c.Next() {
		switch string(c.Key()) {
		case "name":
			if e.Name, ok = jsonscan.String(c.Raw()); !ok {
				return e, false
			}
		case "context":
			e.Context = c.Raw()
		case "timestamp":
		default:
			return e, false
		}
	}
	return e, c.Err() == nil
}

// versioned reports whether the context of submit names a version of the log's
// format, so that the job must be validated before a listing shows it.
func (e *event) versioned() bool {
	if versioned, ok := e.quickVersioned(); ok {
		return versioned
	}
	var context struct{ Version *json.RawMessage }
	return json.Unmarshal(e.Context, &context) == nil && context.Version != nil
}

// quickVersioned is versioned for a context with plain keys.
func (e *event) quickVersioned() (versioned, ok bool) {
	c := jsonscan.Object(e.Context)
	for c.Next() {
		if string(c.Key()) == "version" {
			versioned = string(c.Raw()) != "null"
		} else if bytes.EqualFold(c.Key(), []byte("version")) {
			return false, false
		}
	}
	return versioned, c.Err() == nil
}

// checkLog returns why a job with this eventlog is set aside: no submit, or
// never validated. It looks at no more of the log than it must; a
// reducer finds what is wrong in the rest.
func checkLog(log []byte) (line int, cause error) {
	for len(log) > 0 {
		text := log
		if i := bytes.IndexByte(log, '\n'); i >= 0 {
			text, log = log[:i], log[i+1:]
		} else {
			log = nil
		}
		line++
		e, err := parseEvent(text)
		if err == nil && e.Name == "" {
			err = errNoName
		}
		switch {
		case err != nil:
			return line, because(errEventlog, err)
		case line == 1 && e.Name != "submit":
			return line, errNoSubmit
		case line == 1 && !e.versioned(), e.Name == "validate":
			return 0, nil
		}
	}
	if line == 0 {
		return 0, errNoSubmit
	}
	return 0, ErrNotValidated
}
