package jobspec

import (
	"errors"

	"github.com/joblife/joblife/internal/jsonobj"
)

// MaxNesting is how deep resources may be in each other.
const MaxNesting = maxNesting

// Position returns the path and the offset that an error of this package tells,
// and its category.
func Position(err error) (path string, offset int, category error) {
	var e *refusal
	if !errors.As(err, &e) {
		return "none", -2, nil
	}
	return e.fault.Path, e.fault.Offset, e.category
}

// ReadCount reads a Count in one of the three forms of RFC 14.
func ReadCount(b []byte) (Count, error) {
	d := jsonobj.NewDoc(b)
	c := countOf(d.Root())
	return c, refuse(d.Fault())
}
