package purge

import (
	"context"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A Runner purges by limits, a batch with each beat of its caller's heart, and by
// hand in between. It keeps no state but whether a beat's batch is in the store,
// so new limits are a new Runner, and what failed is simply planned again.
//
// One goroutine at a time may use it, and its index. NewRunner makes one; the zero
// Runner is not valid and panics.
type Runner struct {
	_      noCopy
	x      *Index
	store  Store
	limits Limits
	busy   bool
}

// NewRunner returns a Runner that purges the jobs of x from s by the limits. The
// error is a *LimitsError, also if there is no bound for a batch. It keeps x and s.
func NewRunner(x *Index, s Store, l Limits) (*Runner, error) {
	if err := checkBatch(l); err != nil {
		return nil, err
	}
	return &Runner{x: x, store: s, limits: l}, nil
}

// checkBatch returns a *LimitsError if the limits make no sense for a store.
func checkBatch(l Limits) error {
	if l.Batch == NoBatch {
		return &LimitsError{Key: "Batch", Reason: "must be bounded"}
	}
	return l.check()
}

// Tick tells the index what time it is, and purges one batch by the limits that
// the Runner has. It returns the plan that was carried out: its jobs are gone, and
// if More is true the next Tick has work.
//
// An error is a *ClockError; ErrBusy if Tick is called by the store or a callback
// within a Tick; what ctx says if that is done; or a *StoreError. After it no job
// of the batch has left the index, even if the store has removed some of them: a
// later Tick plans them again. Where a store can never remove some job, a pin on
// that job lets the others go.
func (r *Runner) Tick(ctx context.Context, now eventlog.Timestamp) (Plan, error) {
	if r.busy {
		return Plan{}, ErrBusy
	}
	if err := ctx.Err(); err != nil {
		return Plan{}, err
	}
	if err := r.x.Observe(now); err != nil {
		return Plan{}, err
	}
	r.busy = true
	defer func() { r.busy = false }()
	return r.Purge(ctx, now, r.limits)
}

// Purge purges one batch by other limits than the Runner's. As long as the plan
// that it returns has More, the caller may go on; what else happens in between,
// ticks included, does no harm. An error is one of Tick's or a *LimitsError.
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

// PurgeIDs purges the jobs with the given ids, all or none. An error is one of
// [Index.PlanIDs], or what ctx says, or a *StoreError.
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

// carryOut claims a plan, tells the store, and commits it.
//
// The watermark goes first: if the machine stopped after the greatest id was
// unlinked and before the watermark was stored, that id would be handed out once
// more. The tombstones go before the jobs: otherwise there would be a moment at
// which a dependency has no answer. Both do no harm if nothing follows.
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
	if err := r.call(ctx, "unlink", func() error { return r.store.Unlink(ctx, p.IDs()) }); err != nil {
		return Plan{}, err
	}
	committed = true
	return p, r.x.Commit(p)
}

// call does one call of the store unless ctx is done.
func (r *Runner) call(ctx context.Context, op string, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := do(); err != nil {
		return &StoreError{Op: op, Err: err}
	}
	return nil
}
