// Package sched is the scheduler's side of the allocation protocol (RFC 27), without I/O and
// clock: the session with a job manager, the inventory (RFC 28), the queue, and policies.
//
//	s := sched.New(sched.Config{Policy: sched.EASY{}})
//	err := s.Acquire(a)     // 1. each response to resource.acquire
//	err = s.Handle(h)       // 2. each response to the hello, which is an alloc.HelloResponse
//	r, err := s.EndHello()  // 3. after the last of them: send the alloc.Ready
//	err = s.Handle(m)       // 4. from then on: requests, cancels, priorities, frees, …
//	for _, r := range s.Decide(now) {
//		… // 5. after each of these, or after several: send the response
//	}
//
// A Scheduler is for one session: for the next one make another. In the program of the manager
// it goes through all of them: [Scheduler.Hello] stands for 2 and 3, and a [loop.Loop] does the
// rest. What [Scheduler.Handle] returns answers an alloc.Expiration and an alloc.Feasibility.
// Another error is for people; the session goes on. RFC 27 and 28 end it after a failure, a line
// with an errnum, in place of a response to hello, ready or resource.acquire.
//
// The queue is in the order of priority, greatest first, then of ids. A [Policy] starts jobs:
// [FIFO], [EASY], [Conservative], or one of your own, whose [Pass] cannot break the rules of
// package pool. Jobs are taken to end when they expire, but time alone frees nothing.
//
// # What cannot be true
//
//   - A request for a job that waits or has resources is an error, and so is one beyond
//     Config.MaxJobs. What no inventory allows, or is no jobspec, is denied.
//   - A cancel or a priority of a job that does not wait is ignored (RFC 27). Only a free
//     ends an allocation.
//   - A free or an expiration of what a job does not hold is an error.
//   - A hello may tell of two jobs that hold the same, or of resources that are not in the
//     inventory. Handle reports it: see pool.Pool.Adopt.
//   - If the resources of a job of the hello are not known, [Scheduler.EndHello] fails, and
//     nothing starts until another hello. Call [Scheduler.Missed] for what cannot be parsed.
//
// # Ownership, cost and limits
//
// One goroutine at a time may use a Scheduler. It retains an R, and copies all else that it
// needs of a message. The same calls have the same results. A decision costs what the jobs that
// start cost in package pool; it passes over jobs that need more than is free, or more idle nodes
// than are not reserved, in chunks of 128, and EASY over those with the jobspec of one that could
// not start. Each other job costs a search of the pool: see Depth. Where all nodes are alike, and
// each job that waits asks for some whole nodes, without constraints, EASY counts nodes; else it
// uses Pool.Plan, with the same result. Both also take time in proportion to the jobs that run.
//
// [loop.Loop]: https://pkg.go.dev/github.com/joblife/joblife/loop#Loop
package sched
