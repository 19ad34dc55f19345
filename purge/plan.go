package purge

import (
	"strings"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
)

// Why says why a job goes. It is a set of the constants.
type Why uint8

// The reasons why a job goes.
const (
	ByAge   Why = 1 << iota // it is older than MaxAge
	ByCount                 // there are more than MaxCount
	ByID                    // somebody named it
)

// whyNames are the texts of the reasons, by bit.
var whyNames = [...]string{"age", "count", "id"}

// String returns the reasons, as "age,count".
func (w Why) String() string {
	var b strings.Builder
	for i, name := range whyNames {
		if w>>i&1 != 0 {
			if b.Len() > 0 {
				b.WriteByte(',')
			}
			b.WriteString(name)
		}
	}
	return b.String()
}

// A Candidate is a job that a plan removes.
type Candidate struct {
	Job
	Why Why
}

// A Kept is a job that would go, were it not for its pins.
type Kept struct {
	Job
	Pins []Pin // in their order
}

// A Plan says which jobs go. It is a value, refers to nothing in the index, and
// does nothing by itself: who drops it has had a dry run.
type Plan struct {
	// Now is the time that the plan was made for.
	Now eventlog.Timestamp
	// Jobs are those that go, oldest first.
	Jobs []Candidate
	// Pinned are those that stay although they are older, oldest first, at most
	// as many as a batch has; MorePinned tells that there are others. Where no
	// further job follows, they are all that would go, were they not pinned.
	Pinned     []Kept
	MorePinned bool
	// More tells that other jobs follow: they would go, too, but the batch is
	// full.
	More bool
	// Watermark is to be durable BEFORE any of the jobs is removed from the
	// store, if NeedsWatermark says so.
	Watermark      jobid.ID
	NeedsWatermark bool
	// Expired are the tombstones that end with this batch, oldest first. Only
	// Claim fills it.
	Expired []jobid.ID

	limits Limits
	byID   bool
	gen    uint64 // of the index when the plan was made
	claim  uint64 // the number of the claim, 0 before Claim
}

// IDs returns the ids of the jobs that go, oldest first.
func (p Plan) IDs() []jobid.ID {
	ids := make([]jobid.ID, len(p.Jobs))
	for i, c := range p.Jobs {
		ids[i] = c.ID
	}
	return ids
}
