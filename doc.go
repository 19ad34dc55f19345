// Package joblife is the core of a resource manager for HPC jobs. It takes jobs from
// submission to purge and decides each step; your transport, store and clock act. It
// follows the public Flux RFCs, so its logs, resource sets and messages are those of a
// real Flux instance.
//
// A [Manager] has many jobs and is used in one loop:
//
//	m, err := joblife.New(joblife.Config{Epoch: epoch, Hooks: []joblife.Hooks{joblife.Dependencies()}})
//	for in := range inputs { // requests, answers, reports, and Tick at m.Deadline
//		err := m.Step(now(), in) // 1
//		for m.Ready(&rd) {
//			if err := store.Append(rd.Append); err != nil { // 2
//				m.Abandon(rd.Seq)
//				return err
//			}
//			scheduler.Send(rd.Hello, rd.Sched) // 3
//			executor.Send(rd.Exec, rd.Raised)
//			nodes.Do(rd.Launch, rd.Signal, rd.Drain)
//			store.Unlink(rd.Unlink) // 4
//			answer(rd.Answers)
//			m.Done(rd.Seq) // 5
//		}
//	}
//
// The caller's duties:
//
//  1. Pass what happens, with a time that does not step back. An error refuses the
//     input, and nothing has changed. A refused answer of a scheduler or an executor
//     ends its session: its next hello tells the truth.
//  2. Make Append durable, in order, before anything else; [AppendRecords] makes lines of
//     it. If that fails, abandon the Manager and restore another.
//  3. Then do the rest. Responses of the scheduler and the executor, reports of actions
//     and confirmed drains are inputs again.
//  4. Report with [Unlinked] what the store has removed.
//  5. Say that it is done. Steps that are taken before share the next Ready, which is
//     group commit.
//
// After a restart, [Restore] makes a Manager from the records. Nothing goes to a
// scheduler or an executor before it says hello. The example Simulator is a whole
// cluster that crashes again and again; examples/embed runs real commands.
//
// # Less than a manager
//
// To read logs, use package jobstate. perilog.Holds tells what holds a node, perilog.Job
// manages one job, rset/pool is for schedulers, and purge indexes inactive jobs.
// eventlog/logfile and purge/dirstore are stores. joblifetest tests what you build.
//
// A job has two records beside its log: its jobspec, before the event submit, and its R,
// before the event alloc. A restart needs both as they were stored; it applies the updates
// in the log to them.
//
// # Invariants
//
// Comments and tests cite these by number.
//
//   - I1 Conservation. At every moment, what is held and what is freed of an
//     allocation add up to its R, without overlap, per rank and per child type.
//   - I2 One final. The last fragment of an allocation is final, no earlier one is,
//     and none follows. It may have no ranks.
//   - I3 No early free. A rank is freed only when nothing holds it: not the executor,
//     not an epilog, not housekeeping. Every epilog that is configured for it has
//     run there first, in whatever order events and calls come. Time alone frees
//     nothing: a timer releases only ranks that no action holds.
//   - I4 Log first. No effect comes out before every record that it depends on, and
//     records are to be made durable before effects are carried out.
//   - I5 Replay is live. Folding any prefix of a log gives the state that was live
//     after that prefix. State is what is logged: volatile annotations and
//     outstanding requests are not part of it.
//   - I6 Refusal is total. After an error the receiver is as before. The event is in
//     neither memory nor log, and later events are not affected.
//   - I7 Determinism. The same inputs and times give the same bytes: no clock, no
//     randomness, no map order.
//   - I8 Nothing after clean. The log of an inactive job is closed.
//   - I9 Ids never come back. A watermark of ids is durable before the record that
//     proves an id is removed.
//   - I10 Every hold ends. Each has an owner and a deadline, or is listed as needing
//     one. Failures on ranks and unconfirmed drains survive a crash. A report
//     belongs to one attempt, and changes nothing of a later one.
//   - I11 No start after failure. A job starts only if its prologs succeeded.
//     Exactly one epilog-start follows a started prolog. A run that was lost in a
//     crash is repeated only on explicit demand.
//   - I12 Bounded. Every input from outside has a limit and an error, and cost
//     follows ranges, not ids.
//
// # Ownership
//
// One goroutine at a time owns a value, unless its type says otherwise. The library
// starts no goroutines and takes no locks in memory.
package joblife
