// Package joblifetest helps to test what is around package joblife: a scheduler, an
// executor, hooks, or a whole embedder.
//
// A [World] is a naive outside that owns every node. It is told of the effects of a
// Manager and of what became of them, and says which rule was broken first: two jobs
// on one core, a rank freed while something of the job runs there, a job that starts
// before its prologs have succeeded. It knows maps and loops, and uses no decision of
// the library. [Check] judges a Manager by what it shows.
//
// [RunScheduler] is a conformance test of a scheduler: it plays random workloads with
// a Manager, loses sessions, and cancels jobs, while a World watches. [RunHooks] is
// one of hooks, with restarts. [Jobspecs], [Rs], [Workloads] and [Logs] are generators
// for tests of your own.
//
//	func TestScheduler(t *testing.T) {
//		rapid.Check(t, func(t *rapid.T) {
//			joblifetest.RunScheduler(t, func(nodes *rset.R) joblifetest.Scheduler { return newMine(nodes) })
//		})
//	}
//
// The example of RunScheduler is a whole scheduler; TestTheWorldIsContent of
// examples/sched puts an adapter before one that speaks lines. Stores have a suite in
// purge/storetest.
//
// One goroutine at a time uses a value of this package.
package joblifetest
