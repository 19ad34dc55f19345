package purge

import (
	"cmp"
	"math/bits"

	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate"
)

// resultNames are the results, by their place in a ResultCounts.
var resultNames = [...]string{"unknown", "completed", "failed", "canceled", "timeout"}

// place returns where a result is counted, and false for a value that is no result.
func place(r jobstate.Result) (int, bool) {
	at := bits.Len(uint(r)) // RFC 43 has a bit for each
	if at >= len(resultNames) || resultAt(at) != r {
		return 0, false
	}
	return at, true
}

func resultAt(place int) jobstate.Result { return 1 << place >> 1 }

// check returns an error unless a summary can be in an index.
func check(r jobstate.Summary) error {
	if _, ok := place(r.Result); !ok || !guard.IsTime(r.Inactive) || r.Ran && r.Unstarted {
		return jobError(r.ID, errRecord, "")
	}
	return nil
}

// compare is the order of summaries: by time, then by id.
func compare(a, b jobstate.Summary) int {
	return cmp.Or(cmp.Compare(a.Inactive, b.Inactive), cmp.Compare(a.ID, b.ID))
}
