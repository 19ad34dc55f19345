// Package exec is the executor's side of the execution protocol (RFC 32), and the messages of
// both sides. To run jobs and actions on nodes, begin with an [Executor]. A [joblife.Manager]
// is the other side, and needs none of this code. Each message is a type, such as [Start];
// [Append] and [Parse] write and read its payload. A manager of your own does this:
//
//	hello, err := exec.Parse[exec.Hello](line.Payload) // 1
//	out, err = exec.Append(out, exec.Start{ // 2, to hello.StartTopic()
//		ID: id, UserID: owner, Jobspec: jobspec, R: r,
//	})
//	response, err := exec.Parse[exec.Response](line.Payload) // 3
//	switch response.Type {
//	case exec.ResponseStart: // log the event start
//	case exec.ResponseException: // log the event exception
//	case exec.ResponseFinish: // log the event finish
//	case exec.ResponseRelease: // log the event release
//	}
//
// The manager's duties:
//
//  1. Respond to a hello without a payload, then send the starts that are due: the service
//     replaces an earlier one, whose requests are void.
//  2. Send one start request for each job that has resources and no outstanding request.
//     Set Start.Reattach and Started if the log of the job has the event start.
//  3. A start request is outstanding until the final release of its job. An errnum in
//     place of a response means that the service has ended: then no request is
//     outstanding, and you send none before the next hello.
//
// On a stream of JSON lines, a Line of package rset/alloc can have the payload.
//
// What starts the tasks is yours: it makes the task slots of the jobspec out of R, or the
// response is an exception of severity 0. It unpacks attributes.system.files into a temporary
// folder for the job.
//
// # Ownership, cost and limits
//
// A parsed message shares no memory with its text. A text has at most 64 MiB.
//
// # Differences from the RFC
//
// The package follows flux-core where it has more than RFC 32: [Expiration], and "all" as the
// ranks of a release. A Start without R is read. flux-core refuses a hello with [Busy] while
// a start request to an earlier service is outstanding. As in flux-core, a start without a
// response is repeated without Reattach, since nobody knows whether it arrived.
//
// [joblife.Manager]: https://pkg.go.dev/github.com/joblife/joblife#Manager
package exec
