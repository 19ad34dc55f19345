// Package alloc speaks the protocol between a job manager and a scheduler, and
// keeps the manager's queue of jobs that wait for resources.
//
// # What it is
//
// Every message of [RFC 27], in both directions, is a type that reads and
// writes its payload: [Hello] and [HelloResponse], [Ready] and [ReadyResponse],
// [Request] and its four kinds of [Response], [Cancel], [Prioritize],
// [Expiration], [Free] and [Feasibility]. A [Line] is an envelope for them where
// lines of JSON carry the protocol. A [Queue] decides which jobs a scheduler is
// asked for and when, and what its answers mean; it sends nothing itself, but
// returns what is to be sent. [Announce] makes the answers to a hello of what
// jobs hold.
//
// # Vocabulary
//
// A request asks the scheduler for resources for one job. It is outstanding
// until the answer that ends it, which all answers but an ANNOTATE do. To
// recall a request is to take it back while the job stays: the scheduler still
// has to answer, and may have allocated in the meantime. To cancel a job is to
// take it out of the queue, and back its request. A job is held if its priority
// is 0 or it was stopped. Queue order is by priority, greatest first, then by
// id. A hello begins a session with a scheduler, ready lets requests be sent,
// and the loss of the scheduler ends the session with all its requests.
//
// # Invariants
//
// I6 and I7 are those of the library. Tests cite all by number.
//
//   - I6 After an error nothing has changed, in a Queue or in a message that
//     was to be read.
//   - I7 The same calls give the same messages, byte for byte.
//   - Q1 With a limit, no more than that many requests are outstanding, those
//     that were recalled or whose job was cancelled included. None is unless a
//     scheduler is ready.
//   - Q2 A held job is not asked for; one that was is recalled.
//   - Q3 A job is not asked for while an earlier request for its id is
//     outstanding.
//   - Q4 Jobs are asked for in queue order. None waits while a request may be
//     sent. With a limit, no job comes before one that was asked for, but those
//     that get the places of recalled and cancelled requests.
//   - Q5 Every job is in one state, and in the list of that state.
//   - Q6 What is written is read again, as the same; what was read is written
//     canonically, and that is read and written as the same.
//
// # Concurrency and ownership
//
// Messages are values. What is read shares nothing with the text, but for
// [Line.Payload]. One goroutine at a time may use a Queue, which retains nothing
// that is given to it but the ids and numbers of jobs; what it appends to the
// caller's slice belongs to the caller.
//
// # Cost and limits
//
// Operations on one job cost log n for n jobs, beside what is sent;
// [Queue.Prioritize] of k jobs costs k log n, and [Queue.Lost] and [Queue.Hello]
// for k outstanding requests as much. A Queue holds up to Config.MaxJobs jobs
// and some 200 bytes for each. Cancelled jobs count as long as the scheduler
// has not answered, so that one that never answers fills no memory.
//
// A text has at most [MaxBytes] bytes; an R at most what [rset.Parse] allows.
// Reading and writing cost one pass over the text, or two, and what an R costs.
//
// # Reading and writing
//
// Required keys, JSON types and ranges are checked, and errors name the key and
// the byte. Keys that occur twice are refused, unknown ones ignored. An id is
// an integer, not a string. Keys are written in the order in which flux-core
// packs them. R and t_submit in the answers to a hello, and t_submit in a
// request, may be absent, and a t_submit of 0 is as good as none; R there is an
// addition of this package, which saves a scheduler without access to the job's
// records to look it up.
//
// # Differences from the reference
//
// In flux-core's job manager, a request whose job was cancelled no longer
// counts against the limit; here it does until it is answered. There, a job may
// be recalled twice, or with places to spare, and a second ready without a
// hello is accepted; here neither. There, an answer of the wrong sort ends the
// session; here it is an error that changes nothing, and the caller decides.
// There, resources that come for a job that is not known at all are freed; here
// they are an error, as the id may be from an earlier session; those of a
// cancelled job are freed here as there. There, a second hello leaves the
// first session as it is; here it ends it. Without partial-ok, a job that gave
// back some ranks loses all in flux-core, and its tasks are terminated; here it
// keeps what it holds, see [Announce]. An answer with a key that is another
// type's, such as a CANCEL with a note, is accepted there and refused here.
//
// [RFC 27]: https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_27.html
package alloc
