package jobspec

import (
	"errors"
	"fmt"

	"github.com/joblife/joblife/internal/jsonobj"
)

// What is wrong with a jobspec. An error is "jobspec: resources[0].count: offset 40: must be
// an integer of at least 1"; about a text that the package made itself it has no offset.
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

// What else is wrong: a limit, an update, the form.
var (
	errBytes    = errors.New("too many bytes")
	errDepth    = errors.New("nested too deep")
	errVertices = errors.New("too many resource vertices")
	errTasks    = errors.New("too many tasks")
	errHuge     = errors.New("too large a number")

	errPath    = errors.New("path must begin with attributes, resources or tasks")
	errElement = errors.New("path has an empty element")
	errNoText  = errors.New("path must be UTF-8 without U+0000")
	errThrough = errors.New("path leads through a value that is not an object")
)

// refuse returns the error for a fault, nil for none.
func refuse(f *jsonobj.Fault) error {
	if f == nil {
		return nil
	}
	return fmt.Errorf("jobspec: %w", f)
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
