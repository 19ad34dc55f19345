// Package jobstate folds the log of a job into its state, as RFC 21 defines it.
// A [Job] is the state, an [Event] one decoded entry; one reducer serves managers,
// restarts and tools. [Validate] names what is wrong with a log, [Job.Waiting]
// says what a job waits for, [Diagram] prints the state machine.
//
// The loop of a reader; [Replay] is this loop:
//
//	job := jobstate.NewJob(id)
//	var ev jobstate.Event
//	for entry, err := range eventlog.Entries(log) {
//		if err != nil {
//			return err
//		}
//		if err := ev.Decode(entry); err != nil { // 1
//			return err
//		}
//		outcome, err := job.ApplyEvent(&ev) // 2
//		if err != nil {
//			return err
//		}
//		use(ev.Context(), outcome) // 3
//	}
//
// The caller's duties: (1) decode an entry once, and give the Event to all that
// fold the log; (2) log an event only if it was not refused; (3) copy what has to
// outlive the next Decode. [NewEntry] and [AppendContext] encode events; two
// equal events that are both meant need different times.
//
// # Vocabulary
//
// A job is allocated while it holds resources, started once its job shells ran,
// finished once they ended, released once the executor holds nothing of it. A
// prolog or epilog is an action, active from its start to its finish. The cause
// is the first exception of severity 0. An event is applied, ignored (legal,
// without effect) or refused.
//
// The dialect is what this library adds: what an action holds and how it runs,
// in its start; later launches, partial ends, failed ranks, drains. Readers of
// RFC 21 ignore it, but flux-core's job manager does not load a log with the
// added prolog-* and epilog-* events.
//
// # Ownership, cost and limits
//
// A Job and an Event belong to one goroutine and must not be copied. ApplyEvent
// keeps no reference to the Event, takes constant time and allocates what the
// job keeps. The log bounds the size of a job.
//
// # Differences from flux-core
//
// On every log that flux-core wrote, a Job ends where flux-core does. It is more
// careful in four things. Actions are counted by kind and description. An entry
// that repeats the one before it is ignored. A plugin's priority above 32 bits
// reads as the largest. And an event that lacks a required key or is out of
// order is refused; flux-core takes some from an administrator's hand, such as
// an epilog-finish without a description.
package jobstate
