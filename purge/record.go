package purge

import (
	"cmp"
	"math/bits"

	"github.com/joblife/joblife/jobstate"
)

// resultNames are the results, by their place in a ResultCounts.
var resultNames = [...]string{"unknown", "completed", "failed", "canceled", "timeout"}

// place returns where a result is counted: RFC 43 has a bit for each.
func place(r jobstate.Result) int { return bits.Len(uint(r)) }

func resultAt(place int) jobstate.Result { return 1 << place >> 1 }

// check returns an error for a summary that no tombstone can have.
func check(r jobstate.Summary) error {
	var room [100]byte
	if _, err := r.AppendText(room[:0]); err != nil {
		return jobError(r.ID, errRecord, "")
	}
	return nil
}

// compare is the order of summaries: by time, then by id.
func compare(a, b jobstate.Summary) int {
	return cmp.Or(cmp.Compare(a.Inactive, b.Inactive), cmp.Compare(a.ID, b.ID))
}
