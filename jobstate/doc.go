// Package jobstate knows the life of a job as RFC 21 tells it: the states, the
// events that move a job from one to the next, and what a listing says of it.
//
// # What it is
//
// [Job] is one job, folded from its log by [Job.Apply], entry by entry. There
// is one reducer: a manager that runs jobs, a restart that reads logs back and
// a tool that looks at old ones all use it, and so agree. [Replay] folds a
// whole log, [Validate] names what is wrong with one, [Job.Waiting] says in
// words what a job waits for, and [Diagram] prints the state machine. The
// contexts of all events have types ([SubmitContext] and so on), decoded by
// [ParseContext] and encoded by [NewEntry].
//
// The reducer ends where flux-core's job manager ends, on every log that a Flux
// instance wrote, also where that instance was wrong. It is more careful in
// three things: prologs and epilogs are counted by kind and description, so
// that a stray finish ends nobody else's; an entry that repeats the one before
// it is ignored; and an event that RFC 21 does not allow is refused.
//
// RFCs: https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/
// number 21 (states and events), 18 (their form), 26 (dependencies), 27
// (annotations), 30 (urgency) and 43 (what a listing shows).
//
// # Vocabulary
//
// A job is submitted, allocated (it holds resources), started (its job shells
// run), finished (they have ended), and released (the executor holds nothing of
// it any more); these are facts beside its state. A prolog or epilog is an
// action, and is active from its start to its finish. The cause is the first
// exception of severity 0. An event is applied, ignored (it is legal, and
// without effect) or refused (it is neither in memory nor, so, in the log).
//
// # Invariants
//
//   - I5: folding a log after any prefix gives the state that the job had then,
//     ignored events included. The state is a function of the entries alone:
//     no clock, no randomness, no map order.
//   - I6: after a refusal the job is as before.
//   - I8: after clean or invalidate every event is refused.
//   - The state is always a single one. Only the table of transitions changes
//     it.
//   - A job holds resources from alloc until free or an exception of type
//     scheduler-restart; R says nothing about it.
//   - An action is active exactly as often as its starts outnumber its
//     finishes.
//
// # Concurrency and ownership
//
// A Job belongs to one goroutine at a time and must not be copied. Apply and
// Validate keep no reference to what they are given; what accessors return is
// the caller's, unless their comment says otherwise. There are no goroutines,
// locks or globals that change.
//
// # Cost and limits
//
// Apply costs a constant time, whatever came before, and allocates only what
// the job must keep. A job that lived without incident needs well under a
// kibibyte (BenchmarkMemory). The size of a job is bounded by the size of its
// log; the limits on line length and nesting are those of package eventlog.
// [Validate] returns at most [MaxFindings] findings.
package jobstate
