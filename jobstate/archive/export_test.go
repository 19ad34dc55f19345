package archive

// WithDefaults returns the limits in force.
func (l Limits) WithDefaults() Limits { return l.withDefaults() }

// The categories of errors, and the causes of failures.
var (
	ErrFormat       = errFormat
	ErrTruncated    = errTruncated
	ErrLimit        = errLimit
	ErrNotValidated = errNotValidated
	ErrIncomplete   = errIncomplete

	ErrBadID      = errBadID
	ErrNoEventlog = errNoEventlog
	ErrNoJobspec  = errNoJobspec
	ErrNoSubmit   = errNoSubmit
	ErrEventlog   = errEventlog
	ErrDuplicate  = errDuplicate
	ErrNotFile    = errNotFile
	ErrCheckpoint = errCheckpoint
	ErrApart      = errApart
)
