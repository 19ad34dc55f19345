package hostlist

import (
	"errors"
	"fmt"

	"github.com/joblife/joblife/internal/guard"
)

// ErrLimit is returned when a text, a name or a list is too large. The error names the limit.
var ErrLimit = errors.New("hostlist: limit exceeded")

// syntaxError is about a text or a name. The token is what begins with the expression.
func syntaxError(offset int, cause, token string) error {
	return fmt.Errorf("hostlist: syntax error: offset %d: %s in %s", offset, cause, guard.Quote(token))
}

func limitError(offset int, what string, got, limit int) error {
	return fmt.Errorf("%w: offset %d: %d %s, at most %d are allowed", ErrLimit, offset, got, what, limit)
}
