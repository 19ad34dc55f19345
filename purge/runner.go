package purge

import (
	"context"
	"errors"
	"fmt"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A Runner purges by limits, one batch for each tick; in between, the caller can purge
// jobs by id or by other limits. It has no state but its limits, so a new Runner with
// other limits can replace it at any time. Jobs that failed are planned again.
//
// One goroutine at a time may use it, and its index. NewRunner makes one; the zero
// Runner is not valid and panics.
type Runner struct {
	_      guard.NoCopy
	x      *Index
	store  Store
	limits Limits
}

// NewRunner returns a Runner that purges the jobs of x from s by the limits. The
// error has category ErrLimits; NoBatch is refused. It keeps x and s.
func NewRunner(x *Index, s Store, l Limits) (*Runner, error) {
	if err := checkBatch(l); err != nil {
		return nil, err
	}
	return &Runner{x: x, store: s, limits: l}, nil
}

// checkBatch returns an error if the limits make no sense for a store.
func checkBatch(l Limits) error {
	if l.Batch == NoBatch {
		return limitError("Batch", "must not be NoBatch")
	}
	return l.check()
}

// Tick passes the time to the index, and purges one batch by the Runner's
// limits. It returns the plan that was carried out: its jobs are gone. If More
// is set, more jobs are due.
//
// The error has category ErrClock or ErrStore, or is the error of ctx. If the store could
// not remove some of the jobs, the others are gone, and the error joins a *JobError for
// each job that is not: these stay in the index, and later ticks try again, see
// [Index.Commit]. After any other error no job has left the index, even if the store has
// removed some: a later Tick plans them again.
func (r *Runner) Tick(ctx context.Context, now eventlog.Timestamp) (Plan, error) {
	if err := ctx.Err(); err != nil {
		return Plan{}, err
	}
	if err := r.x.Observe(now); err != nil {
		return Plan{}, err
	}
	return r.Purge(ctx, now, r.limits)
}

// Purge purges one batch by other limits than the Runner's. While More of the
// returned plan is set, the caller may call it again; ticks in between do no harm.
// The error is one of Tick's or has category ErrLimits.
func (r *Runner) Purge(ctx context.Context, now eventlog.Timestamp, l Limits) (Plan, error) {
	if err := checkBatch(l); err != nil {
		return Plan{}, err
	}
	if err := ctx.Err(); err != nil {
		return Plan{}, err
	}
	p, err := r.x.Plan(now, l)
	if err != nil {
		return Plan{}, err
	}
	return r.carryOut(ctx, p)
}

// PurgeIDs purges the jobs with the given ids, all or none, stuck ones too. The
// error is one of [Index.PlanIDs] or one of Tick's.
func (r *Runner) PurgeIDs(ctx context.Context, now eventlog.Timestamp, ids ...jobid.ID) (Plan, error) {
	if err := ctx.Err(); err != nil {
		return Plan{}, err
	}
	p, err := r.x.PlanIDs(now, ids...)
	if err != nil {
		return Plan{}, err
	}
	return r.carryOut(ctx, p)
}

// carryOut claims a plan, calls the store, and commits the plan.
//
// The watermark goes first: if the machine stopped after the greatest id was
// unlinked and before the watermark was stored, that id would be handed out again.
// The tombstones go before the jobs: otherwise a dependency would have no answer
// for a moment. Both do no harm if nothing follows.
func (r *Runner) carryOut(ctx context.Context, p Plan) (Plan, error) {
	p, err := r.x.Claim(p)
	if err != nil || len(p.Jobs) == 0 {
		return p, err
	}
	committed := false
	defer func() { // also if the store panics
		if !committed {
			_ = r.x.Abort(p) // it is claimed
		}
	}()
	if p.NeedsWatermark {
		if err := r.call(ctx, "put watermark", func() error { return r.store.PutWatermark(ctx, p.Watermark) }); err != nil {
			return Plan{}, err
		}
	}
	if len(p.Tombstones)+len(p.Expired) > 0 {
		if err := r.call(ctx, "put tombstones", func() error {
			return r.store.PutTombstones(ctx, p.Tombstones, p.Expired)
		}); err != nil {
			return Plan{}, err
		}
	}
	var causes map[jobid.ID]error
	if err := r.call(ctx, "unlink", func() (err error) {
		causes, err = r.store.Unlink(ctx, p.IDs())
		return err
	}); err != nil {
		return Plan{}, err
	}
	committed = true
	failed, errs := failures(p, causes)
	return p.without(failed), errors.Join(append(errs, r.x.Commit(p, failed...))...)
}

// failures returns the jobs of a plan that the store could not remove, and their
// errors, in the order of the plan.
func failures(p Plan, causes map[jobid.ID]error) (ids []jobid.ID, errs []error) {
	if len(causes) == 0 {
		return nil, nil
	}
	for _, c := range p.Jobs {
		if cause, ok := causes[c.ID]; ok {
			ids = append(ids, c.ID)
			errs = append(errs, &JobError{ID: c.ID, Err: fmt.Errorf("%w: unlink: %w", ErrStore, cause)})
		}
	}
	return ids, errs
}

// call does one call of the store unless ctx is done.
func (r *Runner) call(ctx context.Context, op string, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := do(); err != nil {
		return fmt.Errorf("purge: %w: %s: %w", ErrStore, op, err)
	}
	return nil
}
