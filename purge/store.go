package purge

import (
	"context"

	"github.com/joblife/joblife/jobstate/jobid"
)

// A Store keeps the data of jobs. A [Runner] calls, for each batch and in this
// order: PutWatermark if the batch needs it, PutTombstones if there are any,
// Unlink. When a call returns nil, its change is durable: it survives a crash at
// any later moment. Repeating a call, also after a crash, has no further effect.
//
// A store need not look at ctx: a Runner does so before every call. A call may
// return the error of a ctx that is done, whether or not it made its change.
//
// Package purge/storetest tests stores.
type Store interface {
	// PutWatermark stores id as the greatest id that was ever handed out. It never
	// lowers the stored id, and never stores an id greater than those that the store
	// was given: ids carry the time, so a generator would have to wait after a
	// restart. If it fails, either the earlier id or the new one is stored.
	PutWatermark(ctx context.Context, id jobid.ID) error

	// PutTombstones stores the records of put as tombstones, one for each id; a
	// later record of an id replaces the earlier one. The tombstones of drop have
	// expired: the store may remove them now, later or never, and may not have
	// them. No id is in both. If it fails, it may have done any part of that, and
	// no other tombstone is harmed. It keeps neither slice.
	PutTombstones(ctx context.Context, put []Record, drop []jobid.ID) error

	// Unlink removes everything that is stored of the jobs, except the watermark
	// and tombstones. A job of which nothing is stored is no error.
	//
	// A job that cannot be removed does not stop the others: it is in failed,
	// with the cause, and the others are gone. failed is nil or empty if all are
	// gone. If err is not nil, the store failed as a whole: failed means nothing,
	// and any of these jobs may be gone, complete or in part. No other job is
	// harmed.
	//
	// After a restart, a job of which only a part is left must not be listed;
	// its id comes again in a later Unlink, or the store cleans up. Unlink does
	// not keep the slice.
	Unlink(ctx context.Context, ids []jobid.ID) (failed map[jobid.ID]error, err error)
}
