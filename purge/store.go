package purge

import (
	"context"

	"github.com/joblife/joblife/jobstate/jobid"
)

// A Store keeps the data of jobs. A [Runner] calls, for each batch and in this
// order: PutWatermark if the batch needs it, PutTombstones if there are any,
// Unlink. When a call returns nil its change is durable: it survives a crash at any
// later moment. A call may be repeated any number of times, also after a crash,
// with the effect of one.
//
// A store need not look at ctx: a Runner does before every call. A call may return
// the error of a ctx that is done, with or without its change.
//
// Package purge/storetest tests stores.
type Store interface {
	// PutWatermark keeps id as the greatest id that was ever handed out. It never
	// lowers what an earlier call kept, and keeps no id greater than those that the
	// store was told of: ids carry the time, so a generator would have to wait after a
	// restart. If it fails, what was kept before is still there, or id is.
	PutWatermark(ctx context.Context, id jobid.ID) error

	// PutTombstones keeps the records of put as tombstones, one for each id; the
	// last one of an id stays. The tombstones of drop are not needed any more,
	// whether they are there or not: the store may remove them now, later or
	// never. No id is in both. If it fails, it may have done any part of that, and
	// no other tombstone is harmed. Neither slice is kept.
	PutTombstones(ctx context.Context, put []Record, drop []jobid.ID) error

	// Unlink removes everything that is stored of the jobs, except the watermark
	// and tombstones. A job that has nothing stored is no error.
	//
	// A job that cannot be removed stops no other: it is in failed, with the
	// cause, and the others are gone. Failed is nil if there is none. If err is
	// not nil the store failed as a whole, failed means nothing, and any of these
	// jobs may be gone or be there, whole or in part. No other job is harmed.
	//
	// After a restart a job that is there in part must not count as one; its id
	// comes again in a later Unlink, or the store cleans up. The slice is not
	// kept.
	Unlink(ctx context.Context, ids []jobid.ID) (failed map[jobid.ID]error, err error)
}
