// Package jobstate folds the log of a job into its state (RFC 21).
//
//	job, err := jobstate.Replay(id, log)
//	fmt.Println(job.State(), "waits for", job.Waiting())
//
// [Validate] lists what is wrong with a log. A manager posts an event:
//
//	entry, err := jobstate.NewEntry(now, &jobstate.PriorityContext{Priority: 16}) // 1
//	var ev jobstate.Event
//	err = ev.Decode(entry) // 2
//	outcome, err := job.ApplyEvent(&ev)
//	line, err = eventlog.AppendEntry(line, entry) // 3
//
// The caller's duties:
//
//  1. Give two equal events different times: an entry that repeats the one before it
//     exactly is ignored.
//  2. Decode an entry once, and pass the [Event] to everything that folds the log. Copy
//     what must outlive the next Decode.
//  3. Do not log an event that was refused.
//
// # Vocabulary
//
// A prolog or epilog is an action, active from its start to its finish. An event is
// applied, ignored (legal, without effect) or refused.
//
// The dialect is what this library adds to RFC 21: what an action holds and how it runs,
// later launches, partial ends, failed ranks, drains. Other readers of RFC 21, flux-core's
// job manager too, ignore it.
//
// # Ownership, cost and limits
//
// One goroutine at a time may use a [Job] or an Event; neither may be copied. A plain inactive
// Job takes 250 bytes, and none takes more than 16 times the bytes of its log: many tiny names
// of flags take the most.
//
// # Differences from flux-core
//
// On every log that flux-core wrote, a Job gets the state that it has in flux-core. But
// actions are counted by kind and description; an entry that repeats the one before it is
// ignored; a plugin's priority above 32 bits reads as MaxPriority; and an event without a
// required key, or out of order, is refused, where flux-core lets an administrator post some.
package jobstate
