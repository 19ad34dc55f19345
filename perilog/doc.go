// Package perilog knows what happens to the ranks of a job around the job itself:
// prologs before it, epilogs and housekeeping after it, and when each rank is free
// again. It decides what to log, launch, drain and free; the embedder does it.
//
// [Job] is one job and its nodes. All of its use is one loop:
//
//		job, err := perilog.NewJob(&config, perilog.Spec{ID: id, R: r})
//		for {
//			select {                                                      // 1
//			case e := <-events:
//				_, err = job.Apply(now(), e)
//			case rep := <-reports:
//				answer := job.Report(now(), rep.Report)
//				...
//			case ranks := <-drained:
//				job.Drained(now(), ranks)
//			case <-timer:
//				job.Tick(now())
//			}
//			todo := job.Take()                                            // 2
//			store(todo.Post)                                              // 3
//			launch(todo.Launch); signal(todo.Signal); drain(todo.Drain)   // 4
//			if todo.Start { start(job.R()) }
//			if !todo.Free.IsEmpty() { free(todo.Free) }
//			reset(timer, job.Deadline)                                    // 5
//		}
//
//	 1. Give the job what comes in, in any order. What it refuses is not logged.
//	    Several inputs may come before a Take.
//	 2. Take what follows. Events that Apply accepted are in Post.
//	 3. Make Post durable, in its order, before anything else. If that fails, drop
//	    the job and recover.
//	 4. Then act. A launch has an attempt, which its reports carry.
//	 5. Call Tick at the deadline.
//
// After a restart, [RecoverJob] reads the logs back, and [Job.Unresolved] lists
// what needs an owner: [Job.Reattach], [Job.Rerun] or [Job.ForceFinish] give it
// one, or a helper process that reports again.
//
// A tool that only asks who holds which node of a log uses [Holds].
//
// # Vocabulary
//
// An action is a prolog, an epilog or housekeeping. It runs on each rank, or as a
// single command on a leader that serves all ranks. The executor runs the job. A
// rank is held while something holds it, has left when nothing does, and is freed
// in a fragment of R; the last fragment is final. The effective R is R without the
// ranks that the job dropped as failed. Foreign actions are in the log and not run
// by this package.
//
// The log speaks the dialect of RFC 21 that package jobstate documents. An action
// speaks to the job by control lines on its standard output:
//
//	perilog-control: {"version":1,"failed":"3","note":"gpu 2 is gone"}
//	perilog-control: {"version":1,"released":"0-7"}
//
// failed names nodes that failed, while the script goes on; true is the node that
// prints the line. released names nodes that a single command is done with. Any
// other key is ignored. A line with the prefix that is not understood is a failure
// of the action, unless ActionConfig.IgnoreControl is set.
//
// # Ownership, cost and limits
//
// One goroutine at a time may use a value of this package. What goes in is copied
// or immutable; what comes out is valid until the next Take. A report and the
// release that follows take the same time for 16 ranks and for 16384, and allocate
// nothing in the steady state. The package documentation of joblife lists the
// invariants I1 to I12 that the tests cite.
package perilog
