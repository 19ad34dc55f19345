//go:build !unix

package flux

import "errors"

func dup(int) (int, error) { return 0, errors.ErrUnsupported } // no broker runs there
