// Package perilog knows what happens to the ranks of a job around the job itself:
// prologs before it, epilogs and housekeeping after it, and when each rank is free
// again.
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
// [Run] is one action while it runs on many ranks: launches, reports, timeouts,
// cancellation, and one [Outcome] of all. [Tolerate] says how many ranks may fail
// without the run failing, [ParseControl] reads what an action's command says of
// that on its output, and [Config] is where an instance sets all this.
//
// [Housekeeping] is the work on the nodes after the job, which the scheduler still
// counts as the job's: each rank goes back when its work has ended and, where it
// failed, when a policy says so.
//
// [Job] is the prologs and epilogs of one job together: it turns the events of the
// job's log into runs, and what becomes of them into events, and after a restart
// [RecoverJob] lists what was active, each to be taken up, run again or ended.
//
// An embedder has a Job, and a ledger of its R, for each job from alloc on:
//
//   - It appends each event of the job to the log, then gives it to [Job.Apply],
//     then does what [Job.Take] says: it appends the events of Post, before any
//     other event of the job, and gives each to Apply; it does the Requests; and
//     it takes again, until there is nothing.
//   - What [Job.Feed] returns after that it gives to the scheduler. It posts the
//     events start, free and clean only where [Job.MayStart], [Job.MayFree] and
//     [Job.MayClean] allow them.
//   - What happens on the nodes goes to [Job.Report], drains that were done to
//     [Job.Drained], and [Job.Tick] is called at [Job.Deadline]; each is
//     followed by Take and Feed as above.
//   - After a restart, RecoverJob folds the log, and [rset.Rebuild] makes the
//     ledger of what [Holds.Released] says. Whatever
//     [Job.Unresolved] lists is to be resolved. What the crash kept from the
//     scheduler it learns by hello.
//   - With Housekeeping in between, ranks that are ready are handed to that, and
//     its fragments go to the scheduler: the example EpilogThenHousekeeping
//     shows how.
//
// All of them decide and never act: they do no I/O, and time is what the caller
// says it is. What is to be launched, killed, drained or logged comes out as a
// value.
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
//   - I7 The same calls with the same times give the same bytes.
//   - I4 A Job launches an action only after the start of it is in the log.
//   - I10 What holds a job has a run or is listed as unresolved.
//   - I11 A job whose prolog did not end in success never starts, and exactly one
//     start of each epilog follows a prolog that started.
//   - Each rank of a Run or a Housekeeping ends exactly once, in whatever order,
//     twice, late or never the reports come.
//   - After an error the receiver is as before.
//
// # Concurrency and ownership
//
// One goroutine at a time may use a value of this package, and none that changes
// may be copied. There are no goroutines, locks or globals that change. What goes
// in is copied or immutable, but for the ledger that Feed was given last; what
// comes out is the caller's, unless its comment says otherwise.
//
// # Cost and limits
//
// [Holds.Apply] of a release or a partial end costs by the ranges that the event
// names and by the actions that are active, from 16 ranks to 16384 the same, and
// allocates nothing while those ranges are few. The memory of Holds is in
// proportion to the ranges that are held, to the named resources, and to the
// actions that are active, of which a job has at most [MaxActions]. A report to a [Run] costs the same whatever the job; it
// has at most [MaxRunRanks] ranks, and a line of output that is looked at at most
// [MaxControl] bytes. Limits of other texts are those of packages eventlog, idset
// and rset.
package perilog
