// Package joblifetest tests what an embedder adds to package joblife: a scheduler, hooks,
// a store, or the loop around a Manager.
//
//	func TestScheduler(t *testing.T) {
//		rapid.Check(t, func(t *rapid.T) {
//			newMine := func(nodes *rset.R) joblifetest.Scheduler { return &mine{nodes: nodes} }
//			joblifetest.RunScheduler(t, newMine, joblifetest.SchedulerConfig{})
//		})
//	}
//
// [NewScheduler] makes one of a policy of package sched.
//
// [RunScheduler], [RunHooks] and [RunEmbedder] play random workloads, inject the faults
// below, and end with the first fault that they find and all that happened before. The
// comment of each says what it asks for. [CheckStore] is for what keeps the records of a
// Manager.
//
// A [World] judges each run. It owns every node and reports the first broken rule: two
// jobs on one core, a rank freed while the job runs there, a job that starts before its
// prologs have succeeded. It names the [invariants] by their numbers. It is naive on purpose:
// maps and loops, and no code of the library that decides. To test more of an embedder than
// its loop, tell a World what the Manager wants done and what became of it, and call [Check]
// between Steps.
//
// [Jobspecs], [Rs], [Workloads], [Reports] and [Logs] generate data for your own tests.
//
// # Faults
//
//   - delay: a response, or the ready of a scheduler, arrives later, after other events;
//   - reorder: responses of the scheduler and of the executor overtake each other;
//   - duplicate: in a new session the executor repeats everything it said;
//   - lose: a session ends, and the messages under way are lost, or come too late;
//   - down: nodes go down, are drained, and come back;
//   - fail: prologs, epilogs and housekeeping fail, cannot start, or are out of reach;
//   - crash: before the records of a Ready are durable, before or after its effects, or
//     between two inputs. What is durable is restored.
//
// One goroutine at a time uses a value of this package.
//
// [invariants]: https://pkg.go.dev/github.com/joblife/joblife#hdr-Invariants
package joblifetest
