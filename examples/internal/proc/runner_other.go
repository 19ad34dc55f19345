//go:build !unix

package proc

import (
	"errors"

	"github.com/joblife/joblife/perilog/exec"
)

// A Runner does not exist on this system.
type Runner struct{}

// Open returns errors.ErrUnsupported.
func Open(string, func(exec.Task), func(error)) (*Runner, error) { return nil, errors.ErrUnsupported }

// Tasks returns nil.
func (r *Runner) Tasks() []exec.TaskStatus { return nil }

// Status returns false.
func (r *Runner) Status(exec.Task) (st exec.TaskStatus, ok bool) { return st, false }

// Do returns errors.ErrUnsupported.
func (r *Runner) Do(exec.Command, []string) error { return errors.ErrUnsupported }

// Shim returns.
func Shim() {}
