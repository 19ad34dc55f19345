// Package joblife is the map of a library of HPC job-lifecycle primitives. It
// has no symbols of its own.
//
// The library is what a resource manager needs between "a job was submitted" and
// "its last byte was purged", without the resource manager. It follows the public
// Flux RFCs, so its logs, resource sets and messages are those of a real Flux
// instance. It decides; your transport, store and clock act. Only eventlog/logfile
// and purge/dirstore do I/O.
//
// # A tour
//
// A reader of logs folds a job's log into its state:
//
//	job, err := jobstate.Replay(id, log)
//	fmt.Println(job.State(), "waits for", job.Waiting())
//
// A daemon runs the prologs, epilogs and housekeeping of a job, and frees each node
// when nothing holds it. It gives events and reports to a perilog.Job, and does
// what comes out:
//
//	outcome, err := job.Apply(now, entry)
//	answer := job.Report(now, report)
//	todo := job.Take() // store todo.Post first, then launch, signal, drain and free
//
// A manager asks a scheduler for resources through an alloc.Queue. A scheduler
// answers from a pool.Pool:
//
//	r, err := p.Alloc(id, request, now)
//	freed, err := p.Free(id, fragment, final)
//
// A purge.Index says which inactive jobs go, and a purge.Runner removes them. The
// programs in examples are complete: replay, sched, partialrelease, purge.
//
// Beside the log, the embedder stores two records of a job: its jobspec, durable
// with the event submit, and its R, durable before the event alloc. A restart needs
// both; updates in the log apply to them as they were stored.
//
// # Invariants
//
// Comments and tests cite these by number.
//
//   - I1 Conservation. At every moment, what is held and what is freed of an
//     allocation add up to its R, without overlap, per rank and per child type.
//   - I2 One final. The last fragment of an allocation is final, no earlier one is,
//     and none follows. It may have no ranks.
//   - I3 No early free. A rank is freed only when nothing holds it: not the executor,
//     not an epilog, not housekeeping. Every epilog that is configured for it has
//     run there first, in whatever order events and calls come. Time alone frees
//     nothing: a timer releases only ranks that no action holds.
//   - I4 Log first. No effect comes out before every record that it depends on, and
//     records are to be made durable before effects are carried out.
//   - I5 Replay is live. Folding any prefix of a log gives the state that was live
//     after that prefix. State is what is logged: volatile annotations and
//     outstanding requests are not part of it.
//   - I6 Refusal is total. After an error the receiver is as before. The event is in
//     neither memory nor log, and later events are not affected.
//   - I7 Determinism. The same inputs and times give the same bytes: no clock, no
//     randomness, no map order.
//   - I8 Nothing after clean. The log of an inactive job is closed.
//   - I9 Ids never come back. A watermark of ids is durable before the record that
//     proves an id is removed.
//   - I10 Every hold ends. Each has an owner and a deadline, or is listed as needing
//     one. Failures on ranks and unconfirmed drains survive a crash. A report
//     belongs to one attempt, and changes nothing of a later one.
//   - I11 No start after failure. A job starts only if its prologs succeeded.
//     Exactly one epilog-start follows a started prolog. A run that was lost in a
//     crash is repeated only on explicit demand.
//   - I12 Bounded. Every input from outside has a limit and an error, and cost
//     follows ranges, not ids.
//
// # Concurrency
//
// One goroutine at a time owns a value, unless its type says otherwise. The library
// starts no goroutines and takes no locks in memory.
package joblife
