// Package joblife is the map of a library of HPC job-lifecycle primitives. It
// has no symbols of its own.
//
// # What it is
//
// joblife holds what a resource manager needs between "a job was submitted" and
// "its last byte was purged", without the resource manager. It follows the
// public Flux RFCs, so its logs and messages interoperate with a real Flux
// instance. It does no I/O, logs and jobs in files apart: it decides, and the
// embedder's transport, store and clock act.
//
// # The packages
//
//   - idset: sets of ids, of ranks above all (RFC 22), and an allocator of ids.
//   - eventlog: the entries of a log (RFC 18), decoded and encoded byte for byte.
//   - eventlog/logfile: logs in files, where what was acknowledged stays.
//   - jobstate: the states and events of a job (RFC 21), the one reducer that
//     folds a log into a job, a validator, and what a job waits for.
//   - jobstate/jobid: job ids (RFC 19) and their generator.
//   - jobstate/fsd: durations (RFC 23).
//   - jobstate/jobspec: what a scheduler needs of a jobspec (RFC 14 and 25).
//   - jobstate/archive: dump archives of a Flux instance, from an io.Reader.
//   - rset: resource sets (RFC 20), their algebra, and the Ledger of what an
//     allocation still holds.
//   - rset/hostlist: lists of hosts (RFC 29).
//   - rset/alloc: the allocation protocol (RFC 27), and the manager's queue.
//   - rset/pool: the scheduler's side, with RFC 28 and 31.
//   - perilog: prologs, epilogs and housekeeping: who holds which node of a job,
//     and when each goes back.
//   - purge: the index of inactive jobs, and what is known of those that are gone.
//   - purge/dirstore: jobs in a directory of plain files.
//   - purge/storetest: what every store of jobs has to pass.
//
// # A tour
//
// A job's life is its log, and its state is the fold of its log. Package
// eventlog reads entries:
//
//	for e, err := range eventlog.Entries(log) { … }
//
// package jobstate folds them into a job, live and in a replay alike:
//
//	outcome, err := job.Apply(e)
//
// and the job answers: its state, when it entered each, how it ended and why,
// what it waits for, which prologs and epilogs hold it, whether it may start,
// whether its resources may be freed. jobstate.Validate reads a log as a judge
// would, and names each line that breaks the protocol.
//
// The program in examples/replay does all of this for logs that a real instance
// wrote.
//
// A job's nodes come from a pool.Pool, which the manager asks through an
// alloc.Queue. A perilog.Job turns the job's events into prologs and epilogs, and
// what these end on goes back, node by node, through the job's rset.Ledger:
//
//	fragment := actions.Feed(ledger)
//
// The programs in examples/sched and examples/partialrelease show both ends.
//
// # Invariants
//
// Three rules hold everywhere: folding a log after any prefix gives the state
// that was live then; after an error the receiver is as before; the same inputs
// give the same bytes.
//
// # Concurrency, cost and limits
//
// One goroutine at a time owns a value. There are no goroutines, locks, clocks
// and no randomness in the library. Every input has a limit and a typed error,
// and cost follows ranges, not ids. Each package's documentation says more.
package joblife
