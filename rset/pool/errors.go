package pool

import (
	"errors"
	"fmt"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/hostlist"
)

// The categories of errors. A text names the job, the resources, or the path and the offset.
var (
	// ErrInfeasible is returned when the inventory can never meet a request.
	ErrInfeasible = errors.New("pool: infeasible")

	// ErrBusy is returned, unwrapped, when what is up and free cannot meet a request now.
	ErrBusy = errors.New("pool: resources are busy")

	// ErrExpired is returned when the pool has expired.
	ErrExpired = errors.New("pool: the pool has expired")

	// ErrExists is returned when a job has resources already.
	ErrExists = errors.New("pool: job has resources already")

	// ErrNotFound is returned when a job has no resources.
	ErrNotFound = errors.New("pool: job has no resources")

	// ErrRequest is returned when a jobspec asks for what a pool does not support, or has
	// constraints that RFC 31 does not allow; and for the zero Request.
	ErrRequest = errors.New("pool: invalid request")

	// ErrAcquire is returned when a text is not a response of RFC 28.
	ErrAcquire = errors.New("pool: invalid response to resource.acquire")
)

// The other categories of errors.
var (
	errNotHeld  = errors.New("pool: resources are not held by the job")
	errConflict = errors.New("pool: resources are held twice")
	errMissing  = errors.New("pool: resources are not in the inventory")
	errInvalid  = errors.New("pool: invalid argument")
	errLimit    = errors.New("pool: limit exceeded")
)

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errInvalid}, args...)...)
}

func jobError(job jobid.ID, category error) error { return fmt.Errorf("%w: %s", category, job) }

func ranksError(what string, ranks *idset.Set, reason string) error {
	return invalid("%s: ranks %s %s", what, guard.Clip(ranks.String()), reason)
}

// tooMany returns the errLimit of a Config.
func tooMany(what string, got, limit int) error {
	return fmt.Errorf("%w: %d %s, at most %d are allowed", errLimit, got, what, limit)
}

// Causes that package jsonobj does not have.
var (
	errPlace        = errors.New("resources must be node>slot>core, slot>node>core or slot>core, with other resources beside the cores")
	errPropertyName = errors.New("invalid property name")
)

// tooManyInAll returns the cause of an errLimit for a request.
func tooManyInAll() error { return guard.Cause(errLimit, "too many in total") }

// categorize wraps a cause in a category: errLimit if it is a limit, else the one given.
func categorize(category, cause error) error {
	for _, limit := range [...]error{errLimit, rset.ErrLimit, hostlist.ErrLimit, idset.ErrLimit, jsonobj.ErrDepth} {
		if errors.Is(cause, limit) {
			category = errLimit
		}
	}
	return fmt.Errorf("%w: %w", category, cause)
}

func tooLong(text []byte, most int) *jsonobj.Fault {
	return &jsonobj.Fault{Err: guard.Cause(errLimit, fmt.Sprintf("%d bytes, at most %d are allowed", len(text), most))}
}

const maxPath = 128 // bytes of a path in an error

// at returns the fault of a value that is in no text.
func at(path string, err error) *jsonobj.Fault {
	return &jsonobj.Fault{Path: guard.Cut(path, maxPath), Offset: jsonobj.NoOffset, Err: err}
}
