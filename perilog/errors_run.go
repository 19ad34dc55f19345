package perilog

import (
	"errors"
	"strconv"
	"strings"
)

var (
	// ErrSpec is returned when a Spec, or the time of a start, can not be used.
	// The error that wraps it is a *SpecError.
	ErrSpec = errors.New("perilog: run can not be made")

	// ErrStarted is returned when a Run is started a second time.
	ErrStarted = errors.New("perilog: run was started before")

	// ErrConfig is returned when a configuration has an unknown key or a value
	// that can not be used. The error that wraps it is a *ConfigError.
	ErrConfig = errors.New("perilog: configuration is not valid")

	// ErrControl is returned when a line begins as a control line and is none.
	// The error that wraps it is a *ControlError.
	ErrControl = errors.New("perilog: not a control line")
)

// maxQuoted is the largest number of input bytes that an error repeats.
const maxQuoted = 64

// cut returns a copy of the start of a text, short enough to print.
func cut(s string) string { return strings.Clone(s[:min(len(s), maxQuoted)]) }

// A SpecError tells which field of a Spec can not be used. It wraps ErrSpec.
type SpecError struct {
	Field  string // the name of the field; "now" for the time of a start
	Reason string // what is wrong with it
}

// Error returns a text such as "perilog: Spec.Ranks: is empty".
func (e *SpecError) Error() string { return "perilog: Spec." + e.Field + ": " + e.Reason }

// Unwrap returns ErrSpec.
func (e *SpecError) Unwrap() error { return ErrSpec }

// A ConfigError tells which key of a configuration can not be used, and why.
// It wraps ErrConfig and its cause.
type ConfigError struct {
	Key string // dotted, such as "job-manager.prolog.timeout"
	Err error
}

// Error returns a text such as
// "perilog: job-manager.prolog.timeout: is not a duration".
func (e *ConfigError) Error() string { return "perilog: " + e.Key + ": " + e.Err.Error() }

// Unwrap returns ErrConfig and the cause.
func (e *ConfigError) Unwrap() []error { return []error{ErrConfig, e.Err} }

// A ControlError tells why a line that begins as a control line is none. It
// wraps ErrControl and its cause.
type ControlError struct {
	Offset int // of the fault in the line, from 0
	Err    error
}

// Error returns a text such as
// "perilog: control line: offset 20: unknown version".
func (e *ControlError) Error() string {
	return "perilog: control line: offset " + strconv.Itoa(e.Offset) + ": " + e.Err.Error()
}

// Unwrap returns ErrControl and the cause.
func (e *ControlError) Unwrap() []error { return []error{ErrControl, e.Err} }
