package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/strict"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/rset"
)

// Bits of a Rolemask (RFC 12).
const (
	roleOwner = 1
	roleUser  = 2
	roleAdmin = 8
)

// A Request is a message from a client or a module.
type Request struct {
	Topic string
	// Sender is whom the answer goes to. Matchtags are unique only for each sender. With
	// Matchtag 0 there is no answer. If the sender is not known it is "". A disconnect is
	// then ignored, since it would end what others have asked for.
	Sender   string
	Matchtag uint32
	UserID   uint32
	Rolemask uint32
	// Session is for the Calls of the session that a hello begins.
	Session uint32
	// Single says that the sender takes one answer: it did not ask for a stream (RFC 6).
	Single  bool
	Payload json.RawMessage
}

func (r *Request) owner() bool { return r.Rolemask&roleOwner != 0 }

func (r *Request) cred() joblife.Cred { return joblife.Cred{UserID: r.UserID, Guest: !r.owner()} }

// knows reports whether a request may learn what there is in a private instance.
func (c *core) knows(r *Request) bool {
	return !c.cfg.Manager.Private || r.Rolemask&(roleOwner|roleAdmin) != 0
}

// mayAct reports whether a request may be about the jobs of a user.
func (r *Request) mayAct(user uint32) bool {
	return r.owner() || r.UserID == user && user != anyUser
}

// anyUser is no user's id: in requests about many jobs it stands for all users.
const anyUser = math.MaxUint32

// A userID is a userid in a payload. Peers that write it as a signed number write anyUser
// as -1.
type userID uint32

// UnmarshalJSON reads a number of 32 bits, signed or not.
func (u *userID) UnmarshalJSON(b []byte) error {
	var n int64
	if err := json.Unmarshal(b, &n); err != nil {
		return err
	}
	if n < math.MinInt32 || n > math.MaxUint32 {
		return errProtocol
	}
	*u = userID(n)
	return nil
}

// A Response answers a [Call].
type Response struct {
	Topic   string
	Tag     uint64 // 0 for sched.alloc and the executor's start: the payload has the job's id
	Payload json.RawMessage
	Errnum  int // 0: no error
	Errstr  string
}

// An Out is what to send, in the order of its fields.
type Out struct {
	Append []joblife.Record // were stored, for who counts them; nothing else comes with them
	// Send Answers, Calls and Events. Log is for an administrator, a line each.
	Answers []Answer
	Calls   []Call
	Events  []Event
	Log     []LogLine
	// Ended has the senders of schedulers and executors whose session the service ended.
	// Close their connections, or tell them in another way to say hello again.
	Ended []string
}

// A LogLine is a line for an administrator, as flux-core would log it.
type LogLine struct {
	Level Level
	Text  string
}

// A Level says how much a line matters. The zero Level is invalid.
type Level uint8

// The levels are those of syslog.
const (
	LevelError   Level = 3
	LevelWarning Level = 4
	LevelInfo    Level = 6
)

// An Answer answers a [Request]. A stream has many; the last one has the Errnum 61.
type Answer struct {
	Topic    string
	Sender   string
	Matchtag uint32
	Payload  any // for encoding/json; nil: none
	Errnum   int // 0: no error
	Errstr   string
}

// A Call is a request of the service.
type Call struct {
	Tag     uint64 // for the Response; 0 where none comes, or only by the job's id
	Topic   string
	To      string // the Sender of the hello, for a scheduler or an executor; "": for anyone else
	Session uint32 // the Session of that hello
	Nodeid  int    // the rank to ask; Any where it does not matter
	Payload any
	// Stream says that many Responses come. The last one has an Errnum: 61 if all is well.
	Stream bool
}

// asker returns the request that somebody waits with.
func (r *Request) asker() *Request { return r }

// takeOut takes out of a list what some requests wait with, and returns those.
func takeOut[T interface{ asker() *Request }](list *[]T, which func(*Request) bool) (out []*Request) {
	*list = slices.DeleteFunc(*list, func(w T) bool {
		if !which(w.asker()) {
			return false
		}
		out = append(out, w.asker())
		return true
	})
	return out
}

// Any is the Nodeid of a Call that any rank may answer.
const Any = -1

// An Event is a message to all who listen.
type Event struct {
	Topic   string
	Payload any
	Private bool // for the instance's owner alone
}

func (o *Out) isEmpty() bool {
	return len(o.Answers)+len(o.Calls)+len(o.Events)+len(o.Log)+len(o.Ended) == 0
}

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

// answer adds an answer, unless the request wants none.
func (o *Out) answer(r *Request, payload any) {
	if r.Matchtag != 0 {
		o.Answers = append(o.Answers, Answer{Topic: r.Topic, Sender: r.Sender, Matchtag: r.Matchtag, Payload: payload})
	}
}

// fail is answer for an error.
func (o *Out) fail(r *Request, err error) {
	if r.Matchtag != 0 {
		a := Answer{Topic: r.Topic, Sender: r.Sender, Matchtag: r.Matchtag}
		a.Errnum, a.Errstr = explain(err)
		o.Answers = append(o.Answers, a)
	}
}

func (o *Out) infof(format string, args ...any)  { o.log(LevelInfo, format, args...) }
func (o *Out) errorf(format string, args ...any) { o.log(LevelError, format, args...) }

func (o *Out) log(level Level, format string, args ...any) {
	o.Log = append(o.Log, LogLine{level, fmt.Sprintf(format, args...)})
}

// A failure is an error with its number for the answer.
type failure struct {
	errnum int
	text   string
}

func (f *failure) Error() string { return f.text }

// fail returns a failure. Without a format it has no text, as flux-core does not give one.
func fail(errnum int, format string, args ...any) error {
	return &failure{errnum, fmt.Sprintf(format, args...)}
}

var (
	errProtocol  = fail(errno.Protocol, "")                      // the payload is malformed
	errHidden    = fail(errno.Perm, "")                          // in a private instance
	errNoData    = fail(errno.NoData, "")                        // the end of a stream
	errUnloading = fail(errno.NoSys, "job-manager is unloading") // for those who still wait when the process ends
	errLater     = errors.New("answered later")                  // see server
)

func explain(err error) (errnum int, text string) {
	var f *failure
	switch {
	case errors.As(err, &f):
		return f.errnum, f.text
	case errors.Is(err, joblife.ErrUnknown), errors.Is(err, joblife.ErrInactive):
		errnum = errno.NoEntry
	case errors.Is(err, joblife.ErrDenied):
		errnum = errno.Perm
	case errors.Is(err, joblife.ErrLimit):
		errnum = errno.Again
	default:
		errnum = errno.Invalid
	}
	return errnum, strings.TrimPrefix(err.Error(), "joblife: ")
}

// A handler answers the requests with one topic.
type handler struct {
	guests bool // may ask too
	serve  server
}

// A server takes in a request. Its payload is answered when what it changed is durable, and
// its error at once; with errLater it answers in its own time, or not at all.
type server func(*Request) (payload any, err error)

// with returns the server of requests whose payload is an object with the keys of P.
func with[P any](serve func(*Request, P) (any, error)) server {
	return read("", unmarshal, serve)
}

// read is with for payloads of other forms. malformed is the error text for one that parse
// refuses.
func read[P any](malformed string, parse func([]byte) (P, error), serve func(*Request, P) (any, error)) server {
	return func(r *Request) (any, error) {
		p, err := parse(r.Payload)
		if err != nil {
			return nil, fail(errno.Protocol, "%s", malformed)
		}
		return serve(r, p)
	}
}

func unmarshal[P any](text []byte) (p P, err error) {
	err = strict.Unmarshal(text, &p)
	return p, err
}

// A core is what the parts of a Service share: the Manager and the time, what goes out, and
// what waits for an answer.
type core struct {
	cfg   Config
	m     *joblife.Manager
	Loop  *loop.Loop // that runs the Manager
	begun time.Time  // of Restore; there is no Loop then

	quick Out            // goes out at once
	open  Out            // goes out when what was stepped is durable
	due   Out            // is durable, and goes out with the next Ready
	then  []func()       // is called before that
	flush func()         // sends what goes out at once
	later func(f func()) // calls f when the Manager has done the Ready that Effects has

	ending  map[jobid.ID]struct{}           // jobs that are over, of which the store has no end yet
	asked   map[uint64]func(joblife.Answer) // what waits for an answer of the Manager, by tag
	calls   map[uint64]waiting              // what waits for the response to a Call
	lastTag uint64
	answers room // bytes of answers with logs, resources or lists
	touched room // jobs of requests about many, since a short one may concern all of a user
}

// A room is what may wait for the store, of one kind: so much of guests, and as much of the owner.
type room struct {
	used [2]int // of the owner, and of guests
	size int
	full string // the format of the error
}

// hold takes n of a room until what was stepped is durable. One that is alone may have more
// than the room.
func (c *core) hold(by *Request, r *room, n int) error {
	whose := 0
	if !by.owner() {
		whose = 1
	}
	if used := r.used[whose]; used > 0 && used+n > r.size {
		return fail(errno.Again, r.full, used)
	}
	r.used[whose] += n
	c.then = append(c.then, func() { r.used[whose] -= n })
	return nil
}

// A waiting is what gets the response to a Call; of a stream, each one.
type waiting struct {
	respond func(Response) error
	stream  bool
	topic   string
}

func (c *core) now() time.Time {
	if c.Loop == nil {
		return c.begun
	}
	return c.Loop.Now()
}

func (c *core) step(in joblife.Input) error {
	if c.Loop == nil {
		return c.m.Step(c.begun, in)
	}
	return c.Loop.Step(in)
}

// ask gives the Manager an input that it answers later. f gets the answer when what the
// answer says is durable. It may add to the Out that goes out with it.
func (c *core) ask(in func(tag uint64) joblife.Input, f func(joblife.Answer)) error {
	c.lastTag++
	tag := c.lastTag
	if err := c.step(in(tag)); err != nil {
		return err
	}
	c.asked[tag] = f
	return nil
}

// send adds a request to an Out. f gets the response; of a stream, each one.
func (c *core) send(out *Out, call Call, f func(Response) error) {
	call.Tag = c.expect(call.Topic, call.Stream, f)
	out.Calls = append(out.Calls, call)
}

// expect returns the tag of a Call whose response f will get.
func (c *core) expect(topic string, stream bool, f func(Response) error) uint64 {
	c.lastTag++
	c.calls[c.lastTag] = waiting{f, stream, topic}
	return c.lastTag
}

// respond handles the response to a Call that has a tag.
func (c *core) respond(r Response) error {
	w, ok := c.calls[r.Tag]
	if !ok {
		return fmt.Errorf("%s: response to matchtag %d, which nobody waits for", r.Topic, r.Tag)
	}
	if !w.stream || r.Errnum != 0 {
		delete(c.calls, r.Tag)
	}
	return w.respond(r)
}

// void drops the calls to a peer that is gone, and fails those that wait for them: a
// response that came later would belong to a session that is over.
func (c *core) void(prefix string) {
	c.quick.Calls = slices.DeleteFunc(c.quick.Calls, func(call Call) bool { return strings.HasPrefix(call.Topic, prefix) })
	for _, tag := range slices.Sorted(maps.Keys(c.calls)) {
		if w := c.calls[tag]; strings.HasPrefix(w.topic, prefix) {
			delete(c.calls, tag)
			if err := w.respond(Response{Topic: w.topic, Tag: tag, Errnum: errno.Unreachable, Errstr: "its session is over"}); err != nil {
				c.quick.errorf("%s: %v", w.topic, err)
			}
		}
	}
}

// warn logs what is odd about a configuration.
func (c *core) warn(list []string) {
	for _, text := range list {
		c.quick.log(LevelWarning, "%s", text)
	}
}

func (c *core) self() joblife.Cred { return joblife.Cred{UserID: c.cfg.Manager.Owner} }

// name returns an id as flux-core logs it.
func (c *core) name(id jobid.ID) string {
	return c.plain(id.String())
}

// plain returns a text as Config.ASCII wants it.
func (c *core) plain(text string) string {
	if c.cfg.ASCII {
		return strings.ReplaceAll(text, "ƒ", "f")
	}
	return text
}

// allocated returns what a job holds of the scheduler's resources, also when it is over.
func (c *core) allocated(id jobid.ID) *rset.R {
	for job, r := range c.m.Allocated() {
		if job == id {
			return r
		}
	}
	return nil
}

func (c *core) activeJobs() (n int) {
	for state, jobs := range c.m.Stats().States {
		if state != jobstate.StateInactive {
			n += jobs
		}
	}
	return n
}

// counting returns hooks that call f with 1 for each job that is not over, and with -1 when it
// is, or was refused.
func counting(name string, f func(e *joblife.HookEvent, n int)) joblife.Hooks {
	return joblife.Hooks{
		Name:     name,
		Restored: func(e *joblife.HookEvent) { f(e, 1) },
		Event: func(e *joblife.HookEvent) {
			switch e.Entry.Name {
			case jobstate.EventSubmit:
				f(e, 1)
			case jobstate.EventInvalidate:
				f(e, -1)
			}
		},
		Inactive: func(e *joblife.HookEvent) { f(e, -1) },
	}
}
