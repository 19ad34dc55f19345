// Package perilog runs prologs before a job, and epilogs and housekeeping after it, on
// the nodes of the job. It frees each node when nothing holds it. It only decides: the
// embedder stores, launches, signals and drains.
//
// A [Job] is one job and its nodes. One loop uses it:
//
//	job, err := perilog.NewJob(&config, perilog.Spec{ID: id, R: r})
//	for !job.Done() {
//		select { // 1
//		case e := <-events:
//			_, err = job.Apply(now(), e)
//		case r := <-reports:
//			answer = job.Report(now(), r)
//		case ranks := <-drained:
//			job.Drained(now(), ranks)
//		case <-timer:
//			job.Tick(now())
//		}
//		todo := job.Take()
//		store(todo.Post) // 2: each record in its log
//		launch(todo.Launch) // 3
//		signal(todo.Signal)
//		if todo.Start {
//			start(job.R())
//		}
//		drain(todo.Drain)
//		if !todo.Free.IsEmpty() {
//			free(todo.Free)
//		}
//		reset(timer, job.Deadline) // 4
//	}
//
// The caller's duties:
//
//  1. Pass inputs in any order. Post includes the events that Apply accepts; do not
//     log them yourself.
//  2. Make Post durable, each record in the log that it names, in order, before
//     anything else. If that fails, drop the Job and recover.
//  3. Then act, and send answers. Reports carry the attempt of their launch.
//  4. Call Tick at the deadline.
//
// After a restart, [RecoverJob] reads the logs. [Job.Unresolved] lists the actions that
// do not end by themselves. A process that reports again resolves one, and so do
// [Job.Reattach], [Job.Rerun] and [Job.ForceFinish]. [Holds] reads from a log what holds
// which node.
//
// # Vocabulary
//
// An action is a prolog, an epilog or housekeeping. It runs on each rank, or as one
// command on a leader that serves all ranks. A foreign action is one that this
// package does not run. The executor runs the job. A rank leaves when every hold on
// it has ended. The effective R is R without the ranks that the job dropped as
// failed.
//
// # Control lines
//
// An action can write control lines to its standard output:
//
//	perilog-control: {"version":1,"failed":"3","note":"gpu 2 is gone"}
//	perilog-control: {"version":1,"released":"0-7"}
//
// failed names ranks that failed, while the script goes on; true is its own rank.
// released names ranks that one command is done with. Other keys are ignored. An
// invalid line is a failure, unless IgnoreControl of [ActionConfig] is set.
//
// # Ownership, cost and limits
//
// One goroutine at a time uses a value. Inputs are copied or immutable; Effects are
// valid until the next Take. A report takes the same time on 16 ranks as on 16384.
//
// # Differences from flux-core
//
// flux-core holds all nodes until the last epilog ends. Its job manager does not
// load a log with the prolog-* and epilog-* events that package jobstate adds.
package perilog
