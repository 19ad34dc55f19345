package jobspec

import (
	"errors"

	"github.com/joblife/joblife/internal/jsonobj"
)

// MaxNesting is how deep resources may be in each other.
const MaxNesting = maxNesting

// Position returns the path and the offset that an error of this package tells.
func Position(err error) (path string, offset int) {
	var fault *jsonobj.Fault
	if !errors.As(err, &fault) {
		return "none", -2
	}
	return fault.Path, fault.Offset
}

// ReadCount reads a Count in one of the three forms of RFC 14.
func ReadCount(b []byte) (Count, error) {
	d := jsonobj.NewDoc(b)
	c := countOf(d.Root())
	return c, refuse(d.Fault())
}

// Contains reports whether n is acceptable.
func (c Count) Contains(n int64) bool {
	f, ok := c.Floor(n)
	return ok && f == n
}
