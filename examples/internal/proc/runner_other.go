//go:build !unix

package proc

import (
	"errors"

	"github.com/joblife/joblife/perilog/exec"
)

// A runner does not exist on this system.
type runner struct{}

// newRunner returns errors.ErrUnsupported.
func newRunner(string, func(exec.Task), func(error)) (*runner, error) {
	return nil, errors.ErrUnsupported
}

// list returns nil.
func (r *runner) list() []exec.TaskStatus { return nil }

// last returns false.
func (r *runner) last(exec.Task) (st exec.TaskStatus, ok bool) { return st, false }

// do returns errors.ErrUnsupported.
func (r *runner) do(exec.Command, []string) error { return errors.ErrUnsupported }

// Shim returns.
func Shim() {}
