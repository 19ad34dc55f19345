package jobspec

import (
	"errors"

	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/internal/jsonobj"
)

// The categories of errors. Compare with errors.Is. The text of an error has the
// dotted path of the value at fault, cut at 128 bytes, and its offset in bytes from
// 0: "jobspec: resources[0].count: offset 40: must be an integer of at least 1". An
// error about a text that the package made itself, as in New and Update, has no
// offset.
var (
	// ErrSyntax is returned when a text is not one JSON value, read strictly:
	// valid UTF-8, no key twice in an object.
	ErrSyntax = errors.New("jobspec: not valid JSON")
	// ErrInvalid is returned when a key is missing, has a value of the wrong
	// type or out of range, or is not allowed, and for a version other than 1.
	ErrInvalid = errors.New("jobspec: not a valid jobspec")
	// ErrLimit is returned when a jobspec, or a count in it, exceeds a limit of
	// this package.
	ErrLimit = errors.New("jobspec: limit exceeded")
	// ErrUpdate is returned when the path of an update is malformed, does not
	// begin with attributes, resources or tasks, or leads through a value that is
	// not an object.
	ErrUpdate = errors.New("jobspec: update not allowed")
	// ErrShape is returned when a jobspec is legal, but its resources are not of
	// RFC 25's simpler form.
	ErrShape = errors.New("jobspec: not of the form of RFC 25")
)

// The causes of ErrInvalid.
var (
	errUnknown  = errors.New("key is not allowed here")
	errEmpty    = errors.New("must not be empty")
	errNotRead  = errors.New("must be 1")
	errRefersTo = errors.New("must be the label of a slot")
	errInSlot   = errors.New("must be a type of resource in the task's slot")
	errUnique   = errors.New("label appears twice")
	errOneKey   = errors.New("must have exactly one key")
	errInteger  = errors.New("must be an integer of at least 1")
	errCount    = errors.New(`must be an integer of at least 1, a set ("1,4-8"), a range ("2+", "2-8:2:*") or an object with min`)
	errMin      = errors.New("min must be at least 2 if the operator is ^")
	errMax      = errors.New("max must not be less than min")
	errOperator = errors.New(`operator must be "+", "*" or "^"`)
	errOperand  = errors.New("operand must be at least 1, or at least 2 if the operator is * or ^")
)

// Causes of the other categories.
var (
	errBytes    = guard.Cause(ErrLimit, "too many bytes")
	errDepth    = guard.Cause(ErrLimit, "nested too deep")
	errVertices = guard.Cause(ErrLimit, "too many resource vertices")
	errTasks    = guard.Cause(ErrLimit, "too many tasks")
	errHuge     = guard.Cause(ErrLimit, "too large a number")

	errPath     = guard.Cause(ErrUpdate, "path must begin with attributes, resources or tasks")
	errElement  = guard.Cause(ErrUpdate, "path has an empty element")
	errNoText   = guard.Cause(ErrUpdate, "path must be UTF-8 without U+0000")
	errThrough  = guard.Cause(ErrUpdate, "path leads through a value that is not an object")
	errNoUpdate = guard.Cause(ErrUpdate, "must have at least one key")

	errFour = guard.Cause(ErrShape, "must be slot>core, slot>(core,gpu), node>slot>core or node>slot>(core,gpu)")
)

// refusal is the error for a fault, with its category.
type refusal struct {
	category error
	fault    *jsonobj.Fault
}

func (e *refusal) Error() string   { return "jobspec: " + e.fault.Error() }
func (e *refusal) Unwrap() []error { return []error{e.category, e.fault} }

// refuse returns the error for a fault, nil for none.
func refuse(f *jsonobj.Fault) error {
	if f == nil {
		return nil
	}
	for _, category := range [...]error{ErrLimit, ErrUpdate, ErrShape} {
		if errors.Is(f.Err, category) {
			return &refusal{category, f}
		}
	}
	switch {
	case errors.Is(f, jsonobj.ErrDepth):
		return &refusal{ErrLimit, f}
	case errors.Is(f, jsonobj.ErrSyntax):
		return &refusal{ErrSyntax, f}
	}
	return &refusal{ErrInvalid, f}
}

// refuseValue returns the error about a value that is no part of a text.
func refuseValue(path string, cause error) error {
	return refuse(&jsonobj.Fault{Path: path, Offset: jsonobj.NoOffset, Err: cause})
}

// count reads an integer of 1 to MaxCount.
func count(v jsonobj.Value) int64 {
	n, ok := jsonobj.Int64(v.Raw())
	switch {
	case v.Absent():
	case !ok || n < 1:
		v.Fail(errInteger)
		return 0
	case n > MaxCount:
		v.Fail(errHuge)
		return 0
	}
	return n
}
