//go:build !unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// keep returns errors.ErrUnsupported: no broker runs here.
func (o *options) keep(context.Context, string, io.Writer) error {
	return fmt.Errorf("-flux: %w", errors.ErrUnsupported)
}
