// Package exec speaks the protocol between a job manager and the service that executes
// its jobs (RFC 32).
//
// Each message is a type, such as [Start]: [Append] and [Parse] write and read its
// payload, and a [Line] carries it on a stream of JSON lines. The manager's side:
//
//	hello, err := exec.Parse[exec.Hello](line.Payload) // 1
//	out, err = exec.AppendMessage(out, hello.StartTopic(), exec.Start{ // 2
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
//  1. Respond to a hello with a line that has no payload, or with [Busy] while a start
//     request to an earlier service is outstanding. Then send the starts that are due.
//  2. Send one start request for each job that has resources and no request
//     outstanding. Set Reattach if the job was started before a restart.
//  3. A request is outstanding until its final release. A line with an errnum in place
//     of a response ends the service: no job has a request outstanding then, and no
//     request is sent before the next hello.
//
// # Vocabulary
//
// The service is what executes jobs. It names itself in its hello; the topics of
// requests begin with that name. A release names ranks that the service is done with.
//
// # Ownership, cost and limits
//
// Messages share nothing with their text, except [Line.Payload]. A text has at most
// [MaxBytes]. Duplicate keys are refused, and unknown ones ignored.
//
// # Differences from the RFC
//
// As flux-core has them: R in [Start], [Expiration], [ResponseReattached], and "all" as
// the ranks of a release.
package exec
