// Package perilog decides when prologs, epilogs and housekeeping run around a job, and when
// each node is freed. One loop drives a [Job]:
//
//	job, err := perilog.NewJob(&config, perilog.JobConfig{ID: id, R: r})
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
//		todo := job.Take(now())
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
//  1. Pass inputs in any order. Do not log an event that you pass to Apply: Post includes
//     it if Apply accepts it.
//  2. Make Post durable, each record in the log that it names, in order, before anything
//     else. If that fails, drop the Job and recover.
//  3. Then act, and send the answers to reports. A Report has the Attempt of its Launch.
//  4. Call Tick at the deadline.
//
// After a restart, [RecoverJob] reads the logs. [Job.Unresolved] lists the actions that do
// not end by themselves: a report, [Job.Reattach], [Job.Rerun] or [Job.ForceFinish]
// resolves them. A tool that only asks what holds which node uses [Holds].
//
// # Vocabulary
//
// An action is a prolog, an epilog or housekeeping: one command on each rank, or a single
// command on one rank, its leader, for all ranks. Another service runs a foreign action.
// The executor runs the job. A rank leaves the job when every hold on it has ended. The
// effective R is R without the ranks that the job dropped as failed.
//
// # Control lines
//
// An action can write control lines to its standard output:
//
//	perilog-control: {"version":1,"failed":"3","note":"gpu 2 is gone"}
//	perilog-control: {"version":1,"released":"0-7"}
//
// failed names ranks that failed, while the script goes on; true means its own rank.
// released names ranks that a single command is done with. An invalid line is a failure,
// unless IgnoreControl is set.
//
// # Ownership, cost and limits
//
// One goroutine at a time may use a Job or a Holds. A Job copies mutable inputs. Effects
// are valid until the next Take. A report costs the same however many ranks there are.
//
// # Differences from flux-core
//
// flux-core holds all nodes until the last epilog ends. Its job manager loads a log with the
// events that package jobstate adds to RFC 21, such as perilog-release, and ignores them.
package perilog
