// Command manager is a job manager as a process, which a running Flux can use in place of
// its own. It answers the requests of the front-end commands and modules of flux-core 0.88,
// one JSON object on each line, on standard input and output or on a unix socket.
//
//	manager [flags]                     standard input and output, until the input ends
//	manager [flags] -listen unix:PATH   a socket, until it is interrupted
//	manager [flags] -flux               a running Flux, in place of its job manager
//	manager [flags] -sample             plays a recorded conversation
//
// Standard error has a message on each line, after "manager: " and, unless it is only
// information, its level: "error: " or "warning: ". A line of input that is at fault is named
// by its number, unless it is a guest's. The last line says why the process ended, if something failed.
// Ids have f for ƒ if FLUX_F58_FORCE_ASCII is set or the locale is not of UTF-8, as in Flux.
//
// Begin with -sample, which needs no input; testdata has longer conversations. -v prints on
// standard error what happens to each job. A summary comes at the end. The exit status is
// 0; 1 if the store or the configuration failed, or if the input was broken or had lines that
// were refused; 2 for bad usage.
//
// The [joblife.Manager] decides, and the package service beside this command speaks Flux's
// messages. This command adds lines, clients, stores and the clock.
//
// # Lines
//
// A request, and its answer:
//
//	{"topic":"job-manager.raise","matchtag":7,"sender":"UUID","userid":5588,"rolemask":2,"payload":{…}}
//	{"topic":"job-manager.raise","matchtag":7,"sender":"UUID","payload":{…}}
//
// with errnum and perhaps errstr in place of the payload on failure. A stream has many
// answers, and ends with an errnum: 61 if all is well. An answer comes when what it says is
// stored; a failure comes at once.
//
//   - sender is whom the answer is for. Matchtags are those of one sender. A connection
//     without it is one sender, but on standard input it may be anyone.
//   - A request without a matchtag is answered without one, and one with matchtag 0 is not
//     answered. 4294967295 is for no use.
//   - userid and rolemask say who asks: rolemask 1 is the owner of the instance, 2 a user.
//     Without them it is the owner. Who can write to the manager is trusted.
//   - A job-manager.disconnect without a sender is ignored, and one of a guest is refused: it may
//     name anyone.
//   - job-manager.broker-shutdown, which is not of flux-core, says that the broker is in its state
//     CLEANUP. No epilog begins from then on.
//   - "streaming":false says that the sender takes one answer, so that a request with many fails.
//   - With -now, "time" moves the clock, also in a line that has nothing else.
//
// With -ready each client gets a line when the store is read, or when it comes later. Requests are
// served from then on; those before wait:
//
//	{"topic":"job-manager.ready"}
//
// What the manager asks of others has its own matchtags, and nodeid if one rank has to
// answer. With "stream" many answers come, the last with an errnum. A call to a scheduler or
// an executor has the sender of its hello, if that had one, and the session, a number from 1
// that a bridge may choose: it can drop what belongs to an earlier session. Events have no
// matchtag:
//
//	{"topic":"sched.alloc","sender":"UUID","payload":{…}}
//	{"topic":"rexec.exec","matchtag":4,"nodeid":2,"stream":true,"payload":{…}}
//	{"event":"job-exception","private":true,"payload":{…}}
//
// A line with another topic than "job-manager.*" answers such a call. One without a matchtag
// answers the client's oldest call of its topic, or is about the job in its payload, as for
// sched.alloc and the executor's start. It counts only from the client that was asked, in that
// session, from no sender but that of the call, and from no guest.
//
// A line has at most 16 MiB. One that is malformed is answered with errnum 71, one that is
// too long with 90, and a response that is out of place with 22. The answer has the topic and the
// matchtag of a request, or else job-manager.error, and the sender, if these can be read, in the
// first 4 KiB of a long line: write the payload last. It ends nothing. A line that tells an error
// under job-manager.* is not answered, so two processes that misunderstand each other fall
// silent.
//
// # Clients
//
// A socket has up to 1024 clients; one that comes when there is no descriptor left waits. Only the
// user who started the manager may connect. When a
// client goes, its senders are disconnected. One that is 64 MiB behind with reading is cut off;
// on standard output the manager waits for it.
//
// Calls to the scheduler go to the client whose sched-hello was accepted last, and those to the
// executor to that of exec-hello. All others go to the bridge to the rest of Flux: the client
// that has been there longest and has not said such a hello for itself, without a sender. The
// store is read when the bridge has spoken, or ten seconds after the first client has come, so
// that what an earlier process left finds somebody to ask. Requests wait. Where there is
// nobody, a call fails with errnum 38; if the one who was asked goes away, with 113; without an
// answer for five minutes, with 110. Events go to all clients but a scheduler.
//
// A scheduler whose answer is refused believes what is not so, and its session ends; so does
// that of a scheduler or an executor that answers with an errnum. It is told under
// job-manager.error, and a connection of its own is closed: the next hello tells what is held.
//
// # In a running Flux
//
// With -flux the manager is the service job-manager of an instance. It speaks RFC 3 with the
// broker of rank 0, and keeps its jobs in the KVS (-store lines) unless -store says another. As a
// module of the broker (RFC 5) it is its own loader, and its flags are the arguments:
//
//	flux module load --loader=/PATH/manager --name=job-manager /PATH/manager -lost rerun
//
// Elsewhere it connects to FLUX_URI, or the URI in -flux=URI, and registers the service. FLUX.md
// beside this file says how to try it, and how to go back.
//
// The process that the broker knows is a keeper: it has the connection, decides nothing and
// stores nothing. A worker, which is this program again, manages the jobs. When a worker ends,
// even by kill -9, the keeper starts another one, tells it what goes on, and kills processes that
// would run beside their rerun: nobody else notices.
//
// A session is the owner's: what a guest says under the scheduler's name changes nothing.
//
// # Limits
//
// Beside those of package service, of package loop and of a configuration:
//
//   - What waits for a scheduler or an executor until it has read what came before: 65 536
//     messages and four for each job. Beyond that its session ends.
//   - What clients have not read: 256 MiB in all, beside 256 KiB of each. Who is behind with more
//     is cut off when there is no room.
//   - Lines that are not handled: 64 MiB in all, beside 64 KiB of each client. One that finds no
//     room is skipped, and answered with errnum 90.
//   - Requests while the store is read, or while the peer commits: 64 MiB of guests and as much of
//     the owner, with 4 KiB for each. More are answered with errnum 16.
//   - With -flux a payload: 16 MiB of guests, 48 MiB of others, and 64 MiB of what the manager sends.
//     A longer request is answered with errnum 90, and so is one whose answer would be longer. While
//     32 MiB wait for a broker that does not read, or for the keeper, the worker waits.
//   - The log of a job: 8 MiB by requests of guests, 16 MiB by others. More are answered with
//     errnum 11, and the job can still be canceled.
//
// # Stores
//
//   - -store memory ends with the process.
//   - -store bolt:FILE keeps all in one file, for daily use: see purge/boltstore.
//   - -store dir:PATH keeps plain files for people to read: PATH/jobs as purge/dirstore has
//     them, and PATH/records for what is of no job. It takes several fsyncs for each job.
//   - -store lines asks the peer to commit to its KVS, 8 MiB of records at a time, and waits. It
//     writes the keys of flux-core, so flux job eventlog works, and also job.ID.joblife.housekeeping and
//     checkpoint.joblife. The jobspec is that of job-ingest, and the R that of the scheduler
//     unless a job brings its own (alloc-bypass). It watches resource.R for when the instance
//     expires. The first client of a socket has the KVS, and when it goes the process fails: no
//     other is asked.
//
// A start waits a second for a store that is in use: a process that was killed, or its child,
// may have the lock for a moment. If a store fails, or the input ends while the peer commits,
// the process says so and ends, and nothing is answered that was not stored. The next process
// goes on with the jobs; -lost says what becomes of a prolog, an epilog or housekeeping that was
// running. Give -config with named queues, or their states are forgotten.
//
// A job that cannot be read is told at each start, and stops no other. It stays in the store,
// and nobody else gets the nodes of its R, if that can be read. Look after its nodes, and then
// start with -put-aside ID: the job goes to lost+found (a bucket, a folder, or job-lost+found in
// the KVS), and its nodes are free. If it cannot be moved, the process ends.
//
// # Different on purpose
//
//   - The answers of raise, memo, urgency, update and queue-* come after the commit;
//     flux-core gives them before. A request to purge removes one batch, and waits for it.
//   - Which jobs were waited for does not survive a restart.
//   - An answer of events-journal has the events of a job that come together; those of flux-core
//     have one, but for the history.
//   - list is ordered by priority, then by id. sched-hello has the R of each job.
//   - A key that comes twice, and null for a text, a number or a truth, are malformed.
//   - jobtap loads no plugins. It accepts those whose work is built in, and lists them:
//     alloc-bypass.so, perilog.so and those of flux-core's module. A load of another one fails
//     with 38, and so does a removal of the latter, but for .history, .update-duration and
//     .update-queue. set-batch-timeout changes nothing.
//   - The store lines writes the checkpoint at each change too. Its max_jobid is the greatest id
//     that was purged, and at an orderly end the greatest that there was.
//   - A job that cannot be read is moved when an operator says so, and not at the start. A
//     folder of the KVS with a jobspec and no eventlog stays: its submission is under way.
//
// Package service and its package conf list more.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/flux"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/examples/internal/service"
)

func main() {
	args, err := flux.Arguments(os.Args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(lines.ExitFault)
	}
	os.Args = args
	if os.Getenv(flux.ModuleURI) != "" {
		runtime.GOMAXPROCS(1) // keeper and worker pass messages on: threads that wake each other cost a sixth of the CPU
	}
	lines.Main(program)
}

func program() *lines.Program { return new(options).program() }

// serve serves a pair of streams, until the input ends or ctx is done.
func (o *options) serve(ctx context.Context, in io.Reader, out, stderr io.Writer) error {
	p, err := newProcess(*o, stderr)
	if err != nil {
		return err
	}
	reading, cancel := context.WithCancel(context.Background())
	defer cancel() // ends the reader
	box := lines.NewOutbox(out, true, nil)
	sent := make(chan error, 1)
	go func() {
		err := box.Run()
		sent <- err
		if err != nil { // tell, since no later Write may come
			p.put(input{line: lines.Line{Err: fmt.Errorf("output: %w", err)}})
		}
	}()
	p.live = o.Now == 0
	c := p.only(box)
	c.close = func() {
		box.End()
		if err := <-sent; err != nil {
			c.broken(err)
		}
	}
	p.mu.Lock()
	p.start()
	p.mu.Unlock()
	go c.read(reading, in, nil, p.put)
	err = p.run(ctx)
	if err == nil && p.stats.refused > 0 {
		return lines.ErrRefused
	}
	return err
}

// only returns the client of a process that has no other.
func (p *process) only(out io.Writer) *client {
	c := &client{
		out:    out,
		broken: func(err error) { p.fail(fmt.Errorf("output: %w", err)) },
		close:  func() {},
	}
	p.clients = append(p.clients, c)
	return c
}

// run runs the process until the input of client 0 ends, ctx is done or something fails.
func (p *process) run(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { p.put(input{quit: true}) })()
	if p.live {
		go p.pulse()
	}
	select {
	case <-p.opened:
	case <-p.over.Done():
	}
	if p.live && p.over.Err() == nil {
		p.mu.Lock() // when what opened it has ended
		l := p.service.Loop
		p.mu.Unlock()
		err := l.Run(p.over)
		p.cancel()
		p.ran(err)
	}
	<-p.over.Done()
	close(p.ended)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.end()
}

// pulse has what waits see that time passes, and tells the keeper that the Loop turns. The Loop
// knows when the Manager has to.
func (p *process) pulse() {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for p.put(input{}) {
		if p.alive != nil && isClosed(p.opened) {
			p.alive()
		}
		select {
		case <-t.C:
		case <-p.ended:
		}
	}
}

// put takes an input, of any goroutine, and reports whether the process did before its end.
// Until there is a service the lock is what keeps inputs apart, and then its Loop.
func (p *process) put(in input) bool {
	p.mu.Lock()
	if p.service == nil || !p.live {
		defer p.mu.Unlock()
		if p.over.Err() != nil {
			return false
		}
		p.take(in)
		return true
	}
	p.mu.Unlock()
	done := make(chan bool)
	if p.enter(func() { p.take(in); close(done) }) != nil {
		return false
	}
	select {
	case <-done:
		return true
	case <-p.ended: // until then the store may wait for the peer
		return false
	}
}

// enter has f called by the Loop.
func (p *process) enter(f func()) error {
	return p.service.Do(func() {
		p.inside = true
		f()
		p.settle()
		p.inside = false
	})
}

// do calls f where it may use the service, if there is one.
func (p *process) do(f func()) {
	switch {
	case p.service == nil || p.inside:
		f()
		p.settle()
	case p.enter(f) == nil && !p.live:
		p.advance(p.now())
		p.pass()
	}
}

// maxTicks is how many deadlines are passed one after the other when the time jumps.
const maxTicks = 1000

// pass passes the deadlines until now, where the Loop does not run by itself.
func (p *process) pass() {
	for n := 0; p.service != nil && !p.live && p.failed == nil && n <= maxTicks; n++ {
		now := p.now()
		at, ok := p.service.Deadline()
		switch {
		case !ok || at.After(now):
			return
		case n == maxTicks: // it is a long way
			at = now
		}
		_ = p.service.Do(func() {})
		p.advance(at)
		if next, _ := p.service.Deadline(); next.Equal(at) {
			return
		}
	}
}

// advance has the Loop do what can be done.
func (p *process) advance(now time.Time) {
	if now = now.Round(0); now.After(p.last) {
		p.last = now
	}
	p.ran(p.service.Loop.Advance(p.last))
}

// ran takes the error with which the Loop ends.
func (p *process) ran(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		p.fail(errors.New(strings.Replace(err.Error(), "loop: store", "-store", 1)))
	}
}

// take takes what a client sends, and notices those that come and go.
func (p *process) take(in input) {
	defer in.line.Done()
	c := in.client
	var long *lines.LongError
	switch {
	case in.quit:
		p.stop()
	case in.odd != nil:
		p.warnf("%v", in.odd)
	case c == nil && in.line.Err != nil:
		p.fail(in.line.Err)
	case c == nil: // time has passed
		p.do(func() {})
	case in.line.Err != nil && c.id > 0 && !errors.As(in.line.Err, &long):
		if !errors.Is(in.line.Err, io.EOF) && p.o.Verbose {
			p.printf(service.LevelInfo, "client %d: %v", c.id, in.line.Err)
		}
		p.do(func() { p.leave(c) })
	case errors.Is(in.line.Err, io.EOF):
		p.stop()
		p.hangUp()
	case in.flux != nil:
		p.about(c, 0, func() { c.receive(in.flux) })
	case in.line.Number > 0 && slices.Contains(p.clients, c): // or it was turned away
		p.handle(c, in.line)
	case in.line.Number > 0:
	case len(p.clients) >= maxClients:
		p.write(c, output{Topic: topicError, Errnum: errno.Busy, Errstr: "there are too many clients"})
		c.close()
	default:
		p.clients = append(p.clients, c)
		p.welcomed(c)
		switch {
		case p.started:
		case p.kvs != nil: // it is the client's
			p.start()
		case p.startBy.IsZero():
			p.startBy = p.now().Add(bridgeIn)
		}
	}
}

// stop tells all who wait that the process ends. A Loop that runs stores the rest first.
func (p *process) stop() {
	p.do(func() {
		if p.service != nil {
			p.service.Stop()
		}
	})
	p.cancel()
}

// hangUp fails what the store waits for, since nobody answers any more.
func (p *process) hangUp() {
	if p.kvs == nil {
		return
	}
	p.kvs.over = true
	for _, c := range p.calls.of(p.kvs.peer) {
		if strings.HasPrefix(c.topic, "kvs") {
			p.lost(c, errno.Unreachable, "the input ended")
		}
	}
}

// end ends the process, and returns why if it was not asked to.
func (p *process) end() error {
	if p.kvs != nil && p.service != nil && p.failed == nil {
		p.kvs.leave()
	}
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
