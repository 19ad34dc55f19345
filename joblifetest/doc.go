// Package joblifetest tests what an embedder adds to package joblife: a scheduler, hooks,
// an executor, or the whole.
//
//	func TestScheduler(t *testing.T) {
//		rapid.Check(t, func(t *rapid.T) {
//			joblifetest.RunScheduler(t, func(nodes *rset.R) joblifetest.Scheduler { return newMine(nodes) })
//		})
//	}
//
// [RunScheduler] and [RunHooks] play random workloads with a Manager and inject the
// faults below. The example of RunScheduler is a whole scheduler. Stores have their own
// suite, [github.com/joblife/joblife/purge/storetest].
//
// A [World] judges each run. It owns every node and reports the first broken rule: two
// jobs on one core, a rank freed while the job runs there, a job that starts before its
// prologs have succeeded. It is naive on purpose: maps and loops, and no code of the
// library that decides. To test an embedder, tell a World what the Manager wants done and
// what became of it, and call [Check] between Steps.
//
// [RunScripts] plays scripts: text files with commands, and below them what the Manager
// does. [Jobspecs], [Rs], [Workloads], [Reports] and [Logs] generate data for your own
// tests.
//
// # Faults
//
// RunScheduler and RunHooks inject what the protocols allow:
//
//   - delay: a response arrives later, after other events;
//   - reorder: responses of the scheduler and of the executor overtake each other;
//   - duplicate: in a new session the executor repeats everything it said;
//   - lose: a session ends, and the messages under way are lost;
//   - crash: the Manager is restored, with or without the records of the last Ready.
//
// One goroutine at a time uses a value of this package.
package joblifetest
