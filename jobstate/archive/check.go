package archive

import (
	"bytes"
	"encoding/json"
)

// event is what is looked at of an entry of an eventlog.
type event struct {
	Name    string
	Context json.RawMessage
}

// versioned reports whether the context of submit names a version of the log's
// format, so that the job must be validated before a listing shows it.
func (e *event) versioned() bool {
	var context struct{ Version *json.RawMessage }
	return json.Unmarshal(e.Context, &context) == nil && context.Version != nil
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
		var e event
		err := json.Unmarshal(text, &e)
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
