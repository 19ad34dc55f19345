package archive

// WithDefaults returns the limits in force.
func (l Limits) WithDefaults() Limits { return l.withDefaults() }

// The causes of failures.
var (
	ErrBadID      = errBadID
	ErrNoEventlog = errNoEventlog
	ErrNoJobspec  = errNoJobspec
	ErrNoSubmit   = errNoSubmit
	ErrEventlog   = errEventlog
	ErrDuplicate  = errDuplicate
	ErrNotFile    = errNotFile
	ErrCheckpoint = errCheckpoint
)
