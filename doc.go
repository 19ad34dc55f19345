// Package joblife is the core of a resource manager for HPC jobs. It takes jobs from
// submission to purge and decides each step; your transport, store and clock act. It
// follows the public Flux RFCs, so its logs, resource sets and messages are those of Flux.
//
// A [Manager] has many jobs and is used in one loop:
//
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
//     input. A refused answer of a scheduler or an executor ends its session: its next
//     hello tells the truth.
//  2. Make Append durable, in order, before anything else; [AppendRecords] makes lines of
//     it. If that fails, abandon the Manager and [Restore] another.
//  3. Then do the rest. Responses, reports and confirmed drains are inputs again.
//  4. Report with [Unlinked] what the store has removed.
//  5. Say that it is done. Steps before that share the next Ready, which is group commit.
//
// A job has two records beside its log: its jobspec, before the event submit, and its R,
// before the event alloc. A restart needs both as they were stored.
//
// # Invariants
//
// Comments and tests cite these by number.
//
//   - I1 Conservation. What is held and what is freed of an allocation add up to its R,
//     without overlap, per rank and per child type.
//   - I2 One final. The last fragment of an allocation is final, and no other. It may
//     have no ranks.
//   - I3 No early free. A rank is freed only when nothing holds it, and after every
//     epilog that is configured for it has run there, in whatever order events and calls
//     come. Time alone frees nothing.
//   - I4 Log first. No effect comes out before every record that it depends on.
//   - I5 Replay is live. Folding any prefix of a log gives the state that was live after
//     it. Volatile annotations and outstanding requests are not part of it.
//   - I6 Refusal is total. After an error the receiver and its log are as before.
//   - I7 Determinism. The same inputs and times give the same bytes.
//   - I8 Nothing after clean. The log of an inactive job is closed.
//   - I9 Ids never come back. A watermark is durable before the record that proves an id
//     is removed.
//   - I10 Every hold ends. Each has an owner and a deadline, or is listed as needing one.
//     A report belongs to one attempt, and changes nothing of a later one.
//   - I11 No start after failure. A job starts only if its prologs succeeded. One
//     epilog-start follows a started prolog. A lost run is repeated only on demand.
//   - I12 Bounded. Every input from outside has a limit and an error, and cost follows
//     ranges, not ids.
//
// One goroutine at a time owns a value, unless its type says otherwise.
package joblife
