package alloc

import (
	"errors"
	"fmt"

	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate/jobid"
)

var (
	// ErrMessage is returned when a text is not a message of RFC 27, or a value
	// cannot be written as one. Its text names the message, the key, and the
	// offset in bytes from 0. It wraps the cause too, such as rset.ErrSyntax.
	ErrMessage = errors.New("alloc: invalid message")

	// ErrLimit is returned when a text is too long or a queue is full.
	ErrLimit = errors.New("alloc: limit exceeded")

	// ErrNotFound is returned when a queue does not have a job.
	ErrNotFound = errors.New("alloc: unknown job")

	// ErrExists is returned when a queue has a job already, or one call names a
	// job twice. A canceled job counts until the response to its request: until
	// then, nothing distinguishes that response from the response to a second
	// request.
	ErrExists = errors.New("alloc: duplicate job")

	// ErrProtocol is returned when a scheduler responds without a request, or
	// sends ready without a hello before it.
	ErrProtocol = errors.New("alloc: protocol violation")
)

// Causes that package jsonobj does not have.
var (
	errType     = errors.New("does not belong to this type of response")
	errMode     = errors.New(`must be "unlimited" or "limited"`)
	errPair     = errors.New("must be an id and a priority")
	errSubset   = errors.New("names ranks that R does not have")
	errResource = errors.New("names no resource")
	errNoR      = errors.New("no R, or an empty one")
	errFree     = errors.New("the R does not have all freed ranks")
	errTwice    = guard.Cause(ErrExists, "duplicate job")
	errAllFree  = errors.New("all ranks are freed, and the scheduler did not say partial-ok")
)

// messageError returns an ErrMessage for a cause.
func messageError(message string, err error) error {
	return fmt.Errorf("%w: %s: %w", ErrMessage, message, err)
}

// jobError returns an error about a job.
func jobError(id jobid.ID, category error) error { return fmt.Errorf("%w: %v", category, id) }
