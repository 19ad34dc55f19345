// Package service answers the requests that a Flux instance sends to its job manager, on
// top of a [joblife.Manager]. It does no I/O, starts no goroutine and reads no clock: a
// process around it reads requests, stores records and sends what comes out.
//
//	s, err := service.New(now, service.Config{})
//	s.Request(now, service.Request{Topic: "job-manager.submit", Sender: "a", Matchtag: 7, …})
//	for s.Next(&out) {
//		store(out.Append) // and if that fails, end: what is durable goes on
//		send(out.Answers, out.Calls, out.Events)
//		s.Done(now, &out, nil)
//	}
//
// An Out with records has nothing to send: what follows from them comes after Done, so
// that a scheduler that is replaced meanwhile cannot get what was meant for the one before.
//
// # When an answer goes out
//
// A request that fails has changed nothing and is answered at once. Any other answer goes
// out after the next commit: what it says is durable then, and a crash cannot take it
// back. While an Out is with the store, more requests may come; they share the next one,
// and so one commit.
//
// One goroutine at a time uses a Service.
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
// end, and as many that purge; 64 updates of one user that others have to check, and 8 MiB of
// their jobspecs; before a commit one request about many jobs, or several about 65 536 in
// all. A request beyond that fails with errnum 11, as one beyond a limit of the Manager does,
// such as [joblife.Config.MaxLog]. The history in a stream comes in parts of 4 MiB.
//
// # Prologs, epilogs and housekeeping
//
// Their commands run through rexec.exec (RFC 42) on each rank, and nodes are drained through
// resource.drain. Other than in flux-core, a rank that cannot be reached has failed, in a
// prolog too, and a drain that is refused holds its ranks and is asked for again.
package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset/alloc"
)

// A Config configures a [Service]. The zero Config is one anonymous queue without limits.
type Config struct {
	// Manager is the configuration of the Manager. The service adds its own hooks before
	// those in Hooks. Manager.Actions has the commands of prologs, epilogs and
	// housekeeping; each Launch brings its own.
	Manager joblife.Config
	// Lookup returns what the store has of an inactive job, of which the Manager knows
	// little more than how it ended. The error is the store's; a job that it does not
	// have is the zero Stored. A nil Lookup has none.
	Lookup func(jobid.ID) (Stored, error)
	// Reads reports whether a scheduler or an executor has read what it was sent, or nearly so.
	// Where one has not, what else is for it waits, and Next is to be called when it has. Nil:
	// all have.
	Reads func(sender string) bool
	// Environ is the environment of prologs, epilogs and housekeeping, as os.Environ
	// returns it. The service adds FLUX_JOB_ID, FLUX_JOB_USERID and FLUX_JOB_RANKS.
	Environ []string
	// LogIgnore has the lines of the output of prologs and epilogs that are not logged.
	LogIgnore []*regexp.Regexp
	// Warnings are what Parse has to say to an administrator. They are logged once.
	Warnings []string
	// Lost says what becomes of the actions that a restart finds.
	Lost Lost
	// Queues are the named queues, instead of those in Manager.
	Queues map[string]Queue
	// StopQueues has Restore stop the queues that are started, if there was a service before.
	StopQueues bool
	// Limits are those of all jobs.
	Limits Limits
	// MaxActive limits the active jobs of each user; 0: no limit.
	MaxActive int
	// Parse reads the configuration in a config-reload; conf.Parse is one. It returns old
	// with what the text says. Nil: there is no such request.
	Parse func(old Config, text []byte) (Config, error)
}

// Stored is what a store has of a job: its eventlog, its jobspec as it was submitted and
// the R that it was given. The updates in the log are not applied. What is not there is
// nil.
type Stored struct {
	Eventlog, Jobspec, R []byte
}

// A Request is a message from a client or a module.
type Request struct {
	Topic string
	// Sender is whom the answer goes to. Matchtags are unique for each sender only. With
	// Matchtag 0 there is no answer. If nobody knows the sender it is "", and then a
	// disconnect is ignored: it would end what others have asked for.
	Sender   string
	Matchtag uint32
	UserID   uint32
	Rolemask uint32
	// Single says that the sender takes one answer: it did not ask for a stream (RFC 6).
	Single  bool
	Payload json.RawMessage
}

// A Response answers a [Call].
type Response struct {
	Topic   string
	Tag     uint64 // 0 for sched.alloc and the executor's start: the payload has the job's id
	Payload json.RawMessage
	Errnum  int // 0: no error
	Errstr  string
}

// An Out is what to store, or what to send, in the order of its fields. Its records are
// valid until it is done.
type Out struct {
	Seq uint64 // 0: nothing is to be stored
	// Append is to be made durable as one transaction, and then the jobs of Unlink are to
	// be removed.
	Append []joblife.Record
	Unlink []jobid.ID
	// Answers, Calls and Events are to be sent, and Log is for an administrator.
	Answers []Answer
	Calls   []Call
	Events  []Event
	Log     []string
	// Ended has the senders of schedulers and executors whose session the service has ended.
	// Close their connections, or tell them some other way to say hello again.
	Ended []string
}

// An Answer answers a [Request]. A stream has many; the last one has the Errnum 61.
type Answer struct {
	Topic    string
	Sender   string
	Matchtag uint32
	Payload  any // for encoding/json; nil: none
	Errnum   int // 0: no error
	Errstr   string
}

// A Call is a request to somebody else.
type Call struct {
	Tag     uint64 // for the Response; 0 where none comes, or only by the job's id
	Topic   string
	To      string // the Sender of the hello, for a scheduler or an executor; "": for anyone else
	Nodeid  int    // the rank to ask; Any where it does not matter
	Payload any
	// Stream says that many Responses come. The last one has an Errnum: 61 if all is well.
	Stream bool
}

// Any is the Nodeid of a Call that any rank may answer.
const Any = -1

// An Event is a message to all who listen.
type Event struct {
	Topic   string
	Payload any
	Private bool // for the instance's owner alone
}

// A Service is a job manager that speaks the messages of Flux. [New] and [Restore] make
// one; the zero Service is invalid.
type Service struct {
	cfg Config
	m   *joblife.Manager
	now time.Time

	rd   joblife.Ready
	busy bool // an Out with records is with the store

	quick   Out                             // goes out at once
	denied  []joblife.Raise                 // for jobs that could not bypass the scheduler
	open    Out                             // goes out with the next Ready
	rest    Out                             // goes out when the records with the store are durable
	asked   map[uint64]func(joblife.Answer) // what waits for an answer of the Manager, by tag
	calls   map[uint64]waiting              // what waits for the response to a Call
	lastTag uint64

	purges    []*purging // requests to purge, in their order
	purgeBusy bool       // the first of them is under way
	gone      []jobid.ID // jobs that were purged, for an event
	sched     scheduler
	exec      executor
	journal   journal
	waits     waits
	touched   int // jobs of requests about many jobs since the last Ready
	empty     []*emptyWait
	processes map[place]*process // of prologs, epilogs and housekeeping
	drains    []drain            // which were refused, by time

	jobs       map[uint32]int                        // how many jobs a user has
	updates    []*update                             // those that wait for a Response
	told       map[jobid.ID]eventlog.Timestamp       // expirations that the scheduler knows
	expiration jobstate.Optional[eventlog.Timestamp] // of the instance
}

// A waiting gets the response to a Call, or each one if it is a stream.
type waiting struct {
	respond func(Response) error
	stream  bool
	topic   string
}

// New returns a service without jobs. The error names what is wrong with the
// configuration.
func New(now time.Time, cfg Config) (*Service, error) {
	s, err := newService(now, cfg), cfg.Lost.check()
	if err == nil {
		s.m, err = joblife.New(s.manager(cfg))
	}
	return s, err
}

// Restore returns a service with the jobs of earlier records: see [joblife.Restore]. It
// resolves lost actions as the configuration says.
func Restore(now time.Time, cfg Config, records iter.Seq2[joblife.Record, error]) (*Service, joblife.Recovered, error) {
	s := newService(now, cfg)
	if err := cfg.Lost.check(); err != nil {
		return s, joblife.Recovered{}, err
	}
	before := false
	m, recovered, err := joblife.Restore(now, s.manager(cfg), func(yield func(joblife.Record, error) bool) {
		for r, err := range records {
			before = true
			if !yield(r, err) {
				return
			}
		}
	})
	s.m = m
	if err == nil {
		err = s.resolve(recovered.Unresolved)
	}
	if err == nil && before && cfg.StopQueues {
		err = s.stopQueues()
	}
	return s, recovered, err
}

func newService(now time.Time, cfg Config) *Service {
	return &Service{
		cfg: cfg, now: now.Round(0), // see at
		asked: make(map[uint64]func(joblife.Answer)),
		calls: make(map[uint64]waiting), processes: make(map[place]*process),
		jobs: make(map[uint32]int), exec: executor{starts: make(map[jobid.ID]bool)},
		waits: newWaits(),
		quick: Out{Log: slices.Clone(cfg.Warnings)},
	}
}

// manager returns the Manager's part of a configuration, with the service's hooks.
func (s *Service) manager(cfg Config) joblife.Config {
	c := cfg.Manager
	own := []joblife.Hooks{
		s.limits(), s.bypass(), s.waiter(), {Name: "purged", Removed: s.removed}, joblife.Dependencies(),
	}
	c.Hooks = append(own, c.Hooks...)
	c.Queues = cfg.queues()
	return c
}

// Deadline returns when to call Tick, and false for never.
func (s *Service) Deadline() (time.Time, bool) {
	at, ok := s.m.Deadline()
	if len(s.drains) > 0 && (!ok || s.drains[0].at.Before(at)) {
		return s.drains[0].at, true
	}
	return at, ok
}

// Tick passes the time.
func (s *Service) Tick(now time.Time) error {
	s.at(now)
	s.drainDue()
	return s.step(joblife.Tick{})
}

// at moves the time on. A clock that stepped back stands still until it is past: the Manager goes
// by the time of the day, so the monotonic reading, which hides such a step, does not count.
func (s *Service) at(now time.Time) {
	if now = now.Round(0); now.After(s.now) {
		s.now = now
	}
}

// step gives an input to the Manager.
func (s *Service) step(in joblife.Input) error { return s.m.Step(s.now, in) }

// tag returns a number that was not used before.
func (s *Service) tag() uint64 {
	s.lastTag++
	return s.lastTag
}

// ask gives the Manager an input that it answers later. f gets the answer when what it
// says is durable, and may add to the Out that goes out with it.
func (s *Service) ask(in func(tag uint64) joblife.Input, f func(joblife.Answer)) error {
	tag := s.tag()
	if err := s.step(in(tag)); err != nil {
		return err
	}
	s.asked[tag] = f
	return nil
}

// call sends a request to somebody at once. f gets the response.
func (s *Service) call(topic string, nodeid int, payload any, f func(Response) error) {
	to, _ := s.Whom(topic)
	s.send(&s.quick, Call{Topic: topic, To: to, Nodeid: nodeid, Payload: payload}, f)
}

// send adds a request to an Out. f gets the response, or each one if it is a stream.
func (s *Service) send(out *Out, c Call, f func(Response) error) {
	c.Tag = s.expect(c.Topic, c.Stream, f)
	out.Calls = append(out.Calls, c)
}

// expect returns the tag of a Call, and has f get the response.
func (s *Service) expect(topic string, stream bool, f func(Response) error) uint64 {
	tag := s.tag()
	s.calls[tag] = waiting{f, stream, topic}
	return tag
}

// Next fills out with what is to be stored or sent, and reports whether there is anything.
// It may be called again before Done: then only what needs no record comes. Call Done for
// each Out.
func (s *Service) Next(out *Out) bool {
	for s.flow(); s.quick.isEmpty(); s.flow() {
		if s.busy {
			return false
		}
		if s.backlog(); !s.quick.isEmpty() {
			break // before later events
		}
		s.calmed()
		s.touched = 0
		if !s.m.Ready(&s.rd) {
			if s.open.isEmpty() {
				return false
			}
			s.quick, s.open = s.open, Out{}
			break
		}
		s.fill(&s.rd)
		if len(s.rd.Append)+len(s.rd.Unlink) > 0 {
			s.busy = true
			*out = Out{Seq: s.rd.Seq, Append: s.rd.Append, Unlink: s.rd.Unlink}
			return true
		}
		if err := s.stored(s.rd.Seq); err != nil {
			panic("service: a Ready that is not outstanding: " + err.Error())
		}
	}
	*out, s.quick = s.quick, Out{}
	return true
}

func (o *Out) isEmpty() bool {
	return len(o.Append)+len(o.Unlink)+len(o.Answers)+len(o.Calls)+len(o.Events)+len(o.Log)+len(o.Ended) == 0
}

// add adds what another Out has to send.
func (o *Out) add(p Out) {
	if o.isEmpty() {
		*o = p
		return
	}
	o.Answers = append(o.Answers, p.Answers...)
	o.Calls = append(o.Calls, p.Calls...)
	o.Events = append(o.Events, p.Events...)
	o.Log = append(o.Log, p.Log...)
	o.Ended = append(o.Ended, p.Ended...)
}

// logf adds a line for an administrator.
func (o *Out) logf(format string, args ...any) { o.Log = append(o.Log, fmt.Sprintf(format, args...)) }

// fill takes in what a Ready says is to be sent. It must not refer to the Ready's memory.
func (s *Service) fill(rd *joblife.Ready) {
	batch := s.open
	s.open = Out{} // where handlers add to
	s.tell(rd)
	s.open.add(batch)
	for _, a := range rd.Answers {
		if f := s.asked[a.Tag]; f != nil {
			delete(s.asked, a.Tag)
			f(a)
		}
	}
	rd.Sched = s.untold(rd.Sched)
	s.fillSched(rd)
	s.fillExec(rd)
	s.actions(rd)
	s.open.Events = append(append(s.open.Events, raised(rd.Raised)...), s.purged()...)
	for _, f := range rd.Faults {
		s.open.logf("%v", f)
		if f.Hook == flagBypass && errors.Is(f.Err, joblife.ErrConflict) { // its R is another job's
			s.denied = append(s.denied, joblife.Raise{By: s.self(), ID: f.Job, Type: "alloc", Note: f.Err.Error()})
		}
	}
	for _, o := range rd.Outcomes {
		if o.Note != "" {
			s.open.logf("job %v: %v: %s", o.Job, o.Action, o.Note)
		}
		for line := range strings.Lines(o.Detail) {
			s.open.logf("job %v: %v: %s", o.Job, o.Action, strings.TrimSuffix(line, "\n"))
		}
	}
	s.rest, s.open = s.open, Out{}
}

// Done tells that an Out is done. Failed has the jobs of Unlink that the store could not
// remove, and why.
func (s *Service) Done(now time.Time, out *Out, failed map[jobid.ID]error) error {
	s.at(now)
	if out.Seq == 0 { // it had nothing of the Manager
		return nil
	}
	if err := s.stored(out.Seq); err != nil {
		return err
	}
	s.busy = false
	if len(out.Unlink) == 0 {
		return nil
	}
	err := s.step(joblife.Unlinked{IDs: out.Unlink, Failed: failed})
	s.nextPurge()
	return err
}

// stored sends what follows from records that are durable.
func (s *Service) stored(seq uint64) error {
	if err := s.m.Done(seq); err != nil {
		return err
	}
	s.quick.add(s.rest)
	s.rest = Out{}
	s.sched.queue.durable()
	s.exec.queue.durable()
	if err := s.endFar(); err != nil {
		return err
	}
	for _, in := range s.denied {
		_ = s.step(in) // unless the job is over
	}
	s.denied = nil
	return nil
}

// Whom returns the To of Calls with a topic, and false if no session has it: the answers of
// others mean nothing.
func (s *Service) Whom(topic string) (sender string, ok bool) {
	name, _, _ := strings.Cut(topic, ".")
	switch {
	case s.sched.phase != 0 && (name == "sched" || name == "feasibility"):
		return s.sched.sender, true
	case s.exec.hello.Service != "" && (topic == s.exec.hello.StartTopic() || topic == s.exec.hello.ExpirationTopic()):
		return s.exec.sender, true
	}
	return "", false
}

// Roles tells whether a sender has the session of the scheduler, and of the executor.
func (s *Service) Roles(sender string) (scheduler, executor bool) {
	return s.sched.phase != 0 && s.sched.sender == sender, s.exec.hello.Service != "" && s.exec.sender == sender
}

// Respond takes in the response to a Call, of whom it was for: the caller has looked. An
// error says what is wrong with it: it changed nothing.
func (s *Service) Respond(now time.Time, r Response) error {
	s.at(now)
	if r.Tag == 0 {
		switch r.Topic {
		case alloc.TopicAlloc:
			return s.allocated(r)
		case s.exec.hello.StartTopic():
			return s.started(r)
		}
		return fmt.Errorf("%s: a response without a matchtag", r.Topic)
	}
	w, ok := s.calls[r.Tag]
	if !ok {
		return fmt.Errorf("%s: response to matchtag %d, which nobody waits for", r.Topic, r.Tag)
	}
	if !w.stream || r.Errnum != 0 {
		delete(s.calls, r.Tag)
	}
	return w.respond(r)
}
