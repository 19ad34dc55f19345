// Package service answers the requests that a Flux instance sends to its job manager, on
// top of a [joblife.Manager] in a [loop.Loop]. It does no I/O, starts no goroutine and reads
// no clock: a process around it reads requests, stores records and sends what comes out.
//
//	s, recovered, err := service.Restore(now, service.Config{Store: store, Send: send}, records)
//	go s.Loop.Run(ctx)
//	s.Do(func() { s.Request(service.Request{Topic: "job-manager.submit", Sender: "a", Matchtag: 7, …}) })
//
// # When an answer goes out
//
// A request that fails has changed nothing and is answered at once. Any other answer goes
// out after the next commit: what it says is durable then, and a crash cannot take it
// back. While the store works, more requests may come; they share the next commit.
//
// # Reading the source
//
// service.go has the table of requests and what the loop calls, core.go what all parts share: the messages,
// the Manager and what goes out. The others are requests, parts with a state of their own, or
// hooks. A request goes from the table to one function, with its payload decoded; that gives the
// Manager inputs and returns what to answer.
//
// # What is left out
//
// As in flux-core, the journal, the scheduler and getattr do not get the environment in a
// jobspec, and the journal no key scheduling in R. Other than there, the executor gets the
// environment: it may have no store to ask.
//
// # Limits
//
// There are 128 streams of events, and 16 of one sender; 1024 requests that wait for jobs to
// end, and as many that purge. Of guests, and as much again of the owner, there are 64 updates of
// one user that others have to check, and 8 MiB of their jobspecs; before a commit one request about
// many jobs, or several about 65 536 in all, and one answer with logs, resources or lists, or several
// with 64 MiB in all. A request beyond that fails with errnum 11, as one beyond a limit of the
// Manager does, such as [joblife.Config.MaxLog]. The history in a stream comes in parts of 4 MiB.
//
// # Prologs, epilogs and housekeeping
//
// Their commands run through rexec.exec (RFC 42) on each rank, and nodes are drained through
// resource.drain. Other than in flux-core, a rank that cannot be reached has failed, in a
// prolog too, and a drain that is refused holds its ranks and is asked for again.
//
// flux-core's module watches the state of the broker; here job-manager.broker-shutdown says that
// it is CLEANUP. No epilog begins from then on.
package service

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset/alloc"
)

// A Service is a job manager that speaks the messages of Flux. [Restore] makes one; the zero
// Service is invalid.
type Service struct {
	*core
	handlers map[string]handler

	journal   journal
	waits     waits
	empties   empties
	purges    purges
	limits    limits
	sched     scheduler
	exec      executor
	processes processes
	updates   []*update // that wait for a Response
	ending    bool      // the broker shuts down
	plugins   plugins
}

// Restore returns a service with the jobs of earlier records, if any: see [joblife.Restore].
// It resolves lost actions by Config.Lost. The error may name what is wrong with the
// configuration.
func Restore(now time.Time, cfg Config, records iter.Seq2[joblife.Record, error]) (*Service, joblife.Recovered, error) {
	s := newService(now, cfg)
	if err := cfg.Lost.check(); err != nil {
		return s, joblife.Recovered{}, err
	}
	m, recovered, err := joblife.Restore(now, s.manager(cfg), func(yield func(joblife.Record, error) bool) {
		for r, err := range records {
			s.limits.restored = true
			if !yield(r, err) {
				return
			}
		}
	})
	s.m = m
	if err == nil {
		err = s.processes.resolve(recovered.Unresolved)
	}
	if err == nil && s.limits.restored && cfg.StopQueues {
		err = s.stopQueues()
	}
	if err == nil {
		s.Loop, err = loop.New(m, loop.Config{
			Store: cfg.Store, Begin: cfg.Begin, Effects: s.effects,
			Refused: func(joblife.Input, error) {}, // nothing is Put
		})
	}
	return s, recovered, err
}

func newService(now time.Time, cfg Config) *Service {
	c := &core{
		cfg: cfg, begun: now, ending: make(map[jobid.ID]struct{}),
		asked: make(map[uint64]func(joblife.Answer)), calls: make(map[uint64]waiting),
		answers: room{size: 64 << 20, full: "answers with %d bytes wait"},
		touched: room{size: maxMany, full: "requests about %d jobs wait"},
	}
	s := &Service{core: c}
	c.warn(cfg.Warnings)
	c.flush, c.later = s.flush, func(f func()) { _ = s.Do(f) }
	s.journal.core, s.empties.core, s.purges.core = c, c, c
	s.waits = waits{
		core: c, active: make(map[jobid.ID]struct{}), one: make(map[jobid.ID]*Request), ended: make(map[jobid.ID]zombie),
	}
	s.processes = processes{core: c, running: make(map[place]*process)}
	s.sched = scheduler{core: c, processes: &s.processes, limits: &s.limits}
	s.exec = executor{core: c, starts: make(map[jobid.ID]bool)}
	s.limits = limits{core: c, jobs: make(map[uint32]map[jobid.ID]struct{}), known: make(map[jobid.ID]eventlog.Timestamp)}
	s.handlers = s.table()
	return s
}

// manager returns the Manager's part of a configuration, with the service's hooks.
func (s *Service) manager(cfg Config) joblife.Config {
	c := cfg.Manager
	own := []joblife.Hooks{
		s.limits.hooks(), s.bypass(), s.waits.hooks(), s.empties.hooks(), s.purges.hooks(), joblife.Dependencies(), restarts(),
	}
	c.Hooks = append(own, c.Hooks...)
	c.Queues, c.Distinct = cfg.queues(), true
	if s.ending {
		c.Actions.Epilogs = nil
	}
	return c
}

// restarts returns hooks that log what flux-core logs of each job in SCHED at a restart.
func restarts() joblife.Hooks {
	return joblife.Hooks{Name: "restarts", Restored: func(e *joblife.HookEvent) {
		if e.Job.State() == jobstate.StateSched {
			e.Post(joblife.Post{ID: e.Job.ID(), Name: jobstate.EventFluxRestart})
		}
	}}
}

// table returns the requests that the service knows, by what follows "job-manager.".
func (s *Service) table() map[string]handler {
	const guests, owner = true, false
	return map[string]handler{
		"alloc-query":           {guests, s.allocQuery},
		"broker-shutdown":       {owner, s.shutDown},
		"config-reload":         {owner, s.reload},
		"disconnect":            {owner, s.disconnect},
		"drain":                 {owner, s.empties.drain},
		"events-journal":        {owner, with(s.journal.begin)},
		"events-journal-cancel": {owner, with(s.journal.cancel)},
		"exec-hello":            {owner, read("", exec.Parse, s.exec.serveHello)},
		"getattr":               {guests, with(s.getattr)},
		"getinfo":               {guests, s.getinfo},
		"history.get":           {guests, with(s.history)},
		"housekeeping-kill":     {owner, with(s.processes.housekeepingKill)},
		"idle":                  {owner, s.empties.idle},
		"jobtap":                {owner, with(s.plugins.jobtap)},
		"jobtap-query":          {owner, with(s.jobtapQuery)},
		"kill":                  {guests, with(s.kill)},
		"killall":               {guests, read("error decoding request", unmarshal, s.killAll)},
		"list":                  {owner, with(s.list)},
		"memo":                  {guests, with(s.memo)},
		"post-event.post":       {owner, with(s.postEvent)},
		"purge":                 {owner, with(s.purges.purge)},
		"purge-id":              {owner, with(s.purges.purgeID)},
		"queue-enable":          {owner, with(s.queueEnable)},
		"queue-list":            {guests, s.queueList},
		"queue-start":           {owner, with(s.queueStart)},
		"queue-status":          {guests, with(s.queueStatus)},
		"raise":                 {guests, with(s.raise)},
		"raiseall":              {guests, with(s.raiseAll)},
		"resource-status":       {owner, s.resourceStatus},
		"sched-hello":           {owner, read("", alloc.Parse, s.sched.serveHello)},
		"sched-ready":           {owner, read("", alloc.Parse, s.sched.serveReady)},
		"set-batch-timeout":     {owner, with(setBatchTimeout)},
		"stats-get":             {guests, s.stats},
		"submit":                {owner, with(s.submit)},
		"update":                {guests, with(s.update)},
		"urgency":               {guests, with(s.urgency)},
		"wait":                  {owner, read("malformed wait request", unmarshal, s.waits.wait)},
	}
}

// Do has f called by the Loop, as [loop.Loop.Do] does. f alone may call the other methods.
func (s *Service) Do(f func()) error {
	return s.Loop.Do(func(*joblife.Manager) func() {
		f()
		return s.handled()
	})
}

// handled ends a function of Do: what fails goes out now, and the rest when it is durable.
func (s *Service) handled() (durable func()) {
	s.processes.drainDue()
	s.empties.calmed()
	batch, then := s.open, s.then
	s.open, s.then = Out{}, nil
	s.flush()
	if batch.isEmpty() && len(then) == 0 {
		return nil
	}
	return func() {
		for _, f := range then {
			f()
		}
		s.due.add(batch)
	}
}

// Request handles a request. If something is wrong with it, the answer says so.
func (s *Service) Request(r Request) {
	payload, err := s.serve(&r)
	r.Payload = nil // r may be kept for a later answer, and the payload is large
	switch {
	case err == nil:
		s.open.answer(&r, payload)
	case err != errLater:
		s.quick.fail(&r, err)
	}
}

func (s *Service) serve(r *Request) (any, error) {
	name, ok := strings.CutPrefix(r.Topic, "job-manager.")
	h, known := s.handlers[name]
	switch {
	case !ok || !known:
		return nil, noMethod(r)
	case !h.guests && !r.owner():
		return nil, fail(errno.Perm, "Request requires owner credentials")
	case r.Rolemask&(roleOwner|roleUser) == 0:
		return nil, fail(errno.Perm, "Request rejected due to insufficient privilege")
	}
	return h.serve(r)
}

func noMethod(r *Request) error {
	return fail(errno.NoSys, "Unknown service method '%.256s'", r.Topic)
}

// reload changes the configuration, as a whole or not at all.
func (s *Service) reload(r *Request) (any, error) {
	if s.cfg.Parse == nil {
		return nil, fail(errno.NoSys, "")
	}
	if _, err := unmarshal[struct{}](r.Payload); err != nil {
		return nil, fail(errno.Protocol, "Error unpacking config-reload request")
	}
	cfg, err := s.cfg.Parse(s.cfg, r.Payload)
	if err == nil {
		err = s.step(joblife.Reload{Config: s.manager(cfg)})
	}
	if err != nil {
		return nil, fail(errno.Invalid, "%s", err)
	}
	s.cfg = cfg
	s.warn(cfg.Warnings)
	return nil, nil
}

// shutDown says that the broker cancels what runs, and ends. Epilogs that have not begun do not
// run then, as in flux-core, since they may take longer than the broker has.
func (s *Service) shutDown(*Request) (any, error) {
	s.ending = true
	return nil, s.step(joblife.Reload{Config: s.manager(s.cfg)})
}

// setBatchTimeout accepts for how long flux-core collects events for a commit. Here a commit
// has what came during the one before.
func setBatchTimeout(*Request, struct {
	Timeout float64 `json:"timeout"`
}) (any, error) {
	return nil, nil
}

// disconnect ends what a sender has asked for, since the broker says that it is gone. There
// is no answer.
func (s *Service) disconnect(r *Request) (any, error) {
	if r.Sender == "" {
		return nil, errLater
	}
	if err := s.Leave(func(sender string) bool { return sender == r.Sender }); err != nil {
		return nil, err
	}
	return nil, errLater
}

// Leave ends what senders that are gone have asked for; is may be true of senders that never
// asked for anything. An update that waits for others goes on.
func (s *Service) Leave(is func(sender string) bool) error {
	if s.sched.phase != 0 && is(s.sched.sender) {
		s.sched.hello, s.sched.ready = nil, nil
		if err := s.sched.lost(); err != nil {
			return err
		}
	}
	if s.exec.online() && is(s.exec.sender) {
		if err := s.exec.lost("disconnect"); err != nil {
			return err
		}
	}
	gone := func(w *Request) bool { return is(w.Sender) }
	s.empties.remove(gone)
	s.waits.remove(gone)
	s.journal.remove(gone)
	for _, u := range s.updates {
		if gone(u.r) {
			u.r.Matchtag = 0
		}
	}
	return nil
}

// Stop answers everyone who waits, before the process ends; the next process has its jobs. A purge
// that has begun is answered only if the Loop ends it.
func (s *Service) Stop() {
	all := func(*Request) bool { return true }
	for _, w := range append(s.empties.remove(all), s.waits.remove(all)...) {
		s.quick.fail(w, errUnloading)
	}
	for _, l := range s.journal.remove(all) {
		s.quick.fail(l, errNoData)
	}
	s.purges.stop()
	for _, u := range s.updates {
		s.quick.fail(u.r, fail(errno.Again, "job manager is shutting down"))
	}
	s.updates = nil
}

// Deadline returns when the Loop has to Advance, and false for never.
func (s *Service) Deadline() (time.Time, bool) {
	at, ok := s.m.Deadline()
	if d := s.processes.drains; len(d) > 0 && (!ok || d[0].at.Before(at)) {
		return d[0].at, true
	}
	return at, ok
}

// Expire says when the instance's own resources expire; 0 is never. Call it at the start, and
// when that changes: running jobs without a duration then expire with the instance.
func (s *Service) Expire(at eventlog.Timestamp) error { return s.limits.expireAll(at) }

// effects sends what follows from a Ready that is durable.
func (s *Service) effects(_ *joblife.Manager, rd *joblife.Ready) {
	if len(rd.Append) > 0 {
		s.cfg.Send(&Out{Append: rd.Append})
	}
	s.fill(rd)
	if err := s.endFar(); err != nil {
		s.quick.errorf("%v", err)
	}
	s.empties.calmed()
	if s.flush(); len(rd.Unlink) > 0 {
		s.later(s.purges.next)
	}
	if !s.open.isEmpty() { // by hooks, of what a Ready to come has
		s.later(func() {})
	}
}

// flush sends what goes out at once, and what that leads to.
func (s *Service) flush() {
	for s.flow(); !s.quick.isEmpty(); s.flow() {
		out := s.quick
		s.quick = Out{}
		s.cfg.Send(&out)
	}
}

// flow puts what the peers have room for before what goes out at once.
func (s *Service) flow() {
	var out Out
	s.sched.flow(&out, s.cfg.Reads)
	s.exec.flow(&out, s.cfg.Reads)
	out.add(s.quick)
	s.quick = out
}

// fill adds what follows from a Ready, and what waited for it, to what goes out. It must not
// keep the Ready's memory.
func (s *Service) fill(rd *joblife.Ready) {
	open := s.open
	s.open = Out{} // where handlers add to
	s.journal.emit(rd)
	s.empties.count(rd)
	s.open.add(s.due)
	s.due = Out{}
	for _, a := range rd.Answers {
		if f := s.asked[a.Tag]; f != nil {
			delete(s.asked, a.Tag)
			f(a)
		}
	}
	rd.Sched = s.limits.dropKnown(rd.Sched)
	s.sched.emit(rd)
	s.exec.emit(rd)
	s.processes.emit(rd)
	s.open.Events = append(append(s.open.Events, raised(rd.Raised)...), s.purges.events()...)
	for _, f := range rd.Faults {
		s.open.errorf("%v", f)
		if f.Hook == flagBypass { // it would wait without end
			in := joblife.Raise{By: s.self(), ID: f.Job, Type: "alloc", Note: f.Err.Error()}
			s.later(func() { _ = s.step(in) }) // unless the job is over
		}
	}
	for _, o := range rd.Results {
		if o.Note != "" {
			s.open.errorf("job %v: %v: %s", o.Job, o.Action, o.Note)
		}
		for line := range strings.Lines(o.Detail) {
			s.open.errorf("job %v: %v: %s", o.Job, o.Action, strings.TrimSuffix(line, "\n"))
		}
	}
	s.quick.add(s.open)
	s.open = open
}

// endFar ends the sessions of peers that do not read.
func (s *Service) endFar() (err error) {
	if s.sched.isFar(s.core) {
		s.quick.errorf("the scheduler does not read: it is lost")
		err = s.sched.drop(s.core, s.sched.lost)
	}
	if s.exec.isFar(s.core) {
		s.quick.errorf("the executor does not read: it is lost")
		err = errors.Join(err, s.exec.drop(s.core, func() error { return s.exec.lost("it does not read") }))
	}
	return err
}

// Whom returns the To of Calls with a topic, and false if no session has that topic. Only
// answers from that sender count.
func (s *Service) Whom(topic string) (sender string, ok bool) {
	name, _, _ := strings.Cut(topic, ".")
	switch {
	case s.sched.phase != 0 && (name == "sched" || name == "feasibility"):
		return s.sched.sender, true
	case s.exec.online() && (topic == s.exec.hello.StartTopic() || topic == s.exec.hello.ExpirationTopic()):
		return s.exec.sender, true
	}
	return "", false
}

// Roles tells whether a sender has the session of the scheduler, and of the executor.
func (s *Service) Roles(sender string) (scheduler, executor bool) {
	return s.sched.phase != 0 && s.sched.sender == sender, s.exec.online() && s.exec.sender == sender
}

// Respond handles the response to a Call. The caller has checked that it comes from whom the
// Call was for: see Whom. If there is an error, the response changed nothing.
func (s *Service) Respond(r Response) error {
	switch {
	case r.Tag != 0:
		return s.respond(r)
	case r.Topic == alloc.TopicAlloc:
		return s.sched.allocated(r)
	case r.Topic == s.exec.hello.StartTopic():
		return s.exec.started(r)
	}
	return fmt.Errorf("%s: a response without a matchtag", r.Topic)
}
