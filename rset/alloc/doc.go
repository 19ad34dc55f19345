// Package alloc speaks the protocol between a job manager and a scheduler (RFC 27),
// and keeps the manager's queue of jobs that wait for resources.
//
// Messages are structs, such as [Request] and [Free]. [Append] and [Parse] write and read
// the payload. A [Line] carries one on a stream of JSON lines. A [Queue] decides which
// jobs get a request, and when:
//
//	var sends []alloc.Send
//	q := alloc.NewQueue(alloc.Config{})
//	void := q.Hello(nil) // 1. at a hello; Announce tells how to respond
//	sends, response, err := q.Ready(sends[:0], ready)
//	sends, err = q.Add(sends, alloc.JobInfo{ID: id, Priority: 16, UserID: 1000})
//	for _, s := range sends { // 2. send what a call returns, in this order
//		line, err := s.AppendLine(nil, jobspecs[s.Job.ID])
//		…
//	}
//	sends, outcome, err := q.Response(sends[:0], r)
//	switch outcome { // 3. act on the outcome before the next call
//	case alloc.OutcomeAllocated: // log r.R for job r.ID
//	case alloc.OutcomeDenied: // raise an exception
//	}
//	void = q.Lost(nil) // 4. after a disconnect: jobs with void annotations
//
// # Vocabulary
//
// A request is outstanding until its response; an annotation is not one. To recall a
// request is to take it back while the job stays: the scheduler may have allocated
// meanwhile. With a limit, the last request is recalled when a better job arrives. To
// cancel a job is to remove it. A job is blocked if its priority is 0 or it is stopped.
//
// # What the manager keeps
//
// A job that gets resources leaves the queue. At each hello the caller passes the jobs
// that hold some to [Announce]. It calls [Queue.Stop], [Queue.Start] and
// [Queue.AddStopped] for the jobs of a named queue. After a restart it adds the waiting
// jobs again.
//
// # Ownership, cost and limits
//
// Messages share nothing with their text, except [Line.Payload]. One goroutine at a time
// may use a Queue. An operation on k of n jobs takes k log n steps. [Config] and
// [MaxBytes] limit jobs and texts; canceled jobs count until their response.
//
// # Differences from the reference
//
//   - R in a [HelloResponse] is an addition, for schedulers that cannot look it up.
//   - Recalled and canceled requests count against the limit until their response.
//   - A job is recalled at most once, and only if no place is free.
//   - A second ready needs a second hello, which ends the first session.
//   - A wrong response changes nothing; there it ends the session.
//   - Resources for an unknown job are an error; those for a canceled one are freed.
//   - Without partial-ok, a job keeps what it has not freed: see [Announce].
package alloc
