// Package joblife is the core of a resource manager for HPC jobs, from submission to
// purge. It decides; your transport, store and clock act. A [Manager] of many jobs has
// one loop:
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
//     input; if a scheduler or an executor sent it, end that session.
//  2. Make Append durable, in order, before anything else; [AppendRecords] makes lines of
//     it. If that fails, abandon the Manager and [Restore] another.
//  3. Then do the rest. Responses, reports and confirmed drains are inputs.
//  4. Report with [Unlinked] what the store removed.
//  5. Steps before Done share the next Ready, which is group commit.
//
// Package [github.com/joblife/joblife/loop] is that loop for inputs from many goroutines,
// with group commit.
//
// One goroutine at a time owns a value, unless its type says otherwise.
//
// # Invariants
//
//   - I1 Conservation. What is held and what is freed of an allocation add up to its R,
//     without overlap, per rank and kind of child.
//   - I2 One final. Only the last fragment of an allocation is final. It may be empty.
//   - I3 No early free. A rank is freed only when nothing holds it and each epilog
//     configured for it ran there, in whatever order events and calls come. Time alone
//     frees nothing.
//   - I4 Log first. No effect comes before the records that it depends on.
//   - I5 Replay is live. Folding any prefix of a log gives the state after it, without
//     volatile annotations and outstanding requests.
//   - I6 Refusal is total. After an error the receiver and its log are as before.
//   - I7 Determinism. The same inputs and times give the same bytes.
//   - I8 Nothing after clean. The log of an inactive job is closed.
//   - I9 Ids never come back. Before the last trace of an id goes, a watermark is durable.
//   - I10 Every hold ends. Each has an owner and a deadline, or is listed as needing one.
//     A report belongs to one attempt.
//   - I11 No start after failure. A job starts only if its prologs succeeded. One
//     epilog-start follows a started prolog. A lost run is repeated only on demand.
//   - I12 Bounded. Every input has a limit and an error. Cost follows ranges, not ids.
package joblife
