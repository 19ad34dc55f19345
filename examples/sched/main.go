// Command sched is a scheduler as a process: it speaks the allocation protocol
// of RFC 27 and the acquisition protocol of RFC 28, one JSON object a line, on
// standard input and output or on a unix socket.
//
//	sched [flags]                     standard input and output, until the input ends
//	sched [flags] -listen unix:PATH   a socket, until it is interrupted
//	sched [flags] -sample             plays a recorded conversation
//
// Begin with -sample, which needs nothing else; put -policy fifo after it to see
// what backfill is good for. -v tells on standard error what happens to each
// job, and at the end there is a summary. The exit status is 0 also after an
// interrupt, 1 if the peer failed or went away, and 2 for wrong usage.
//
// It shows how a scheduler is built on packages rset/pool, which knows what is
// free and who holds what, and rset/alloc, which has the messages. What is here
// is the rest: the order of the queue and two policies.
//
//   - fifo: the first job of the queue starts as soon as it can, and nobody
//     before it.
//   - easy: EASY backfill. The first job that has to wait gets a reservation at
//     the earliest time it can start by the time limits of what runs. Others may
//     start before it if they end by that time, or if they take nothing of what
//     it is to get. -backfill-depth bounds how many are looked at.
//
// # Protocol
//
// A line is {"topic":"sched.alloc","payload":{…}}, with "errnum" and "errstr" in
// place of the payload on failure. Lines beyond 16 MiB are refused; the next
// line is read as if nothing had happened.
//
// The scheduler begins with a hello. It reads one resource.acquire with the
// inventory, then a hello for each job that holds resources, with its R and
// what it gave back of it, and errnum 61 at the end of them. It answers with
// sched-ready. From then on it takes requests:
//
//	sched.alloc         answered with R, or with type 1 (annotate), 2 (deny), 3 (cancel)
//	sched.cancel        takes back a request that waits; of a job that runs it is ignored
//	sched.prioritize    puts requests that wait into another order
//	sched.free          gives back a fragment of an allocation, not answered
//	sched.expiration    answered without payload
//	feasibility.check   answered without payload, or with errnum and errstr
//	resource.acquire    what goes up, down, away, or has other properties
//
// The queue is in the order of priorities, the highest first, then of ids. With
// easy the job that has the reservation is told its t_estimate.
//
// A line that is malformed or can not be obeyed is answered with errnum, under
// its topic or "sched.error" if it has none, and told on standard error with its
// number and the reason; it changes nothing and ends nothing. errnum is one of
// Linux: 2 the job is not known, 11 not ready, 12 there are too many jobs, 16
// another session is going on, 17 the job is known already, 22 refused, 38 no
// such topic, 71 malformed, 90 the line is too long. As the RFCs have it, a
// failure that answers hello, ready or acquire ends the session.
//
// A hello that is malformed, of a job without R, or with another R than the job
// is known to have, is such a line too, and then the scheduler does not know what
// is held; nor does it after a line in the series that it can not read at all,
// which may have been a hello. It does not say ready, for it would allocate that
// twice, and waits for another series of hellos, up to errnum 61, which may
// repeat jobs that are known. A series may come at any later time too; nothing
// starts before its end. That two jobs hold the same, or that one has what is
// not in the inventory, is answered with an errnum and keeps nothing from going
// on: what two hold is free once both gave it back.
//
// A socket has one session at a time, others are turned away with errnum 16. A
// session has its own inventory and jobs: like a scheduler that is loaded again
// it learns from the hello what is held. Only the user that started it may
// connect.
//
// # Time
//
// A job waits from its t_submit, or from the arrival of its request if there is
// none. With -now the time is what is given there and goes on with the t_submit
// of requests alone, so that the same input has the same output; otherwise it is
// the time of the day. Time frees nothing: a job past its expiration holds what
// it has until somebody frees it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit statuses.
const (
	exitOK    = 0
	exitFault = 1 // the peer reported a failure, or could not be talked to
	exitUsage = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal kills
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the command, without the process around it.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var o options
	status, ok := o.parse(args, stdout, stderr)
	if !ok {
		return status
	}
	var err error
	switch {
	case o.sample:
		err = playSample(args, stdout)
	case o.socket != "":
		err = listen(ctx, o, stdout, stderr)
	case !piped(stdin):
		usage(stdout)
	default:
		err = serve(ctx, o, stdin, stdout, stderr)
	}
	if err != nil {
		fmt.Fprintln(stderr, "sched:", err)
		return exitFault
	}
	return exitOK
}

// piped reports whether somebody feeds standard input: it is a pipe or a file,
// not a terminal, a device or nothing.
func piped(stdin io.Reader) bool {
	f, ok := stdin.(*os.File)
	if !ok {
		return stdin != nil
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice == 0
}

// serve runs one session on a pair of streams, until the input ends, ctx is
// done or the peer reports a failure that ends it.
func serve(ctx context.Context, o options, in io.Reader, out, stderr io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the reader
	s := newSession(o, out, stderr)
	defer s.summarize()
	if err := s.hello(); err != nil {
		return err
	}
	lines := readLines(ctx, in, maxLine)
	for {
		select {
		case <-ctx.Done():
			return nil
		case l := <-lines:
			if errors.Is(l.err, io.EOF) {
				return nil
			}
			if err := s.handle(l); err != nil {
				return err
			}
		}
	}
}
