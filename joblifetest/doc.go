// Package joblifetest helps to test what is around package joblife: a scheduler, hooks,
// an executor, a store, or a whole embedder.
//
//	func TestScheduler(t *testing.T) {
//		rapid.Check(t, func(t *rapid.T) {
//			joblifetest.RunScheduler(t, func(nodes *rset.R) joblifetest.Scheduler { return newMine(nodes) })
//		})
//	}
//
// [RunScheduler] and [RunHooks] play random workloads with a Manager, and with the
// faults that a scheduler or a hook must bear. A [World] watches them. It is a naive
// outside that owns every node, and says which rule was broken first: two jobs on one
// core, a rank that is freed while something of the job runs there, a job that starts
// before its prologs have succeeded. It knows maps and loops, and uses no decision of
// the library. The example of RunScheduler is a whole scheduler. Stores have a suite of
// their own, in [github.com/joblife/joblife/purge/storetest].
//
// To test an embedder, tell a World of the effects of its Manager and of what became of
// them, and call [Check], which judges a Manager by what it shows.
//
// [RunScripts] plays stories from text files: commands, with what the Manager then does
// below them. [Jobspecs], [Rs], [Workloads] and [Logs] are generators for tests of your
// own.
//
// # Faults
//
// The faults of RunScheduler and RunHooks are those that the protocols allow:
//
//   - delay: a response waits while time passes and other things happen;
//   - reorder: the scheduler's responses and the executor's overtake each other;
//   - duplicate: in another session the executor repeats all that it said;
//   - lose: a session ends, and what is under way is lost;
//   - crash: a Manager is restored, from all records or from those before the last
//     Ready.
//
// One goroutine at a time uses a value of this package.
package joblifetest
