package purge

import (
	"context"
	"errors"
	"fmt"

	"github.com/joblife/joblife/jobstate/jobid"
)

// A Store keeps the data of jobs. [CarryOut] calls, for each batch, Prepare and then
// Unlink. When a call returns nil, its change survives a crash at any later moment.
// Repeating a call, also after a crash, has no further effect. joblifetest.CheckStore
// tests a store that keeps the records of a Manager.
//
// A store need not look at ctx. A call may return its error, whether or not it made its change.
type Store interface {
	// Prepare stores what is to remain of the jobs of a plan. Its watermark goes first:
	// otherwise an id could come back after a crash. Prepare never lowers the stored
	// watermark.
	//
	// It stores Tombstones; a later one of an id replaces the earlier one. Those in Expired
	// the store may remove now, later or never, and may not have. No id is in both.
	//
	// If it fails, it may have done any part of that, and no other tombstone is harmed. It
	// keeps none of the slices.
	Prepare(ctx context.Context, p Plan) error

	// Unlink removes everything that is stored of the jobs, except the watermark and
	// tombstones. A job of which nothing is stored is no error.
	//
	// A job that cannot be removed does not stop the others: it is in failed, with the
	// cause; failed is nil or empty if all are gone. If err is not nil, the store failed as a whole: failed means nothing, and any
	// of these jobs may be gone, complete or in part. No other job is harmed.
	//
	// After a restart, a job of which only a part is left must not be listed; its id comes
	// again in a later Unlink, or the store cleans up. Unlink does not keep the slice.
	Unlink(ctx context.Context, ids []jobid.ID) (failed map[jobid.ID]error, err error)
}

// CarryOut has a store carry out the plan that x has claimed, if any, and passes x the
// outcome. It returns the plan with those jobs that are gone.
//
// If the store could not remove some jobs, the error joins one for each: these stay in the
// index, and later plans have them again. After any other error, of the store or of ctx, no
// job has left the index, even if the store has removed some: a later plan has them again.
func CarryOut(ctx context.Context, x *Index, s Store) (Plan, error) {
	p, ok := x.Claimed()
	if !ok {
		return Plan{}, nil
	}
	defer x.abort() // unless there is an outcome, and also if the store panics
	if err := ctx.Err(); err != nil {
		return Plan{}, err
	}
	// The tombstones go before the jobs: otherwise a dependency would have no answer for a
	// moment.
	if err := s.Prepare(ctx, p); err != nil {
		return Plan{}, fmt.Errorf("purge: store failed: prepare: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return Plan{}, err
	}
	failed, err := s.Unlink(ctx, p.IDs())
	if err != nil {
		return Plan{}, fmt.Errorf("purge: store failed: unlink: %w", err)
	}
	p, failed, _ = x.Unlinked(p.IDs(), failed)
	var errs []error
	for _, c := range p.Jobs {
		if cause := failed[c.ID]; cause != nil {
			errs = append(errs, fmt.Errorf("purge: %v: store failed: unlink: %w", c.ID, cause))
		}
	}
	return p.without(failed), errors.Join(errs...)
}
