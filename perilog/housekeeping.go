package perilog

import (
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// Limits of housekeeping.
const (
	// MaxHousekeepingRanks is how many ranks a job may have: the largest set of
	// them then fits in a line of the log.
	MaxHousekeepingRanks = 1 << 16
	// MaxHousekeepingNames is how many resources without a rank it may have.
	MaxHousekeepingNames = 1 << 10
)

// A HousekeepingJob is a job whose nodes are to be cleaned before they go back.
// All of it is in the log, so that what is held is known when the job itself
// has been purged.
type HousekeepingJob struct {
	Job       jobid.ID
	UserID    uint32
	Priority  uint32             // for the answer to a scheduler's hello
	Submitted eventlog.Timestamp // likewise; 0 is not known

	// R is what the job was allocated, whole. It has at most
	// MaxHousekeepingRanks ranks. It may be empty, and then nothing is left to
	// do but to give out the final fragment.
	R *rset.R
	// Free are ranks of R that went back before, in fragments that were not
	// final; nil is none.
	Free *idset.Set
	// Named are resources without a rank, as a rack's ssd, each not empty. They
	// go back with the final fragment: where an epilog of the job can hold one
	// longer than any rank, the work on the last rank is not to be started
	// before Holds.ReadyNamed has them all.
	Named []string

	// ReleaseAfter says when ranks go back that are ready while others are
	// not. nil: never, all go back at once in one fragment, which is final. 0:
	// each when it is ready. More: all that are ready that long after the work
	// ended on the first rank, and after that each when it is ready. It is
	// taken once: a configuration that changes concerns later jobs.
	ReleaseAfter *fsd.Duration

	// Bypass says that the job's resources did not come from the scheduler,
	// which the job's log tells by the flag alloc-bypass. There is no
	// housekeeping for such a job.
	Bypass bool
}

// A Decision says what becomes of a rank on which the work has ended. The zero
// Decision is none.
type Decision uint8

// The decisions.
const (
	// DecisionRelease gives it back, when ReleaseAfter allows.
	DecisionRelease Decision = 1 + iota
	// DecisionHold keeps it until the work is repeated with success, or a user
	// finishes it by force.
	DecisionHold
	// DecisionDrain asks for its drain, and gives it back once that is
	// confirmed: it is never in service between.
	DecisionDrain
)

// String returns "release", "hold" or "drain"; another value prints as
// Decision(n).
func (d Decision) String() string {
	switch d {
	case DecisionRelease:
		return "release"
	case DecisionHold:
		return "hold"
	case DecisionDrain:
		return "drain"
	}
	return "Decision(" + strconv.Itoa(int(d)) + ")"
}

func decisionOf(text string) (Decision, bool) {
	for d := DecisionRelease; d <= DecisionDrain; d++ {
		if text == d.String() {
			return d, true
		}
	}
	return 0, false
}

// HousekeepingOptions are what housekeeping does not log.
type HousekeepingOptions struct {
	// Decide is asked once for each rank on which the work ended, before
	// anything else happens with the rank, and its answer is logged. It must
	// not call the Housekeeping. An answer
	// that is no Decision means DecisionHold. nil releases what ended with
	// CauseOK and drains all else.
	Decide func(rank uint32, end End) Decision
}

func (o *HousekeepingOptions) decide(rank uint32, end End) Decision {
	switch {
	case o.Decide != nil:
		if d := o.Decide(rank, end); d >= DecisionRelease && d <= DecisionDrain {
			return d
		}
		return DecisionHold
	case end.Cause.OK():
		return DecisionRelease
	}
	return DecisionDrain
}

// Housekeeping is the work on the nodes of one job after the job: the job is
// over, the scheduler still counts its resources as the job's, and a command
// cleans each node before it goes back. It has a log of its own, of which it
// is the fold, so that a restart forgets nothing.
//
// Each rank that has not gone back is in one of five states:
//
//	waiting   nothing was started on it, as when its node is offline
//	started   the work was started and has not ended; after a restart it is
//	          unresolved besides: what became of the work is not known
//	held      the work ended, and the decision was to hold it
//	draining  the work ended, and its drain is not confirmed yet
//	ready     it may go back, when ReleaseAfter allows
//
// Time alone ends nothing but what a Run ends, and gives back only what is
// ready. The zero Housekeeping is not valid. It must not be copied, and one
// goroutine at a time may use it.
//
// A time before the last one given counts as the last one, and so does one
// that is not finite.
type Housekeeping struct {
	job     HousekeepingJob
	options HousekeepingOptions
	ledger  *rset.Ledger // nil until all of R was read
	since   eventlog.Timestamp
	first   eventlog.Timestamp // when the work ended on the first rank; 0: on none
	parts   int                // of R that are still to be read
	text    []byte             // of R, read so far

	waiting, started, held, draining, ready idset.Set

	before   idset.Set                     // ranks that went back before all this
	ends     [CauseAbandoned + 1]idset.Set // by cause, of ranks on which the work ended
	launches []hkLaunched                  // in the order of time; a rank is in one at most
	gone     idset.Set                     // of all ranks

	// What follows is not in the log.

	unresolved idset.Set // of started
	now        eventlog.Timestamp
	runs       []*Run          // that are not done
	main       *Run            // the first one
	later      map[uint32]*Run // of ranks that were started later
	ended      []RankEnd       // for what ended in a run
	some       idset.Set       // for ranks that ended alike
	context    []byte          // for the context of an entry
	out        [2]HousekeepingEffects
	turn       int // which of out is filled; the other one is the caller's
}

// hkLaunched is ranks on which the work was started at one time.
type hkLaunched struct {
	at    eventlog.Timestamp
	ranks *idset.Set
}

// NewHousekeeping returns the housekeeping of a job, of which every rank waits.
// It keeps nothing of j but its R, which is immutable. The error is a
// *HousekeepingError that names the field, and wraps ErrBypass for a job that
// never has housekeeping; now must be a time that an event can have.
//
// The entries that it logs must be durable before the log of the job says that
// its resources were handed over: until then the job holds them.
func NewHousekeeping(now eventlog.Timestamp, j HousekeepingJob, o HousekeepingOptions) (*Housekeeping, error) {
	if err := j.check(now); err != nil {
		return nil, err
	}
	j.Named = slices.Clone(j.Named)
	slices.Sort(j.Named)
	j.Free = j.Free.Clone()
	if j.ReleaseAfter != nil {
		d := *j.ReleaseAfter
		j.ReleaseAfter = &d
	}
	text := j.R.AppendJSON(nil)
	if len(text) > rset.MaxBytes {
		return nil, &HousekeepingError{Field: "R", Reason: "is too long"}
	}
	h := &Housekeeping{options: o, now: now}
	head := &hkHeader{job: j, parts: splitR(len(text))}
	if head.parts == 0 {
		head.r = text
	}
	err := h.record(hkEntry{event: hkStart, at: now, start: head})
	for left := head.parts; left > 0 && err == nil; left-- {
		var part []byte
		part, text = nextPart(text, left)
		err = h.record(hkEntry{event: hkPart, at: now, text: part})
	}
	if err != nil {
		return nil, &HousekeepingError{Field: "R or Named", Reason: err.Error(), Err: err}
	}
	h.settle()
	return h, nil
}

func (j *HousekeepingJob) check(now eventlog.Timestamp) error {
	refuse := func(field, reason string) error { return &HousekeepingError{Field: field, Reason: reason} }
	switch {
	case j.Bypass:
		return &HousekeepingError{Field: "Bypass", Reason: "there is nothing to give back", Err: ErrBypass}
	case !isTime(now):
		return refuse("now", "is not a time of an event")
	case j.Submitted != 0 && !isTime(j.Submitted):
		return refuse("Submitted", "is not a time of an event")
	case j.ReleaseAfter != nil && !j.ReleaseAfter.IsValid():
		return refuse("ReleaseAfter", "is not a duration")
	case j.R.Len() > MaxHousekeepingRanks:
		return refuse("R", "has too many ranks")
	case !j.R.Ranks().ContainsAll(j.Free):
		return refuse("Free", "has ranks that R has not")
	}
	named := slices.Clone(j.Named)
	slices.Sort(named)
	if err := checkNames(named); err != nil {
		return refuse("Named", err.Error())
	}
	return nil
}

// checkNames returns what is wrong with names that should be in order.
func checkNames(named []string) error {
	if len(named) > MaxHousekeepingNames {
		return errHKTooLong
	}
	for i, name := range named {
		if name == "" || i > 0 && name <= named[i-1] || !utf8.ValidString(name) {
			return errHKNotNamed
		}
	}
	return nil
}

// isTime reports whether an event can have a time.
func isTime(t eventlog.Timestamp) bool { return t > 0 && !math.IsInf(float64(t), 0) }
