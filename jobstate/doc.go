// Package jobstate folds the log of a job into its state, as RFC 21 defines it.
// [Replay] folds a whole log. A [Job] is the state, an [Event] is one decoded
// entry, and [Job.ApplyEvent] folds one event into the job, live and after a
// restart. [Validate] lists what is wrong with a log. [Diagram] prints the
// states.
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
//  1. Give two equal events different times: an entry that repeats the one before
//     it exactly is ignored.
//  2. Decode an entry once, and pass the Event to everything that folds the log.
//     Copy what must outlive the next Decode.
//  3. Do not log an event that was refused.
//
// # Vocabulary
//
// A job is allocated while it holds resources, started after its job shells
// started, finished after they ended, and released after the executor released
// all of its resources. A prolog or epilog is an action, active from its start
// to its finish. The cause of a job's end is the first exception of severity 0.
// An event is applied, ignored (legal, without effect) or refused.
//
// The dialect is what this library adds to RFC 21: what an action holds and how
// it runs, later launches, partial ends, failed ranks, drains. Other readers of
// RFC 21 ignore it, but flux-core's job manager does not load a log with the
// added events prolog-* and epilog-*.
//
// # Ownership, cost and limits
//
// One goroutine at a time may use a Job or an Event; neither may be copied.
// ApplyEvent retains nothing of the Event and takes constant time on average. A
// Job keeps at most twice what its log has, and a plain one that is inactive 250
// bytes.
//
// # Differences from flux-core
//
// On every log that flux-core wrote, a Job gets the same state as in flux-core.
// Four things differ. Actions are counted by kind and description. An entry that
// repeats the one before it is ignored. A plugin's priority above 32 bits reads
// as MaxPriority. An event that lacks a required key or is out of order is
// refused; flux-core accepts some of those from an administrator.
package jobstate
