// Package jobstate folds the log of a job into its state, as RFC 21 defines it.
// [Replay] reads a whole log. A [Job] is the state, an [Event] is one decoded
// entry, and [Job.ApplyEvent] is the step, live and after a restart.
// [Validate] names what is wrong with a log. [Diagram] prints the states.
//
//	job, err := jobstate.Replay(id, log)
//	if err != nil {
//		return err // jobstate: job ƒ6: line 2: offset 78: …
//	}
//	fmt.Println(job.State(), "waits for", job.Waiting())
//
// A manager posts an event:
//
//	entry, err := jobstate.NewEntry(now, &jobstate.PriorityContext{Priority: 16}) // 1
//	if err != nil {
//		return err
//	}
//	var ev jobstate.Event
//	if err := ev.Decode(entry); err != nil { // 2
//		return err
//	}
//	if _, err := job.ApplyEvent(&ev); err != nil {
//		return err
//	}
//	line, err = eventlog.AppendEntry(line, entry) // 3
//
// Duties of the caller:
//
//  1. Give two equal events different times. An entry that repeats the one before
//     it is ignored.
//  2. Decode an entry once, and pass the Event to all that fold the log. Copy what
//     must outlive the next Decode.
//  3. Log an event only if it was not refused.
//
// # Vocabulary
//
// A job is allocated while it holds resources, started once its job shells ran,
// finished once they ended, released once the executor holds nothing of it. A
// prolog or epilog is an action, active from its start to its finish. The cause
// is the first exception of severity 0. An event is applied, ignored (legal,
// without effect) or refused.
//
// The dialect is what this library adds to RFC 21: what an action holds and how
// it runs, later launches, partial ends, failed ranks, drains. Readers of RFC 21
// ignore it, but flux-core's job manager does not load a log with the added
// prolog-* and epilog-* events.
//
// # Ownership, cost and limits
//
// One goroutine owns a Job or an Event; neither may be copied. ApplyEvent retains
// nothing of the Event and takes constant time. The log bounds the job's size.
//
// # Differences from flux-core
//
// On every log that flux-core wrote, a Job ends where flux-core does. Four things
// are stricter. Actions are counted by kind and description. An entry that
// repeats the one before it is ignored. A plugin's priority above 32 bits reads
// as the largest. An event that lacks a required key or is out of order is
// refused; flux-core takes some from an administrator.
package jobstate
