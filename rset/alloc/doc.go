// Package alloc is the manager's side of the allocation protocol (RFC 27), and the messages of
// both sides. A scheduler begins with package [sched], which handles them. A [joblife.Manager]
// has the [Queue], which decides for which jobs the manager sends a request, and when:
//
//	var sends []alloc.Send
//	q := alloc.NewQueue(alloc.Config{})
//	void := q.Hello(nil) // 1. at a hello; Announce returns the response
//	sends, response, err := q.Ready(sends[:0], ready)
//	sends, err = q.Add(sends, alloc.JobInfo{ID: id, Priority: 16, UserID: 1000})
//	for _, s := range sends { // 2. send what a call returns, in this order
//		line, err := alloc.AppendMessage(nil, s.Topic, s.Message(jobspecs[s.Job.ID]))
//		…
//	}
//	sends, outcome, err := q.Response(sends[:0], r)
//	switch outcome { // 3. act on the outcome before the next call
//	case alloc.OutcomeAllocated: // log r.R for job r.ID
//	case alloc.OutcomeDenied: // raise an exception
//	}
//	void = q.Lost(nil) // 4. after a disconnect: jobs with void annotations
//
// Each message is a type, such as [Request]; [Append] and [Parse] write and read its payload,
// and a [Line] has it on a stream of JSON lines, which [ParseFromManager] and
// [ParseFromScheduler] read. The queue has no job with resources: at each hello the caller
// passes those to [Announce]. After a restart it adds the waiting jobs again.
//
// # Vocabulary
//
// A request is outstanding until a response other than an annotation. To recall a request is to
// take it back while the job stays in the queue: if requests are limited and a better job
// arrives, the queue recalls the last one. To cancel a job is to remove it from the queue. A job
// is blocked if its priority is 0 or [Queue.Stop] stopped it.
//
// # Ownership, cost and limits
//
// A parsed message shares no memory with its text, but [Line.Payload] does. One goroutine
// at a time may use a Queue. An operation on k of n jobs takes k log n steps. [Config]
// limits the jobs. A text has at most 64 MiB.
//
// # Differences from flux-core
//
//   - R in a [HelloResponse] is an addition, for schedulers that cannot look it up.
//   - Recalled and canceled requests count against the limit until their response.
//   - For a better job, a request is recalled at most once, and only if the limit is reached.
//   - A second ready needs a second hello first, which ends the first session.
//   - A wrong response changes nothing; in flux-core it ends the session.
//   - Resources for an unknown job are an error; resources for a canceled job are freed.
//   - Without partial-ok, a job keeps what it has not freed: see [Announce].
//
// [sched]: https://pkg.go.dev/github.com/joblife/joblife/rset/sched
// [joblife.Manager]: https://pkg.go.dev/github.com/joblife/joblife#Manager
package alloc
