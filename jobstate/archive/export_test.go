package archive

import "encoding/json"

// WithDefaults returns the limits in force.
func (l Limits) WithDefaults() Limits { return l.withDefaults() }

// The causes of failures.
var (
	ErrBadID      = errBadID
	ErrNoEventlog = errNoEventlog
	ErrNoJobspec  = errNoJobspec
	ErrNoSubmit   = errNoSubmit
	ErrEventlog   = errEventlog
	ErrDuplicate  = errDuplicate
	ErrNotFile    = errNotFile
	ErrCheckpoint = errCheckpoint
)

// QuickEvent reads a line in the quick way: its name, its context and whether that
// names a version. It is false for what it leaves to PlainEvent.
func QuickEvent(line []byte) (name, context string, versioned, ok bool) {
	e, ok := quickEvent(line)
	if !ok {
		return "", "", false, false
	}
	versioned, ok = e.quickVersioned()
	return e.Name, string(e.Context), versioned, ok
}

// PlainEvent reads a line with encoding/json.
func PlainEvent(line []byte) (name, context string, versioned bool, err error) {
	var e event
	err = json.Unmarshal(line, &e)
	var v struct{ Version *json.RawMessage }
	versioned = json.Unmarshal(e.Context, &v) == nil && v.Version != nil
	return e.Name, string(e.Context), versioned, err
}
