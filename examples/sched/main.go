// Command sched is a scheduler as a process. It speaks the allocation protocol of
// RFC 27 and the acquisition protocol of RFC 28, one JSON object on each line, on
// standard input and output or on a unix socket.
//
//	sched [flags]                     standard input and output, until the input ends
//	sched [flags] -listen unix:PATH   a socket, until it is interrupted
//	sched [flags] -sample             plays a recorded conversation
//
// Begin with -sample, which needs no input; add -policy fifo to see what backfill
// gains. -v prints on standard error what happens to each job. A summary comes at the
// end. The exit status is 0; 1 if lines were refused or the peer failed; 2 for bad
// usage.
//
// Package rset/sched has the session, the queue and the policies. This command adds lines, a
// socket, the clock, errnums, and what people are told.
//
//   - fifo: the first job of the queue starts as soon as it can, and no job before it. The
//     first eight are told when that may be, at most once in each -forecast-period.
//   - easy: EASY backfill. Jobs behind the first that must wait start before it if that does
//     not delay it. -backfill-depth limits how many are considered.
//
// The annotations are those of flux-core: sched.t_estimate for a job that was told its
// start, with sched.reason_pending; sched.resource_summary for an allocation; and
// sched.backfill, the job that it overtook.
//
// # Protocol
//
// A line is {"topic":"sched.alloc","payload":{…}}, with errnum and errstr in place of
// the payload on failure. It has at most 16 MiB.
//
// The scheduler begins with a hello. It reads one resource.acquire with the inventory,
// then one hello response for each job that holds resources, and errnum 61 after them.
// It responds with sched-ready. From then on it accepts requests:
//
//	sched.alloc         answered with type 0 (R), 1 (annotate), 2 (deny) or 3 (cancel)
//	sched.cancel        takes back a waiting request; ignored for a running job
//	sched.prioritize    reorders the waiting requests
//	sched.free          returns a fragment of an allocation; not answered
//	sched.expiration    answered without payload
//	feasibility.check   answered without payload, or with errnum and errstr
//	resource.acquire    ranks that go up, down, away, or have other properties
//
// Once it has the inventory, it answers questions too:
//
//	sched.resource-status  answered with all, allocated and down, each an R, as in flux-core
//	sched.holders          answered with a line for each job that holds resources: its id,
//	                       starttime and expiration, R that it holds, and what of it is gone
//	                       from the inventory; and errnum 61 after them
//
// A line that is malformed or refused changes nothing and ends nothing. It is reported on
// standard error, and answered with errnum under its topic or "sched.error", with the id that
// the payload has. errnum is one of Linux: 2 unknown job, 11 not ready, 12 too many jobs, 16
// busy with another session, 17 duplicate job, 22 refused, 38 unknown topic, 71 malformed, 75
// unsatisfiable, 90 too long. A failure that answers hello, ready or acquire ends the
// session, as the RFCs have it. So does one under job-manager.error: the manager has refused
// what the scheduler believes. The next session's hello tells what is held.
//
// What is not of the session is dropped: an event, and a message of sched.* before the end of
// the hello, which was for another session.
//
// While it is not known what a job of a hello holds, the scheduler does not say ready, waits
// for another series of hellos, and starts nothing. A session that is not ready for five
// minutes ends.
//
// A socket has one session at a time, with its own inventory and jobs. Only the user who
// started it may connect.
//
// # Time
//
// With -now the time is the one given and advances with the t_submit of requests, so the
// same input has the same output; otherwise it is the time of day. A job waits from its
// t_submit, or from the arrival of its request. Time frees nothing: an expired job holds
// its resources until a free.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/joblife/joblife/examples/internal/lines"
)

func main() { lines.Main(program) }

func program() *lines.Program { return new(options).program() }

// End ends a session that the peer or the user has ended.
func (s *session) End() error {
	s.summarize()
	if s.refused > 0 {
		return lines.ErrRefused
	}
	return nil
}

// serve runs one session on a pair of streams, until the input ends, ctx is
// done or the peer reports a failure that ends it.
func (o *options) serve(ctx context.Context, in io.Reader, out, stderr io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the reader
	s := newSession(*o, out, stderr)
	input := lines.Read(ctx, in, lines.Max, nil)
	err := s.hello()
	var late <-chan time.Time
	for going := true; err == nil && going; {
		switch {
		case s.Ready():
			late = nil
		case late == nil:
			late = s.clock.At(s.clock.Time().Add(o.patience))
		}
		select {
		case <-late:
			err = fmt.Errorf("the hello has not ended well within %v", o.patience)
		case <-ctx.Done():
			going = false
		case <-s.due():
			err = s.wake()
		case l := <-input:
			if going = !errors.Is(l.Err, io.EOF); going {
				err = s.Take(l)
			}
		}
	}
	return cmp.Or(err, s.End())
}
