package service

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/strict"
)

// Bits of a Rolemask (RFC 12).
const (
	roleOwner = 1
	roleUser  = 2
)

// A handler answers the requests with one topic. Its payload is answered when what it
// changed is durable; errLater means that it answers in its own time.
type handler struct {
	guests bool // may ask too
	serve  func(*Service, *Request) (payload any, err error)
}

// handlers are all requests that the service knows, by what follows "job-manager.".
var handlers = map[string]handler{
	"alloc-query":           {true, (*Service).allocQuery},
	"config-reload":         {false, (*Service).configReload},
	"disconnect":            {true, (*Service).disconnect},
	"drain":                 {false, (*Service).drain},
	"events-journal":        {false, (*Service).eventsJournal},
	"events-journal-cancel": {false, (*Service).cancelJournal},
	"exec-hello":            {false, (*Service).execHello},
	"getattr":               {true, (*Service).getattr},
	"getinfo":               {true, (*Service).getinfo},
	"history.get":           {true, (*Service).history},
	"housekeeping-kill":     {false, (*Service).housekeepingKill},
	"idle":                  {false, (*Service).idle},
	"kill":                  {true, (*Service).kill},
	"killall":               {true, (*Service).killAll},
	"list":                  {false, (*Service).list},
	"memo":                  {true, (*Service).memo},
	"post-event.post":       {false, (*Service).postEvent},
	"purge":                 {false, (*Service).purge},
	"purge-id":              {false, (*Service).purgeID},
	"queue-enable":          {false, (*Service).queueEnable},
	"queue-list":            {true, (*Service).queueList},
	"queue-start":           {false, (*Service).queueStart},
	"queue-status":          {true, (*Service).queueStatus},
	"raise":                 {true, (*Service).raise},
	"raiseall":              {true, (*Service).raiseAll},
	"resource-status":       {false, (*Service).resourceStatus},
	"sched-hello":           {false, (*Service).schedHello},
	"sched-ready":           {false, (*Service).schedReady},
	"set-batch-timeout":     {false, (*Service).setBatchTimeout},
	"stats-get":             {true, (*Service).stats},
	"submit":                {false, (*Service).submit},
	"update":                {true, (*Service).update},
	"urgency":               {true, (*Service).urgency},
	"wait":                  {false, (*Service).wait},
}

// errLater is what a handler returns that answers later, or not at all.
var errLater = errors.New("answered later")

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

// errProtocol is for a payload that is not what it should be, and errNoData ends a stream.
var (
	errProtocol = fail(errno.Protocol, "")
	errNoData   = fail(errno.NoData, "")
)

// Request takes in a request. What is wrong with it is answered.
func (s *Service) Request(now time.Time, r Request) {
	s.at(now)
	payload, err := s.serve(&r)
	switch {
	case err == nil:
		s.answer(&s.open, &r, payload)
	case err != errLater:
		s.fail(&s.quick, &r, err)
	}
}

func (s *Service) serve(r *Request) (any, error) {
	name, ok := strings.CutPrefix(r.Topic, "job-manager.")
	h, known := handlers[name]
	switch {
	case !ok || !known:
		return nil, fail(errno.NoSys, "")
	case !h.guests && !r.owner():
		return nil, fail(errno.Perm, "Request requires owner credentials")
	case r.Rolemask&(roleOwner|roleUser) == 0:
		return nil, fail(errno.Perm, "Request rejected due to insufficient privilege")
	}
	return h.serve(s, r)
}

// answer adds an answer to an Out, unless the request wants none.
func (s *Service) answer(out *Out, r *Request, payload any) {
	if r.Matchtag != 0 {
		out.Answers = append(out.Answers, Answer{
			Topic: r.Topic, Sender: r.Sender, Matchtag: r.Matchtag, Payload: payload,
		})
	}
}

// fail is answer for an error.
func (s *Service) fail(out *Out, r *Request, err error) {
	if r.Matchtag == 0 {
		return
	}
	a := Answer{Topic: r.Topic, Sender: r.Sender, Matchtag: r.Matchtag}
	a.Errnum, a.Errstr = explain(err)
	out.Answers = append(out.Answers, a)
}

// explain returns the number and the words of an error.
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

// later returns what is kept of a request that is answered later: all but the payload,
// which may be large.
func (r *Request) later() *Request {
	kept := *r
	kept.Payload = nil
	return &kept
}

func (r *Request) owner() bool { return r.Rolemask&roleOwner != 0 }

// cred returns who asks.
func (r *Request) cred() joblife.Cred { return joblife.Cred{UserID: r.UserID, Guest: !r.owner()} }

// decode reads the payload into a pointer to a struct.
func (r *Request) decode(into any) error {
	if strict.Unmarshal(r.Payload, into) != nil {
		return errProtocol
	}
	return nil
}
