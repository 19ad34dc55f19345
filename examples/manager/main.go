// Command manager is a job manager as a process.
package main

import (
	"bufio"
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
	exitFault = 1 // the store or the peer failed, or lines were refused
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
	switch {
	case errors.Is(err, errRefused):
		return exitFault // the summary says why
	case err != nil:
		fmt.Fprintln(stderr, "manager:", err)
		return exitFault
	}
	return exitOK
}

// errRefused says that lines were refused, which is no reason to end.
var errRefused = errors.New("lines were refused")

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

// serve serves a pair of streams, until the input ends or ctx is done.
func serve(ctx context.Context, o options, in io.Reader, out, stderr io.Writer) error {
	p, err := newProcess(o, stderr)
	if err != nil {
		return err
	}
	reading, cancel := context.WithCancel(context.Background())
	defer cancel() // ends the reader
	c := p.only(bufio.NewWriter(out))
	inputs := make(chan input)
	go c.read(reading, in, inputs)
	p.start()
	err = p.run(ctx, inputs)
	if err == nil && p.stats.refused > 0 {
		return errRefused
	}
	return err
}

// only returns the client of a process that has no other.
func (p *process) only(out io.Writer) *client {
	c := &client{
		out: out, senders: make(map[string]bool),
		broken: func(err error) { p.fail(fmt.Errorf("output: %w", err)) },
		close:  func() {},
	}
	p.clients = append(p.clients, c)
	return c
}

// run handles what comes, until the input of client 0 ends, ctx is done or something fails.
func (p *process) run(ctx context.Context, inputs <-chan input) error {
	stop, quit := ctx.Done(), false
	for p.flush(); p.failed == nil && !(quit && !p.writing); p.flush() {
		select {
		case <-stop:
			stop, quit = nil, true
			p.stop()
		case do := <-p.results:
			do()
			p.settle()
		case <-p.timer():
			p.settle()
		case in := <-inputs:
			if in.client != nil && in.client.id == 0 && errors.Is(in.line.err, io.EOF) {
				stop, quit, inputs = nil, true, nil
				p.stop()
				p.hangUp(in.client)
			} else {
				p.take(in)
			}
		}
	}
	return p.end()
}

// take takes what a client sends, and notices those that come and go.
func (p *process) take(in input) {
	c := in.client
	var long *longError
	switch {
	case c == nil:
		p.fail(in.line.err)
	case in.line.err != nil && c.id > 0 && !errors.As(in.line.err, &long):
		if !errors.Is(in.line.err, io.EOF) && p.o.verbose {
			p.printf("client %d: %v", c.id, in.line.err)
		}
		p.leave(c)
	case in.line.number > 0:
		p.handle(c, in.line)
	case len(p.clients) >= maxClients:
		p.write(c, output{Topic: topicError, Errnum: errnoBusy, Errstr: "there are too many clients"})
		c.close()
	default:
		if p.clients = append(p.clients, c); !p.started {
			p.start()
		}
	}
}

// stop tells all who wait that the process ends.
func (p *process) stop() {
	if p.service != nil {
		p.service.Stop(p.clock.now())
		p.settle()
	}
}

// hangUp fails what the store waits for, since the input ended.
func (p *process) hangUp(c *client) {
	for _, lost := range p.calls.of(c) {
		if lost.then != nil {
			p.lost(lost, errnoUnreachable, "the input ended")
		}
	}
}

// end ends the process, and returns why if it was not asked to.
func (p *process) end() error {
	for _, c := range p.clients {
		c.close()
	}
	err := p.failed
	if closed := p.store.close(); err == nil && closed != nil {
		err = fmt.Errorf("-store: %w", closed)
	}
	p.summarize()
	return err
}
