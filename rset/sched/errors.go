package sched

import (
	"errors"
	"fmt"

	"github.com/joblife/joblife/internal/guard"
)

// The categories of errors. A text names the job and what to do. Errors of package pool pass
// through: pool.ErrNotFound for a job without resources, pool.ErrInfeasible, pool.ErrRequest.
var (
	// ErrNotReady is returned when an inventory or the end of a hello has to come first.
	ErrNotReady = errors.New("sched: not ready")

	// ErrExists is returned when a job waits or has resources already, and for a second inventory.
	ErrExists = errors.New("sched: known already")

	// ErrNoR is returned when a job of a hello has no R.
	ErrNoR = errors.New("sched: no R")

	// ErrLimit is returned when there are Config.MaxJobs jobs, and for an inventory whose key
	// scheduling leaves no room for the resources of a job.
	ErrLimit = errors.New("sched: limit exceeded")
)

var errSide = errors.New("sched: not a message of a manager")

// refuse returns an error of a category with a text of its own.
func refuse(category error, format string, args ...any) error {
	return guard.Cause(category, fmt.Sprintf("sched: "+format, args...))
}
