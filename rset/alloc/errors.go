package alloc

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

var (
	// ErrMessage is returned when a text is no message of RFC 27, or a value
	// can not be written as one. The error that wraps it is a *MessageError.
	ErrMessage = errors.New("alloc: not a message of the protocol")

	// ErrLimit is returned when a text is too long or a queue is full. The
	// error that wraps it is a *LimitError.
	ErrLimit = errors.New("alloc: limit exceeded")

	// ErrUnknown is returned when a queue does not have a job. The error that
	// wraps it is a *JobError.
	ErrUnknown = errors.New("alloc: unknown job")

	// ErrExists is returned when a job is added that a queue has, or is named
	// twice in one call. The error that wraps it is a *JobError.
	ErrExists = errors.New("alloc: job was given before")

	// ErrOutstanding is returned when a job is added whose id was cancelled
	// while its request was with the scheduler, and no answer has come since:
	// the answer could not be told from that to a second request. The error
	// that wraps it is a *JobError.
	ErrOutstanding = errors.New("alloc: an earlier request of the job is not answered")

	// ErrNoRequest is returned when the scheduler answers a request that it
	// does not have. The error that wraps it is an *AnswerError.
	ErrNoRequest = errors.New("alloc: answer to no request")

	// ErrPhase is returned when a scheduler says ready without a hello before.
	// The error that wraps it is a *PhaseError.
	ErrPhase = errors.New("alloc: message out of order")

	// ErrHello is returned when a job can not be announced to a scheduler. The
	// error that wraps it is a *HelloError.
	ErrHello = errors.New("alloc: job can not be announced")
)

// What is wrong with a value: the causes that a MessageError carries.
var (
	errKind     = errors.New("has another JSON type")
	errMissing  = errors.New("is missing")
	errRange    = errors.New("is out of range")
	errType     = errors.New("does not belong to this type of answer")
	errMode     = errors.New(`is neither "unlimited" nor "limited"`)
	errPair     = errors.New("is not an id and a priority")
	errSubset   = errors.New("names ranks that R does not have")
	errSuccess  = errors.New("does not go with a failure")
	errFailure  = errors.New("goes with a failure only")
	errUTF8     = errors.New("is not UTF-8")
	errResource = errors.New("names no resource")
	errNoR      = errors.New("its R is not known, or empty")
	errFree     = errors.New("ranks were given back that its R does not have")
	errAllFree  = errors.New("all its ranks were given back, and the scheduler did not say partial-ok")
)

// maxToken is the largest number of input bytes that an error repeats.
const maxToken = 64

// plain returns the start of a text, with escapes for what does not print.
func plain(text string) string {
	q := strconv.Quote(strings.Clone(text[:min(len(text), maxToken)]))
	return q[1 : len(q)-1]
}

// MessageError tells where and why a text is no message, or why a value can not
// be written as one. It wraps ErrMessage and its cause, which is a
// *rset.ParseError where R is no R.
type MessageError struct {
	Message string // which message, as "alloc request"
	Key     string // which value, as "jobs[2][1]" or "R.execution"; "" for the whole
	Offset  int    // of the value, or of the object where it is missing, in bytes from 0; -1 when writing
	Err     error  // why
}

// Error returns the text of the error.
func (e *MessageError) Error() string {
	var b strings.Builder
	b.WriteString("alloc: " + e.Message)
	if e.Offset >= 0 {
		fmt.Fprintf(&b, ": offset %d", e.Offset)
	}
	if e.Key != "" {
		b.WriteString(": " + plain(e.Key))
	}
	cause := e.Err
	if pe, ok := cause.(*rset.ParseError); ok {
		cause = pe.Err // place and field are in this error
	}
	text := strings.TrimPrefix(cause.Error(), "rset: ")
	b.WriteString(": " + strings.TrimPrefix(text, "idset: "))
	return b.String()
}

// Unwrap returns ErrMessage and the cause.
func (e *MessageError) Unwrap() []error { return []error{ErrMessage, e.Err} }

// LimitError tells that something is larger than allowed. It wraps ErrLimit.
type LimitError struct {
	What  string // "bytes" or "jobs"
	Got   int    // how many there are, or would be
	Limit int    // how many are allowed
}

// Error returns the text of the error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("alloc: %d %s, at most %d are allowed", e.Got, e.What, e.Limit)
}

// Unwrap returns ErrLimit.
func (e *LimitError) Unwrap() error { return ErrLimit }

// JobError names the job that an operation is refused for.
type JobError struct {
	ID  jobid.ID
	Err error // ErrUnknown, ErrExists or ErrOutstanding
}

// Error returns the text of the error.
func (e *JobError) Error() string { return fmt.Sprintf("%v: %v", e.Err, e.ID) }

// Unwrap returns the category.
func (e *JobError) Unwrap() error { return e.Err }

// AnswerError names the answer that no request waits for. It wraps
// ErrNoRequest.
type AnswerError struct {
	ID    jobid.ID
	Type  AnswerType
	Known bool // the queue has the job, but the scheduler has no request for it
}

// Error returns the text of the error.
func (e *AnswerError) Error() string {
	what := "unknown job"
	if e.Known {
		what = "job"
	}
	return fmt.Sprintf("alloc: answer %v to no request: %s %v", e.Type, what, e.ID)
}

// Unwrap returns ErrNoRequest.
func (e *AnswerError) Unwrap() error { return ErrNoRequest }

// PhaseError tells what a queue waits for instead. It wraps ErrPhase.
type PhaseError struct {
	Phase Phase // of the queue
}

// Error returns the text of the error.
func (e *PhaseError) Error() string {
	return fmt.Sprintf("alloc: ready without a hello before it: the scheduler is %v", e.Phase)
}

// Unwrap returns ErrPhase.
func (e *PhaseError) Unwrap() error { return ErrPhase }

// HelloError names the job that can not be announced. It wraps ErrHello and its
// cause.
type HelloError struct {
	ID  jobid.ID
	Err error // why; ErrExists if another job with this id was announced
}

// Error returns the text of the error.
func (e *HelloError) Error() string {
	return fmt.Sprintf("alloc: hello: job %v: %s", e.ID, strings.TrimPrefix(e.Err.Error(), "alloc: "))
}

// Unwrap returns ErrHello and the cause.
func (e *HelloError) Unwrap() []error { return []error{ErrHello, e.Err} }
