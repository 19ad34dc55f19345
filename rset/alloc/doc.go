// Package alloc speaks the protocol between a job manager and a scheduler (RFC 27),
// and keeps the manager's queue of jobs that wait for resources.
//
// Each message is a type that reads and writes its payload, such as [Hello], [Request],
// [Response] and [Free]. A [Line] carries one on a stream of JSON lines. A [Queue]
// decides which jobs get a request and when:
//
//	q := alloc.NewQueue(alloc.Config{})
//	q.Hello(nil) // the scheduler said hello; respond with Announce
//	sends, response, err := q.Ready(sends[:0], ready)
//	sends, err = q.Add(sends, alloc.JobInfo{ID: id, Priority: 16, UserID: 1000})
//	for _, s := range sends { // 1. send what an operation returns, in this order
//		line, err := s.AppendLine(nil, jobspecs[s.Job.ID])
//		…
//	}
//	sends, outcome, err := q.Response(sends[:0], r)
//	switch outcome { // 2. act on the outcome before the next call
//	case alloc.OutcomeAllocated: // log r.R for job r.ID
//	case alloc.OutcomeDenied: // raise an exception
//	}
//	lost := q.Lost(nil) // 3. after a disconnect: jobs with void annotations
//
// # Vocabulary
//
// A request is outstanding until its final response, which an annotation is not. To
// recall a request is to take it back while the job stays: the scheduler still responds,
// and may have allocated meanwhile. To cancel a job is to remove it. A job is blocked if
// its priority is 0 or it was stopped. Greater priority comes first, then the lower id.
// With a limit, the last request is recalled when a better job arrives.
//
// # Ownership, cost and limits
//
// Messages share nothing with their text, except [Line.Payload]. One goroutine at a time
// may use a Queue. An operation on k of n jobs takes k log n steps. Config.MaxJobs counts
// canceled jobs until their response, so a silent scheduler fills no memory. A text has at
// most [MaxBytes]. Duplicate keys are refused and unknown ones ignored.
//
// # Differences from the reference
//
//   - R in a [HelloResponse] is an addition, for schedulers without access to job records.
//   - Recalled and canceled requests count against the limit until their response.
//   - A job is recalled at most once, and only if no place is free.
//   - A second ready needs a second hello, which ends the first session.
//   - A wrong response is an error that changes nothing; there it ends the session.
//   - Resources for an unknown job are an error; those for a canceled one are freed.
//   - Without partial-ok, a job keeps what it has not freed: see [Announce].
package alloc
