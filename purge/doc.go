// Package purge decides which inactive jobs are removed, and when, for a store of jobs without
// a joblife.Manager: a Manager uses it already, by its Config.Limits. Of each removed job it
// keeps a tombstone.
//
// An [Index] holds the inactive jobs in the order in which they became inactive. [Limits]
// say how old and how many they may become. [Index.Plan] is a dry run: which jobs would be
// purged, oldest first, and why. [Index.Claim] reserves such a batch, and [Index.Unlinked]
// takes its outcome. The index does no I/O: its caller does, or [CarryOut] with a [Store].
//
//	x, err := purge.Recover(cfg, snapshot)     // 1: at start, of what the store has
//	for now := range ticks {                   // at x.Due(limits)
//		err := x.Observe(now)
//		_, err = x.Claim(now, limits)
//		p, err := purge.CarryOut(ctx, x, store)  // 4
//	}                                          // p.More: there is more to do
//
// and, between ticks:
//
//	rec, ok := job.Summary()                   // a job became inactive
//	err := x.Add(rec)
//	rec, ok = x.Ended(id)                      // does a dependency hold?
//	_, err = x.ClaimIDs(now, id)               // an operator names a job
//
// The duties of the caller:
//
//  1. Pass the current time, and to [Recover] one that you trust.
//  2. Hand out only ids above [Index.Watermark], and pass each to
//     [Index.RaiseWatermark].
//  3. Pin jobs again after a restart, before the first batch.
//  4. Without CarryOut: store the watermark and the tombstones of a claimed plan, remove
//     its jobs, and pass what became of each to Unlinked.
//
// # Vocabulary
//
// A job is resident while the index holds it. A pin keeps it from being purged and says
// why. A batch is a claimed plan, one at a time. Its jobs are leaving until their outcomes
// are there, and stuck after the store could not remove them. A tombstone is the
// [jobstate.Summary] that remains of a purged job and answers dependencies (RFC 26). The
// watermark is the greatest id ever handed out.
//
// # Ownership, cost and limits
//
// One goroutine at a time may use an Index. Returned slices belong to the caller, except
// those of a claimed plan. After an error nothing has changed.
//
// Adding, pinning and removing take O(log n), a lookup O(1), a plan O(log n) plus its
// size. A resident job or a tombstone takes 54 to 70 bytes.
//
// # Differences from flux-core
//
// Here the id orders jobs of equal times, a job stays until the store has removed it, a
// clock that steps is an error, and a minimum age wins over both limits.
package purge
