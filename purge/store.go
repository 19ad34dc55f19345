package purge

import (
	"context"

	"github.com/joblife/joblife/jobstate/jobid"
)

// A Store is where the data of jobs is, as a [Runner] needs it. The calls of one
// batch are, in this order: PutWatermark if the batch needs it, PutTombstones if
// tombstones are kept, Unlink. A call that returns nil has made its change
// durable: it is there after a crash at any later moment. A call may be repeated
// any number of times, also after a crash, with the effect of one.
//
// A store need not look at ctx; a Runner does before every call. If ctx is done, a
// call may return its error, be the change made or not.
//
// Package purge/storetest tests stores.
type Store interface {
	// PutWatermark keeps id as the greatest id that was ever handed out. It
	// never lowers what an earlier call kept. If it fails, what was kept before
	// is still there, or id is.
	PutWatermark(ctx context.Context, id jobid.ID) error

	// PutTombstones keeps the jobs of put as tombstones, one for each id; of
	// several with one id the last stays. The tombstones of drop are not needed
	// any more, be they there or not: the store may remove them now, later, or
	// never. No id is in both. If it fails, any part of that may have been done,
	// but no other tombstone is harmed.
	PutTombstones(ctx context.Context, put []Job, drop []jobid.ID) error

	// Unlink removes everything that is stored of the jobs, but not the
	// watermark and no tombstone. A job of which nothing is stored is no error.
	// If it fails, any of these jobs may be gone or still be there, whole or in
	// part, but no other job is harmed. A job that is there in part must not
	// count as one after a restart, and its id goes into a later Unlink or is
	// cleaned up by the store. Neither slice is kept.
	Unlink(ctx context.Context, ids []jobid.ID) error
}
