// Package purge is the index of inactive jobs: which of them to remove, when,
// and what remains to be known of those that are gone.
//
// # What it is
//
// An [Index] holds the inactive jobs in the order of the time at which they
// became inactive. [Limits] say how old and how many they may get.
// [Index.Plan] is a dry run: exactly which jobs would go, oldest first, and
// why; which older ones are pinned, and by whom; whether more would follow.
// [Index.Claim] keeps a plan's jobs from everybody else while a [Store] removes
// them, [Index.Commit] then removes them from the index, and [Index.Abort] gives
// them back if the store failed. A [Runner] does these steps in this order,
// batch by batch, whenever its caller's heart beats.
//
// # Vocabulary
//
// A job is resident while the index holds it. A pin keeps a resident job from
// being purged, and says why. A job is leaving between Claim and Commit. Its
// tombstone is what remains of it: the [Job] itself, which is enough to answer a
// dependency. The watermark is the greatest job id that anybody ever saw; an
// instance hands out greater ids only. Evidence is what a restart finds in the
// store. The age of a job is the time since it became inactive.
//
// # Invariants
//
// I6, I7 and I9 are those of the library.
//
//   - I1 The order of jobs is (time, id), and total. Nothing depends on the
//     order in which jobs were added.
//   - I2 A plan never removes what it should not: what a plan names goes only if
//     it would still be planned at the time of Claim or Commit. A plan is used as
//     it was returned: what a caller adds to its jobs may go.
//   - I3 A job is in exactly one place: resident or a tombstone, and if resident
//     then free, pinned or leaving.
//   - I4 The counts of resident and of purged jobs are right after every call.
//   - I6 After an error nothing has changed.
//   - I7 The same calls give the same answers: there is no clock, no randomness
//     and no map order inside.
//   - I9 Ids never come back. The watermark is durable before a job is removed
//     whose id is greater than the one that was durable until then.
//
// # Concurrency and ownership
//
// One goroutine at a time uses an Index or a Runner, callbacks included. Neither
// may be copied. A [Plan] is a value that refers to nothing in the index; any
// number of plans may be outstanding, and be committed in any order. Slices that
// are returned belong to the caller, slices that are passed are not kept.
//
// # Cost and limits
//
// Adding, pinning and removing a job cost O(log n); looking one up is O(1);
// building from n jobs in any order is O(n log n). Plan costs what it returns
// and O(log n), however many pinned jobs are older: pinned jobs are in a tree of
// their own. Nothing is ever sorted in place, and no position in the index is
// handed out. A resident job needs about 57 bytes, however many there are, and a
// tombstone as much (BenchmarkMemory); a pin comes on top. The memory of removed
// jobs is used again for new ones, not given back.
//
// A plan has at most [MaxBatch] jobs unless Limits.Batch is [NoBatch]; a job has
// at most [MaxPins] pins of [MaxPinner] bytes; there are at most
// [DefaultTombstones] tombstones unless [Config] says otherwise.
//
// # Differences from the reference
//
// As in flux-core, a job goes if its age exceeds the age limit or if there are
// more jobs than the number limit, oldest first, in batches of at most 100, and
// without limits nothing goes. Otherwise than there: equal times are told apart
// by the id; a failed store leaves the jobs in the index; a clock that steps is
// an error; pinned jobs stay; a minimum age wins over both limits; a purge by id
// is a lookup and not a scan.
package purge
