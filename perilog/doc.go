// Package perilog knows what happens to the ranks of a job around the job itself:
// prologs before it, epilogs after it, and when each rank is free again.
//
// # What it is
//
// [Holds] folds the log of one job and tells who holds which of its ranks and
// named resources: the job, the executor, a prolog, an epilog. What nobody holds
// any more it gives to an [rset.Ledger], at once and rank by rank, so that one
// slow epilog does not keep the other nodes of its job.
//
// [ActionStart], [ActionRelease] and [FailedRanks] are what such a log says beyond
// RFC 21, in a dialect that tools which know RFC 21 alone read without harm: the
// ranks of an action, its end on some of them, ranks that failed while the job
// goes on.
//
// RFCs: https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/
// number 21 (states and events), 18 (their form), 20 (R), 22 (idsets).
//
// # Vocabulary
//
// An action is a prolog or an epilog; it is active from its start to its finish,
// and known by its kind and description. The executor runs the job shells. A
// holder is one of these, or the job. A rank is held while it has a holder, and
// has left when it has none and will have none. A partial end is the end of an
// action on some ranks. Ranks that failed are kept by the job or dropped from
// it. A named resource has no rank, as a rabbit's file system. The effective R
// of a job is its R without what was dropped.
//
// # Invariants
//
// I1, I2, I3 and I5 are those of the library. Tests cite them by number.
//
//   - I1 A ledger that is fed, and what it still holds, are the allocation.
//   - I2 One fragment that Feed returns is final, the last.
//   - I3 What has left is held by nobody, and never comes back. Time frees
//     nothing.
//   - I5 The state is a function of the log alone: the fold of a prefix is what
//     the holds were then. A crash loses nothing.
//   - After an error a Holds is as before.
//
// # Concurrency and ownership
//
// One goroutine at a time may use a value of this package, and none that changes
// may be copied. There are no goroutines, locks or globals that change. What goes
// in is not kept, but for the ledger that Feed was given last; what comes out is
// the caller's.
//
// # Cost and limits
//
// [Holds.Apply] of a release or a partial end costs by the ranges that the event
// names and by the actions that are active, from 16 ranks to 16384 the same, and
// allocates nothing while those ranges are few. The memory of Holds is in
// proportion to the ranges that are held, to the named resources, and to the
// actions that are active. Limits of what is read are those of packages eventlog
// and idset.
package perilog
