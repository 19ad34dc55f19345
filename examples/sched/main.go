// Command sched is a scheduler as a process. It speaks the allocation protocol of
// RFC 27 and the acquisition protocol of RFC 28, with a running Flux, or one JSON object
// on each line, on standard input and output or on a unix socket.
//
//	sched [flags]                     standard input and output, until the input ends
//	sched [flags] -listen unix:PATH   a socket, until it is interrupted
//	sched [flags] -sample             plays a recorded conversation
//	sched [flags] -flux[=URI]         schedules a running Flux
//
// Begin with -sample, which needs no input; add -policy fifo to see what backfill
// gains. -v prints on standard error what happens to each job. A summary comes at the
// end. The exit status is 0; 1 if lines were refused or the peer failed; 2 for bad
// usage.
//
// Package rset/sched has the session, the queue and the policies. This command adds lines, a
// socket, a client of Flux, the clock, errnums, and what people are told.
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
// # In a running Flux
//
// With flux-core 0.88 the broker of rank 0 loads it as a module, in place of the scheduler
// that is there:
//
//	flux module remove sched-simple
//	flux module load --loader=/PATH/sched --name=sched-joblife /PATH/sched -policy easy
//	flux module stats sched-joblife
//
// The way back is to remove sched-joblife and to load sched-simple: each learns from the manager
// and the KVS what jobs hold, and no job is disturbed. The arguments are the flags above, and those
// of sched-simple: queue-depth=N or unlimited, mode=limited=N, log-level=LEVEL and
// test-hello-nopartial. Without queue-depth all requests come, where sched-simple takes 8;
// -fit worst takes nodes in flux-core's order. flux dmesg shows the log.
//
// A Python module that does os.execv(SCHED, [NAME, "-flux", *args]) in mod_main works too, and
// without a module the owner of the instance can run it as a client: sched -flux in the
// environment of the instance, or -flux=local://PATH. A client whose broker is gone waits for it.
//
//   - A job's R is in the KVS, as job.ID.R, before the manager learns of it. If that fails, no job
//     starts: the manager gets an errnum, and after a wait the next session begins.
//   - A session ends with its manager, too, and if an answer is missing for five minutes. The wait
//     is 50 ms, and then twice as long each time, up to 5 s. Without resource.acquire the program
//     ends, as sched-simple does.
//   - A job gets the fatal exception scheduler-restart if it is not known what it holds: its R is
//     not in the KVS, or the hello contradicts itself. Nothing starts before it has gone;
//     sched-simple goes on, and may give its nodes to another. So does a job whose nodes have all
//     left the inventory. One that holds what another holds, or of which a node left, runs on, and
//     the log has it.
//   - Only the owner of the instance may ask, as with sched-simple. sched.holders wants a stream.
//   - Bits 1 and 4 of flux module debug deny requests and expirations; 2 tells jobs their places.
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
	"os"
	"time"

	"github.com/joblife/joblife/examples/internal/flux"
	"github.com/joblife/joblife/examples/internal/lines"
)

func main() {
	args, err := flux.Arguments(os.Args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "sched:", err)
		os.Exit(lines.ExitFault)
	}
	if os.Args = args; os.Getenv(flux.ModuleURI) != "" {
		os.Args = flags(args)
	}
	lines.Main(program)
}

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
