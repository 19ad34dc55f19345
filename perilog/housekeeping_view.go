package perilog

import (
	"errors"
	"fmt"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// HousekeepingStatus is the housekeeping of one job as a listing shows it. Its
// sets are copies, and not nil. Allocated and Free are all ranks of the job;
// Waiting, Started, Held, Draining and Ready are Allocated.
type HousekeepingStatus struct {
	Job    jobid.ID
	UserID uint32
	Since  eventlog.Timestamp // when it began

	Pending   *idset.Set // where the work has not ended: Waiting and Started
	Allocated *idset.Set // not given back
	Free      *idset.Set // given back

	Waiting    *idset.Set
	Started    *idset.Set
	Unresolved *idset.Set // those of Started of which nothing is known since a restart
	Held       *idset.Set
	Draining   *idset.Set
	Ready      *idset.Set

	// Release is when what is ready goes back though other ranks are not; 0
	// where no time is set for that.
	Release eventlog.Timestamp

	// Remaining is how long it takes at most until the work has ended on all
	// ranks; 0 if it has, infinite where nothing bounds it: a rank waits or is
	// unresolved, or the work has no timeout.
	Remaining fsd.Duration
}

// Status returns what a listing shows at the time now. It costs by the ranges
// of ranks and the runs that are not done.
func (h *Housekeeping) Status(now eventlog.Timestamp) HousekeepingStatus {
	s := HousekeepingStatus{
		Job: h.job.Job, UserID: h.job.UserID, Since: h.since,
		Pending: idset.Union(&h.waiting, &h.started), Allocated: h.ledger.Held(), Free: h.ledger.Freed(),
		Waiting: h.waiting.Clone(), Started: h.started.Clone(), Unresolved: h.unresolved.Clone(),
		Held: h.held.Clone(), Draining: h.draining.Clone(), Ready: h.ready.Clone(),
	}
	if at, ok := h.releaseAt(); ok && !h.Done() {
		s.Release = at
	}
	if !h.waiting.IsEmpty() || !h.unresolved.IsEmpty() {
		s.Remaining = fsd.Infinity()
	}
	for _, run := range h.runs {
		left := run.Remaining(now)
		if run.State() == RunRunning {
			left += run.spec.KillTimeout
		}
		s.Remaining = max(s.Remaining, left)
	}
	return s
}

// EndedBy returns a new set of the ranks, given back or not, on which the work
// ended with a cause.
func (h *Housekeeping) EndedBy(c Cause) *idset.Set {
	if int(c) >= len(h.ends) {
		return new(idset.Set)
	}
	return h.ends[c].Clone()
}

// Unresolved returns a new set of the ranks on which the work was started before
// a restart and has not ended. They are held until Reattach takes the work up,
// Start repeats it, or ForceFinish says that it was done.
func (h *Housekeeping) Unresolved() *idset.Set { return h.unresolved.Clone() }

// Done reports whether the final fragment was given out: nothing is held, and
// the log is at its end.
func (h *Housekeeping) Done() bool { return h.ledger.IsFinal() }

// HousekeepingHello is what a scheduler is told of a job when it says hello: it
// holds R without Free. The job may have been purged.
type HousekeepingHello struct {
	Job       jobid.ID
	UserID    uint32
	Priority  uint32
	Submitted eventlog.Timestamp // 0 is not known
	R         *rset.R            // the allocation, whole
	Free      *idset.Set         // ranks of it that were given back; nil is none
	Gone      *idset.Set         // ranks of it that are gone from the instance; nil is none
}

// Hello returns what a scheduler is to be told of the job, the same however
// often it asks: a scheduler that is loaded again changes nothing here. From
// NewHousekeeping on it is the one answer for the job, whether that is over or
// its last epilogs still run.
//
// The error is rset.ErrFinal if nothing is held any more. It is a
// *PartialReleaseError if some ranks were given back and the scheduler does not
// take partial allocations: partialOK is false. The others are still held then
// and the work on them goes on; a scheduler that is let on without knowing of
// them would give them to other jobs, so that it is to be refused, or the ranks
// that the error names are to be kept from it.
func (h *Housekeeping) Hello(partialOK bool) (HousekeepingHello, error) {
	if h.Done() {
		return HousekeepingHello{}, fmt.Errorf("perilog: housekeeping: %w", rset.ErrFinal)
	}
	hello := HousekeepingHello{
		Job: h.job.Job, UserID: h.job.UserID, Priority: h.job.Priority, Submitted: h.job.Submitted,
		R: h.ledger.Allocation(),
	}
	if free := h.ledger.Freed(); !free.IsEmpty() {
		if !partialOK {
			return HousekeepingHello{}, &PartialReleaseError{Job: h.job.Job, Held: h.ledger.Held(), Free: free}
		}
		hello.Free = free
	}
	if !h.gone.IsEmpty() {
		hello.Gone = h.gone.Clone()
	}
	return hello, nil
}

// AppendText appends the state that the log tells, in words. Two values of the
// same text do the same with what comes, but for what runs. The error is always
// nil.
func (h *Housekeeping) AppendText(dst []byte) ([]byte, error) {
	j := &h.job
	dst = fmt.Appendf(dst, "job %s; userid %d; priority %d; submitted %s; since %s; release-after ",
		j.Job, j.UserID, j.Priority, j.Submitted, h.since)
	if j.ReleaseAfter == nil {
		dst = append(dst, "unset"...)
	} else {
		dst, _ = j.ReleaseAfter.AppendText(dst)
	}
	dst = fmt.Appendf(dst, "; first end %s", h.first)
	for _, s := range []struct {
		name  string
		ranks *idset.Set
	}{
		{"waiting", &h.waiting}, {"started", &h.started}, {"held", &h.held}, {"draining", &h.draining}, {"ready", &h.ready},
	} {
		dst = fmt.Appendf(dst, "; %s %s", s.name, s.ranks)
	}
	for c := range h.ends {
		if !h.ends[c].IsEmpty() {
			dst = fmt.Appendf(dst, "; %s %s", Cause(c), &h.ends[c])
		}
	}
	for _, l := range h.launches {
		dst = fmt.Appendf(dst, "; launched %s at %s", l.ranks, l.at)
	}
	return h.ledger.AppendText(append(dst, "; ledger "...))
}

// String returns the text that AppendText appends.
func (h *Housekeeping) String() string {
	b, _ := h.AppendText(nil)
	return string(b)
}

// Check returns an error if an invariant is broken, which only a fault of this
// package can do: every rank is in exactly one of the five states or has gone
// back, the ledger is sound, and what is unresolved was started. It costs by
// all ranges.
func (h *Housekeeping) Check() error {
	sum := new(idset.Set)
	for _, s := range []*idset.Set{&h.waiting, &h.started, &h.held, &h.draining, &h.ready} {
		if sum.Intersects(s) {
			return errors.New("perilog: I1: a rank of housekeeping is in two states: " + h.String())
		}
		sum.UnionWith(s)
	}
	if !sum.Equal(h.ledger.Held()) {
		return errors.New("perilog: I1: the ranks of housekeeping are not those held: " + h.String())
	}
	if !h.started.ContainsAll(&h.unresolved) {
		return errors.New("perilog: I10: an unresolved rank was not started: " + h.String())
	}
	ended := new(idset.Set)
	for c := range h.ends {
		if ended.Intersects(&h.ends[c]) {
			return errors.New("perilog: I10: a rank of housekeeping ended twice: " + h.String())
		}
		ended.UnionWith(&h.ends[c])
	}
	ended.UnionWith(&h.waiting)
	ended.UnionWith(&h.started)
	if ended.UnionWith(&h.before); !ended.Equal(h.ledger.Allocation().Ranks()) {
		return errors.New("perilog: I10: a rank of housekeeping went on without an end: " + h.String())
	}
	return h.ledger.Check()
}
